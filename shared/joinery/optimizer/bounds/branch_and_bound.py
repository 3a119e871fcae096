"""A proven bound on a linear program some of whose variables are whole numbers: branch and bound in which every leaf is proven.

**The proof does not trust the solver.** Take any price for every row, none below zero where the row has no upper end and none above where
it has no lower one. For every v between low and high that keeps the rows::

    cost . v  =  price . (A v)  +  (cost - price . A) . v
             >=  sum of each price times the end of its row that it pushes against
               + sum of each reduced cost times the end of its variable that it pushes against

The solver only suggests the prices. Branching divides the whole numbers of one variable into those up to some number and those above
it, so that the least of all leaves' bounds is a bound on the whole; a leaf that is never looked at has the bound of its parent.
"""

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from joinery.optimizer.arrays import Floats, Ints, Mask
from joinery.optimizer.bounds.duality import dual_bound
from joinery.optimizer.linear.highs import LinearProgram, Solver

_WHOLE = 1e-6
_REFUTED = 10.0
CLOSE = 1e-6
"""What is proven up to so small a share of the cutoff needs no more work."""
_EMPTY: Floats = np.zeros(0)

VariableBounds = Mapping[int, tuple[float, float]]


@dataclass(frozen=True, eq=False)
class IntegerProgram:
    """What is the least cost? ``is_integer``: the variables that are whole numbers; ``priority``: by variable, those to branch on first have
    the highest. Every variable of the program has an upper end.
    """

    relaxation: LinearProgram
    is_integer: Mask
    priority: Ints


@dataclass(frozen=True, eq=False)
class BranchAndBoundResult:
    """Nothing that answers the question costs less than ``bound`` or ``cutoff``. ``values``: what costs just that, if it was found."""

    bound: float
    values: Floats | None = None


@dataclass(order=True)
class _Leaf:
    bound: float
    number: int
    ends: VariableBounds = field(compare=False)
    values: Floats | None = field(compare=False)


class BranchAndBound:
    """Answers one question. ``solves``: so many linear programs may be solved at most."""

    def __init__(self, question: IntegerProgram, cutoff: float, solves: int) -> None:
        self._question, self._cutoff, self._left = question, cutoff, solves
        self._solver = Solver(question.relaxation, exact=True)
        self._high = question.relaxation.upper_bounds
        self._numbers = 0
        self.duals: Floats = np.zeros(len(question.relaxation.row_lower))

    def solve_root(self) -> float:
        """The bound without any branching; ``duals`` are those that prove it."""
        return self._leaf({}, 0.0).bound

    def solve(self) -> BranchAndBoundResult:
        """The best bound that the allowed work proves, and no more than the cutoff."""
        leaves = [self._leaf({}, 0.0)]
        while leaves[0].bound < self._cutoff * (1 - CLOSE):
            leaf = leaves[0]
            if leaf.values is None or self._left <= 0:
                return BranchAndBoundResult(leaf.bound)
            column = self._fraction(leaf.values)
            if column is None:
                return BranchAndBoundResult(leaf.bound, leaf.values)
            heapq.heappop(leaves)
            below = np.floor(leaf.values[column] + _WHOLE)
            low, high = leaf.ends.get(column, (0.0, float(self._high[column])))
            for ends in ((low, below), (below + 1.0, high)):
                heapq.heappush(leaves, self._leaf({**leaf.ends, column: ends}, leaf.bound))
        return BranchAndBoundResult(min(leaves[0].bound, self._cutoff))

    def _leaf(self, ends: VariableBounds, known: float) -> _Leaf:
        """Solve the program between these ends; ``known``: a bound that holds there."""
        low, high = np.zeros(len(self._high)), self._high.copy()
        for column, (least, most) in ends.items():
            low[column], high[column] = least, most
        self._numbers += 1
        self._left -= 1
        self._solver.set_bounds(low, high)
        solution = self._solver.solve(_EMPTY, _EMPTY)
        if solution is None:
            return _Leaf(max(known, self._refuted(low, high)), self._numbers, ends, None)
        self.duals = solution.duals
        bound = dual_bound(self._question.relaxation, solution.duals, low, high)
        return _Leaf(max(known, bound), self._numbers, ends, solution.values)

    def _refuted(self, low: Floats, high: Floats) -> float:
        """A bound for a program that nothing answers: as large as it need be, if the solver can tell why."""
        ray = self._solver.farkas_ray()
        if ray is None:
            return 0.0
        program = self._question.relaxation
        free = replace(program, costs=np.zeros(len(program.costs)))
        for prices in (ray, -ray):
            gain = dual_bound(free, prices, low, high)
            if gain > 0:
                return dual_bound(program, prices * (_REFUTED * self._cutoff / gain), low, high)
        return 0.0

    def _fraction(self, values: Floats) -> int | None:
        """The variable to branch on: of the highest rank that has a fraction, the one that costs most per fraction."""
        away = np.abs(values - np.round(values))
        broken = np.flatnonzero(self._question.is_integer & (away > _WHOLE))
        if not len(broken):
            return None
        ranks = self._question.priority[broken]
        broken = broken[ranks == ranks.max()]
        return int(broken[(away[broken] * (1.0 + self._question.relaxation.costs[broken])).argmax()])
