"""Static NodePools (``spec.replicas``): which of their claims count towards the number of nodes that they keep."""

from collections.abc import Mapping
from dataclasses import dataclass

from joinery.apis.labels import NODE_POOL
from joinery.apis.nodeclaim import NodeClaim
from joinery.apis.nodepool import NodePool
from joinery.state.nodes import is_leaving
from joinery.state.snapshot import Snapshot


@dataclass(frozen=True)
class StaticPool:
    """A static NodePool of ours that is not being deleted.

    ``staying``: its claims, launched or not, but for those that are going. ``unreadable``: how many claims of it cannot
    be read. Their nodes are there all the same, so they count.
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
    staying: dict[str, list[NodeClaim]] = {name: [] for name in pools}
    for claim in snapshot.managed_claims:
        name = claim.metadata.labels.get(NODE_POOL, "")
        if name in staying and not is_leaving(None, claim):
            staying[name].append(claim)
    unreadable = [invalid.node_pool for invalid in snapshot.invalid if invalid.kind == NodeClaim.kind]
    return {name: StaticPool(pools[name], tuple(staying[name]), unreadable.count(name)) for name in sorted(pools)}
