"""Shares on demand of NodePools: of a NodePool's nodes so many are on demand, and the others where it is cheapest.

``joinery.dev/on-demand`` on a NodePool says how many. It counts nodes, not their vCPU: so do Auto Scaling groups,
``limits.nodes`` and budgets, and an interruption takes whole nodes. All that is there or on its way counts, but for
what is leaving. What is in a capacity reservation is on demand.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from joinery.objects.karpenter.labels import CAPACITY_TYPE, ON_DEMAND, ON_DEMAND_SHARE, RESERVED, canonical
from joinery.objects.karpenter.meta import Requirement
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.policies import OnDemandShare, on_demand_share_of

if TYPE_CHECKING:
    from joinery.objects.snapshot.snapshot import Snapshot

#: What is on demand: a reservation is not taken away for its price either.
ON_DEMAND_KINDS = frozenset({ON_DEMAND, RESERVED})


@dataclass(frozen=True, slots=True)
class PoolShare:
    """``share``: what is asked for. ``nodes``: how many there are, ``on_demand`` of them on demand for certain."""

    share: OnDemandShare
    nodes: int = 0
    on_demand: int = 0

    @property
    def wanted(self) -> int:
        """How many of the nodes should be on demand."""
        return self.share.of(self.nodes)

    @property
    def lacking(self) -> int:
        """How many more should be; 0 where the share holds."""
        return max(0, self.wanted - self.on_demand)

    def __str__(self) -> str:
        """``3 of 5 nodes are on demand, and joinery.dev/on-demand (2 + 30%) asks for 3``."""
        are = "node is" if self.nodes == 1 else "nodes are"
        asked = f"{ON_DEMAND_SHARE} ({self.share}) asks for {self.wanted}"
        return f"{self.on_demand} of {self.nodes} {are} on demand, and {asked}"

    def after(self, nodes: int, on_demand: int) -> "PoolShare":
        """With so many more nodes, so many of them on demand; fewer where a number is negative."""
        return replace(self, nodes=self.nodes + nodes, on_demand=self.on_demand + on_demand)


def pool_shares(snapshot: "Snapshot") -> Mapping[str, PoolShare]:
    """By NodePool that asks for a share. Costs nothing where none does."""
    asked = {pool.metadata.name: share for pool in snapshot.node_pools if (share := share_asked(pool)) is not None}
    if not asked:
        return {}
    # A Node that a kubelet left behind under another name is of the same claim.
    staying = {view.claim: view for view in snapshot.views if view.pool in asked and not view.is_leaving and view.claim}
    claims = {claim.metadata.name: claim for claim in snapshot.managed_claims if claim.metadata.name in staying}
    nodes, on_demand = Counter[str](), Counter[str]()
    for name, view in staying.items():
        nodes[view.pool] += 1
        on_demand[view.pool] += is_on_demand_node(view.labels, claims[name])
    return {name: PoolShare(share, nodes[name], on_demand[name]) for name, share in asked.items()}


def share_asked(pool: NodePool) -> OnDemandShare | None:
    """What its annotation says; None without one, or where it says nothing: then the NodePool is not valid."""
    try:
        return on_demand_share_of(pool.metadata.annotations[ON_DEMAND_SHARE])
    except (KeyError, ValueError):
        return None


def is_on_demand_node(labels: Mapping[str, str], claim: NodeClaim) -> bool:
    """Whether a node with these labels is on demand for certain. One that is not launched yet has none of that kind
    where it may be in a reservation as well.
    """
    return labels.get(CAPACITY_TYPE, "") in ON_DEMAND_KINDS or is_on_demand(claim.spec.requirements)


def is_on_demand(requirements: Iterable[Requirement]) -> bool:
    """Whether a node that satisfies these is on demand for certain."""
    rules = (rule for rule in requirements if canonical(rule.key) == CAPACITY_TYPE and rule.operator == "In")
    return any(ON_DEMAND_KINDS.issuperset(rule.values) for rule in rules)
