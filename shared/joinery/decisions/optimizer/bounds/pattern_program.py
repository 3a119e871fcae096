"""The linear program over listed patterns: how many bins of each, in fractions, and what they cost at least.

z_q bins of pattern q, e_s copies of demand s without a bin::

    minimise    sum_q c_q z_q + sum_s cutoff e_s
    subject to  sum_q a_sq z_q + e_s  = d_s          every copy is packed; >= where a copy too many may be left out
                and what couples bins: limited supplies and side constraints
                low <= sum_q b_q z_q <= high         a branch: how many bins, or copies, there may be of some kind

It is stronger than the compact formulation, because a pattern is what really fits on a bin. There may be thousands of
patterns, of which HiGHS is given those that lower the cost: of the others the reduced costs are one product of arrays.

**Claim.** For any duals y of the right sign a packing of these patterns that keeps the branches costs at least
sum_r y_r b_r + n min(0, least reduced cost), where n is how many copies there are. **Proof.** As in ``duality``; a
packing has no more bins than copies, as none is empty. ∎
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from joinery.decisions.optimizer.arrays import Floats, Ints
from joinery.decisions.optimizer.instance.patterns import Pattern, Patterns
from joinery.decisions.optimizer.instance.side_constraints import ConstrainedInstance
from joinery.decisions.optimizer.linear.highs import LinearProgram, Patience, Solver
from joinery.decisions.optimizer.linear.rows import RowWriter

#: A bound within so small a share of the cutoff needs no more work.
CLOSE = 1e-6
#: So many times the cutoff a bin costs that a branch asks for and nobody has.
_PAST_CUTOFF = 10.0
#: Patterns that HiGHS is given after a solve.
_NEW = 40
#: $/h. A reduced cost that is no farther below zero needs no further column.
_TOLERANCE = 1e-7
_LEFT_OUT = 1e-6
#: Branch-and-bound nodes of HiGHS.
_BRANCHES = 300
#: What a sum of floats may be wrong by, as a share of the absolute values summed.
_ROUNDING = 1e-10

#: What each pattern counts (int16[patterns], as bytes), and between which ends the sum over all bins is.
Branches = Mapping[bytes, tuple[float, float]]


@dataclass(frozen=True, eq=False)
class PatternSolution:
    """``bound``: $/h, what the claim proves. ``bins``: float64[patterns], fractions. ``is_complete``: whether they
    leave out no copy and keep all branches.
    """

    bound: float
    bins: Floats
    is_complete: bool


class PatternProgram:
    """``cutoff``: $/h of a known packing. ``solves``: linear programs that were solved so far."""

    def __init__(
        self, constrained: ConstrainedInstance, patterns: Patterns, cutoff: float, patience: Patience | None
    ) -> None:
        self._constrained, self._patterns = constrained, patterns
        self._cutoff, self._patience = cutoff, patience
        self._costs = constrained.instance.costs[patterns.bin_types]
        self.counts = np.zeros((len(constrained.demands), len(self._costs)))
        np.add.at(self.counts, constrained.demand_of, patterns.counts.T)
        self._coefficients, self._lower, self._upper = self._rows()
        self._is_active = np.zeros(len(self._costs), dtype=np.bool_)
        self._solver = Solver(self._without_patterns(), exact=True, patience=patience)
        self._branch_rows: dict[bytes, int] = {}
        self.solves = 0

    def _rows(self) -> tuple[Floats, Floats, Floats]:
        """The rows over all patterns, without branches, and their ends."""
        constrained, instance, bin_types = self._constrained, self._constrained.instance, self._patterns.bin_types
        demands = constrained.demands.astype(np.float64)
        rows, upper = [*self.counts], [*(demands if constrained.limits_items else np.full(len(demands), np.inf))]
        for row in constrained.side_constraints:
            rows.append(self._patterns.counts @ row.items + row.bin_types[bin_types])
            upper.append(row.upper)
        for supply in np.unique(instance.supply[instance.is_limited]):
            draws = instance.is_limited & (instance.supply == supply)
            rows.append(draws[bin_types].astype(np.float64))
            upper.append(float(instance.available[draws][0]))
        lower = np.concatenate([demands, np.full(len(rows) - len(demands), -np.inf)])
        return np.array(rows).reshape(len(rows), len(bin_types)), lower, np.array(upper)

    def _without_patterns(self) -> LinearProgram:
        """Copies without a bin only, and what makes up for a row that asks for some bin; patterns come after them."""
        rows = np.flatnonzero((self._lower > 0) | (self._upper < 0))
        self._columns: Ints = np.full(len(rows), -1, dtype=np.int64)
        return LinearProgram(
            costs=np.full(len(rows), self._cutoff),
            upper_bounds=np.full(len(rows), np.inf),
            row_lower=self._lower,
            row_upper=self._upper,
            rows=rows.astype(np.int32),
            columns=np.arange(len(rows), dtype=np.int32),
            values=np.where(self._upper[rows] < 0, -1.0, 1.0),
        )

    def activate(self, chosen: Ints) -> None:
        """Give HiGHS these patterns (indices)."""
        if len(chosen):
            self._solver.add_columns(self._costs[chosen], self._coefficients[:, chosen])
            self._columns = np.concatenate([self._columns, chosen])
            self._is_active[chosen] = True

    def solve(self, branches: Branches) -> PatternSolution | None:
        """The optimum over all patterns between these branches; None if HiGHS finds none, or time is up."""
        rows = [self._row_of(counted) for counted in branches]
        lower, upper = self._lower.copy(), self._upper.copy()
        for row, (low, high) in zip(rows, branches.values(), strict=True):
            lower[row], upper[row] = low, high
        while True:
            self.solves += 1
            solution = self._solver.solve(lower, upper)
            if solution is None:
                return None
            bound, reduced = self._bound(solution.duals, lower, upper)
            missing = np.flatnonzero((reduced < -_TOLERANCE) & ~self._is_active)
            if not len(missing) or bound >= self._cutoff * (1 - CLOSE):
                break
            relative = reduced[missing] / np.maximum(self._costs[missing], 1e-9)
            self.activate(missing[np.argsort(relative, kind="stable")[:_NEW]])
        bins, is_pattern = np.zeros(len(self._costs)), self._columns >= 0
        bins[self._columns[is_pattern]] = solution.values[is_pattern]
        return PatternSolution(bound, bins, float(solution.values[~is_pattern].sum()) <= _LEFT_OUT)

    def _row_of(self, counted: bytes) -> int:
        """The row of a branch, which begins with its first use."""
        if counted not in self._branch_rows:
            coefficients = np.frombuffer(counted, dtype=np.int16).astype(np.float64)
            self._branch_rows[counted] = len(self._lower)
            self._coefficients = np.concatenate([self._coefficients, coefficients[None]])
            self._lower, self._upper = np.append(self._lower, -np.inf), np.append(self._upper, np.inf)
            values = np.where(self._columns >= 0, coefficients[self._columns], 0.0)
            columns = np.flatnonzero(values)
            self._solver.add_row(columns.astype(np.int32), values[columns], np.inf)
            missing = np.zeros((len(self._lower), 1))
            missing[-1] = 1.0
            self._solver.add_columns(np.array([_PAST_CUTOFF * self._cutoff]), missing)
            self._columns = np.concatenate([self._columns, np.array([-1])])
        return self._branch_rows[counted]

    def _bound(self, duals: Floats, lower: Floats, upper: Floats) -> tuple[float, Floats]:
        """What these duals prove, and float64[patterns], the reduced costs."""
        duals = np.where(np.isinf(lower), np.minimum(duals, 0.0), duals)
        duals = np.where(np.isinf(upper), np.maximum(duals, 0.0), duals)
        terms = duals * np.where(duals == 0, 0.0, np.where(duals > 0, lower, upper))
        reduced: Floats = self._costs - duals @ self._coefficients
        missing = float(self._constrained.demands.sum()) * min(0.0, float(reduced.min(initial=0.0)))
        return float(terms.sum() + missing - _ROUNDING * np.abs(terms).sum()), reduced

    def whole(self, most: float) -> Floats | None:
        """float64[patterns]: whole bins that cost no more than ``most`` ($/h), if HiGHS soon finds such."""
        rows = RowWriter()
        number, size = len(self._lower) - len(self._branch_rows), len(self._costs)
        coefficients = np.concatenate([self._coefficients[:number], self._costs[None]])
        row, column = np.nonzero(coefficients)
        rows.add(row, column, coefficients[row, column])
        rows.close(np.append(self._lower[:number], -np.inf), np.append(self._upper[:number], most))
        upper = np.full(size, float(self._constrained.demands.sum()))
        program = rows.program(self._costs, upper, integers=size)
        values = Solver(program, patience=self._patience).solve_integer(_BRANCHES)
        return None if values is None else np.round(values)

    def packing(self, bins: Floats) -> tuple[Pattern, ...]:
        """Whole bins (float64[patterns]) without the copies that are one too many."""
        residual, packed = self._constrained.demands.copy(), []
        for index in np.flatnonzero(np.round(bins)):
            for _ in range(int(np.round(bins[index]))):
                counts = np.zeros_like(self._patterns.counts[index])
                for item in np.flatnonzero(self._patterns.counts[index]):
                    demand = self._constrained.demand_of[item]
                    counts[item] = min(self._patterns.counts[index, item], residual[demand])
                    residual[demand] -= counts[item]
                if counts.any():
                    packed.append(Pattern(int(self._patterns.bin_types[index]), counts))
        return tuple(packed)
