"""A proven bound for any lot, however many items it has.

The prices of an optimum prove a bound for the kinds that were in the program (``assignment``). Of a lot of many items the program has
only the promising kinds, and cells instead of items: prices that are right for those are nearly right for each. Every other kind needs
prices of its own, and any prices do that charge a full node no more than it costs: those are tried that share its price among its
resources by a grid of weights, and the ones that charge the pods most are taken.
"""

from itertools import product

import numpy as np

from joinery.optimizer.assignment import AssignmentProgram
from joinery.optimizer.lot import Amounts, Floats, Lot
from joinery.optimizer.merging import MOST_ITEMS, cells
from joinery.optimizer.promising import Survey

_SORTS = 12
_STEPS = 48
_SLOW = 2e-4
"""A bound that another solve of the program lifts by no more than this share is not worth one more."""


def bound(lot: Lot) -> float:
    """$/h that no nodes for all pods of the lot can undercut; 0 where nothing can be proven."""
    kinds: Amounts = np.arange(len(lot.price))
    has_many = len(lot.counts) > MOST_ITEMS
    if has_many:
        kinds = np.union1d(Survey(lot).promising(_SORTS), np.flatnonzero(lot.scarce))
    few = lot.part(np.arange(len(lot.counts)), kinds, lot.counts)
    told = cells(few).lot if has_many else few
    program = AssignmentProgram(told, swift=True, cuts=not has_many, slow=_SLOW)
    if program.solve(told.counts) is None:
        return 0.0
    least, excess = program.charges(few)
    for kind in np.setdiff1d(np.arange(len(lot.price)), kinds):
        least = np.minimum(least, _charges(lot, int(kind), least))
    return max(0.0, float(lot.counts @ least) - excess)


def _charges(lot: Lot, kind: int, least: Floats) -> Floats:
    """What the kind's own prices charge each pod, infinite where it admits none: the prices that lower ``least`` the least."""
    items = np.flatnonzero(lot.admits[:, kind])
    share = lot.requests[items] / np.maximum(lot.room[kind], 1)
    asked = np.flatnonzero((share > 0).any(axis=0))
    charges = lot.price[kind] * (share[:, asked] @ _weights(len(asked)).T)
    lowered: Amounts = (lot.counts[items, None] * np.maximum(least[items, None] - charges, 0.0)).sum(axis=0)
    found: Floats = np.full(len(lot.counts), np.inf)
    found[items] = charges[:, int(lowered.argmin())]
    return found


def _weights(resources: int) -> Floats:
    """Ways to share one among the resources: ways x resources; coarser the more there are."""
    steps = {1: 1, 2: _STEPS, 3: 16}.get(resources, 4)
    ways = [head for head in product(range(steps + 1), repeat=resources - 1) if sum(head) <= steps]
    return np.array([(*head, steps - sum(head)) for head in ways], dtype=np.float64).reshape(-1, resources) / steps
