"""Expiration: a claim older than its ``expireAfter`` is retired, and so is one in a capacity block that ends.

The rules are those of Karpenter nodeclaim/expiration. The claim's own ``expireAfter`` counts, which was copied from the
NodePool when the claim was written; what the pool says today does not. Nothing protects an old node: no budget, no
annotation, unless its NodePool asks for that (``disruption.expiration_budgets``). Its pods still have time: they count
as pending from the deletion on, and stay until their new node is launched. A capacity block that ends is a deadline of
EC2's, so there the drain does not wait for ever (``objects.annotations.drain_start``).
"""

from collections.abc import Collection, Sequence
from datetime import datetime

from joinery.objects.actions import Announce, Command, DeleteClaim, UpdateClaim
from joinery.objects.karpenter import duration
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.karpenter.labels import RESERVATION_ID, RETIRED_FOR
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.moments import rfc3339
from joinery.objects.snapshot.claims import annotated
from joinery.objects.snapshot.snapshot import ClaimsSnapshot


def expire(snapshot: ClaimsSnapshot, waiting: Collection[str] = ()) -> tuple[tuple[Command, ...], ...]:
    """A chain of commands for each claim to retire: the expired ones, oldest first, then those in ending blocks.

    ``waiting``: names of claims that do not go for their age yet.
    """
    due = [(at, claim) for at, claim in expired(snapshot) if claim.metadata.name not in waiting]
    names = {claim.metadata.name for _, claim in due}
    others = (claim for claim in snapshot.managed_claims if claim.metadata.name not in names)
    return (
        *(given_up(claim, at) for at, claim in due),
        *(_leave_block(claim) for claim in others if _is_in_ending_block(claim, snapshot)),
    )


def expired(snapshot: ClaimsSnapshot) -> Sequence[tuple[datetime, NodeClaim]]:
    """The claims that are too old, each with the moment since when, the oldest first."""
    due = [(at, claim) for claim in snapshot.managed_claims if (at := expires_at(claim)) and at <= snapshot.now]
    return sorted(due, key=_order)


def expires_at(claim: NodeClaim) -> datetime | None:
    """When the claim expires; None for one that never does, or is being deleted already."""
    created, lifetime = claim.metadata.creation_timestamp, duration.parse(claim.spec.expire_after)
    if created is None or lifetime is None or claim.is_deleting:
        return None
    return created + lifetime


def _order(expired: tuple[datetime, NodeClaim]) -> tuple[datetime, str]:
    at, claim = expired
    return at, claim.metadata.name


def _is_in_ending_block(claim: NodeClaim, snapshot: ClaimsSnapshot) -> bool:
    """Whether EC2 is about to take the instance back: the class's status says so forty minutes before a block ends."""
    name = claim.metadata.labels.get(RESERVATION_ID)
    if name is None or claim.is_deleting:
        return False
    return any(name in node_class.expiring_reservations for node_class in snapshot.node_classes)


def _leave_block(claim: NodeClaim) -> tuple[Command, ...]:
    return (DeleteClaim(claim, f"capacity block {claim.metadata.labels[RESERVATION_ID]} ends in less than 40 minutes"),)


def given_up(claim: NodeClaim, at: datetime) -> tuple[Command, ...]:
    """The commands that retire a claim that has expired at that moment."""
    text = f"expired at {rfc3339(at)}, {claim.spec.expire_after} after it was created"
    retired = annotated(claim, {RETIRED_FOR: DisruptionReason.EXPIRED.value})
    # The mark first: a deletion without it would be drained after fifteen seconds.
    mark = (UpdateClaim(claim, retired, text),) if retired != claim else ()
    return Announce(DisruptionReason.EXPIRED.value, text, claim), *mark, DeleteClaim(claim, text)
