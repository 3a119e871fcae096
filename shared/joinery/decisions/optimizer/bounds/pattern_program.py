"""The linear program over whole bins, some of which are listed with what they hold, and what packings cost at least.

Of most bin types the patterns that matter can be listed. A bin that holds twenty copies has millions of them, and then
it hardly matters that copies are cut to pieces: what matters is that the bin is whole. So there are z_q bins of each
listed pattern q, and bins of the other types are filled as in the compact formulation (``compact``), x_k of them with
y_ik copies::

    minimise    sum_q c_q z_q + sum_k c_k x_k + sum_s cutoff e_s
    subject to  sum_q a_sq z_q + sum_{i of s, k} y_ik + e_s  = d_s      >= where a copy too many may be left out
                what the compact formulation says of each bin type that is not listed
                the side constraints, over all bins
                low <= b . (z, x, y) <= high         a branch: how many bins, or copies, there may be of some kind

There may be thousands of patterns, of which HiGHS is given those that lower the cost: of the others the reduced costs
are one product of arrays.

**Claim.** For any duals v of the right sign a packing of these bins that keeps the branches costs at least
sum_r v_r b_r + sum_j min(0, d_j) u_j + n min(0, least reduced cost of a pattern). Here d_j and u_j are the reduced cost
and the upper bound of an x or y, and n is how many copies there are. **Proof.** As in ``duality``; no copy is left out,
and there are no more bins than copies, as none is empty. ∎
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from joinery.decisions.optimizer.arrays import Floats, Ints
from joinery.decisions.optimizer.bounds.compact import CompactFormulation
from joinery.decisions.optimizer.bounds.duality import reduced_costs
from joinery.decisions.optimizer.instance.patterns import Pattern, Patterns
from joinery.decisions.optimizer.instance.side_constraints import ConstrainedInstance
from joinery.decisions.optimizer.linear.highs import LinearProgram, Patience, Solver
from joinery.decisions.optimizer.rounding.filling import fill

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
    """``bound``: $/h, what the claim proves. ``values``: float64[columns], fractions. ``is_complete``: whether they
    leave out no copy and keep all branches.
    """

    bound: float
    values: Floats
    is_complete: bool


class PatternProgram:
    """``filled``: bin types (indices) that are filled in fractions; ``patterns`` are of the others. ``cutoff``: $/h of
    a known packing.

    The columns are those of the compact formulation of ``filled``, and from ``first_pattern`` on the patterns.
    ``costs``: float64[columns], $/h. ``bin_types``: int64[columns], of which type a column is a bin; -1 if of none.
    ``counts``: int64[columns, items], copies that it brings. ``solves``: linear programs that were solved so far.
    """

    def __init__(
        self,
        constrained: ConstrainedInstance,
        patterns: Patterns,
        filled: Ints,
        cutoff: float,
        patience: Patience | None,
    ) -> None:
        self.constrained, self._patterns, self._filled = constrained, patterns, filled
        self.cutoff, self._patience = cutoff, patience
        restricted = constrained.restrict(filled, constrained.instance.compatible[:, filled])
        compact = CompactFormulation(restricted, cutoff)
        program, demands = compact.program, compact.demand_rows
        self._lower, self._upper = program.row_lower, program.row_upper.copy()
        if not constrained.limits_items:
            self._upper[demands] = np.inf
        bounds = program.upper_bounds.copy()
        bounds[compact.bin_type_count + compact.pair_count :] = np.inf
        self._program = replace(program, row_upper=self._upper, upper_bounds=bounds)
        self._compact, self._rows = compact, len(self._lower)
        self._describe(compact)
        self._coupling = np.concatenate([np.arange(demands.stop), np.arange(compact.first_coupling_row, self._rows)])
        self._coefficients = self._of_patterns()
        self._branched: Floats = np.zeros((0, len(self.costs)))
        self._is_active = np.arange(len(self.costs)) < self.first_pattern
        self._solver = Solver(self._program, exact=True, patience=patience)
        self._columns: Ints = np.arange(self.first_pattern)
        self._branch_rows: dict[bytes, int] = {}
        for row in np.flatnonzero(self._upper < 0):
            self._allow_missing(int(row), -1.0)
        self.solves = 0

    def _describe(self, compact: CompactFormulation) -> None:
        """What the columns are."""
        instance, patterns = self.constrained.instance, self._patterns
        copies, number = slice(compact.bin_type_count, compact.bin_type_count + compact.pair_count), len(compact.items)
        self.first_pattern = len(self._program.costs)
        self._left_out = slice(copies.stop, self.first_pattern)
        self.costs: Floats = np.concatenate([self._program.costs, instance.costs[patterns.bin_types]])
        self.costs[self._left_out] = 0.0
        self.bin_types: Ints = np.full(len(self.costs), -1)
        self.bin_types[: copies.start] = self._filled
        self.bin_types[self.first_pattern :] = patterns.bin_types
        self.counts: Ints = np.zeros((len(self.costs), len(instance.demands)), dtype=np.int64)
        self.counts[np.arange(number) + copies.start, compact.items] = 1
        self.counts[self.first_pattern :] = patterns.counts

    def _of_patterns(self) -> Floats:
        """float64[coupling rows, patterns]: what a bin of each counts."""
        constrained, patterns = self.constrained, self._patterns
        demands = np.zeros((len(constrained.demands), len(patterns.bin_types)))
        np.add.at(demands, constrained.demand_of, patterns.counts.T)
        sides = [
            patterns.counts @ row.items + row.bin_types[patterns.bin_types] for row in constrained.side_constraints
        ]
        return np.concatenate([demands, np.reshape(sides, (len(sides), len(patterns.bin_types)))])

    @property
    def size(self) -> int:
        """How many columns may be above zero in a packing."""
        return len(self.costs) - len(self.constrained.demands)

    def activate(self, chosen: Ints) -> None:
        """Give HiGHS these columns, which are patterns (indices)."""
        if len(chosen):
            values = np.zeros((len(self._lower), len(chosen)))
            values[self._coupling] = self._coefficients[:, chosen - self.first_pattern]
            values[self._rows :] = self._branched[:, chosen]
            self._solver.add_columns(self.costs[chosen], values)
            self._columns = np.concatenate([self._columns, chosen])
            self._is_active[chosen] = True

    def activate_first(self, number: int) -> None:
        """Give HiGHS so many patterns, the first ones."""
        self.activate(np.arange(self.first_pattern, min(self.first_pattern + number, len(self.costs))))

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
            if not len(missing) or bound >= self.cutoff * (1 - CLOSE):
                break
            relative = reduced[missing] / np.maximum(self.costs[missing], 1e-9)
            self.activate(missing[np.argsort(relative, kind="stable")[:_NEW]])
        values, is_known = np.zeros(len(self.costs)), self._columns >= 0
        values[self._columns[is_known]] = solution.values[is_known]
        missing_copies = float(values[self._left_out].sum() + solution.values[~is_known].sum())
        values[self._left_out] = 0.0
        return PatternSolution(bound, values, missing_copies <= _LEFT_OUT)

    def _row_of(self, counted: bytes) -> int:
        """The row of a branch, which begins with its first use."""
        if counted not in self._branch_rows:
            coefficients = np.frombuffer(counted, dtype=np.int16).astype(np.float64)
            self._branch_rows[counted] = len(self._lower)
            self._branched = np.concatenate([self._branched, coefficients[None]])
            self._lower, self._upper = np.append(self._lower, -np.inf), np.append(self._upper, np.inf)
            values = np.where(self._columns >= 0, coefficients[self._columns], 0.0)
            columns = np.flatnonzero(values)
            self._solver.add_row(columns.astype(np.int32), values[columns], np.inf)
            self._allow_missing(len(self._lower) - 1, 1.0)
        return self._branch_rows[counted]

    def _allow_missing(self, row: int, value: float) -> None:
        """What makes up for a row that asks for some bin, so that there is always an optimum."""
        values = np.zeros((len(self._lower), 1))
        values[row] = value
        self._solver.add_columns(np.array([_PAST_CUTOFF * self.cutoff]), values)
        self._columns = np.concatenate([self._columns, np.array([-1])])

    def _bound(self, duals: Floats, lower: Floats, upper: Floats) -> tuple[float, Floats]:
        """What these duals prove, and float64[columns], the reduced costs."""
        duals = np.where(np.isinf(lower), np.minimum(duals, 0.0), duals)
        duals = np.where(np.isinf(upper), np.maximum(duals, 0.0), duals)
        terms = duals * np.where(duals == 0, 0.0, np.where(duals > 0, lower, upper))
        reduced: Floats = self.costs - duals[self._rows :] @ self._branched
        first = self.first_pattern
        reduced[:first] += reduced_costs(self._program, duals[: self._rows]) - self._program.costs
        reduced[first:] -= duals[self._coupling] @ self._coefficients
        # No packing leaves a copy out.
        filled = np.minimum(reduced[: self._left_out.start], 0.0) * self._program.upper_bounds[: self._left_out.start]
        missing = float(self.constrained.demands.sum()) * min(0.0, float(reduced[first:].min(initial=0.0)))
        summed = np.concatenate([terms, filled])
        return float(summed.sum() + missing - _ROUNDING * np.abs(summed).sum()), reduced

    def whole(self, most: float) -> Floats | None:
        """float64[columns]: whole bins and copies that cost no more than ``most`` ($/h), if HiGHS soon finds such."""
        first, number = self.first_pattern, len(self.costs)
        row, column = np.nonzero(self._coefficients)
        upper = np.concatenate(
            [self._program.upper_bounds, np.full(number - first, float(self.constrained.demands.sum()))]
        )
        upper[self._left_out] = 0.0
        program = LinearProgram(
            costs=self.costs,
            upper_bounds=upper,
            row_lower=self._program.row_lower,
            row_upper=self._program.row_upper,
            rows=np.concatenate([self._program.rows, self._coupling[row].astype(np.int32)]),
            columns=np.concatenate([self._program.columns, (column + first).astype(np.int32)]),
            values=np.concatenate([self._program.values, self._coefficients[row, column]]),
            integers=number,
        )
        values = Solver(program, patience=self._patience).solve_integer(_BRANCHES, most)
        return None if values is None else np.round(values)

    def packing(self, values: Floats) -> tuple[Pattern, ...] | None:
        """Whole bins (float64[columns]) without the copies that are one too many; None where copies are on bins of
        one type together that do not fit on each of them.
        """
        filled = self._split(np.round(values[: self.first_pattern]).astype(np.int64))
        if filled is None:
            return None
        residual, packed = self.constrained.demands.copy(), []
        bins = np.round(values[self.first_pattern :]).astype(np.int64)
        listed = [
            Pattern(int(self._patterns.bin_types[i]), self._patterns.counts[i], int(bins[i]))
            for i in np.flatnonzero(bins)
        ]
        for pattern in (*filled, *listed):
            for _ in range(pattern.copies):
                counts = np.zeros_like(pattern.counts)
                for item in np.flatnonzero(pattern.counts):
                    demand = self.constrained.demand_of[item]
                    counts[item] = min(pattern.counts[item], residual[demand])
                    residual[demand] -= counts[item]
                if counts.any():
                    packed.append(Pattern(pattern.bin_type, counts))
        return tuple(packed)

    def _split(self, values: Ints) -> list[Pattern] | None:
        """The bins that are filled in fractions, each with copies of its own. ``values``: int64[compact columns]."""
        compact, instance, patterns = self._compact, self.constrained.instance, []
        for number, bin_type in enumerate(self._filled):
            copies = np.zeros(len(instance.demands), dtype=np.int64)
            of_type = np.flatnonzero(compact.bin_types == number)
            copies[compact.items[of_type]] = values[compact.bin_type_count + of_type]
            order = np.argsort(
                -(instance.sizes / np.maximum(instance.capacities[bin_type], 1)).max(axis=1), kind="stable"
            )
            for _ in range(int(values[number])):
                counts = fill(instance, np.array([bin_type]), order[None], copies)[0]
                copies -= counts
                patterns.append(Pattern(int(bin_type), counts))
            if copies.any():
                return None
        return patterns
