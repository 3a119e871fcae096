"""A proven bound on a linear program some of whose variables are whole numbers: branch and bound with a proof at every
leaf.

The method is Land and Doig's (1960, "An automatic method of solving discrete programming problems"). A branch splits
the whole numbers of one variable into those up to some number and those above it, so together the leaves cover every
solution, and the least of their bounds is a bound on the whole. Each leaf's bound is computed from the duals that the
solver suggests (``duality``), and that of a leaf which is never solved is its parent's.

Why not HiGHS's own branch and bound: its bound is right to tolerances that nobody can check from outside.
"""

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np

from joinery.decisions.optimizer.arrays import Floats, Ints, Mask
from joinery.decisions.optimizer.bounds.duality import dual_bound
from joinery.decisions.optimizer.linear.highs import LinearProgram, Solver

#: A value so near to a whole number is one.
_INTEGRAL = 1e-6
#: How many times the cutoff an infeasible leaf is bounded by. Any multiple of a ray proves something; this closes the
#: leaf.
_PAST_CUTOFF = 10.0
#: A bound within so small a share of the cutoff needs no more work.
CLOSE = 1e-6
_NO_ROWS: Floats = np.zeros(0)

#: Lower and upper bound by variable (index), where branching changed them.
VariableBounds = Mapping[int, tuple[float, float]]


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
    """``bound``: no solution costs less than this, or the cutoff. ``values``: float64[variables], a solution if one was
    found; of that cost, unless some were refused before it.
    """

    bound: float
    values: Floats | None = None


@dataclass(frozen=True, eq=False)
class Cut:
    """A row that all solutions keep: coefficients . (variables) <= upper. ``coefficients``: float64[variables]."""

    coefficients: Floats
    upper: float


#: Is this solution in whole numbers (float64[variables]) one? If not, maybe by a row that it breaks. A plain no is
#: believed, but it proves nothing.
Check = Callable[[Floats], "bool | Cut"]


@dataclass(order=True)
class _Leaf:
    """An open leaf of the tree. Leaves compare by bound, then by age, so that the search is deterministic.

    ``cuts``: how many there were when it was solved.
    """

    bound: float
    number: int
    changed: VariableBounds = field(compare=False)
    values: Floats | None = field(compare=False)
    cuts: int = field(compare=False)


class BranchAndBound:
    """The search in one program. ``cutoff``: the cost of a known solution, what costs as much is of no interest.

    ``solves``: so many linear programs may be solved at most. Work is counted, not timed, so that the bound is the
    same everywhere.
    ``check``: what solutions in whole numbers must pass besides. It counts as ``check_solves`` programs.
    ``goes_on``: also after a solution was refused without proof. That finds solutions, and lifts no bound.
    ``duals``: float64[rows], of the last program that was solved.
    """

    def __init__(
        self,
        program: IntegerProgram,
        cutoff: float,
        solves: int,
        *,
        check: Check = lambda _: True,
        check_solves: int = 0,
        goes_on: bool = False,
    ) -> None:
        self._program, self._cutoff, self._solves_left = program, cutoff, solves
        self._check, self._check_solves, self._goes_on = check, check_solves, goes_on
        self._relaxation = program.relaxation
        self._solver = Solver(program.relaxation, exact=True)
        self._high = program.relaxation.upper_bounds
        self._numbers, self._cuts = 0, 0
        self.duals: Floats = np.zeros(len(program.relaxation.row_lower))

    def solve_root(self) -> float:
        """The bound without any branching; ``duals`` are then those that prove it."""
        return self._leaf({}, 0.0).bound

    def solve(self) -> BranchAndBoundResult:
        """The best bound that the allowed work proves, and no more than the cutoff. Best bound first."""
        leaves, proven = [self._leaf({}, 0.0)], self._cutoff
        while leaves and leaves[0].bound < self._cutoff * (1 - CLOSE):
            leaf = heapq.heappop(leaves)
            if leaf.values is None or self._solves_left <= 0:
                return BranchAndBoundResult(min(leaf.bound, proven))
            column = self._branching_variable(leaf.values)
            if column is None and leaf.cuts == self._cuts and self._is_solution(leaf.values):
                return BranchAndBoundResult(min(leaf.bound, proven), leaf.values)
            if leaf.cuts < self._cuts:
                children = [leaf.changed]
            elif column is not None:
                children = self._beside(leaf, column)
            else:
                proven = min(leaf.bound, proven)
                if not self._goes_on:
                    break
                children = self._around(leaf, leaf.values)
            for changed in children:
                heapq.heappush(leaves, self._leaf(changed, leaf.bound))
        return BranchAndBoundResult(min(proven, leaves[0].bound if leaves else proven))

    def _is_solution(self, values: Floats) -> bool:
        """Whether it passes the check; a row that it breaks becomes one of the program's."""
        self._solves_left -= self._check_solves
        answer = self._check(values)
        if isinstance(answer, Cut):
            self._cuts += 1
            columns = np.flatnonzero(answer.coefficients).astype(np.int32)
            coefficients = answer.coefficients[columns]
            self._solver.add_row(columns, coefficients, answer.upper)
            program = self._relaxation
            self._relaxation = replace(
                program,
                row_lower=np.append(program.row_lower, -np.inf),
                row_upper=np.append(program.row_upper, answer.upper),
                rows=np.append(program.rows, np.full(len(columns), len(program.row_lower), dtype=np.int32)),
                columns=np.append(program.columns, columns),
                values=np.append(program.values, coefficients),
            )
        return not isinstance(answer, Cut) and bool(answer)

    def _beside(self, leaf: _Leaf, column: int) -> list[VariableBounds]:
        """The variable up to the whole number below its value, and above it."""
        below = np.floor(cast(Floats, leaf.values)[column] + _INTEGRAL)
        low, high = self._range(leaf, column)
        return [{**leaf.changed, column: (low, below)}, {**leaf.changed, column: (below + 1.0, high)}]

    def _around(self, leaf: _Leaf, values: Floats) -> list[VariableBounds]:
        """All solutions but this one and those that are nowhere above it: some variable is above, none before it is."""
        below, children = dict(leaf.changed), list[VariableBounds]()
        for column in np.flatnonzero(self._program.priority == self._program.priority.min()):
            value = float(np.round(values[column]))
            low, high = self._range(leaf, column)
            if value < high:
                children.append({**below, column: (value + 1.0, high)})
                below[column] = (low, value)
        return children

    def _range(self, leaf: _Leaf, column: int) -> tuple[float, float]:
        return leaf.changed.get(column, (0.0, float(self._high[column])))

    def _leaf(self, changed: VariableBounds, parent_bound: float) -> _Leaf:
        """Solve the relaxation between these bounds."""
        low, high = np.zeros(len(self._high)), self._high.copy()
        for column, (least, most) in changed.items():
            low[column], high[column] = least, most
        self._numbers += 1
        self._solves_left -= 1
        self._solver.set_bounds(low, high)
        solution = self._solver.solve(_NO_ROWS, _NO_ROWS)
        if solution is None:
            bound = max(parent_bound, self._infeasible_bound(low, high))
            return _Leaf(bound, self._numbers, changed, None, self._cuts)
        self.duals = solution.duals
        bound = max(parent_bound, dual_bound(self._relaxation, solution.duals, low, high))
        return _Leaf(bound, self._numbers, changed, solution.values, self._cuts)

    def _infeasible_bound(self, low: Floats, high: Floats) -> float:
        """A bound for a leaf without solutions: past the cutoff if the solver can prove that there are none.

        With all costs zero, duals that prove a bound above zero prove that nothing keeps the rows (Farkas' lemma).
        Multiplied, they prove any bound. HiGHS gives such a ray, but not always with the sign that is meant here.
        """
        ray = self._solver.farkas_ray()
        if ray is None:
            return 0.0
        program = self._relaxation
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
