"""Whether an instance that no claim names may be ours all the same, because its launch is still in progress.

A claim is written before its instance is launched, and learns the instance's id when EC2 has answered. That takes some
seconds, and more than a minute if the run that asked was killed (``lifecycle.step.LAUNCHING``). The notice of an
instance that fails while it boots, or is taken back at once, comes before that. If it were dropped, the claim would
wait for a dead instance until the registration timeout, which is fifteen minutes (``lifecycle.joining.liveness``).

Most unknown instances are other people's, because EventBridge's rules are account-wide. So a notice is tried again only
while it is young, and only while a claim waits that may be its instance's.

Nor need all claims be read for every notice. In a storm warnings come one by one, a dozen in a second, and each batch
would list all claims of the cluster: megabytes, of which it needs one claim. What was read for the last batch says
which one that is, and it alone is read then (``controllers.interruption``).

What old claims cannot say is that an instance is nobody's. A claim is written before its instance is launched, and
EC2 tells of nothing within moments of a launch. So of claims that were read a moment ago one knows every instance that
a notice may be about, or it still waits for its launch; then it may know its instance by now, and they are read again.
Notices about reservations concern whoever is in them, and are always answered from new claims.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from joinery.decisions.interruption.notice import Notice, NoticeKind
from joinery.objects.errors import JoineryError
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.snapshot.claims import awaits_launch
from joinery.objects.snapshot.instances import instance_id
from joinery.objects.snapshot.snapshot import ClaimsSnapshot

#: How old claims may be that know every instance of the notices.
RECENT = timedelta(seconds=10)
#: How old they may be to say that an instance is nobody's. CreateFleet alone takes longer.
_A_MOMENT = timedelta(seconds=2)
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

    A rebalance recommendation is never worth another try: an Event about it is all that is done.
    """
    if notice.kind is NoticeKind.REBALANCE_RECOMMENDATION or notice.at is None or now - notice.at >= YOUNG:
        return False
    return any(awaits_launch(claim) and _is_older(claim, notice.at) for claim in claims)


def _is_older(claim: NodeClaim, moment: datetime) -> bool:
    created = claim.metadata.creation_timestamp
    return created is None or created <= moment + _CLOCK_SKEW


def suffice(snapshot: ClaimsSnapshot, age: timedelta, notices: Iterable[Notice]) -> bool:
    """Whether the claims, read so long ago, are enough to answer these notices."""
    return timedelta() <= age <= RECENT and all(_suffice_for(notice, snapshot, age) for notice in notices)


def _suffice_for(notice: Notice, snapshot: ClaimsSnapshot, age: timedelta) -> bool:
    if notice.reservation:
        return False
    if not unknown_instances(notice, snapshot):
        return True
    return age <= _A_MOMENT and not may_become_known(notice, snapshot.managed_claims, snapshot.now + age)
