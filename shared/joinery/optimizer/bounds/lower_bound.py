"""A proven bound for any instance, however many items and kinds it has.

The prices of an optimum prove a bound for the kinds that were in the program (``assignment``). Of a instance of many pairs the program has
only the promising kinds, and of one of many items cells instead of items: prices that are right for those are nearly right for each.
Every other kind needs prices of its own, and any prices do that charge a full node no more than it costs. Mostly those of some kind that is
bought do, raised or lowered to the other's price: no pod is charged less by them than it is already. Kinds of which that cannot be
said join the program; and where they must not, prices are tried that share the kind's price among its resources by a grid of weights.
"""

from itertools import product

import numpy as np

from joinery.optimizer.arrays import Floats, Ints
from joinery.optimizer.instance.aggregation import MOST_ITEMS, aggregate
from joinery.optimizer.instance.packing_instance import PackingInstance
from joinery.optimizer.relaxation.assignment import AssignmentRelaxation
from joinery.optimizer.relaxation.core import CoreSelection

_SORTS = 12
_STEPS = 48
_SLOW = 2e-4
"""A bound that another solve of the program lifts by no more than this share is not worth one more."""
_FEW_PAIRS = 1_500
"""The program of so many pairs of an item and a kind has all kinds from the start."""
_ROUNDS = 3
"""So often kinds may join."""


def lower_bound(instance: PackingInstance) -> float:
    """$/h that no nodes for all pods of the instance can undercut; 0 where nothing can be proven."""
    every: Ints = np.arange(len(instance.costs))
    has_many, bin_types = len(instance.demands) > MOST_ITEMS, every
    if instance.compatible.sum() > _FEW_PAIRS:
        bin_types = np.union1d(CoreSelection(instance).core(_SORTS), np.flatnonzero(instance.is_limited))
    for _ in range(_ROUNDS):
        few = instance.restrict(np.arange(len(instance.demands)), bin_types, instance.demands)
        told = aggregate(few).instance if has_many else few
        program = AssignmentRelaxation(told, swift=True, cuts=not has_many, slow=_SLOW)
        answer = program.solve(told.demands)
        if answer is None:
            return 0.0
        least, excess = program.charges(few)
        harmful = _undercutting(instance, np.setdiff1d(every, bin_types), program.directions(answer), least)
        if has_many or not len(harmful):
            break
        bin_types = np.union1d(bin_types, harmful)
    for bin_type in harmful:
        least = np.minimum(least, _charges(instance, int(bin_type), least))
    return max(0.0, float(instance.demands @ least) - excess)


def _undercutting(instance: PackingInstance, bin_types: Ints, directions: Floats, least: Floats) -> Ints:
    """Of these kinds, those on which every direction, scaled to the kind's price, charges some pod less than ``least``."""
    asked = np.concatenate([instance.sizes, instance.limit_members], axis=1)
    held = np.concatenate(
        [
            instance.capacities[bin_types],
            np.broadcast_to(instance.limit_caps, (len(bin_types), len(instance.limit_caps))),
        ],
        axis=1,
    )
    harmless = np.zeros(len(bin_types), dtype=np.bool_)
    for direction in directions:
        scale = instance.costs[bin_types] / np.maximum(held @ direction, 1e-300)
        charges = np.maximum(asked @ direction, 1e-300)
        # What a node must charge at least for a unit of the direction, so that no pod that it admits is charged less.
        needed = np.where(instance.compatible[:, bin_types], (least / charges)[:, None], 0.0).max(axis=0, initial=0.0)
        harmless |= scale * (1 + 1e-12) >= needed
    return bin_types[~harmless]


def _charges(instance: PackingInstance, bin_type: int, least: Floats) -> Floats:
    """What the kind's own prices charge each pod, infinite where it admits none: the prices that lower ``least`` the least."""
    items = np.flatnonzero(instance.compatible[:, bin_type])
    share = instance.sizes[items] / np.maximum(instance.capacities[bin_type], 1)
    asked = np.flatnonzero((share > 0).any(axis=0))
    charges = instance.costs[bin_type] * (share[:, asked] @ _weights(len(asked)).T)
    lowered: Ints = (instance.demands[items, None] * np.maximum(least[items, None] - charges, 0.0)).sum(axis=0)
    found: Floats = np.full(len(instance.demands), np.inf)
    found[items] = charges[:, int(lowered.argmin())]
    return found


def _weights(resources: int) -> Floats:
    """Ways to share one among the resources: ways x resources; coarser the more there are."""
    steps = {1: 1, 2: _STEPS, 3: 16}.get(resources, 4)
    ways = [head for head in product(range(steps + 1), repeat=resources - 1) if sum(head) <= steps]
    return np.array([(*head, steps - sum(head)) for head in ways], dtype=np.float64).reshape(-1, resources) / steps
