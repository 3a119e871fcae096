"""Rotation: the webhook's token gives way to a new one, and no call of the API server is refused meanwhile.

One step at a time, each from what is stored, so that a run that was stopped anywhere is simply repeated:

1. The new token is added to the secret. Doors read it within ``REMEMBERED``.
2. Once every door knows it, the webhook configuration gets it. The old one stays valid, because API servers learn of a
   configuration one after the other.
3. Once all have learned of it, the old token goes.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from joinery.objects.kubernetes.webhook_secret import REMEMBERED, WebhookSecret

#: After this long every door goes by what is stored, and every API server by its configuration.
SPREAD_TIME = REMEMBERED + timedelta(minutes=1)


@dataclass(frozen=True)
class RotationStep:
    """What is done now, in this order.

    ``configured``: the token that the webhook configuration gets; empty if it stays. ``stored``: the secret as it is
    written then; None if it stays. ``wait``: the time until the next step; None at the end.
    """

    text: str
    configured: str = ""
    stored: WebhookSecret | None = None
    wait: timedelta | None = None


def next_step(secret: WebhookSecret, now: datetime, *, fresh: str, is_due: bool) -> RotationStep:
    """The step that comes now. ``fresh``: a new token, if one is needed. ``is_due``: whether a rotation is to begin;
    one that has begun goes on in any case.
    """
    left = _left(secret, now)
    if left > timedelta():
        return RotationStep("both tokens are valid; waiting until every door knows them", wait=left)
    if secret.next:
        applied = replace(secret, token=secret.next, next="", former=secret.token, since=now.isoformat())
        text = "the webhook configuration carries the new token"
        return RotationStep(text, configured=secret.next, stored=applied, wait=SPREAD_TIME)
    if secret.former:
        # Once more: an update of the stack may have written the former token at the same moment as step 2.
        return RotationStep("the former token is void", configured=secret.token, stored=WebhookSecret(secret.token))
    if not is_due:
        return RotationStep("nothing is due")
    staged = WebhookSecret(secret.token, next=fresh, since=now.isoformat())
    return RotationStep("a new token is valid beside the present one", stored=staged, wait=SPREAD_TIME)


def _left(secret: WebhookSecret, now: datetime) -> timedelta:
    """How long until the step that was taken last is known everywhere: at most ``SPREAD_TIME``, even where a wrong
    clock wrote a moment of the future.
    """
    if secret.changed_at is None:
        return timedelta()
    return min(secret.changed_at + SPREAD_TIME - now, SPREAD_TIME)
