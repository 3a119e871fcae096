"""The response to a notice: what becomes of the claims whose instances EC2 will take away.

The claim is marked, its node tainted, and the claim deleted. Each is a chain of its own, because none relies on
another: what one of them meets (a conflict, a refusal) must not cost the time that the others have. Nothing here waits
for a replacement. From the mark on its pods count as pending: provisioning, which the controller wakes, buys what they
need, and lifecycle starts the drain once EC2 has accepted that launch, or after fifteen seconds
(``lifecycle.replacement``).

A rebalance recommendation becomes Events only: acting on it would cost healthy nodes.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime

from joinery.apis.core import Node
from joinery.apis.labels import INSTANCE_TYPE, INTERRUPTED_AT, RESERVATION_ID, RESERVED, SPOT, ZONE
from joinery.apis.nodeclaim import NodeClaim
from joinery.commands import Announce, Command, DeleteClaim, MarkUnavailable, Subject, UpdateClaim, UpdateNode
from joinery.interruption.notice import Notice, NoticeKind
from joinery.state.claims import annotated
from joinery.state.instances import instance_id
from joinery.state.offerings import OfferingKey
from joinery.state.retirement import is_retired
from joinery.termination.taint import disrupted

#: Kind of notice to the reason of its Event and what it says (Karpenter interruption controller).
_EVENTS = {
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
}

#: The kinds of notice that mean that EC2 needs the capacity back, and the capacity type of the pool that is short then.
#: The replacement must not be launched in that pool.
_SHORT_OF = {
    NoticeKind.SPOT_INTERRUPTED: SPOT,
    NoticeKind.CAPACITY_RESERVATION_INTERRUPTED: RESERVED,
    NoticeKind.CAPACITY_BLOCK_EXPIRING: RESERVED,
}


def concerned(notice: Notice, claims: Iterable[NodeClaim]) -> tuple[NodeClaim, ...]:
    """The claims that the notice is about; none for instances of others."""
    if notice.reservation:
        return tuple(claim for claim in claims if claim.metadata.labels.get(RESERVATION_ID) == notice.reservation)
    return tuple(claim for claim in claims if instance_id(claim.status.provider_id) in notice.instances)


def respond(
    notice: Notice, claims: Iterable[NodeClaim], nodes: Mapping[str, Node], now: datetime
) -> tuple[tuple[Command, ...], ...]:
    """What to do about the claims that the notice concerns, in chains of commands that do not rely on each other.

    ``nodes``: by the name of a claim, its Node as far as it is there.
    """
    return tuple(
        chain for claim in claims for chain in _chains(notice, claim, nodes.get(claim.metadata.name), now) if chain
    )


def _chains(notice: Notice, claim: NodeClaim, node: Node | None, now: datetime) -> Iterable[tuple[Command, ...]]:
    event, text = _EVENTS[notice.kind]
    yield tuple(_shortage(notice.kind, claim, text))
    if claim.is_deleting:
        yield from _hurry(notice.kind, claim, text, now)
        return
    subjects: tuple[Subject, ...] = (claim, node) if node else (claim,)
    warning = notice.kind is not NoticeKind.REBALANCE_RECOMMENDATION
    events = tuple(Announce(event, text, subject, warning=warning) for subject in subjects)
    if notice.kind is NoticeKind.REBALANCE_RECOMMENDATION:
        yield events
        return
    yield *events, *(Announce("TerminatingOnInterruption", text, subject, warning=True) for subject in subjects)
    # The deletion waits for nothing: without its mark the claim counts as leaving all the same, and lifecycle taints
    # the Node of whatever is being deleted. The mark comes first because it outlives a deletion that fails: lifecycle
    # deletes what is marked.
    if INTERRUPTED_AT not in claim.metadata.annotations:
        yield (UpdateClaim(claim, annotated(claim, {INTERRUPTED_AT: now.isoformat()}), text),)
    if node is not None and (tainted := disrupted(node)) != node:
        yield (UpdateNode(node, tainted, text),)
    yield (DeleteClaim(claim, text),)


def _shortage(kind: NoticeKind, claim: NodeClaim, text: str) -> Iterable[Command]:
    labels = claim.metadata.labels
    short_of = _SHORT_OF.get(kind)
    if short_of and labels.get(INSTANCE_TYPE) and labels.get(ZONE):
        yield MarkUnavailable(OfferingKey(labels[INSTANCE_TYPE], labels[ZONE], short_of), text)


def _hurry(kind: NoticeKind, claim: NodeClaim, text: str, now: datetime) -> Iterable[tuple[Command, ...]]:
    """Mark a claim that waits for its replacement: now its time is short, and its drain must not wait on."""
    # The end of an instance is what every claim that is deleted comes to, by our own doing.
    is_loss = kind not in (NoticeKind.REBALANCE_RECOMMENDATION, NoticeKind.INSTANCE_TERMINATED)
    if is_loss and is_retired(claim):
        yield (UpdateClaim(claim, annotated(claim, {INTERRUPTED_AT: now.isoformat()}), text),)
