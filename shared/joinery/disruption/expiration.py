"""Expiration: a claim older than its ``expireAfter`` is retired, and one in a capacity block that ends (Karpenter nodeclaim/expiration).

The length of life was copied from the NodePool when the claim was made; the pool's value today is of no concern. Nothing
protects an old node: no budget, no annotation. What softens it is the drain, and that its pods count as pending from the
deletion on, so that their new node is launched before the old one is drained.
"""

from datetime import datetime, timedelta

from joinery.apis import duration
from joinery.apis.labels import RESERVATION_ID
from joinery.apis.nodeclaim import NodeClaim
from joinery.commands import Announce, Command, DeleteClaim
from joinery.state.snapshot import Snapshot


def expire(snapshot: Snapshot) -> tuple[tuple[Command, ...], ...]:
    """Retire every claim that has lived long enough, the oldest first; one chain a claim. Then those in blocks that end."""
    due = [(at, claim) for claim in snapshot.managed_claims if (at := expires_at(claim)) and at <= snapshot.now]
    retired = {claim.metadata.name for _, claim in due}
    ending = (claim for claim in snapshot.managed_claims if claim.metadata.name not in retired)
    return (
        *(_retire(claim, at) for at, claim in sorted(due, key=_order)),
        *(_leave(claim) for claim in ending if _is_in_ending_block(claim, snapshot)),
    )


def expires_at(claim: NodeClaim) -> datetime | None:
    """When the claim is due; None for one that never is, is going already, or has no age yet."""
    created, lasts = claim.metadata.creation_timestamp, _lifetime(claim)
    if created is None or lasts is None or claim.is_deleting:
        return None
    return created + lasts


def _lifetime(claim: NodeClaim) -> timedelta | None:
    return duration.parse(claim.spec.expire_after)


def _order(due: tuple[datetime, NodeClaim]) -> tuple[datetime, str]:
    return due[0], due[1].metadata.name


def _is_in_ending_block(claim: NodeClaim, snapshot: Snapshot) -> bool:
    """Whether EC2 is about to take its instance back: the class's status says so forty minutes before a block ends."""
    name = claim.metadata.labels.get(RESERVATION_ID)
    if name is None or claim.is_deleting:
        return False
    return any(name in node_class.expiring_reservations for node_class in snapshot.node_classes)


def _leave(claim: NodeClaim) -> tuple[Command, ...]:
    return (DeleteClaim(claim, f"capacity block {claim.metadata.labels[RESERVATION_ID]} ends in less than 40 minutes"),)


def _retire(claim: NodeClaim, at: datetime) -> tuple[Command, ...]:
    text = f"expired at {at.isoformat(timespec='seconds')}, {claim.spec.expire_after} after it was created"
    return Announce("Expired", text, claim), DeleteClaim(claim, text)
