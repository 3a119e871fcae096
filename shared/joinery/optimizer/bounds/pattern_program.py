"""The program over listed nodes: how many of each, in whole numbers.

    minimise    sum_q p_q z_q + sum_s P e_s
    subject to  sum_q a_sq z_q + e_s  = n_s    every pod has a place (or >=, where one too many does not matter)
                sum_q z_q             = N      all nodes together
                sum_{q of k} z_q      = x_k    the nodes of each kind
                and what binds nodes together: the task's rows, and piles

N and x_k are there to branch on: they are the whole numbers that tell most.
"""

import numpy as np

from joinery.optimizer.arrays import Floats, Ints
from joinery.optimizer.bounds.branch_and_bound import Question
from joinery.optimizer.instance.patterns import Patterns, Shape
from joinery.optimizer.instance.side_constraints import Task
from joinery.optimizer.linear.rows import Rows

_OUTSIDE = 1e-6


class Listing:
    """``question``: what these nodes cost at least. ``cutoff``: as of ``Placement``."""

    def __init__(self, task: Task, listed: Patterns, cutoff: float) -> None:
        self._task, self._listed = task, listed
        self._size = len(listed.kinds)
        self._kinds, kind = np.unique(listed.kinds, return_inverse=True)
        self._rows = Rows()
        self._demand()
        self._sums(kind.ravel())
        self._bindings()
        self.question = self._question(cutoff)

    def _demand(self) -> None:
        task, sorts = self._task, np.arange(len(self._task.wanted))
        pods = np.zeros((len(sorts), self._size))
        np.add.at(pods, task.of, self._listed.pods.T)
        row, column = np.nonzero(pods)
        self._rows.entry(row, column, pods[row, column])
        self._rows.entry(sorts, self._size + 1 + len(self._kinds) + sorts, 1.0)
        wanted = task.wanted.astype(np.float64)
        self._rows.end(wanted, wanted if task.is_dealt else np.full(len(sorts), np.inf))

    def _sums(self, kind: Ints) -> None:
        """Variables for all nodes together and for those of each kind."""
        every, kinds = np.arange(self._size), np.arange(len(self._kinds))
        self._rows.entry(np.zeros_like(every), every, 1.0)
        self._rows.entry(kind + 1, every, 1.0)
        sums = np.arange(1 + len(kinds))
        self._rows.entry(sums, self._size + sums, -1.0)
        self._rows.end(np.zeros(len(sums)), np.zeros(len(sums)))

    def _bindings(self) -> None:
        """The task's rows, and how many nodes there are of what is scarce."""
        task, lot, kinds = self._task, self._task.lot, self._listed.kinds
        for row in task.rows:
            self._rows.line(self._listed.pods @ row.items + row.kinds[kinds], row.most)
        for pile in np.unique(lot.pile[lot.scarce]):
            inside = lot.scarce & (lot.pile == pile)
            self._rows.line(inside[kinds].astype(np.float64), float(lot.stock[inside][0]))

    def _question(self, cutoff: float) -> Question:
        sorts, sums = len(self._task.wanted), 1 + len(self._kinds)
        wanted = self._task.wanted.astype(np.float64)
        cost = np.concatenate([self._task.lot.price[self._listed.kinds], np.zeros(sums), np.full(sorts, cutoff)])
        most = np.concatenate([np.full(self._size + sums, wanted.sum()), wanted])
        rank = np.repeat([0, 2, 1, 0], [self._size, 1, len(self._kinds), sorts])
        return Question(self._rows.program(cost, most), np.arange(len(cost)) < self._size + sums, rank)

    def nodes(self, values: Floats) -> tuple[Shape, ...] | None:
        """The nodes of an answer, without pods that are one too many; None if it leaves pods without a place."""
        if (values[-len(self._task.wanted) :] > _OUTSIDE).any():
            return None
        left, found = self._task.wanted.copy(), []
        for index, times in enumerate(np.round(values[: self._size]).astype(np.int64)):
            for _ in range(times):
                pods = np.zeros_like(self._listed.pods[index])
                for item in np.flatnonzero(self._listed.pods[index]):
                    pods[item] = min(self._listed.pods[index, item], left[self._task.of[item]])
                    left[self._task.of[item]] -= pods[item]
                if pods.any():
                    found.append(Shape(int(self._listed.kinds[index]), pods))
        return tuple(found)
