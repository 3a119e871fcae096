"""The lower bound that the duals of an assignment relaxation prove, by weak duality.

**Claim.** Take any prices, none below zero: l_kj for a unit of resource j on a bin of type k, and m_gk for a copy of
cardinality limit g on a bin of type k. (g also runs over the limits of single items: of item i a bin holds no more than
it can, and no more than are demanded.) What a full bin is charged is at most::

    F_k  =  sum_j l_kj C_kj + sum_g m_gk cap_g

Where F_k exceeds the cost c_k, scale the prices of type k down by c_k / F_k, so that afterwards F_k <= c_k. Let::

    u_i  =  min over the bin types k compatible with item i of  sum_j l_kj s_ij + sum_{g with i} m_gk

Then no packing of all demands costs less than sum_i d_i u_i.

**Proof.** Take any packing. On a bin of type k charge each copy of item i what the prices of k say for it: at least
u_i. The copies on the bin take at most C_kj of each resource and at most cap_g of each limit, so together they are
charged at most F_k <= c_k. Summed over all bins: the copies are charged at least sum_i d_i u_i, and at most what the
bins cost. ∎

**Limited supplies.** Bin types of a limited supply are not scaled down. Their prices may charge a full bin more than
it costs, by F_k - c_k. A packing has at most n_S bins of supply S, so the excess over all of them is at most n_S times
the largest of F_k - c_k among its types. That is taken off the sum::

    bound  =  sum_i d_i u_i  -  sum_S n_S max over k in S of max(0, F_k - c_k)

It has to be so, because a bin that stands already costs nothing: scaled down, its prices would be zero, and so would
u_i for every item that fits on it.

**Why an inaccurate solver cannot make the bound wrong.** The solver only suggests the prices. The claim holds for any
prices that are not below zero, and scaling and minimum are computed here from the instance itself. Bad prices give a
weak bound, never a false one. What is left is the rounding of floating point sums, some 1e-13 of the bound. With the
duals of an optimum and no scaling, linear programming's strong duality says that the bound is the optimum.
"""

import numpy as np

from joinery.decisions.optimizer.arrays import Floats
from joinery.decisions.optimizer.instance.packing_instance import PackingInstance
from joinery.decisions.optimizer.relaxation.assignment import AssignmentDuals, RelaxationSolution


def item_charges(instance: PackingInstance, duals: AssignmentDuals) -> tuple[Floats, float]:
    """u_i of the claim: float64[items], $/h; and the excess of all limited supplies, $/h. ``demands @ u - excess`` is
    a proven bound.

    ``duals``: any at all, if their arrays fit the instance's bin types, resources and limits, as an aggregation's
    do once they are read as its own (``AssignmentDuals.for_items_of``): where each of five limits has the price
    of their sum, a full bin is charged as much for the five as for the sum.
    """
    capacity, cardinality = np.maximum(duals.capacity, 0.0), np.maximum(duals.cardinality, 0.0)
    rows = list(zip(duals.rows, cardinality, strict=True))
    full = (capacity * (instance.capacities / instance.scale)[:, duals.resources]).sum(axis=1)
    for row, price in rows:
        full[row.bin_type] += price * row.cap
    scale = np.where(instance.is_limited, 1.0, np.minimum(1.0, instance.costs / np.maximum(full, 1e-300)))
    charged = (instance.sizes / instance.scale)[:, duals.resources] @ (capacity * scale[:, None]).T
    for row, price in rows:
        charged[row.items, row.bin_type] += price * scale[row.bin_type]
    least = np.where(instance.compatible, charged, np.inf).min(axis=1, initial=np.inf)
    return least, supply_excess(instance, np.maximum(full - instance.costs, 0.0))


def supply_excess(instance: PackingInstance, per_bin: Floats) -> float:
    """$/h that all bins of limited supplies may be charged beyond their cost; ``per_bin``: float64[bin types]."""
    most: dict[int, float] = {}
    for bin_type in np.flatnonzero(instance.is_limited):
        supply = int(instance.supply[bin_type])
        most[supply] = max(most.get(supply, 0.0), float(per_bin[bin_type]) * int(instance.available[bin_type]))
    return sum(most.values())


def price_directions(instance: PackingInstance, solution: RelaxationSolution) -> Floats:
    """float64[bin types bought, resources + cardinality limits]: the prices of each bin type that the optimum buys.

    $/h for a unit of each resource, then for a copy of each limit. ``instance``: the one that was solved.
    """
    of_limits = np.zeros((len(instance.costs), len(instance.cardinality_limits)))
    for row, price in zip(solution.duals.rows, solution.duals.cardinality, strict=True):
        if row.limit >= 0:
            of_limits[row.bin_type, row.limit] = max(price, 0.0)
    bought = solution.bins > 1e-9
    return np.concatenate([solution.capacity_duals[bought], of_limits[bought]], axis=1)
