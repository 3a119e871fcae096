"""Whether an instance that no claim names may be ours all the same, because its launch is still in progress.

A claim is written before its instance is launched, and learns the instance's id when EC2 has answered. That takes some
seconds, and more than a minute if the run that asked was killed (``lifecycle.step.LAUNCHING``). The notice of an
instance that fails while it boots, or is taken back at once, comes before that. If it were dropped, the claim would
wait for a dead instance until the registration timeout, which is fifteen minutes (``lifecycle.joining.liveness``).

Most unknown instances are other people's, because EventBridge's rules are account-wide. So a notice is tried again only
while it is young, and only while a claim waits that may be its instance's.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from joinery.decisions.interruption.notice import Notice, NoticeKind
from joinery.objects.errors import JoineryError
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.snapshot.claims import awaits_launch
from joinery.objects.snapshot.instances import instance_id
from joinery.objects.snapshot.snapshot import ClaimsSnapshot

#: How long a notice is tried again. Longer than a launch that was left behind takes to be finished, and shorter than
#: the five tries of its queue: a notice about somebody else's instance never ends among the dead letters.
YOUNG = timedelta(seconds=120)
#: By how much the API server's clock, which stamps a claim, may be ahead of EventBridge's.
_CLOCK_SKEW = timedelta(seconds=5)


class EarlyNoticeError(JoineryError):
    """A notice of an instance that may be ours, and that no claim knows yet. It is to be delivered again."""


def unknown_instances(notice: Notice, snapshot: ClaimsSnapshot) -> tuple[str, ...]:
    """The instances of the notice that no claim knows, whether or not it can be read."""
    known = {instance_id(claim.status.provider_id) for claim in snapshot.node_claims}
    known |= {instance_id(claim.provider_id) for claim in snapshot.invalid}
    return tuple(instance for instance in notice.instances if instance not in known)


def may_become_known(notice: Notice, claims: Iterable[NodeClaim], now: datetime) -> bool:
    """Whether an instance that no claim knows may be that of a claim that waits for its launch.

    A rebalance recommendation is never worth another try: nothing is done about it but telling.
    """
    if notice.kind is NoticeKind.REBALANCE_RECOMMENDATION or notice.at is None or now - notice.at >= YOUNG:
        return False
    return any(awaits_launch(claim) and _is_older(claim, notice.at) for claim in claims)


def _is_older(claim: NodeClaim, moment: datetime) -> bool:
    created = claim.metadata.creation_timestamp
    return created is None or created <= moment + _CLOCK_SKEW
