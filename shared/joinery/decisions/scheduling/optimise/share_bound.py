"""Shares on demand of NodePools, for a bound: what nodes cost at least of which so many are on demand.

Where ``K`` nodes of a pool must be on demand, each of its nodes on demand may count as ``d`` $/h cheaper than it is,
and ``K d`` is added to whatever such nodes cost at least: all plans with ``K`` of them or more cost that (Lagrangian
relaxation of the row). Any ``d`` is right that leaves no price negative; the best is what the last of them costs more
than on spot.

``K`` is what the share asks for of as many nodes as there have to be: more nodes never want fewer on demand.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil

import numpy as np

from joinery.decisions.scheduling.constraints.requirements import one_of
from joinery.decisions.scheduling.firstfit.new_node import NewNode
from joinery.decisions.scheduling.optimise.proof_demands import ProofDemand
from joinery.decisions.scheduling.optimise.proof_instance import suitable
from joinery.decisions.scheduling.pools.market import Mask, Prices
from joinery.decisions.scheduling.pools.pool import Pool
from joinery.objects.karpenter.labels import CAPACITY_TYPE, SPOT
from joinery.objects.snapshot.pool_shares import ON_DEMAND_KINDS, PoolShare

#: $/h: as good as none. What nodes of other pools count as while those of one pool are counted: prices are divided by.
_NOTHING = 1e-6
#: Of the cheapest node on demand, so much may be taken off its price at most.
_MOST_OFF = 0.999

#: $/h that nodes cost at least at the pools' prices. Given: pools, and what the plan's nodes cost at these prices.
Least = Callable[[Sequence[Pool], float], float]


@dataclass(frozen=True, eq=False)
class SharePrices:
    """``pools``: with nodes on demand as much cheaper as counts. ``added``: $/h, what they count less together."""

    pools: Sequence[Pool]
    added: float


def share_prices(
    shares: Mapping[str, PoolShare],
    nodes: Sequence[NewNode],
    pools: Sequence[Pool],
    demands: Sequence[ProofDemand],
    least: Least,
) -> SharePrices | None:
    """Prices at which a bound keeps the shares of the plan's NodePools; None where they say nothing.

    ``shares``: of the cluster as it is. ``nodes``: the plan's, which keep them.
    """
    changed, added = dict[str, Pool](), 0.0
    for pool in pools:
        own = [node for node in nodes if node.pool.name == pool.name]
        if not own or pool.name not in shares or not (steps := sorted(_steps(own, pool))):
            continue
        # A plan that buys nothing of the pool owes its share nothing.
        fewest = _fewest(pool, len(own), nodes, pools, least)
        count = shares[pool.name].after(fewest, 0).lacking if fewest else 0
        step = min(steps[min(count, len(steps)) - 1], _most_off(pool, demands)) if count else 0.0
        if step > _NOTHING:
            # Types too small for any pod may cost less than nothing then, and nobody asks for them.
            prices = np.maximum(pool.market.prices - step * _on_demand(pool), _NOTHING)
            changed[pool.name] = _at_prices(pool, prices)
            added += step * count
    return SharePrices([changed.get(pool.name, pool) for pool in pools], added) if changed else None


def _fewest(pool: Pool, own: int, nodes: Sequence[NewNode], pools: Sequence[Pool], least: Least) -> int:
    """How many nodes of the pool there have to be. ``own``: how many the plan buys of it."""
    counted = [_at_prices(one, _count(one, pool)) for one in pools]
    others = (len(nodes) - own) * _NOTHING
    # Nodes of others count as so little that all of them together are none of this pool.
    return max(0, ceil(least(counted, own + others) - sum(len(node.pods) for node in nodes) * _NOTHING))


def _count(one: Pool, pool: Pool) -> Prices:
    return np.where(np.isfinite(one.market.prices), 1.0 if one is pool else _NOTHING, np.inf)


def _steps(own: Sequence[NewNode], pool: Pool) -> Iterator[float]:
    """$/h that each of the pool's nodes on demand costs more than the cheapest of its types on spot."""
    market, spot = pool.market, pool.columns & pool.market.column_mask(CAPACITY_TYPE, one_of((SPOT,)))
    for node in own:
        if ON_DEMAND_KINDS.issuperset(node.values(CAPACITY_TYPE)):
            on_spot = market.least_prices(spot)[node.types].min(initial=np.inf)
            price = market.least_prices(node.columns)[node.types].min(initial=np.inf)
            if np.isfinite(on_spot) and np.isfinite(price):
                yield max(0.0, float(price - on_spot))


def _most_off(pool: Pool, demands: Sequence[ProofDemand]) -> float:
    """$/h: of any node on demand that may be bought for some of the pods, less may be taken off."""
    on_demand, cheapest = _on_demand(pool), np.inf
    for demand in demands:
        for types, columns in suitable(demand, pool):
            prices = pool.market.prices[types & pool.has_room(demand.row)][:, columns & on_demand]
            cheapest = min(cheapest, float(prices.min(initial=np.inf)))
    return cheapest * _MOST_OFF if np.isfinite(cheapest) else 0.0


def _on_demand(pool: Pool) -> Mask:
    """bool[columns]."""
    return pool.columns & pool.market.column_mask(CAPACITY_TYPE, one_of(ON_DEMAND_KINDS))


def _at_prices(pool: Pool, prices: Prices) -> Pool:
    return replace(pool, market=pool.market.at_prices(prices))
