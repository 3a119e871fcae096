"""The relaxation of an aggregated instance."""

import numpy as np

from joinery.optimizer.arrays import Ints
from joinery.optimizer.instance.aggregation import aggregate
from joinery.optimizer.instance.packing_instance import PackingInstance
from joinery.optimizer.relaxation.assignment import AssignmentRelaxation, RelaxationSolution


class AggregatedRelaxation:
    """The assignment program of a instance's cells, read as if it were the instance's: a guide, and no proof."""

    def __init__(self, instance: PackingInstance) -> None:
        self._lot = instance
        self._cells = aggregate(instance)
        self._program = AssignmentRelaxation(self._cells.instance, swift=True)
        self._size = (instance.sizes / instance.scale).sum(axis=1) / self._cells.size[self._cells.aggregate_of]

    def solve(self, demands: Ints, available: Ints | None = None) -> RelaxationSolution | None:
        """Every item has its cell's shares, and is worth what its cell is for its size."""
        together = np.bincount(self._cells.aggregate_of, weights=demands, minlength=len(self._cells.instance.demands))
        answer = self._program.solve(together.astype(np.int64), available)
        if answer is None:
            return None
        part = demands / np.maximum(together[self._cells.aggregate_of], 1)
        shares = np.where(self._lot.compatible, answer.assigned[self._cells.aggregate_of] * part[:, None], 0.0)
        item_duals = answer.item_duals[self._cells.aggregate_of] * self._size
        return RelaxationSolution(
            answer.bins, answer.reduced_costs, shares, item_duals, answer.capacity_duals, answer.cost
        )
