"""The relaxation of many items: that of their aggregation, read as if it were the instance's own. A guide, and no
proof.
"""

import numpy as np

from joinery.decisions.optimizer.arrays import Ints
from joinery.decisions.optimizer.instance.aggregation import aggregate
from joinery.decisions.optimizer.instance.packing_instance import PackingInstance
from joinery.decisions.optimizer.linear.patience import Patience
from joinery.decisions.optimizer.relaxation.assignment import AssignmentRelaxation, RelaxationSolution


class AggregatedRelaxation:
    """Aggregates are formed once; items whose demand is used up stay in theirs with nothing to pack."""

    def __init__(self, instance: PackingInstance, patience: Patience | None = None) -> None:
        self._instance = instance
        aggregation = aggregate(instance)
        self._aggregate_of, self._aggregates = aggregation.aggregate_of, len(aggregation.instance.demands)
        self._relaxation = AssignmentRelaxation(aggregation.instance, swift=True, patience=patience)
        # How much larger an item is than the mean of its aggregate.
        self._relative_size = (instance.sizes / instance.scale).sum(axis=1) / aggregation.size[self._aggregate_of]

    def solve(self, demands: Ints, available: Ints | None = None) -> RelaxationSolution | None:
        """Like ``AssignmentRelaxation.solve``. An item has its part of its aggregate's bins, and the aggregate's dual
        by its size.
        """
        together = np.bincount(self._aggregate_of, weights=demands, minlength=self._aggregates)
        solution = self._relaxation.solve(together.astype(np.int64), available)
        if solution is None:
            return None
        part = demands / np.maximum(together[self._aggregate_of], 1)
        assigned = solution.assigned[self._aggregate_of] * part[:, None]
        return RelaxationSolution(
            bins=solution.bins,
            reduced_costs=solution.reduced_costs,
            # An aggregate is compatible with whatever one of its items is.
            assigned=np.where(self._instance.compatible, assigned, 0.0),
            item_duals=solution.item_duals[self._aggregate_of] * self._relative_size,
            capacity_duals=solution.capacity_duals,
            cost=solution.cost,
            duals=solution.duals,
        )
