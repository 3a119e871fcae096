"""The assignment relaxation, solved for any demands: how many bins of each type, which share of each item on them, and
the duals.

Without whole numbers it takes hundredths of a second. Its duals are what everything else goes by: the dual of an
item's demand row is what one more copy would cost in the cheapest mix, so a bin whose items' duals add up to its cost
wastes nothing.
"""

from dataclasses import dataclass

import numpy as np

from joinery.decisions.optimizer import tuning
from joinery.decisions.optimizer.arrays import Floats, Ints
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
    ``cuts``: add cardinality rows for items of which few fit on a bin. ``cut_tolerance``: stop adding them when the
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
        self._instance, self._costs, self._swift = instance, instance.costs, swift
        self._program = AssignmentProgram(instance)
        self._rows = list(self._program.limit_rows)
        # More copies than are wanted never share a bin, though its capacity would hold them.
        self._most = np.minimum(instance.max_per_bin, np.maximum(instance.demands, 1)[:, None])
        self._solver = Solver(self._program.linear_program(), patience=patience)
        self._cut_tolerance = cut_tolerance
        self._cut_rounds = 0 if cuts else tuning.CUT_ROUNDS
        self._is_solved = False

    def solve(self, demands: Ints, available: Ints | None = None) -> RelaxationSolution | None:
        """The optimum for these demands; None if the solver finds none: an item that no bin type is compatible with, or
        no time.

        ``available``: int64[bin types], what is left if some bins were bought already.
        """
        if available is not None and self._instance.is_limited.any():
            self._solver.set_upper_bounds(bin_bounds(available))
            self._solver.set_row_upper(self._program.first_supply_row, self._program.supply_ends(available))
        if self._swift and not self._is_solved and self._instance.compatible.any(axis=1).all():
            self._solver.warm_start(*self._program.plain_basis(demands))
        solution = self._solve_with_cuts(demands.astype(np.float64))
        if solution is None:
            return None
        self._is_solved = True
        return self._read(solution)

    def set_costs(self, costs: Floats) -> None:
        """Other costs of the bin types from the next solve on, which goes on from the last optimum."""
        self._costs = costs
        self._solver.set_costs(costs)

    def _solve_with_cuts(self, demands: Floats) -> LinearSolution | None:
        """Solve, add the rows that the optimum violates, solve again.

        There could be a cardinality row for every item on every bin type. Nearly all would be slack, and each would
        slow every pivot, so they are cutting planes (Dantzig, Fulkerson and Johnson 1954, "Solution of a large-scale
        traveling-salesman problem"): with all of them 120 items took 3.8 s, with the violated ones 0.5 s.
        """
        solution = self._solver.solve(demands, demands)
        while solution is not None and self._cut_rounds < tuning.CUT_ROUNDS and self._add_cuts(solution):
            before = self._cost(solution)
            solution = self._solver.solve(demands, demands)
            if solution is not None and self._cost(solution) <= before * (1 + self._cut_tolerance):
                self._cut_rounds = tuning.CUT_ROUNDS
        return solution

    def _add_cuts(self, solution: LinearSolution) -> bool:
        """Add a row for every item of which more copies are put on a bin type than its bins hold; whether there were
        any.
        """
        allowed = self._most * solution.values[: self._program.bin_type_count]
        few_fit = (self._most > 0) & (self._most <= tuning.FEW_FIT)
        is_violated = few_fit & (self._assigned(solution) > allowed + _VIOLATED)
        cuts = [
            CardinalityRow(np.array([item]), int(bin_type), int(self._most[item, bin_type]))
            for item, bin_type in zip(*np.nonzero(is_violated), strict=True)
        ]
        for row in cuts:
            self._solver.add_row(*self._program.entries(row))
        self._rows += cuts
        self._cut_rounds += 1
        return bool(cuts)

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
