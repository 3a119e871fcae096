"""The relaxation of what is left to pack, which grows smaller as rounding goes on: most of its solves are for few
items.
"""

from dataclasses import replace

import numpy as np

from joinery.decisions.optimizer import tuning
from joinery.decisions.optimizer.arrays import Ints
from joinery.decisions.optimizer.instance.packing_instance import PackingInstance
from joinery.decisions.optimizer.linear.patience import Patience
from joinery.decisions.optimizer.relaxation.assignment import AssignmentRelaxation, RelaxationSolution


class ResidualRelaxation:
    """An assignment relaxation without the items whose demand is used up."""

    def __init__(self, instance: PackingInstance, patience: Patience | None = None) -> None:
        self._instance, self._patience = instance, patience
        self._items: Ints = np.arange(len(instance.demands))
        self._relaxation = AssignmentRelaxation(instance, swift=True, patience=patience)

    def solve(self, demands: Ints, available: Ints | None = None) -> RelaxationSolution | None:
        """Like ``AssignmentRelaxation.solve``; items that are left out have a dual of zero."""
        left = np.flatnonzero(demands)
        if len(left) <= tuning.REBUILT_BELOW * len(self._items) or not np.isin(left, self._items).all():
            residual = self._instance.restrict(left, np.arange(len(self._instance.costs)), demands[left])
            self._items = left
            self._relaxation = AssignmentRelaxation(residual, swift=True, patience=self._patience)
        solution = self._relaxation.solve(demands[self._items], available)
        if solution is None or len(self._items) == len(demands):
            return solution
        assigned, item_duals = np.zeros(self._instance.compatible.shape), np.zeros(len(demands))
        assigned[self._items], item_duals[self._items] = solution.assigned, solution.item_duals
        return replace(solution, assigned=assigned, item_duals=item_duals)
