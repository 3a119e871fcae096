"""The program of a large instance that grows smaller as pods find their nodes: most of its solves are for few items."""

from dataclasses import replace

import numpy as np

from joinery.optimizer.arrays import Ints
from joinery.optimizer.instance.packing_instance import PackingInstance
from joinery.optimizer.relaxation.assignment import AssignmentRelaxation, RelaxationSolution

_LEFT = 0.6
"""The program is written anew once no more than this share of its items is left."""


class ResidualRelaxation:
    """An assignment program that leaves out the items that have run out."""

    def __init__(self, instance: PackingInstance) -> None:
        self._lot = instance
        self._live: Ints = np.arange(len(instance.demands))
        self._program = AssignmentRelaxation(instance, swift=True)

    def solve(self, demands: Ints, available: Ints | None = None) -> RelaxationSolution | None:
        """The optimum for these counts, as ``AssignmentProgram.solve``; what has run out is worth nothing."""
        live = np.flatnonzero(demands)
        if len(live) <= _LEFT * len(self._live) or not np.isin(live, self._live).all():
            part = self._lot.restrict(live, np.arange(len(self._lot.costs)), demands[live])
            self._live, self._program = live, AssignmentRelaxation(part, swift=True)
        found = self._program.solve(demands[self._live], available)
        if found is None or len(self._live) == len(demands):
            return found
        shares, item_duals = np.zeros(self._lot.compatible.shape), np.zeros(len(demands))
        shares[self._live], item_duals[self._live] = found.assigned, found.item_duals
        return replace(found, assigned=shares, item_duals=item_duals)
