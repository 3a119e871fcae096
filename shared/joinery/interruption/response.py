"""The response to a notice: what becomes of the claims whose instances EC2 will take away.

The claim is marked, its node tainted, and the claim deleted. Nothing here waits for a replacement. From the mark on its
pods count as pending: provisioning, which the controller wakes, buys what they need, and lifecycle starts the drain
once EC2 has accepted that launch, or after fifteen seconds (``lifecycle.replacement``).

A rebalance recommendation becomes Events only: acting on it would cost healthy nodes.
"""

from collections.abc import Iterable
from datetime import datetime

from joinery.apis.core import Node
from joinery.apis.labels import INSTANCE_TYPE, INTERRUPTED_AT, RESERVATION_ID, RESERVED, SPOT, ZONE
from joinery.apis.nodeclaim import NodeClaim
from joinery.commands import Announce, Command, DeleteClaim, MarkUnavailable, Subject, UpdateClaim, UpdateNode
from joinery.interruption.notice import Notice, NoticeKind
from joinery.state.claims import annotated
from joinery.state.instances import instance_id
from joinery.state.offerings import OfferingKey
from joinery.state.snapshot import Snapshot
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


def respond(notice: Notice, snapshot: Snapshot) -> tuple[tuple[Command, ...], ...]:
    """What to do about each claim that the notice concerns, one chain of commands a claim.

    Nothing for instances of others.
    """
    nodes = {node.spec.provider_id: node for node in snapshot.nodes if node.spec.provider_id}
    return tuple(
        tuple(_commands(notice, claim, nodes.get(claim.status.provider_id), snapshot.now))
        for claim in snapshot.managed_claims
        if _concerns(notice, claim)
    )


def _concerns(notice: Notice, claim: NodeClaim) -> bool:
    if notice.reservation:
        return claim.metadata.labels.get(RESERVATION_ID) == notice.reservation
    return instance_id(claim.status.provider_id) in notice.instances


def _commands(notice: Notice, claim: NodeClaim, node: Node | None, now: datetime) -> Iterable[Command]:
    event, text = _EVENTS[notice.kind]
    yield from _shortage(notice.kind, claim, text)
    if claim.is_deleting:
        return
    subjects: tuple[Subject, ...] = (claim, node) if node else (claim,)
    warning = notice.kind is not NoticeKind.REBALANCE_RECOMMENDATION
    yield from (Announce(event, text, subject, warning=warning) for subject in subjects)
    if notice.kind is NoticeKind.REBALANCE_RECOMMENDATION:
        return
    yield from (Announce("TerminatingOnInterruption", text, subject, warning=True) for subject in subjects)
    yield from _retire(claim, node, text, now)


def _shortage(kind: NoticeKind, claim: NodeClaim, text: str) -> Iterable[Command]:
    labels = claim.metadata.labels
    short_of = _SHORT_OF.get(kind)
    if short_of and labels.get(INSTANCE_TYPE) and labels.get(ZONE):
        yield MarkUnavailable(OfferingKey(labels[INSTANCE_TYPE], labels[ZONE], short_of), text)


def _retire(claim: NodeClaim, node: Node | None, text: str, now: datetime) -> Iterable[Command]:
    if INTERRUPTED_AT not in claim.metadata.annotations:
        yield UpdateClaim(claim, annotated(claim, {INTERRUPTED_AT: now.isoformat()}), text)
    if node is not None and (tainted := disrupted(node)) != node:
        yield UpdateNode(node, tainted, text)
    yield DeleteClaim(claim, text)
