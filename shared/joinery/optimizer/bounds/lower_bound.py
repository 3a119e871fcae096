"""A proven bound for any lot, however many items and kinds it has.

The prices of an optimum prove a bound for the kinds that were in the program (``assignment``). Of a lot of many pairs the program has
only the promising kinds, and of one of many items cells instead of items: prices that are right for those are nearly right for each.
Every other kind needs prices of its own, and any prices do that charge a full node no more than it costs. Mostly those of some kind that is
bought do, raised or lowered to the other's price: no pod is charged less by them than it is already. Kinds of which that cannot be
said join the program; and where they must not, prices are tried that share the kind's price among its resources by a grid of weights.
"""

from itertools import product

import numpy as np

from joinery.optimizer.arrays import Floats, Ints
from joinery.optimizer.instance.aggregation import MOST_ITEMS, cells
from joinery.optimizer.instance.packing_instance import Lot
from joinery.optimizer.relaxation.assignment import AssignmentProgram
from joinery.optimizer.relaxation.core import Survey

_SORTS = 12
_STEPS = 48
_SLOW = 2e-4
"""A bound that another solve of the program lifts by no more than this share is not worth one more."""
_FEW_PAIRS = 1_500
"""The program of so many pairs of an item and a kind has all kinds from the start."""
_ROUNDS = 3
"""So often kinds may join."""


def bound(lot: Lot) -> float:
    """$/h that no nodes for all pods of the lot can undercut; 0 where nothing can be proven."""
    every: Ints = np.arange(len(lot.price))
    has_many, kinds = len(lot.counts) > MOST_ITEMS, every
    if lot.admits.sum() > _FEW_PAIRS:
        kinds = np.union1d(Survey(lot).promising(_SORTS), np.flatnonzero(lot.scarce))
    for _ in range(_ROUNDS):
        few = lot.part(np.arange(len(lot.counts)), kinds, lot.counts)
        told = cells(few).lot if has_many else few
        program = AssignmentProgram(told, swift=True, cuts=not has_many, slow=_SLOW)
        answer = program.solve(told.counts)
        if answer is None:
            return 0.0
        least, excess = program.charges(few)
        harmful = _undercutting(lot, np.setdiff1d(every, kinds), program.directions(answer), least)
        if has_many or not len(harmful):
            break
        kinds = np.union1d(kinds, harmful)
    for kind in harmful:
        least = np.minimum(least, _charges(lot, int(kind), least))
    return max(0.0, float(lot.counts @ least) - excess)


def _undercutting(lot: Lot, kinds: Ints, directions: Floats, least: Floats) -> Ints:
    """Of these kinds, those on which every direction, scaled to the kind's price, charges some pod less than ``least``."""
    asked = np.concatenate([lot.requests, lot.members], axis=1)
    held = np.concatenate([lot.room[kinds], np.broadcast_to(lot.caps, (len(kinds), len(lot.caps)))], axis=1)
    harmless = np.zeros(len(kinds), dtype=np.bool_)
    for direction in directions:
        scale = lot.price[kinds] / np.maximum(held @ direction, 1e-300)
        charges = np.maximum(asked @ direction, 1e-300)
        # What a node must charge at least for a unit of the direction, so that no pod that it admits is charged less.
        needed = np.where(lot.admits[:, kinds], (least / charges)[:, None], 0.0).max(axis=0, initial=0.0)
        harmless |= scale * (1 + 1e-12) >= needed
    return kinds[~harmless]


def _charges(lot: Lot, kind: int, least: Floats) -> Floats:
    """What the kind's own prices charge each pod, infinite where it admits none: the prices that lower ``least`` the least."""
    items = np.flatnonzero(lot.admits[:, kind])
    share = lot.requests[items] / np.maximum(lot.room[kind], 1)
    asked = np.flatnonzero((share > 0).any(axis=0))
    charges = lot.price[kind] * (share[:, asked] @ _weights(len(asked)).T)
    lowered: Ints = (lot.counts[items, None] * np.maximum(least[items, None] - charges, 0.0)).sum(axis=0)
    found: Floats = np.full(len(lot.counts), np.inf)
    found[items] = charges[:, int(lowered.argmin())]
    return found


def _weights(resources: int) -> Floats:
    """Ways to share one among the resources: ways x resources; coarser the more there are."""
    steps = {1: 1, 2: _STEPS, 3: 16}.get(resources, 4)
    ways = [head for head in product(range(steps + 1), repeat=resources - 1) if sum(head) <= steps]
    return np.array([(*head, steps - sum(head)) for head in ways], dtype=np.float64).reshape(-1, resources) / steps
