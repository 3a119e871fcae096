"""The lower bound of one price for each resource on all bin types, for when there is no time for a better one.

**Claim.** Take one price for each resource, none below zero. On a bin type scale them all by what a full bin of it
costs over what it would be charged; then a copy of an item costs at least what it is charged on the compatible bin type
that charges it least, and a packing at least the sum of that over all copies.

**Proof.** These are prices of their own for every bin type, which charge a full bin its cost, so the claim of
``assignment_bound`` holds. Bin types of a limited supply are scaled so that they charge no item less than other bin
types do; what a full one is charged beyond its cost is taken off the sum, as it is there. ∎

No linear program is solved: of a grid of prices the best counts. With 150 classes of different node affinity it takes
hundredths of a second and is within a percent of the relaxation's, which takes HiGHS 22 s.
"""

from itertools import product

import numpy as np

from joinery.decisions.optimizer.arrays import Floats, Ints, Mask
from joinery.decisions.optimizer.bounds.assignment_bound import supply_excess
from joinery.decisions.optimizer.instance.decomposition import independent_parts
from joinery.decisions.optimizer.instance.packing_instance import PackingInstance

_GRID_STEPS = 48


def market_bound_of_parts(instance: PackingInstance) -> float:
    """The same, with prices of their own for parts that nothing connects, as zones are where pods are tied to them."""
    return sum((market_bound(part.instance) for part in independent_parts(instance)), 0.0)


def market_bound(instance: PackingInstance) -> float:
    """$/h that no packing of all demands can undercut."""
    used = np.flatnonzero(instance.sizes.any(axis=0))
    sizes, capacities = (instance.sizes / instance.scale)[:, used], (instance.capacities / instance.scale)[:, used]
    # Thousands of items are compatible with the same bin types, and each such row is asked once.
    rows, row_of = np.unique(instance.compatible, axis=0, return_inverse=True)
    return max(
        (_bound(instance, rows, row_of.ravel(), sizes @ prices, capacities @ prices) for prices in shares(len(used))),
        default=0.0,
    )


def _bound(instance: PackingInstance, rows: Mask, row_of: Ints, charged: Floats, full: Floats) -> float:
    """``rows``: bool[rows, bin types], which are compatible with some item; ``row_of``: int64[items]. ``charged``:
    float64[items], what a copy is charged before scaling; ``full``: float64[bin types], a full bin.
    """
    unit = np.where(instance.is_limited, np.inf, instance.costs / np.maximum(full, 1e-300))
    least = np.where(rows, unit, np.inf).min(axis=1, initial=np.inf)
    # What only limited supplies could hold is charged nothing.
    least[~np.isfinite(least)] = 0.0
    needed = np.where(rows, least[:, None], 0.0).max(axis=0, initial=0.0)
    beyond = np.maximum(needed * full - instance.costs, 0.0)
    return float(instance.demands @ (least[row_of] * charged)) - supply_excess(instance, beyond)


def shares(resources: int) -> Floats:
    """float64[ways, resources]: ways to share one among the resources; coarser the more there are, because ways
    multiply.
    """
    steps = {1: 1, 2: _GRID_STEPS, 3: 16}.get(resources, 4)
    ways = [head for head in product(range(steps + 1), repeat=resources - 1) if sum(head) <= steps]
    return np.array([(*head, steps - sum(head)) for head in ways], dtype=np.float64).reshape(-1, resources) / steps
