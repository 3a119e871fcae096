"""The program over listed nodes: how many of each, in whole numbers.

    minimise    sum_q p_q z_q + sum_s P e_s
    subject to  sum_q a_sq z_q + e_s  = n_s    every pod has a place (or >=, where one too many does not matter)
                sum_q z_q             = N      all nodes together
                sum_{q of k} z_q      = x_k    the nodes of each kind
                and what binds nodes together: the constrained's rows, and supplies

N and x_k are there to branch on: they are the whole numbers that tell most.
"""

import numpy as np

from joinery.optimizer.arrays import Floats, Ints
from joinery.optimizer.bounds.branch_and_bound import IntegerProgram
from joinery.optimizer.instance.patterns import Pattern, Patterns
from joinery.optimizer.instance.side_constraints import ConstrainedInstance
from joinery.optimizer.linear.rows import RowWriter

_OUTSIDE = 1e-6


class PatternFormulation:
    """``program``: what these nodes cost at least. ``cutoff``: as of ``Placement``."""

    def __init__(self, constrained: ConstrainedInstance, listed: Patterns, cutoff: float) -> None:
        self._task, self._listed = constrained, listed
        self._size = len(listed.bin_types)
        self._kinds, bin_type = np.unique(listed.bin_types, return_inverse=True)
        self._rows = RowWriter()
        self._demand()
        self._sums(bin_type.ravel())
        self._bindings()
        self.program = self._question(cutoff)

    def _demand(self) -> None:
        constrained, sorts = self._task, np.arange(len(self._task.demands))
        counts = np.zeros((len(sorts), self._size))
        np.add.at(counts, constrained.demand_of, self._listed.counts.T)
        row, column = np.nonzero(counts)
        self._rows.add(row, column, counts[row, column])
        self._rows.add(sorts, self._size + 1 + len(self._kinds) + sorts, 1.0)
        wanted = constrained.demands.astype(np.float64)
        self._rows.close(wanted, wanted if constrained.limits_items else np.full(len(sorts), np.inf))

    def _sums(self, bin_type: Ints) -> None:
        """Variables for all nodes together and for those of each kind."""
        every, bin_types = np.arange(self._size), np.arange(len(self._kinds))
        self._rows.add(np.zeros_like(every), every, 1.0)
        self._rows.add(bin_type + 1, every, 1.0)
        sums = np.arange(1 + len(bin_types))
        self._rows.add(sums, self._size + sums, -1.0)
        self._rows.close(np.zeros(len(sums)), np.zeros(len(sums)))

    def _bindings(self) -> None:
        """The constrained's rows, and how many nodes there are of what is scarce."""
        constrained, instance, bin_types = self._task, self._task.instance, self._listed.bin_types
        for row in constrained.side_constraints:
            self._rows.add_row(self._listed.counts @ row.items + row.bin_types[bin_types], row.upper)
        for supply in np.unique(instance.supply[instance.is_limited]):
            inside = instance.is_limited & (instance.supply == supply)
            self._rows.add_row(inside[bin_types].astype(np.float64), float(instance.available[inside][0]))

    def _question(self, cutoff: float) -> IntegerProgram:
        sorts, sums = len(self._task.demands), 1 + len(self._kinds)
        wanted = self._task.demands.astype(np.float64)
        cost = np.concatenate(
            [self._task.instance.costs[self._listed.bin_types], np.zeros(sums), np.full(sorts, cutoff)]
        )
        most = np.concatenate([np.full(self._size + sums, wanted.sum()), wanted])
        rank = np.repeat([0, 2, 1, 0], [self._size, 1, len(self._kinds), sorts])
        return IntegerProgram(self._rows.program(cost, most), np.arange(len(cost)) < self._size + sums, rank)

    def patterns(self, values: Floats) -> tuple[Pattern, ...] | None:
        """The nodes of an answer, without pods that are one too many; None if it leaves pods without a place."""
        if (values[-len(self._task.demands) :] > _OUTSIDE).any():
            return None
        left, found = self._task.demands.copy(), []
        for index, times in enumerate(np.round(values[: self._size]).astype(np.int64)):
            for _ in range(times):
                counts = np.zeros_like(self._listed.counts[index])
                for item in np.flatnonzero(self._listed.counts[index]):
                    counts[item] = min(self._listed.counts[index, item], left[self._task.demand_of[item]])
                    left[self._task.demand_of[item]] -= counts[item]
                if counts.any():
                    found.append(Pattern(int(self._listed.bin_types[index]), counts))
        return tuple(found)
