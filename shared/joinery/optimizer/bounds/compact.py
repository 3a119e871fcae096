"""The placement program: the assignment program (``assignment``) of a small task, with whole nodes and with the rows of the task.

Every row is there from the beginning, so that its prices prove what they can at once::

    minimise    sum_k p_k x_k + sum_s P e_s
    subject to  sum_{i of s, k} y_ik + e_s  = n_s          every pod has a place, or costs as much as the best plan known
                sum_i r_ij y_ik            <= room_kj x_k  no resource of a kind is overdrawn
                y_ik                       <= m_ik x_k     a node of kind k holds at most m_ik pods of item i
                sum_{i in g} y_ik          <= c_gk x_k     and c_gk of a group
                y_ik/m_ik + y_lk/m_lk      <= x_k          and items that clash not both
                sum_{k in s} x_k           <= n_s          no pile of nodes is overdrawn
                a . y + b . x              <= most         the task's rows
"""

import numpy as np

from joinery.optimizer.arrays import UNLIMITED, Floats, Ints
from joinery.optimizer.bounds.branch_and_bound import Question
from joinery.optimizer.instance.side_constraints import Task
from joinery.optimizer.linear.rows import Rows


class Placement:
    """The program of a task. ``cutoff``: the price of a plan that is known; what costs as much is of no interest.

    Variables: nodes by kind (``width`` of them), pods by pair (``items``, ``kinds``), pods without a place by sort. ``most``: pods of an
    item that a node of a kind holds (items x kinds). ``demand``, ``room``, ``own``, ``groups``, ``clashes``: where those rows are; from
    ``binding`` on rows bind nodes of several kinds.
    """

    def __init__(self, task: Task, cutoff: float) -> None:
        lot = task.lot
        self.task, self.cutoff = task, cutoff
        self.most: Ints = np.minimum(lot.most, task.most[:, None])
        self.items, self.kinds = np.nonzero(lot.admits & (self.most > 0))
        self.width, self.pairs = len(lot.price), len(self.items)
        self.used: Ints = np.flatnonzero((lot.requests > 0).any(axis=0))
        self._placed: Ints = self.width + np.arange(self.pairs)
        self._rows = Rows()
        self.demand = self._demand()
        self.room = self._room()
        self.own = self._own()
        self.groups = [self._group(group.members, group.cap) for group in lot.groups]
        self.clash_kinds, self.clashes = self._clashes()
        self.binding = self._rows.height
        self._piles()
        for row in task.rows:
            self._rows.line(np.concatenate([row.kinds, row.items[self.items]]), row.most)

    def _demand(self) -> slice:
        wanted = self.task.wanted.astype(np.float64)
        sorts = np.arange(len(wanted))
        self._rows.entry(self.task.of[self.items], self._placed, 1.0)
        self._rows.entry(sorts, self.width + self.pairs + sorts, 1.0)
        return self._rows.end(wanted, wanted)

    def _room(self) -> slice:
        lot, every = self.task.lot, np.arange(self.width)
        requests, room = lot.requests / lot.scale, lot.room / lot.scale
        for number, resource in enumerate(self.used):
            asked = requests[self.items, resource] > 0
            at = number * self.width
            self._rows.entry(at + self.kinds[asked], self._placed[asked], requests[self.items[asked], resource])
            self._rows.entry(at + every, every, -room[:, resource])
        return self._rows.most(np.zeros(len(self.used) * self.width))

    def _own(self) -> slice:
        pairs = np.arange(self.pairs)
        self._rows.entry(pairs, self._placed, 1.0)
        self._rows.entry(pairs, self.kinds, -self.most[self.items, self.kinds].astype(np.float64))
        return self._rows.most(np.zeros(self.pairs))

    def _group(self, members: Ints, cap: int) -> slice:
        inside, every = np.isin(self.items, members), np.arange(self.width)
        self._rows.entry(self.kinds[inside], self._placed[inside], 1.0)
        self._rows.entry(every, every, -float(cap))
        return self._rows.most(np.zeros(self.width))

    def _clashes(self) -> tuple[Ints, slice]:
        """The kind of every row, and where they are."""
        lot = self.task.lot
        where = np.full(lot.admits.shape, -1)
        where[self.items, self.kinds] = self._placed
        kinds: list[int] = []
        for one, other in np.argwhere(np.triu(lot.clashes, 1)):
            for kind in np.flatnonzero((self.most[one] > 0) & (self.most[other] > 0)):
                columns = np.array([where[one, kind], where[other, kind], kind])
                values = np.array([1 / self.most[one, kind], 1 / self.most[other, kind], -1.0])
                self._rows.entry(np.full(3, len(kinds)), columns, values)
                kinds.append(int(kind))
        return np.array(kinds, dtype=np.int64), self._rows.most(np.zeros(len(kinds)))

    def _piles(self) -> None:
        lot = self.task.lot
        scarce = np.flatnonzero(lot.scarce)
        _, first, number = np.unique(lot.pile[scarce], return_index=True, return_inverse=True)
        self._rows.entry(number.ravel(), scarce, 1.0)
        self._rows.most(lot.stock[scarce[first]].astype(np.float64))

    @property
    def question(self) -> Question:
        """What do the nodes cost at least, if there are whole numbers of them?"""
        lot, sorts = self.task.lot, len(self.task.wanted)
        size = self.width + self.pairs + sorts
        placed, outside = self.task.most[self.items].astype(np.float64), self.task.wanted.astype(np.float64)
        cost = np.concatenate([lot.price, np.zeros(self.pairs), np.full(sorts, self.cutoff)])
        program = self._rows.program(cost, np.concatenate([self._nodes(), placed, outside]))
        return Question(program, np.arange(size) < self.width, np.zeros(size, dtype=np.int64))

    def _nodes(self) -> Floats:
        """At most so many nodes of each kind are in a plan that costs less than the cutoff and leaves no node empty."""
        lot = self.task.lot
        afforded = np.floor(self.cutoff / np.maximum(lot.price, 1e-12) * (1 + 1e-9))
        stock = np.where(lot.stock < UNLIMITED, lot.stock, np.inf)
        most: Floats = np.minimum(np.minimum(afforded, stock), float(self.task.wanted.sum()))
        return most
