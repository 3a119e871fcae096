"""Expiration: a claim older than its ``expireAfter`` is retired, and so is one in a capacity block that ends.

The rules are those of Karpenter nodeclaim/expiration. The claim's own ``expireAfter`` counts, which was copied from the
NodePool when the claim was written; what the pool says today does not. Nothing protects an old node: no budget, no
annotation, unless its NodePool asks for that (below). Its pods still have time: they count as pending from the deletion
on, and stay until their new node is launched. A capacity block that ends is a deadline of EC2's, so there the drain
does not wait for ever (``objects.annotations.drain_start``).

**Within budgets.** A NodePool may ask for more care (``joinery.dev/expiration-obeys-budgets``), and so may the stack
for all that do not say. Then an expired node waits like one that is disrupted voluntarily:

- for the NodePool's budgets. Those that name reasons are for these alone, and expiry is none of them
- for a stop (``objects.karpenter.disruption.stop_of``)
- for a disruption command that it is in: that replaces it anyway

The claim's ``terminationGracePeriod`` is its deadline. So long after its expiry it goes whatever the budgets say, and
counts against them all the same. Without one it waits for as long as the budgets ask. The oldest go first.

Up to v0.37 Karpenter's expiration was one of the ways in which it disrupted nodes voluntarily. So the nodes of pools of
the older APIs wait unless their pool says otherwise, and besides

- for pods that must not be disrupted, budgets of pods that are used up, and ``karpenter.sh/do-not-disrupt`` on the node
- for the budgets of a Provisioner that are for drift: it had none, and replaced one node with pods at a time
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from joinery.decisions.lifecycle.state.budgets import PoolNodes, allowed_by_budgets, pool_nodes
from joinery.decisions.lifecycle.state.disruption_check import DisruptionCheck
from joinery.objects.actions import Announce, Command, DeleteClaim, UpdateClaim
from joinery.objects.annotations.disruption import is_candidate
from joinery.objects.karpenter import duration
from joinery.objects.karpenter.disruption import DisruptionReason, stop_in_force, switch_of
from joinery.objects.karpenter.labels import EXPIRATION_OBEYS_BUDGETS, NODE_POOL, RESERVATION_ID, RETIRED_FOR
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.snapshot.claims import annotated
from joinery.objects.snapshot.snapshot import ClaimsSnapshot, Snapshot
from joinery.objects.wording import rfc3339


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
    return sorted(due, key=lambda one: (one[0], one[1].metadata.name))


def expires_at(claim: NodeClaim) -> datetime | None:
    """When the claim expires; None for one that never does, or is being deleted already."""
    created, lifetime = claim.metadata.creation_timestamp, duration.parse(claim.spec.expire_after)
    if created is None or lifetime is None or claim.is_deleting:
        return None
    return created + lifetime


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


# --- within budgets ---


@dataclass(frozen=True, slots=True)
class Waiting:
    """Expired claims of a NodePool that stay for now, the oldest first, and ``why``, as a sentence about the pool, or
    about the first of them.

    ``until``: when the first of them goes at the latest; None where none has a deadline.
    """

    pool: NodePool
    claims: tuple[str, ...]
    why: str
    until: datetime | None


def obeys_budgets(pool: NodePool, default: bool) -> bool:
    """Whether the pool's nodes expire within its budgets. ``default``: where a pool of v1 does not say.

    An annotation that cannot be read asks for care, too.
    """
    try:
        said = pool.metadata.annotations.get(EXPIRATION_OBEYS_BUDGETS)
        return switch_of(said) if said is not None else default or pool.origin is not None
    except ValueError:
        return True


def may_go(snapshot: Snapshot, pools: Collection[str], staying: Iterable[Waiting]) -> frozenset[str]:
    """The names of the expired claims of these NodePools that need not wait.

    ``staying``: what waits (``waiting``). Claims of a NodePool that cannot be read wait for their deadline: nobody
    knows what its budgets allow.
    """
    unreadable = {invalid.name for invalid in snapshot.invalid if invalid.kind == NodePool.kind}
    waits = {name for pool in staying for name in pool.claims}
    due = [claim for _, claim in expired(snapshot) if claim.metadata.labels.get(NODE_POOL) in pools]
    return frozenset(
        claim.metadata.name
        for claim in due
        if claim.metadata.name not in waits
        and (claim.metadata.labels[NODE_POOL] not in unreadable or _is_past_deadline(claim, snapshot.now))
    )


def waiting(snapshot: Snapshot, pools: Collection[str]) -> tuple[Waiting, ...]:
    """What has expired and waits, by NodePool. ``pools``: the names of those whose nodes expire within budgets."""
    return tuple(_waiting(snapshot, pools))


def _waiting(snapshot: Snapshot, pools: Collection[str]) -> Iterator[Waiting]:
    nodes = pool_nodes(snapshot.views)
    stop = stop_in_force(snapshot.node_pools, snapshot.now)
    all_due = [claim for _, claim in expired(snapshot)]
    check = DisruptionCheck(snapshot) if any(pool.origin for pool in snapshot.node_pools) else None
    for name in sorted(pools):
        due = [claim for claim in all_due if claim.metadata.labels.get(NODE_POOL) == name]
        pool = snapshot.pools_by_name.get(name)
        if not due or pool is None:
            continue
        protected = _protected(due, check) if check and pool.origin else {}
        if protected:
            yield Waiting(pool, tuple(protected), next(iter(protected.values())), None)
        reason = DisruptionReason.DRIFTED if pool.origin else DisruptionReason.EXPIRED
        most = allowed_by_budgets(pool, reason, nodes.get(name, PoolNodes()), snapshot.now)
        room, why = (0, stop.message) if stop else (most.allowed, most.why)
        left = _left([claim for claim in due if claim.metadata.name not in protected], room, snapshot.now)
        if left:
            deadlines = [at for claim in left if (at := _deadline(claim)) is not None]
            yield Waiting(pool, tuple(claim.metadata.name for claim in left), why, min(deadlines, default=None))


def _protected(due: Iterable[NodeClaim], check: DisruptionCheck) -> Mapping[str, str]:
    """By claim, what keeps its node, as a sentence."""
    objections = ((claim, check.objection([claim], DisruptionReason.EXPIRED)) for claim in due)
    return {claim.metadata.name: objection.message for claim, objection in objections if objection}


def _left(due: Sequence[NodeClaim], room: int, now: datetime) -> list[NodeClaim]:
    """Those for which there is no room, after those that cannot wait any longer. ``due``: the oldest first."""
    forced = {claim.metadata.name for claim in due if _is_past_deadline(claim, now)}
    rest = [claim for claim in due if claim.metadata.name not in forced]
    free = [claim for claim in rest if not is_candidate(claim)][: max(0, room - len(forced))]
    return [claim for claim in rest if claim not in free]


def _is_past_deadline(claim: NodeClaim, now: datetime) -> bool:
    deadline = _deadline(claim)
    return deadline is not None and deadline <= now


def _deadline(claim: NodeClaim) -> datetime | None:
    """When an expired claim goes at the latest."""
    at, period = expires_at(claim), claim.spec.termination_grace_period
    return at + (duration.parse(period) or timedelta()) if at and period is not None else None
