"""Which form of the assignment relaxation an instance gets.: its own, that of what is left to pack, or that of an
aggregation of its items.
"""

from dataclasses import replace

import numpy as np

from joinery.decisions.optimizer import tuning
from joinery.decisions.optimizer.arrays import Ints
from joinery.decisions.optimizer.instance.aggregation import aggregate
from joinery.decisions.optimizer.instance.packing_instance import PackingInstance
from joinery.decisions.optimizer.linear.highs import Patience
from joinery.decisions.optimizer.relaxation.assignment import AssignmentRelaxation, RelaxationSolution


class ResidualRelaxation:
    """An assignment relaxation without the items whose demand is used up: it grows smaller as rounding goes on, and
    most of its solves are for few items.
    """

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


class AggregatedRelaxation:
    """The relaxation of many items: that of their aggregation, read as if it were the instance's own. A guide, and no
    proof.

    Aggregates are formed once; items whose demand is used up stay in theirs with nothing to pack.
    """

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


Relaxation = AssignmentRelaxation | ResidualRelaxation | AggregatedRelaxation


def relax(instance: PackingInstance, *, is_swift: bool, patience: Patience | None = None) -> Relaxation:
    """A relaxation to round. ``is_swift``: for instances so large that solving it soon matters more than rounding it
    well. ``patience``: how long each solve may take.
    """
    if len(instance.demands) > tuning.MAX_ITEMS:
        return AggregatedRelaxation(instance, patience)
    return ResidualRelaxation(instance, patience) if is_swift else AssignmentRelaxation(instance, patience=patience)
