"""A proven lower bound for any instance, however many items and bin types it has.

``assignment_bound`` needs prices for every bin type. The relaxation of a large instance has only the core of its bin
types (``core``), and that of many items has aggregates of them. Prices that are right for an aggregate are nearly
right for its items, and any prices prove a bound. A bin type outside the core gets prices in one of three ways, the
cheapest first:

1. those of a bin type that the optimum buys, scaled to this one's cost. If they charge no item less than it is charged
   already, they change nothing, and nothing more needs to be computed;
2. it joins the core, and the relaxation is solved again;
3. where that would take too long, its cost is shared among its resources by the best of a grid of weights.
"""

from dataclasses import replace

import numpy as np

from joinery.decisions.optimizer import tuning
from joinery.decisions.optimizer.arrays import Floats, Ints
from joinery.decisions.optimizer.bounds.assignment_bound import item_charges, price_directions
from joinery.decisions.optimizer.bounds.market_bound import market_bound, shares
from joinery.decisions.optimizer.instance.aggregation import aggregate
from joinery.decisions.optimizer.instance.decomposition import independent_parts
from joinery.decisions.optimizer.instance.packing_instance import PackingInstance
from joinery.decisions.optimizer.linear.highs import Patience
from joinery.decisions.optimizer.relaxation.assignment import AssignmentRelaxation
from joinery.decisions.optimizer.relaxation.core import CoreSelection

_CORE_CLASSES = 12
#: Another solve of the relaxation that would lift the bound by no more than this share is not made.
_CUT_TOLERANCE = 2e-4
#: Where no more items and bin types are compatible, all bin types are in the core from the start.
_FEW_PAIRS = 1_500
#: More than for packing: with as many the bounds of 10,000 pods whose replicas are apart were up to .1 % lower.
_AGGREGATES = 150
#: How often bin types may join the core.
_ROUNDS = 3


def lower_bound(instance: PackingInstance, patience: Patience | None = None) -> float:
    """$/h that no packing of all demands can undercut: that of its parts together. The proofs are in
    ``assignment_bound`` and ``market_bound``, whichever says more.

    ``patience``: how long each linear program may take.
    """
    parts = [part.instance for part in independent_parts(instance)]
    return sum((max(market_bound(part), _by_relaxation(part, patience or Patience())) for part in parts), 0.0)


def _by_relaxation(instance: PackingInstance, patience: Patience) -> float:
    """Zero where patience runs out."""
    every: Ints = np.arange(len(instance.costs))
    has_many_items, core = len(instance.demands) > tuning.MAX_ITEMS, every
    if instance.compatible.sum() > _FEW_PAIRS:
        selection = CoreSelection(instance, patience=patience)
        if patience.ran_out:
            return 0.0
        core = np.union1d(selection.core(_CORE_CLASSES), np.flatnonzero(instance.is_limited))
    for _ in range(_ROUNDS):
        restricted = instance.restrict(np.arange(len(instance.demands)), core, instance.demands)
        aggregation = aggregate(restricted, _AGGREGATES) if has_many_items else None
        solved = aggregation.instance if aggregation else restricted
        # The rows of cuts name single items, which an aggregation does not have.
        relaxation = AssignmentRelaxation(
            solved, swift=True, cuts=not has_many_items, cut_tolerance=_CUT_TOLERANCE, patience=patience
        )
        solution = relaxation.solve(solved.demands)
        if solution is None:
            return 0.0
        if aggregation:
            solution = replace(solution, duals=solution.duals.for_items_of(aggregation, restricted))
        charges, excess = item_charges(restricted, solution.duals)
        directions = price_directions(restricted, solution)
        unproven = _charging_less(instance, np.setdiff1d(every, core), directions, charges)
        if not len(unproven):
            break
        core = np.union1d(core, unproven)
    for bin_type in unproven:
        charges = np.minimum(charges, _grid_charges(instance, int(bin_type), charges))
    # Demands times charges may fall below the excess where nodes that stand already could take everything.
    return max(0.0, float(instance.demands @ charges) - excess)


def _charging_less(instance: PackingInstance, bin_types: Ints, directions: Floats, charges: Floats) -> Ints:
    """Of these bin types (indices), those for which every direction of prices, scaled to the bin type's cost, charges
    some item less.

    ``directions``: float64[directions, resources + limits]; ``charges``: float64[items], $/h.
    """
    taken = np.concatenate([instance.sizes, instance.limit_members], axis=1)
    caps = np.broadcast_to(instance.limit_caps, (len(bin_types), len(instance.limit_caps)))
    held = np.concatenate([instance.capacities[bin_types], caps], axis=1)
    is_harmless = np.zeros(len(bin_types), dtype=np.bool_)
    for direction in directions:
        scale = instance.costs[bin_types] / np.maximum(held @ direction, 1e-300)
        charged = np.maximum(taken @ direction, 1e-300)
        # By how much the direction must be scaled at least, so that no compatible item is charged less than it is
        # already.
        needed = np.where(instance.compatible[:, bin_types], (charges / charged)[:, None], 0.0).max(axis=0, initial=0.0)
        is_harmless |= scale * (1 + 1e-12) >= needed
    return bin_types[~is_harmless]


def _grid_charges(instance: PackingInstance, bin_type: int, charges: Floats) -> Floats:
    """float64[items]: what the bin type's own prices charge, infinite where it is not compatible.

    Of all ways on the grid to share its cost among its resources, that which lowers ``charges`` least in sum over the
    demands.
    """
    items = np.flatnonzero(instance.compatible[:, bin_type])
    share = instance.sizes[items] / np.maximum(instance.capacities[bin_type], 1)
    used = np.flatnonzero((share > 0).any(axis=0))
    by_weights = instance.costs[bin_type] * (share[:, used] @ shares(len(used)).T)
    lost = instance.demands[items, None] * np.maximum(charges[items, None] - by_weights, 0.0)
    lowered: Ints = lost.sum(axis=0)
    own: Floats = np.full(len(instance.demands), np.inf)
    own[items] = by_weights[:, int(lowered.argmin())]
    return own
