"""The assignment relaxation, solved for any demands: how many bins of each type, which share of each item on them, and
the duals.

Without whole numbers it takes hundredths of a second. Its duals are what everything else goes by: the dual of an
item's demand row is what one more copy would cost in the cheapest mix, so a bin whose items' duals add up to its cost
wastes nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from joinery.decisions.optimizer import tuning
from joinery.decisions.optimizer.arrays import Floats, Ints, Mask
from joinery.decisions.optimizer.instance.aggregation import Aggregation
from joinery.decisions.optimizer.instance.packing_instance import PackingInstance
from joinery.decisions.optimizer.linear.highs import LinearSolution, Patience, Solver
from joinery.decisions.optimizer.relaxation.assignment_program import AssignmentProgram, CardinalityRow, bin_bounds

_VIOLATED = 1e-7


@dataclass(frozen=True, eq=False)
class AssignmentDuals:
    """The duals of the rows that say what a bin holds, all of them at least zero, in $/h.

    ``resources``: int64[used], the resources that have capacity rows (indices).
    ``capacity``: float64[bin types, used], for as much of a resource as the largest capacity of any bin type
    (``scale``).
    ``rows``: the cardinality rows; ``cardinality``: float64[rows], for one copy.
    """

    resources: Ints
    capacity: Floats
    rows: tuple[CardinalityRow, ...]
    cardinality: Floats

    def for_items_of(self, aggregation: Aggregation, instance: PackingInstance) -> "AssignmentDuals":
        """Duals of an aggregation as those of its original: each limit that one of the aggregation stands for has its
        price. The rows are for limits, none for items of which few fit.
        """
        rows, prices = list[CardinalityRow](), list[float]()
        for row, price in zip(self.rows, self.cardinality.tolist(), strict=True):
            if price > 0:
                numbers = aggregation.limits[row.limit]
                rows += [
                    CardinalityRow(limit.items, row.bin_type, limit.cap, number)
                    for number in numbers
                    for limit in [instance.cardinality_limits[number]]
                ]
                prices += [price] * len(numbers)
        return replace(self, rows=tuple(rows), cardinality=np.array(prices))


@dataclass(frozen=True, eq=False)
class RelaxationSolution:
    """An optimum of a relaxation.

    ``bins``: float64[bin types], bins bought. ``reduced_costs``: float64[bin types], $/h by which a bin of the type is
    too dear.
    ``assigned``: float64[items, bin types], copies. ``item_duals``: float64[items], $/h for one more copy, not below
    zero.
    ``capacity_duals``: float64[bin types, resources], $/h for a unit of a resource. ``cost``: $/h, the optimum.
    ``duals``: what proves a bound (``bounds/assignment_bound``); those of the instance that was solved, which may be
    an aggregation.
    """

    bins: Floats
    reduced_costs: Floats
    assigned: Floats
    item_duals: Floats
    capacity_duals: Floats
    cost: float
    duals: AssignmentDuals


class AssignmentRelaxation:
    """The relaxation of an instance, for any demands up to the instance's.

    ``swift``: start from a plain packing instead of from nothing. That takes a third of the time. It ends at another
    of the optimal vertices, which in the mean rounds a quarter of a percent worse.
    ``cuts``: add cardinality rows for items of which few fit on a bin. ``cut_tolerance``: stop adding rows when the
    optimum rises by no more than this share; below zero: never for that reason. ``patience``: how long each solve may
    take.
    """

    def __init__(
        self,
        instance: PackingInstance,
        *,
        swift: bool = False,
        cuts: bool = True,
        cut_tolerance: float = -1.0,
        patience: Patience | None = None,
    ) -> None:
        self._instance, self._costs, self._swift, self._patience = instance, instance.costs, swift, patience
        # More copies than are wanted never share a bin, though its capacity would hold them.
        self._most = np.minimum(instance.max_per_bin, np.maximum(instance.demands, 1)[:, None])
        self._cut_tolerance = cut_tolerance
        self._cut_rounds = 0 if cuts else tuning.CUT_ROUNDS
        self._begin(AssignmentProgram(instance))

    def _begin(self, program: AssignmentProgram) -> None:
        """From nothing."""
        self._program = program
        self._is_unlisted = (program.own_limit >= 0) & (not program.lists_own)
        self._rows = list(program.limit_rows)
        self._solver = Solver(program.linear_program(), patience=self._patience)
        self._is_solved = False

    def solve(self, demands: Ints, available: Ints | None = None) -> RelaxationSolution | None:
        """The optimum for these demands; None if the solver finds none: an item that no bin type is compatible with, or
        no time.

        ``available``: int64[bin types], what is left if some bins were bought already.
        """
        solution = self._optimum(demands, available)
        if solution is not None and not self._is_solved and self._breaks_most_limits(solution):
            self._begin(AssignmentProgram(self._instance, lists_own=True))
            solution = self._optimum(demands, available)
        self._is_solved = solution is not None
        while solution is not None and self._add_violated(solution):
            before = self._cost(solution)
            solution = self._solver.solve(demands.astype(np.float64), demands.astype(np.float64))
            if solution is not None and self._cost(solution) <= before * (1 + self._cut_tolerance):
                self._cut_rounds = tuning.CUT_ROUNDS
                break
        return None if solution is None else self._read(solution)

    def _optimum(self, demands: Ints, available: Ints | None) -> LinearSolution | None:
        """With the rows that there are."""
        if available is not None and self._instance.is_limited.any():
            self._solver.set_upper_bounds(bin_bounds(available))
            self._solver.set_row_upper(self._program.first_supply_row, self._program.supply_ends(available))
        if self._swift and not self._is_solved and self._instance.compatible.any(axis=1).all():
            self._solver.warm_start(*self._program.plain_basis(demands))
        return self._solver.solve(demands.astype(np.float64), demands.astype(np.float64))

    def set_costs(self, costs: Floats) -> None:
        """Other costs of the bin types from the next solve on, which goes on from the last optimum."""
        self._costs = costs
        self._solver.set_costs(costs)

    def _breaks_most_limits(self, solution: LinearSolution) -> bool:
        """Whether more than half of the items that have a limit of their own break it. To add all of those rows takes
        longer than to begin with them.
        """
        limited = self._is_unlisted.any(axis=1)
        return bool(limited.any()) and self._broken(solution).any(axis=1).sum() > limited.sum() / 2

    def _add_violated(self, solution: LinearSolution) -> bool:
        """Add rows for items of which more copies are put on a bin type than its bins hold; whether there were any.

        There could be a cardinality row for every item on every bin type. Nearly all would be slack, and each would
        slow every pivot, so they are cutting planes (Dantzig, Fulkerson and Johnson 1954, "Solution of a large-scale
        traveling-salesman problem"): with all of them 120 items took 3.8 s, with the violated ones 0.5 s.
        """
        rows = [*self._limits(self._broken(solution)), *self._cuts(solution)]
        self._solver.add_rows([self._program.entries(row) for row in rows])
        self._rows += rows
        return bool(rows)

    def _broken(self, solution: LinearSolution) -> Mask:
        """bool[items, bin types]: limits of one item that have no rows yet, and are broken."""
        bins = solution.values[: self._program.bin_type_count]
        return self._is_unlisted & (self._assigned(solution) > self._program.own_cap * bins + _VIOLATED)

    def _limits(self, is_broken: Mask) -> Iterator[CardinalityRow]:
        """An item that breaks its limit on one bin type would break it on the next, so it gets all of its rows."""
        is_listed: Mask = self._is_unlisted & is_broken.any(axis=1, keepdims=True)
        self._is_unlisted &= ~is_listed
        for item, bin_type in zip(*np.nonzero(is_listed), strict=True):
            cap, limit = self._program.own_cap[item, bin_type], self._program.own_limit[item, bin_type]
            yield CardinalityRow(np.array([item]), int(bin_type), int(cap), int(limit))

    def _cuts(self, solution: LinearSolution) -> Iterator[CardinalityRow]:
        """Of items of which few fit, and fewer than a limit says."""
        if self._cut_rounds < tuning.CUT_ROUNDS:
            self._cut_rounds += 1
            few_fit = (self._most > 0) & (self._most <= tuning.FEW_FIT) & (self._most < self._program.own_cap)
            allowed = self._most * solution.values[: self._program.bin_type_count]
            is_violated = few_fit & (self._assigned(solution) > allowed + _VIOLATED)
            for item, bin_type in zip(*np.nonzero(is_violated), strict=True):
                yield CardinalityRow(np.array([item]), int(bin_type), int(self._most[item, bin_type]))

    def _read(self, solution: LinearSolution) -> RelaxationSolution:
        program, instance = self._program, self._instance
        items, bin_types, used = program.item_count, program.bin_type_count, program.resources
        # The rows are "at most" rows of a minimum, so their duals are never above zero but by the solver's inaccuracy.
        of_capacity = solution.duals[items : program.first_supply_row].reshape(len(used), bin_types).T
        capacity = np.maximum(-of_capacity, 0.0)
        cardinality = np.maximum(-solution.duals[program.first_cardinality_row :], 0.0)
        capacity_duals = np.zeros(instance.capacities.shape)
        capacity_duals[:, used] = capacity
        return RelaxationSolution(
            bins=solution.values[:bin_types],
            reduced_costs=solution.reduced_costs[:bin_types],
            assigned=self._assigned(solution),
            item_duals=np.maximum(solution.duals[:items], 0.0),
            capacity_duals=capacity_duals / instance.scale,
            cost=self._cost(solution),
            duals=AssignmentDuals(used, capacity, tuple(self._rows), cardinality),
        )

    def _cost(self, solution: LinearSolution) -> float:
        return float(self._costs @ solution.values[: self._program.bin_type_count])

    def _assigned(self, solution: LinearSolution) -> Floats:
        """float64[items, bin types]."""
        assigned = np.zeros(self._instance.compatible.shape)
        pairs = self._program.pair_items, self._program.pair_bin_types
        assigned[pairs] = solution.values[self._program.bin_type_count :]
        return assigned
