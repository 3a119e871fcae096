"""The compact formulation of a small instance: the assignment relaxation with every row that is known, and whole bins.

x_k bins of type k, y_ik copies of item i on them, e_s copies of demand s without a bin::

    minimise    sum_k c_k x_k + sum_s cutoff e_s
    subject to  sum_{i of s, k} y_ik + e_s  = d_s            every copy is packed, or costs as much as a known packing
                sum_i s_ij y_ik            <= C_kj x_k       no resource of a bin type is overdrawn
                y_ik                       <= m_ik x_k       a bin of type k holds at most m_ik copies of item i
                sum_{i in g} y_ik          <= cap_g x_k      a cardinality limit
                y_ik / m_ik + y_lk / m_lk  <= x_k            items in conflict are not both on a bin
                a . y + b . x              <= upper          the side constraints, limited supplies among them
                x_k whole

It is called compact because its size is that of the instance, other than that of a formulation over patterns. The
assignment relaxation adds the rows for m_ik only where they are violated. Here they are all there from the start: the
duals of this one solve decide what can be left out (``exact``), and few pods make few rows.
"""

from functools import cached_property

import numpy as np

from joinery.decisions.optimizer.arrays import UNLIMITED, Floats, Ints
from joinery.decisions.optimizer.bounds.duality import dual_bound
from joinery.decisions.optimizer.instance.side_constraints import ConstrainedInstance
from joinery.decisions.optimizer.linear.highs import LinearProgram, Patience, Solver
from joinery.decisions.optimizer.linear.rows import RowWriter

_NO_ROWS: Floats = np.zeros(0)


class CompactFormulation:
    """The formulation of one instance. ``cutoff``: $/h of a known packing; what costs as much is of no interest.

    Its variables are the bin types (``bin_type_count``), then the compatible pairs (``pair_count``; ``items`` and
    ``bin_types``: int64[pairs]), then the demands. ``max_per_bin``: int64[items, bin types], m_ik above.
    ``resources``: int64[used], those with rows.

    Where its rows are: ``demand_rows``; ``capacity_rows``, by resource and then bin type; ``item_rows``, by pair;
    ``limit_rows``, by bin type, for each limit; ``conflict_rows``, of ``conflict_bin_types`` (int64[rows]). From
    ``first_coupling_row`` on rows couple bins.
    """

    def __init__(self, constrained: ConstrainedInstance, cutoff: float) -> None:
        instance = constrained.instance
        self.constrained, self.cutoff = constrained, cutoff
        self.max_per_bin: Ints = np.minimum(instance.max_per_bin, constrained.max_items[:, None])
        self.items, self.bin_types = np.nonzero(instance.compatible & (self.max_per_bin > 0))
        self.bin_type_count, self.pair_count = len(instance.costs), len(self.items)
        self.resources: Ints = np.flatnonzero((instance.sizes > 0).any(axis=0))
        self._pairs: Ints = self.bin_type_count + np.arange(self.pair_count)
        self._rows = RowWriter()
        self.demand_rows = self._demands()
        self.capacity_rows = self._capacities()
        self.item_rows = self._most_of_an_item()
        self.limit_rows = [self._limit(limit.items, limit.cap) for limit in instance.cardinality_limits]
        self.conflict_bin_types, self.conflict_rows = self._conflicts()
        self.first_coupling_row = self._rows.height
        for row in constrained.side_constraints:
            self._rows.add_row(np.concatenate([row.bin_types, row.items[self.items]]), row.upper)

    def _demands(self) -> slice:
        demands = self.constrained.demands.astype(np.float64)
        numbers = np.arange(len(demands))
        self._rows.add(self.constrained.demand_of[self.items], self._pairs, 1.0)
        self._rows.add(numbers, self.bin_type_count + self.pair_count + numbers, 1.0)
        return self._rows.close(demands, demands)

    def _capacities(self) -> slice:
        instance, bin_types = self.constrained.instance, np.arange(self.bin_type_count)
        sizes, capacities = instance.sizes / instance.scale, instance.capacities / instance.scale
        for number, resource in enumerate(self.resources):
            asks = sizes[self.items, resource] > 0
            first = number * self.bin_type_count
            self._rows.add(first + self.bin_types[asks], self._pairs[asks], sizes[self.items[asks], resource])
            self._rows.add(first + bin_types, bin_types, -capacities[:, resource])
        return self._rows.close_at_most(np.zeros(len(self.resources) * self.bin_type_count))

    def _most_of_an_item(self) -> slice:
        pairs = np.arange(self.pair_count)
        self._rows.add(pairs, self._pairs, 1.0)
        self._rows.add(pairs, self.bin_types, -self.max_per_bin[self.items, self.bin_types].astype(np.float64))
        return self._rows.close_at_most(np.zeros(self.pair_count))

    def _limit(self, members: Ints, cap: int) -> slice:
        is_member, bin_types = np.isin(self.items, members), np.arange(self.bin_type_count)
        self._rows.add(self.bin_types[is_member], self._pairs[is_member], 1.0)
        self._rows.add(bin_types, bin_types, -float(cap))
        return self._rows.close_at_most(np.zeros(self.bin_type_count))

    def _conflicts(self) -> tuple[Ints, slice]:
        instance = self.constrained.instance
        column = np.full(instance.compatible.shape, -1)
        column[self.items, self.bin_types] = self._pairs
        bin_types: list[int] = []
        for one, other in np.argwhere(np.triu(instance.conflicts, 1)):
            for bin_type in np.flatnonzero((self.max_per_bin[one] > 0) & (self.max_per_bin[other] > 0)):
                columns = np.array([column[one, bin_type], column[other, bin_type], bin_type])
                values = np.array([1 / self.max_per_bin[one, bin_type], 1 / self.max_per_bin[other, bin_type], -1.0])
                self._rows.add(np.full(3, len(bin_types)), columns, values)
                bin_types.append(int(bin_type))
        return np.array(bin_types, dtype=np.int64), self._rows.close_at_most(np.zeros(len(bin_types)))

    @cached_property
    def program(self) -> LinearProgram:
        """What do the bins cost at least, in fractions?"""
        instance, demands = self.constrained.instance, self.constrained.demands
        costs = np.concatenate([instance.costs, np.zeros(self.pair_count), np.full(len(demands), self.cutoff)])
        packed = self.constrained.max_items[self.items].astype(np.float64)
        # One more than may be: no optimum is there, so all that duals say is said by those of the rows.
        upper = np.concatenate([self._most_bins(), packed, demands.astype(np.float64)]) + 1.0
        return self._rows.program(costs, upper)

    def relaxed(self, patience: Patience | None = None) -> tuple[float, Floats]:
        """$/h that the program proves, and float64[rows], duals that prove it; zeros where time was up."""
        program = self.program
        solution = Solver(program, exact=True, patience=patience).solve(_NO_ROWS, _NO_ROWS)
        duals = np.zeros(len(program.row_lower)) if solution is None else solution.duals
        return dual_bound(program, duals, np.zeros(len(program.costs)), program.upper_bounds), duals

    def _most_bins(self) -> Floats:
        """float64[bin types]: bins in any packing that costs less than the cutoff and leaves no bin empty."""
        instance = self.constrained.instance
        afforded = np.floor(self.cutoff / np.maximum(instance.costs, 1e-12) * (1 + 1e-9))
        available = np.where(instance.available < UNLIMITED, instance.available, np.inf)
        most: Floats = np.minimum(np.minimum(afforded, available), float(self.constrained.demands.sum()))
        return most
