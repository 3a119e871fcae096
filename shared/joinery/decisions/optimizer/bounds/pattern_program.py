"""The formulation over enumerated patterns: how many bins of each, in whole numbers.

z_q bins of pattern q, e_s copies of demand s without a bin, N bins in all, x_k bins of type k::

    minimise    sum_q c_q z_q + sum_s cutoff e_s
    subject to  sum_q a_sq z_q + e_s  = d_s    every copy is packed; >= where a copy too many may be left out
                sum_q z_q             = N
                sum_{q of k} z_q      = x_k
                and what couples bins: limited supplies and side constraints

It is stronger than the compact formulation, because a pattern is what really fits on a bin. N and x_k are there to
branch on. A branch on one pattern hardly changes anything, since another like it takes its place; the number of bins
of a type changes much. Vance (1998, "Branch-and-price algorithms for the one-dimensional cutting stock problem")
compares ways to branch.
"""

import numpy as np

from joinery.decisions.optimizer.arrays import Floats, Ints
from joinery.decisions.optimizer.bounds.branch_and_bound import IntegerProgram
from joinery.decisions.optimizer.instance.patterns import Pattern, Patterns
from joinery.decisions.optimizer.instance.side_constraints import ConstrainedInstance
from joinery.decisions.optimizer.linear.rows import RowWriter

_LEFT_OUT = 1e-6


class PatternFormulation:
    """``program``: what bins of these patterns cost at least. ``cutoff``: $/h of a known packing."""

    def __init__(self, constrained: ConstrainedInstance, patterns: Patterns, cutoff: float) -> None:
        self._constrained, self._patterns = constrained, patterns
        self._size = len(patterns.bin_types)
        self._bin_types, type_of_pattern = np.unique(patterns.bin_types, return_inverse=True)
        self._rows = RowWriter()
        self._demands()
        self._totals(type_of_pattern.ravel())
        self._couplings()
        self.program = self._program(cutoff)

    def _demands(self) -> None:
        constrained, numbers = self._constrained, np.arange(len(self._constrained.demands))
        counts = np.zeros((len(numbers), self._size))
        np.add.at(counts, constrained.demand_of, self._patterns.counts.T)
        row, column = np.nonzero(counts)
        self._rows.add(row, column, counts[row, column])
        self._rows.add(numbers, self._size + 1 + len(self._bin_types) + numbers, 1.0)
        demands = constrained.demands.astype(np.float64)
        self._rows.close(demands, demands if constrained.limits_items else np.full(len(numbers), np.inf))

    def _totals(self, type_of_pattern: Ints) -> None:
        """The rows of N, and of x_k."""
        patterns, totals = np.arange(self._size), np.arange(1 + len(self._bin_types))
        self._rows.add(np.zeros_like(patterns), patterns, 1.0)
        self._rows.add(type_of_pattern + 1, patterns, 1.0)
        self._rows.add(totals, self._size + totals, -1.0)
        self._rows.close(np.zeros(len(totals)), np.zeros(len(totals)))

    def _couplings(self) -> None:
        constrained, instance, bin_types = self._constrained, self._constrained.instance, self._patterns.bin_types
        for row in constrained.side_constraints:
            self._rows.add_row(self._patterns.counts @ row.items + row.bin_types[bin_types], row.upper)
        for supply in np.unique(instance.supply[instance.is_limited]):
            draws = instance.is_limited & (instance.supply == supply)
            self._rows.add_row(draws[bin_types].astype(np.float64), float(instance.available[draws][0]))

    def _program(self, cutoff: float) -> IntegerProgram:
        demands, totals = self._constrained.demands.astype(np.float64), 1 + len(self._bin_types)
        costs = self._constrained.instance.costs[self._patterns.bin_types]
        costs = np.concatenate([costs, np.zeros(totals), np.full(len(demands), cutoff)])
        upper = np.concatenate([np.full(self._size + totals, demands.sum()), demands])
        # All bins first, then the bins of each type, then patterns.
        priority = np.repeat([0, 2, 1, 0], [self._size, 1, len(self._bin_types), len(demands)])
        is_integer = np.arange(len(costs)) < self._size + totals
        return IntegerProgram(self._rows.program(costs, upper), is_integer, priority)

    def packing(self, values: Floats) -> tuple[Pattern, ...] | None:
        """The bins of a solution (float64[variables]), without copies that are one too many; None if it leaves copies
        unpacked.
        """
        if (values[-len(self._constrained.demands) :] > _LEFT_OUT).any():
            return None
        residual, bins = self._constrained.demands.copy(), []
        for index, copies in enumerate(np.round(values[: self._size]).astype(np.int64)):
            for _ in range(copies):
                counts = np.zeros_like(self._patterns.counts[index])
                for item in np.flatnonzero(self._patterns.counts[index]):
                    demand = self._constrained.demand_of[item]
                    counts[item] = min(self._patterns.counts[index, item], residual[demand])
                    residual[demand] -= counts[item]
                if counts.any():
                    bins.append(Pattern(int(self._patterns.bin_types[index]), counts))
        return tuple(bins)
