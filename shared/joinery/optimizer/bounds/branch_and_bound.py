"""A proven bound on a linear program some of whose variables are whole numbers: branch and bound with a proof at every
leaf.

The method is Land and Doig's (1960, "An automatic method of solving discrete programming problems"). A branch splits
the whole numbers of one variable into those up to some number and those above it, so together the leaves cover every
solution, and the least of their bounds is a bound on the whole. Each leaf's bound is computed from the duals that the
solver suggests (``duality``), and that of a leaf which is never solved is its parent's.

Why not HiGHS's own branch and bound: its bound is right to tolerances that nobody can check from outside.
"""

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from joinery.optimizer.arrays import Floats, Ints, Mask
from joinery.optimizer.bounds.duality import dual_bound
from joinery.optimizer.linear.highs import LinearProgram, Solver

_INTEGRAL = 1e-6
"""A value so near to a whole number is one."""
_PAST_CUTOFF = 10.0
"""How many times the cutoff an infeasible leaf is bounded by. Any multiple of a ray proves something; this closes the
leaf.
"""
CLOSE = 1e-6
"""A bound within so small a share of the cutoff needs no more work."""
_NO_ROWS: Floats = np.zeros(0)

VariableBounds = Mapping[int, tuple[float, float]]
"""Lower and upper bound by variable (index), where branching changed them."""


@dataclass(frozen=True, eq=False)
class IntegerProgram:
    """``relaxation``: the program without whole numbers; every variable has a finite upper bound. ``is_integer``:
    bool[variables].
    ``priority``: int64[variables], those of the highest are branched on first.
    """

    relaxation: LinearProgram
    is_integer: Mask
    priority: Ints


@dataclass(frozen=True, eq=False)
class BranchAndBoundResult:
    """``bound``: no solution costs less than this, or the cutoff. ``values``: float64[variables], a solution of that
    cost if one was found.
    """

    bound: float
    values: Floats | None = None


@dataclass(order=True)
class _Leaf:
    """An open leaf of the tree. Leaves compare by bound, then by age, so that the search is deterministic."""

    bound: float
    number: int
    changed: VariableBounds = field(compare=False)
    values: Floats | None = field(compare=False)


class BranchAndBound:
    """The search in one program. ``cutoff``: the cost of a known solution, what costs as much is of no interest.

    ``solves``: so many linear programs may be solved at most. Work is counted, not timed, so that the bound is the
    same everywhere.
    ``duals``: float64[rows], of the last program that was solved.
    """

    def __init__(self, program: IntegerProgram, cutoff: float, solves: int) -> None:
        self._program, self._cutoff, self._solves_left = program, cutoff, solves
        self._solver = Solver(program.relaxation, exact=True)
        self._high = program.relaxation.upper_bounds
        self._leaves = 0
        self.duals: Floats = np.zeros(len(program.relaxation.row_lower))

    def solve_root(self) -> float:
        """The bound without any branching; ``duals`` are then those that prove it."""
        return self._leaf({}, 0.0).bound

    def solve(self) -> BranchAndBoundResult:
        """The best bound that the allowed work proves, and no more than the cutoff. Best bound first."""
        leaves = [self._leaf({}, 0.0)]
        while leaves[0].bound < self._cutoff * (1 - CLOSE):
            leaf = leaves[0]
            if leaf.values is None or self._solves_left <= 0:
                return BranchAndBoundResult(leaf.bound)
            column = self._branching_variable(leaf.values)
            if column is None:
                return BranchAndBoundResult(leaf.bound, leaf.values)
            heapq.heappop(leaves)
            below = np.floor(leaf.values[column] + _INTEGRAL)
            low, high = leaf.changed.get(column, (0.0, float(self._high[column])))
            for bounds in ((low, below), (below + 1.0, high)):
                heapq.heappush(leaves, self._leaf({**leaf.changed, column: bounds}, leaf.bound))
        return BranchAndBoundResult(min(leaves[0].bound, self._cutoff))

    def _leaf(self, changed: VariableBounds, parent_bound: float) -> _Leaf:
        """Solve the relaxation between these bounds."""
        low, high = np.zeros(len(self._high)), self._high.copy()
        for column, (least, most) in changed.items():
            low[column], high[column] = least, most
        self._leaves += 1
        self._solves_left -= 1
        self._solver.set_bounds(low, high)
        solution = self._solver.solve(_NO_ROWS, _NO_ROWS)
        if solution is None:
            return _Leaf(max(parent_bound, self._infeasible_bound(low, high)), self._leaves, changed, None)
        self.duals = solution.duals
        bound = dual_bound(self._program.relaxation, solution.duals, low, high)
        return _Leaf(max(parent_bound, bound), self._leaves, changed, solution.values)

    def _infeasible_bound(self, low: Floats, high: Floats) -> float:
        """A bound for a leaf without solutions: past the cutoff if the solver can prove that there are none.

        With all costs zero, duals that prove a bound above zero prove that nothing keeps the rows (Farkas' lemma).
        Multiplied, they prove any bound. HiGHS gives such a ray, but not always with the sign that is meant here.
        """
        ray = self._solver.farkas_ray()
        if ray is None:
            return 0.0
        program = self._program.relaxation
        without_costs = replace(program, costs=np.zeros(len(program.costs)))
        for duals in (ray, -ray):
            gain = dual_bound(without_costs, duals, low, high)
            if gain > 0:
                return dual_bound(program, duals * (_PAST_CUTOFF * self._cutoff / gain), low, high)
        return 0.0

    def _branching_variable(self, values: Floats) -> int | None:
        """Of the highest priority that has fractions the most fractional variable, weighted by its cost; None if all
        are whole.
        """
        distance = np.abs(values - np.round(values))
        fractional = np.flatnonzero(self._program.is_integer & (distance > _INTEGRAL))
        if not len(fractional):
            return None
        priority = self._program.priority[fractional]
        fractional = fractional[priority == priority.max()]
        weight = distance[fractional] * (1.0 + self._program.relaxation.costs[fractional])
        return int(fractional[weight.argmax()])
