"""What a pod should cost, and whether a node is good value: the price rules of first-fit.

A pod's **fair price** in a pool is the least that its share of a node can cost: over all types that hold it, price
times its largest share of a resource. It estimates the pod's dual price in the optimizer's assignment relaxation, and
gives way to that where one was solved. A node whose price is close to the fair price of all its pods is well filled.
"""

import numpy as np

from joinery.decisions.scheduling.firstfit.demand import Demand
from joinery.decisions.scheduling.pools.market import Amounts, Prices
from joinery.decisions.scheduling.pools.pool import Pool

GROWTH = 1.02
"""A node this close to its pods' fair price may always grow."""
_ANY = 1e12
"""Any price at all is bearable; finite, because pods may cost nothing, and nothing times infinity is no number."""


def fair_price_of_one(pool: Pool, demand: Demand) -> float:
    """The fair price of one pod of the class, in $/h,
    on a node that may still be anything the class allows in the pool.
    """
    _, fit = demand.fit(pool, {})
    if fit.conflict or not len(demand.asked):
        return 0.0
    room, requests = pool.room_by_resource[demand.asked], demand.requests[demand.asked][:, None]
    shares = (requests / np.maximum(room, 1)).max(axis=0)
    least = np.where((room >= requests).all(axis=0), fit.least_prices * shares, np.inf).min(initial=np.inf)
    return float(least) if np.isfinite(least) else 0.0


def best_start(prices: Prices, counts: Amounts, most: int) -> int:
    """How many pods a fresh node should take: what the type that is cheapest per pod holds; the fewest on a tie."""
    fitting = np.minimum(counts, most)
    usable = fitting > 0
    per_pod = np.where(usable, prices / np.maximum(fitting, 1), np.inf)
    least = per_pod.min()
    return int(fitting[per_pod <= least * (1 + 1e-9)].min())


def grown(prices: Prices, counts: Amounts, most: int, *, price: float, fair_price: float, unit: float) -> int:
    """How many more pods leave a node as good value as it is, or nearly ideal.

    ``prices`` and ``counts`` are those of the types it may become; ``price`` is the node's now, ``fair_price`` that of
    the pods on it, ``unit`` that of one more pod. Pods that cost nothing more are always welcome.
    """
    order = np.argsort(-counts, kind="stable")
    fitting = np.minimum(counts[order], most)
    cheapest = np.minimum.accumulate(prices[order])
    bearable = bearable_ratio(price, fair_price)
    good = (fitting > 0) & (cheapest <= np.maximum(bearable * (fair_price + fitting * unit), price) + 1e-12)
    return int(fitting[good].max()) if good.any() else 0


def bearable_ratio(price: float, fair_price: float) -> float:
    """How many times its pods' fair price a node may cost after growing."""
    return max(price / fair_price, GROWTH) if fair_price else _ANY
