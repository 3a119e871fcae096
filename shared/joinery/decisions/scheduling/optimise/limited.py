"""What nodes may take of the limits of NodePools, as side constraints.

At most what is left. Where pods are in lighter NodePools it is also at least so much that none of them could have had
a node of the heavier one: otherwise they would be in the wrong pool.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from joinery.decisions.optimizer.arrays import Floats
from joinery.decisions.optimizer.instance.patterns import Pattern
from joinery.decisions.optimizer.instance.side_constraints import SideConstraint
from joinery.decisions.scheduling.firstfit.demand import Demand, Domains
from joinery.decisions.scheduling.firstfit.new_node import NewNode
from joinery.decisions.scheduling.firstfit.new_nodes import NewNodes
from joinery.decisions.scheduling.optimise.bin_types import BinTypes
from joinery.decisions.scheduling.pools.pool import Pool

_ROUNDING = 1e-6


def limits_of(pools: Sequence[Pool], bin_types: BinTypes) -> Iterator[tuple[Pool, str, Floats]]:
    """Every limit of pools that sell some of the bin types: the pool, the resource, and float64[bin types], what a node
    takes of it.
    """
    for index, pool in enumerate(pools):
        is_of_pool = bin_types.pool == index
        if not is_of_pool.any():
            continue
        capacity, _ = pool.limited
        # Any row will do where the bin type is another pool's.
        rows = np.where(is_of_pool, bin_types.instance_type, 0)
        for column, resource in enumerate(pool.limited_names):
            yield pool, resource, np.where(is_of_pool, capacity[rows, column], 0.0)
        if "nodes" in pool.limits:
            yield pool, "nodes", is_of_pool.astype(np.float64)


def limit_rows(pools: Sequence[Pool], bin_types: BinTypes, kept: NewNodes, bought: NewNodes) -> list[SideConstraint]:
    """For nodes beside those that are ``kept``. ``bought``: the known nodes, which are right."""
    no_items, rows = np.zeros(len(bin_types.compatible)), list[SideConstraint]()
    spare: dict[str, Mapping[str, float]] = {}
    for pool, resource, taken in limits_of(pools, bin_types):
        left = kept.limits[pool.name].left[resource]
        rows.append(SideConstraint(no_items, taken, float(left)))
        if pool.name not in spare:
            spare[pool.name] = _spare(pool, bought)
        if left > spare[pool.name][resource]:
            rows.append(SideConstraint(no_items, -taken, float(spare[pool.name][resource] - left)))
    return rows


def are_kept(patterns: Sequence[Pattern], rows: Sequence[SideConstraint]) -> bool:
    """Whether bins of these patterns keep the rows, which count bins only."""
    totals = (sum(row.bin_types[pattern.bin_type] * pattern.copies for pattern in patterns) for row in rows)
    return all(total <= row.upper + _ROUNDING for total, row in zip(totals, rows, strict=True))


def _spare(pool: Pool, bought: NewNodes) -> Mapping[str, float]:
    """How much of each limit may be left, so that no pod in a lighter pool could have had a node: no more than the
    known nodes leave, or too little for the smallest node that would do. Where there are several limits, it may be too
    little of one of them only, so there the known nodes are asked.
    """
    least = _least_capacities(pool, bought)
    left = bought.limits[pool.name].left
    if not least:
        return dict.fromkeys(left, np.inf)
    if len(left) > 1:
        return left
    return {resource: max(amount, min(one[resource] for one in least) - 1) for resource, amount in left.items()}


def _least_capacities(pool: Pool, bought: NewNodes) -> list[Mapping[str, float]]:
    """What the smallest node of the pool takes of each limit, for each demand with pods in a lighter pool."""
    capacity, _ = pool.limited
    least = list[Mapping[str, float]]()
    for demand, domains in lighter_demands(bought.opened.nodes, pool):
        node = bought.start(pool, demand, domains)
        _, rows, counts = node.holds(demand, np.ones_like(pool.types)) if node else (0, np.zeros(0), np.zeros(0))
        if (counts > 0).any():
            amounts = capacity[rows[counts > 0]].min(axis=0)
            least.append({**dict(zip(pool.limited_names, amounts.tolist(), strict=True)), "nodes": 1.0})
    return least


def lighter_demands(nodes: Sequence[NewNode], pool: Pool) -> list[tuple[Demand, Domains]]:
    """Demands, and the domains in which they are wanted, with pods in NodePools that are lighter than this one."""
    batches = [batch for node in nodes if node.pool.weight < pool.weight for batch in node.placed]
    distinct = {(batch.demand, tuple(sorted(batch.domains.items()))): batch for batch in batches}
    return [(batch.demand, batch.domains) for batch in distinct.values()]


def passed_over(pools: Sequence[Pool], bought: NewNodes) -> frozenset[tuple[str, Demand]]:
    """NodePools (names) with room within their limits for one more node for pods that are in a lighter one, and those
    pods.
    """
    return frozenset(
        (pool.name, demand)
        for pool in pools
        if pool.limits
        for demand, domains in lighter_demands(bought.opened.nodes, pool)
        if bought.could_open(pool, demand, domains)
    )
