"""Which form of the assignment relaxation an instance gets: its own, that of what is left to pack, or that of an
aggregation of its items.
"""

from dataclasses import replace

import numpy as np

from joinery.decisions.optimizer import tuning
from joinery.decisions.optimizer.arrays import Floats, Ints
from joinery.decisions.optimizer.instance.aggregation import aggregate
from joinery.decisions.optimizer.instance.packing_instance import PackingInstance
from joinery.decisions.optimizer.linear.highs import Patience
from joinery.decisions.optimizer.relaxation.assignment import AssignmentRelaxation, RelaxationSolution


class AggregatedRelaxation:
    """The relaxation of many items: that of their aggregation, read as if it were the instance's own. A guide, and no
    proof.
    """

    def __init__(self, instance: PackingInstance, patience: Patience | None = None) -> None:
        self._instance = instance
        aggregation = aggregate(instance)
        self._aggregate_of, self._aggregates = aggregation.aggregate_of, len(aggregation.instance.demands)
        self._relaxation = AssignmentRelaxation(aggregation.instance, swift=True, patience=patience)
        # How much larger an item is than the mean of its aggregate.
        self._relative_size = (instance.sizes / instance.scale).sum(axis=1) / aggregation.size[self._aggregate_of]

    def solve(self, demands: Ints, available: Ints | None = None) -> RelaxationSolution | None:
        """Like ``AssignmentRelaxation.solve``. An item has its part of its aggregate's bins, as far as those hold it;
        its dual is the aggregate's by its size. Where there are limits, most of a small item's dual may be the price of
        one, so there it is the least that the item is charged on a bin. (Without limits that was .2 % dearer.)
        """
        together = np.bincount(self._aggregate_of, weights=demands, minlength=self._aggregates)
        solution = self._relaxation.solve(together.astype(np.int64), available)
        if solution is None:
            return None
        part = demands / np.maximum(together[self._aggregate_of], 1)
        assigned = solution.assigned[self._aggregate_of] * part[:, None]
        most = self._instance.most_by_rules[:, None] * solution.bins
        return replace(
            solution,
            # An aggregate is compatible with whatever one of its items is.
            assigned=np.where(self._instance.compatible, np.minimum(assigned, most), 0.0),
            item_duals=self._item_duals(solution),
        )

    def _item_duals(self, solution: RelaxationSolution) -> Floats:
        if self._instance.cardinality_limits:
            return self._least_charged(solution)
        by_size: Floats = solution.item_duals[self._aggregate_of] * self._relative_size
        return by_size

    def _least_charged(self, solution: RelaxationSolution) -> Floats:
        """float64[items], $/h: for what a copy takes, and for counting in the limits of its aggregate."""
        of_limits = np.zeros((self._aggregates, len(self._instance.costs)))
        for row, price in zip(solution.duals.rows, solution.duals.cardinality, strict=True):
            of_limits[row.items, row.bin_type] += price
        charged = self._instance.sizes @ solution.capacity_duals.T + of_limits[self._aggregate_of]
        least: Floats = np.where(self._instance.compatible, charged, np.inf).min(axis=1, initial=np.inf)
        return least


class ResidualRelaxation:
    """A relaxation without the items whose demand is used up: it grows smaller as rounding goes on, and most of its
    solves are for few items.

    Aggregates of items with limits are formed anew sooner: items of one that began alike are used up one before the
    other, and the limit of their sum then lets too many copies of the others on a bin.
    """

    def __init__(self, instance: PackingInstance, patience: Patience | None = None) -> None:
        self._instance, self._patience = instance, patience
        self._items: Ints = np.arange(len(instance.demands))
        self._relaxation = self._of(instance)

    def _of(self, instance: PackingInstance) -> AssignmentRelaxation | AggregatedRelaxation:
        if len(instance.demands) > tuning.MAX_ITEMS:
            return AggregatedRelaxation(instance, self._patience)
        return AssignmentRelaxation(instance, swift=True, patience=self._patience)

    def solve(self, demands: Ints, available: Ints | None = None) -> RelaxationSolution | None:
        """Like ``AssignmentRelaxation.solve``; items that are left out have a dual of zero."""
        left = np.flatnonzero(demands)
        is_aggregated = isinstance(self._relaxation, AggregatedRelaxation)
        most = tuning.AGGREGATED_ANEW_BELOW if is_aggregated else tuning.REBUILT_BELOW
        if len(left) <= most * len(self._items) or not np.isin(left, self._items).all():
            residual = self._instance.restrict(left, np.arange(len(self._instance.costs)), demands[left])
            self._items = left
            self._relaxation = self._of(residual)
        solution = self._relaxation.solve(demands[self._items], available)
        if solution is None or len(self._items) == len(demands):
            return solution
        assigned, item_duals = np.zeros(self._instance.compatible.shape), np.zeros(len(demands))
        assigned[self._items], item_duals[self._items] = solution.assigned, solution.item_duals
        return replace(solution, assigned=assigned, item_duals=item_duals)


Relaxation = AssignmentRelaxation | ResidualRelaxation | AggregatedRelaxation


def relax(instance: PackingInstance, *, is_swift: bool, patience: Patience | None = None) -> Relaxation:
    """A relaxation to round. ``is_swift``: for instances so large that solving it soon matters more than rounding it
    well. ``patience``: how long each solve may take.
    """
    is_many = len(instance.demands) > tuning.MAX_ITEMS
    if is_many and not instance.cardinality_limits:
        return AggregatedRelaxation(instance, patience)
    if is_many or is_swift:
        return ResidualRelaxation(instance, patience)
    return AssignmentRelaxation(instance, patience=patience)
