"""The placement program: the assignment program (``assignment``) of a small constrained, with whole nodes and with the rows of the constrained.

Every row is there from the beginning, so that its prices prove what they can at once::

    minimise    sum_k p_k x_k + sum_s P e_s
    subject to  sum_{i of s, k} y_ik + e_s  = n_s          every pod has a place, or costs as much as the best plan known
                sum_i r_ij y_ik            <= room_kj x_k  no resource of a kind is overdrawn
                y_ik                       <= m_ik x_k     a node of kind k holds at most m_ik pods of item i
                sum_{i in g} y_ik          <= c_gk x_k     and c_gk of a group
                y_ik/m_ik + y_lk/m_lk      <= x_k          and items that clash not both
                sum_{k in s} x_k           <= n_s          no supply of nodes is overdrawn
                a . y + b . x              <= most         the constrained's rows
"""

import numpy as np

from joinery.optimizer.arrays import UNLIMITED, Floats, Ints
from joinery.optimizer.bounds.branch_and_bound import IntegerProgram
from joinery.optimizer.instance.side_constraints import ConstrainedInstance
from joinery.optimizer.linear.rows import RowWriter


class CompactFormulation:
    """The program of a constrained. ``cutoff``: the price of a plan that is known; what costs as much is of no interest.

    Variables: nodes by kind (``bin_type_count`` of them), pods by pair (``items``, ``bin_types``), pods without a place by sort. ``max_per_bin``: pods of an
    item that a node of a kind holds (items x kinds). ``demand_rows``, ``capacity_rows``, ``item_rows``, ``limit_rows``, ``conflict_rows``: where those rows are; from
    ``first_coupling_row`` on rows bind nodes of several kinds.
    """

    def __init__(self, constrained: ConstrainedInstance, cutoff: float) -> None:
        instance = constrained.instance
        self.constrained, self.cutoff = constrained, cutoff
        self.max_per_bin: Ints = np.minimum(instance.max_per_bin, constrained.max_items[:, None])
        self.items, self.bin_types = np.nonzero(instance.compatible & (self.max_per_bin > 0))
        self.bin_type_count, self.pair_count = len(instance.costs), len(self.items)
        self.resources: Ints = np.flatnonzero((instance.sizes > 0).any(axis=0))
        self._placed: Ints = self.bin_type_count + np.arange(self.pair_count)
        self._rows = RowWriter()
        self.demand_rows = self._demand()
        self.capacity_rows = self._room()
        self.item_rows = self._own()
        self.limit_rows = [self._group(group.items, group.cap) for group in instance.cardinality_limits]
        self.conflict_bin_types, self.conflict_rows = self._clashes()
        self.first_coupling_row = self._rows.height
        self._piles()
        for row in constrained.side_constraints:
            self._rows.add_row(np.concatenate([row.bin_types, row.items[self.items]]), row.upper)

    def _demand(self) -> slice:
        wanted = self.constrained.demands.astype(np.float64)
        sorts = np.arange(len(wanted))
        self._rows.add(self.constrained.demand_of[self.items], self._placed, 1.0)
        self._rows.add(sorts, self.bin_type_count + self.pair_count + sorts, 1.0)
        return self._rows.close(wanted, wanted)

    def _room(self) -> slice:
        instance, every = self.constrained.instance, np.arange(self.bin_type_count)
        requests, room = instance.sizes / instance.scale, instance.capacities / instance.scale
        for number, resource in enumerate(self.resources):
            asked = requests[self.items, resource] > 0
            at = number * self.bin_type_count
            self._rows.add(at + self.bin_types[asked], self._placed[asked], requests[self.items[asked], resource])
            self._rows.add(at + every, every, -room[:, resource])
        return self._rows.close_at_most(np.zeros(len(self.resources) * self.bin_type_count))

    def _own(self) -> slice:
        pairs = np.arange(self.pair_count)
        self._rows.add(pairs, self._placed, 1.0)
        self._rows.add(pairs, self.bin_types, -self.max_per_bin[self.items, self.bin_types].astype(np.float64))
        return self._rows.close_at_most(np.zeros(self.pair_count))

    def _group(self, members: Ints, cap: int) -> slice:
        inside, every = np.isin(self.items, members), np.arange(self.bin_type_count)
        self._rows.add(self.bin_types[inside], self._placed[inside], 1.0)
        self._rows.add(every, every, -float(cap))
        return self._rows.close_at_most(np.zeros(self.bin_type_count))

    def _clashes(self) -> tuple[Ints, slice]:
        """The kind of every row, and where they are."""
        instance = self.constrained.instance
        where = np.full(instance.compatible.shape, -1)
        where[self.items, self.bin_types] = self._placed
        bin_types: list[int] = []
        for one, other in np.argwhere(np.triu(instance.conflicts, 1)):
            for bin_type in np.flatnonzero((self.max_per_bin[one] > 0) & (self.max_per_bin[other] > 0)):
                columns = np.array([where[one, bin_type], where[other, bin_type], bin_type])
                values = np.array([1 / self.max_per_bin[one, bin_type], 1 / self.max_per_bin[other, bin_type], -1.0])
                self._rows.add(np.full(3, len(bin_types)), columns, values)
                bin_types.append(int(bin_type))
        return np.array(bin_types, dtype=np.int64), self._rows.close_at_most(np.zeros(len(bin_types)))

    def _piles(self) -> None:
        instance = self.constrained.instance
        scarce = np.flatnonzero(instance.is_limited)
        _, first, number = np.unique(instance.supply[scarce], return_index=True, return_inverse=True)
        self._rows.add(number.ravel(), scarce, 1.0)
        self._rows.close_at_most(instance.available[scarce[first]].astype(np.float64))

    @property
    def program(self) -> IntegerProgram:
        """What do the nodes cost at least, if there are whole numbers of them?"""
        instance, sorts = self.constrained.instance, len(self.constrained.demands)
        size = self.bin_type_count + self.pair_count + sorts
        placed, outside = (
            self.constrained.max_items[self.items].astype(np.float64),
            self.constrained.demands.astype(np.float64),
        )
        cost = np.concatenate([instance.costs, np.zeros(self.pair_count), np.full(sorts, self.cutoff)])
        program = self._rows.program(cost, np.concatenate([self._nodes(), placed, outside]))
        return IntegerProgram(program, np.arange(size) < self.bin_type_count, np.zeros(size, dtype=np.int64))

    def _nodes(self) -> Floats:
        """At most so many nodes of each kind are in a plan that costs less than the cutoff and leaves no node empty."""
        instance = self.constrained.instance
        afforded = np.floor(self.cutoff / np.maximum(instance.costs, 1e-12) * (1 + 1e-9))
        available = np.where(instance.available < UNLIMITED, instance.available, np.inf)
        most: Floats = np.minimum(np.minimum(afforded, available), float(self.constrained.demands.sum()))
        return most
