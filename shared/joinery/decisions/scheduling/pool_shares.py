"""Shares on demand of NodePools, in a plan: how many of its new nodes are on demand, and which.

A packing is made as if there were no share. Then as many of a pool's new nodes as its share lacks are kept to on-demand
capacity, those that cost least more. A packing with all of the pool's new nodes on demand is tried beside it
(``strategies``), so where that is cheaper, as for the first nodes of a pool with a base, types are chosen by on-demand
prices from the start.

A share keeps no pod waiting. A node stays on spot whose pods require spot, or for which there is no on-demand capacity,
or none within the limits; others make up for it. What they cannot make up for, the plan says. A preference for spot
gives way.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from joinery.decisions.scheduling.constraints.requirements import Requirements, one_of
from joinery.decisions.scheduling.firstfit.limits import charge_of
from joinery.decisions.scheduling.firstfit.new_node import NewNode, PlacedPods
from joinery.decisions.scheduling.packing import Launch
from joinery.decisions.scheduling.pools.market import Mask
from joinery.decisions.scheduling.pools.type_choice import can_meet
from joinery.decisions.scheduling.problem import Problem
from joinery.objects.karpenter.labels import CAPACITY_TYPE, SPOT, ZONE
from joinery.objects.karpenter.meta import Requirement
from joinery.objects.snapshot.pool_shares import ON_DEMAND_KINDS, PoolShare, is_on_demand

_ON_DEMAND = one_of(ON_DEMAND_KINDS)


@dataclass(frozen=True)
class SharesKept:
    """What shares make of the new nodes of a packing.

    pools      that have a node kept to on-demand capacity for its share, or that lack some all the same
    lacking    how many nodes more should be on demand, of all pools
    cost       $/h that the plan costs more for that
    relaxed    the preferences for spot that pods gave up, by name
    """

    pools: frozenset[str] = frozenset()
    lacking: int = 0
    cost: float = 0.0
    relaxed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def keep_shares(shares: Mapping[str, PoolShare], nodes: Iterable[NewNode]) -> SharesKept:
    """Keep as many of the new nodes to on-demand capacity as shares lack, the cheapest changes first. Changes them.

    ``shares``: of the cluster as it is. Costs nothing where there are none.
    """
    bought: dict[str, list[NewNode]] = defaultdict(list)
    for node in nodes if shares else ():
        if node.pool.name in shares:
            bought[node.pool.name].append(node)
    pools, lacking, cost, relaxed = set[str](), 0, 0.0, dict[str, tuple[str, ...]]()
    for name, own in bought.items():
        unsure = [node for node in own if not ON_DEMAND_KINDS.issuperset(node.values(CAPACITY_TYPE))]
        wanted = shares[name].after(len(own), len(own) - len(unsure)).lacking
        if not wanted:
            continue
        changes = filter(None, map(_change, unsure))
        chosen = sorted(changes, key=lambda change: (bool(change.given_up), change.cost))[:wanted]
        for change in chosen:
            change.make()
            relaxed.update(change.given_up)
        cost += sum(change.cost for change in chosen)
        lacking += wanted - len(chosen)
        pools.add(name)
    return SharesKept(frozenset(pools), lacking, cost, relaxed)


def planned_shares(shares: Mapping[str, PoolShare], launches: Iterable[Launch]) -> Mapping[str, PoolShare]:
    """The shares of the NodePools that something is bought of, once that is there."""
    after: dict[str, PoolShare] = {}
    for launch in launches if shares else ():
        if share := after.get(launch.node_pool, shares.get(launch.node_pool)):
            after[launch.node_pool] = share.after(1, int(is_on_demand(launch.requirements)))
    return after


def not_kept(shares: Mapping[str, PoolShare], launches: Iterable[Launch]) -> Mapping[str, str]:
    """By NodePool that something is bought of, and whose share does not hold with that: how far it does, and why."""
    why = "the pods of the others require spot, or there is no on-demand capacity for them"
    after = planned_shares(shares, launches)
    return {name: f"{share}: {why}" for name, share in sorted(after.items()) if share.lacking}


def on_demand_alone(problem: Problem, names: frozenset[str]) -> Problem:
    """The problem in which nothing is bought on spot of these NodePools."""
    rule = Requirement(key=CAPACITY_TYPE, operator="NotIn", values=[SPOT])
    listed = problem.snapshot.node_pools
    pools = (pool.requiring([rule]) if pool.metadata.name in names else pool for pool in listed)
    return replace(problem, snapshot=replace(problem.snapshot, node_pools=tuple(pools)))


@dataclass(frozen=True)
class _Change:
    """A node as it is on demand. ``cost``: $/h more. ``given_up``: by pod, the preferences for spot."""

    node: NewNode
    after: NewNode
    cost: float
    given_up: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def make(self) -> None:
        """The node is on demand from now on."""
        self.node.become(self.after)


def _change(node: NewNode) -> _Change | None:
    """None for a node that has to be on spot."""
    columns, requirements, market = node.columns, node.requirements, node.pool.market
    given_up: Mapping[str, tuple[str, ...]] = {}
    on_demand = market.column_mask(CAPACITY_TYPE, _ON_DEMAND)
    if not (columns & on_demand).any():
        preferring = _preferring(node.placed)
        if preferring is None:
            return None
        given_up = {name: dropped for batch, dropped in preferring for name in batch.pods}
        zones = {market.columns[index].zone for index in np.flatnonzero(columns)}
        columns = node.pool.unreserved & market.column_mask(ZONE, one_of(zones))
        others = {key: allowed for key, allowed in requirements.sets.items() if key != CAPACITY_TYPE}
        requirements = Requirements(others | {CAPACITY_TYPE: node.pool.requirements.get(CAPACITY_TYPE)})
    columns = columns & on_demand
    types = node.types & np.isfinite(market.least_prices(columns)) & _within_charge(node)
    if not types.any() or (node.min_values and not can_meet(node.pool, types, columns, node.min_values)):
        return None
    requirements = requirements.intersect(Requirements({CAPACITY_TYPE: _ON_DEMAND}))
    after = replace(node, types=types, columns=columns, requirements=requirements)
    return _Change(node, after, _price(after) - _price(node), given_up)


def _price(node: NewNode) -> float:
    return float(node.least_prices[node.types].min())


def _within_charge(node: NewNode) -> Mask:
    """bool[types]: those that take no more of the pool's limits than the plan has charged for the node."""
    capacity, _ = node.pool.limited
    if not capacity.shape[1]:
        return np.ones_like(node.types)
    return np.asarray((capacity <= charge_of(node, capacity)).all(axis=1), dtype=np.bool_)


def _preferring(placed: Sequence[PlacedPods]) -> Sequence[tuple[PlacedPods, tuple[str, ...]]] | None:
    """The pods of a node that prefer spot, each with that preference in words; None if pods of it require spot, by
    themselves or because they are spread over capacity types.
    """
    preferring = []
    for batch in placed:
        pods = batch.demand.pod_class
        if CAPACITY_TYPE in batch.domains:
            return None
        if _excludes(batch.demand.requirements):
            if len(pods.terms) > 1 or _excludes(pods.terms[0]):
                return None
            said = tuple(str(one) for one in pods.preferred if _excludes(one.requirements))
            preferring.append((batch, (*batch.demand.variant.dropped, *said)))
    return preferring or None


def _excludes(wanted: Requirements) -> bool:
    """Whether nothing on demand satisfies them."""
    return wanted.get(CAPACITY_TYPE).intersect(_ON_DEMAND).is_impossible
