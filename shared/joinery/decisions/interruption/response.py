"""The response to a notice: what becomes of the claims whose instances EC2 will take away.

The claim is marked, its node tainted, and the claim deleted. Each is a chain of its own, because none relies on
another: what one of them meets (a conflict, a refusal) must not cost the time that the others have. Nothing here waits
for a replacement. From the mark on its pods count as pending: provisioning, which the controller wakes, buys what they
need, and lifecycle starts the drain once EC2 has accepted that launch, or after fifteen seconds
(``lifecycle.state.replacement``).

A change that EC2 has scheduled for later leaves time. Its claim is retired like one for its age: its pods stay until
their next node is launched, and the start of the change is its deadline.

A rebalance recommendation becomes Events only, unless the NodePool wants more (``interruption.rebalance``).
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType

from joinery.decisions.interruption.notice import Notice, NoticeKind
from joinery.decisions.termination.taint import disrupted
from joinery.objects.actions import Announce, Command, DeleteClaim, MarkUnavailable, Subject, UpdateClaim, UpdateNode
from joinery.objects.annotations.drain_start import SCHEDULED_CHANGE, deadline, is_retired
from joinery.objects.karpenter.labels import (
    INSTANCE_TYPE,
    INTERRUPTED_AT,
    REBALANCE_RECOMMENDED_AT,
    RESERVATION_ID,
    RESERVED,
    RETIRED_FOR,
    SPOT,
    TERMINATION_TIMESTAMP,
    ZONE,
)
from joinery.objects.karpenter.meta import with_metadata
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Node
from joinery.objects.policies import Rebalance
from joinery.objects.snapshot.claims import annotated, moment
from joinery.objects.snapshot.instances import instance_id
from joinery.objects.snapshot.offerings import OfferingKey

#: Kind of notice to the reason of its Event and what it says (Karpenter interruption controller).
EVENTS = {
    NoticeKind.SPOT_INTERRUPTED: ("SpotInterrupted", "EC2 will reclaim the spot instance"),
    NoticeKind.CAPACITY_RESERVATION_INTERRUPTED: (
        "CapacityReservationInstanceInterrupted",
        "EC2 will reclaim the instance for its capacity reservation",
    ),
    NoticeKind.CAPACITY_BLOCK_EXPIRING: (
        "CapacityBlockExpiring",
        "EC2 will reclaim the instance when its capacity block ends",
    ),
    NoticeKind.REBALANCE_RECOMMENDATION: ("SpotRebalanceRecommendation", "the spot instance is at a higher risk"),
    NoticeKind.SCHEDULED_CHANGE: ("InstanceUnhealthy", "EC2 has scheduled a change of the instance"),
    NoticeKind.INSTANCE_STOPPED: ("InstanceStopping", "the instance is stopping"),
    NoticeKind.INSTANCE_TERMINATED: ("InstanceTerminating", "the instance is shutting down"),
    NoticeKind.EVENT_STATUS: ("InstanceUnhealthy", "EC2 has scheduled an event for the instance"),
    NoticeKind.INSTANCE_STATUS: ("InstanceUnhealthy", "EC2's check of the instance has failed for two minutes"),
    NoticeKind.SYSTEM_STATUS: ("InstanceUnhealthy", "EC2's check of the instance's host has failed for two minutes"),
}

#: The kinds of notice that mean that EC2 needs the capacity back, or soon may, and the capacity type of the pool that
#: is short then. The replacement must not be launched in that pool.
_SHORT_OF = {
    NoticeKind.SPOT_INTERRUPTED: SPOT,
    NoticeKind.REBALANCE_RECOMMENDATION: SPOT,
    NoticeKind.CAPACITY_RESERVATION_INTERRUPTED: RESERVED,
    NoticeKind.CAPACITY_BLOCK_EXPIRING: RESERVED,
}


#: The kinds of notice about an instance that does not work any more. Its drain would wait for a kubelet that is silent,
#: so its deadline is now.
_BROKEN = (NoticeKind.INSTANCE_STATUS, NoticeKind.SYSTEM_STATUS)
#: The kinds of notice after which EC2 takes the instance within two minutes.
_SUDDEN = (
    NoticeKind.SPOT_INTERRUPTED,
    NoticeKind.CAPACITY_RESERVATION_INTERRUPTED,
    NoticeKind.INSTANCE_STOPPED,
)
#: How old a notice can be that its queue has kept (template.yaml). An older one is a dead letter that a person sends
#: again, or a sample of the documentation.
_KEPT = timedelta(minutes=5)


def concerned(notice: Notice, claims: Iterable[NodeClaim]) -> tuple[NodeClaim, ...]:
    """The claims that the notice is about; none for instances of others."""
    if notice.reservation:
        return tuple(claim for claim in claims if claim.metadata.labels.get(RESERVATION_ID) == notice.reservation)
    return tuple(claim for claim in claims if instance_id(claim.status.provider_id) in notice.instances)


def respond(
    notice: Notice,
    claims: Iterable[NodeClaim],
    nodes: Mapping[str, Node],
    now: datetime,
    rebalance: Mapping[str, Rebalance] = MappingProxyType({}),
) -> tuple[tuple[Command, ...], ...]:
    """What to do about the claims that the notice concerns, in chains of commands that do not rely on each other.

    ``nodes``: by the name of a claim, its Node as far as it is there. ``rebalance``: by the name of a claim, what is
    done about a recommendation; nothing for one that is not in it.
    """
    chains: list[tuple[Command, ...]] = []
    for claim in claims:
        name = claim.metadata.name
        mode = rebalance.get(name, Rebalance.OFF)
        if notice.kind is NoticeKind.REBALANCE_RECOMMENDATION and mode is not Rebalance.DRAIN:
            chains += _recommended(claim, nodes.get(name), notice.at, now, mode)
        else:
            chains += _chains(notice, claim, nodes.get(name), now)
    return tuple(chain for chain in chains if chain)


def _recommended(
    claim: NodeClaim, node: Node | None, sent: datetime | None, now: datetime, mode: Rebalance
) -> Iterable[tuple[Command, ...]]:
    """Tell of a recommendation and, where the node is to be replaced, leave that to provisioning."""
    if claim.is_deleting:
        return
    event, text = EVENTS[NoticeKind.REBALANCE_RECOMMENDATION]
    yield tuple(Announce(event, text, subject) for subject in (claim, node) if subject is not None)
    if mode is Rebalance.REPLACE:
        at = min(sent or now, now).isoformat()
        yield (UpdateClaim(claim, annotated(claim, {REBALANCE_RECOMMENDED_AT: at}), text),)
        yield tuple(_shortage(NoticeKind.REBALANCE_RECOMMENDATION, claim, text))


def _chains(notice: Notice, claim: NodeClaim, node: Node | None, now: datetime) -> Iterable[tuple[Command, ...]]:
    event, text = EVENTS[notice.kind]
    if claim.is_deleting:
        yield from _hurry(notice, claim, text, now)
        yield tuple(_shortage(notice.kind, claim, text))
        return
    subjects: tuple[Subject, ...] = (claim, node) if node else (claim,)
    events = tuple(Announce(event, text, subject) for subject in subjects)
    yield *events, *(Announce("TerminatingOnInterruption", text, subject) for subject in subjects)
    # The deletion waits for nothing: without its mark the claim counts as leaving all the same, and lifecycle taints
    # the Node of whatever is being deleted. The mark comes first because it outlives a deletion that fails: lifecycle
    # deletes what is marked.
    marks = _marks(notice, claim, now)
    mark = (UpdateClaim(claim, annotated(claim, marks), text),) if marks else ()
    has_time = RETIRED_FOR in marks
    if not has_time:
        yield mark
    if node is not None and (tainted := disrupted(node)) != node:
        yield (UpdateNode(node, tainted, text),)
    # Without its mark a claim that has time would be drained like one that has none.
    yield (*(mark if has_time else ()), DeleteClaim(claim, text))
    yield tuple(_shortage(notice.kind, claim, text))


def is_about_capacity(chain: Sequence[Command]) -> bool:
    """Whether the chain only remembers that EC2 is short of a spot pool. That helps to buy the replacement, but the
    node goes without it, so nothing else waits for it.
    """
    return all(isinstance(command, MarkUnavailable) for command in chain)


def _shortage(kind: NoticeKind, claim: NodeClaim, text: str) -> Iterable[Command]:
    short_of = _SHORT_OF.get(kind)
    if short_of is None:
        return
    keys = (INSTANCE_TYPE, ZONE, RESERVATION_ID) if short_of == RESERVED else (INSTANCE_TYPE, ZONE)
    instance_type, zone, *reservation = (claim.metadata.labels.get(key, "") for key in keys)
    # Without its labels nobody knows which pool it is.
    if instance_type and zone and all(reservation):
        yield MarkUnavailable(OfferingKey(instance_type, zone, short_of, *reservation), text)


def _hurry(notice: Notice, claim: NodeClaim, text: str, now: datetime) -> Iterable[tuple[Command, ...]]:
    """Mark a claim that goes already: now its time is short. Its drain must not wait any longer for its replacement,
    for a successor that comes first, or for the pods on an instance that does not work.

    It may go by this very warning: its deletion does not wait for the mark, which may have met a conflict.
    """
    # The end of an instance is what every claim that is deleted comes to, by our own doing.
    is_loss = notice.kind not in (NoticeKind.REBALANCE_RECOMMENDATION, NoticeKind.INSTANCE_TERMINATED)
    marks = _marks(notice, claim, now)
    if is_loss and marks and (is_retired(claim) or notice.kind in (*_SUDDEN, *_BROKEN)):
        yield (UpdateClaim(claim, annotated(claim, marks), text),)


def _marks(notice: Notice, claim: NodeClaim, now: datetime) -> dict[str, str]:
    """The annotations that say since when the claim goes and, for an instance that is broken, that its time is over.

    Empty if it says so already.
    """
    if notice.starts is not None and notice.starts > now:
        return _marks_before(notice.starts, claim, now)
    marks = {} if INTERRUPTED_AT in claim.metadata.annotations else {INTERRUPTED_AT: _since(notice, now).isoformat()}
    ends = moment(claim.metadata.annotations.get(TERMINATION_TIMESTAMP, ""))
    if notice.kind in _BROKEN and (ends is None or ends > now):
        marks[TERMINATION_TIMESTAMP] = now.isoformat()
    return marks


def _marks_before(starts: datetime, claim: NodeClaim, now: datetime) -> dict[str, str]:
    """The annotations for a claim that has time until a change of its instance begins."""
    annotations = claim.metadata.annotations
    if INTERRUPTED_AT in annotations:
        return {}
    marks = {} if claim.is_deleting or RETIRED_FOR in annotations else {RETIRED_FOR: SCHEDULED_CHANGE}
    # Its own grace period may be over before that.
    ends = deadline(claim if claim.is_deleting else with_metadata(claim, deletion_timestamp=now))
    if ends is None or ends > starts:
        marks[TERMINATION_TIMESTAMP] = starts.isoformat()
    return marks


def _since(notice: Notice, now: datetime) -> datetime:
    """Since when EC2 takes the instance. It does not wait for a notice that is heard at its second delivery only."""
    return notice.at if notice.at is not None and notice.at <= now < notice.at + _KEPT else now
