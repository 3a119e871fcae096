"""Static NodePools (``spec.replicas``): which of their claims count towards the number of nodes that they keep."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from joinery.objects.annotations.disruption import ends_first, goes_by_itself, is_candidate, record_of, replaces_of
from joinery.objects.karpenter.labels import NODE_POOL
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.snapshot.instance_owners import copies
from joinery.objects.snapshot.snapshot import Snapshot


@dataclass(frozen=True)
class StaticPool:
    """A static NodePool of ours that is not being deleted.

    ``staying``: its claims, launched or not, but for those that are going or handed over to a replacement. One that has
    to end before it is replaced stays until it is gone.
    ``unreadable``: how many claims of it cannot be read. Their nodes are there all the same, so they count.
    """

    pool: NodePool
    staying: tuple[NodeClaim, ...]
    unreadable: int = 0

    @property
    def lacking(self) -> int:
        """How many nodes it lacks; negative if it has too many."""
        return (self.pool.spec.replicas or 0) - len(self.staying) - self.unreadable


def static_pools(snapshot: Snapshot) -> Mapping[str, StaticPool]:
    """The static NodePools by name. One that is being deleted takes its claims with it (owner references)."""
    pools = {
        pool.metadata.name: pool
        for pool in snapshot.node_pools
        if pool.is_static and pool.metadata.deletion_timestamp is None and snapshot.serves(pool)
    }
    if not pools:
        return {}
    by_pool: dict[str, list[NodeClaim]] = {name: [] for name in pools}
    ending: dict[str, list[NodeClaim]] = {name: [] for name in pools}
    doubles = copies(snapshot.managed_claims, snapshot.nodes)
    for claim in (claim for claim in snapshot.managed_claims if claim.metadata.name not in doubles):
        name = claim.metadata.labels.get(NODE_POOL, "")
        if name in by_pool and not goes_by_itself(claim):
            by_pool[name].append(claim)
        elif name in by_pool and ends_first(claim):
            ending[name].append(claim)
    for name, claims in by_pool.items():
        # What ends first is made up for when it is gone, and never makes a pool have one too many.
        claims += ending[name][: max(0, (pools[name].spec.replicas or 0) - len(claims))]
    unreadable = [invalid.node_pool for invalid in snapshot.invalid if invalid.kind == NodeClaim.kind]
    return {
        name: StaticPool(pools[name], _each_once(by_pool[name]), unreadable.count(name)) for name in sorted(by_pool)
    }


def _each_once(claims: Sequence[NodeClaim]) -> tuple[NodeClaim, ...]:
    """The claims, but of a candidate of a disruption command and its replacement only one.

    That is the replacement once it is written, and the candidate again when the command is rolled back. So a command
    that is stopped anywhere makes a pool neither lack a node nor have one too many.
    """
    names = {claim.metadata.name for claim in claims}
    handed_over = {claim.metadata.name for claim in claims if is_candidate(claim) and names & _replacements(claim)}
    counted = names - handed_over
    return tuple(
        claim
        for claim in claims
        if claim.metadata.name in counted and not ((link := replaces_of(claim)) and counted & set(link.candidates))
    )


def _replacements(candidate: NodeClaim) -> set[str]:
    record = record_of(candidate)
    return set(record.replacements) if record else set()
