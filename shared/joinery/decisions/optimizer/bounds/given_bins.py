"""Do given bins hold everything? Which copies go on which bin is a program in whole numbers, and a small one.

HiGHS branches here, because a packing can be checked when there is one. That it finds none proves nothing.
"""

from dataclasses import replace
from itertools import product

import numpy as np

from joinery.decisions.optimizer.arrays import Floats, Ints
from joinery.decisions.optimizer.bounds.compact import CompactFormulation
from joinery.decisions.optimizer.instance.patterns import Pattern
from joinery.decisions.optimizer.linear.highs import LinearProgram, Solver
from joinery.decisions.optimizer.linear.rows import RowWriter

_BRANCHES = 300


def pack_into(formulation: CompactFormulation, bin_types: Ints) -> tuple[Pattern, ...] | None:
    """Everything on bins of these types (int64[bins]), and on all of them; None where that was not found."""
    program = _GivenBins(formulation, bin_types)
    values = Solver(program.program).solve_integer(_BRANCHES)
    if values is None:
        return None
    counts = program.counts(values)
    if not _holds(formulation, bin_types, counts):
        return None
    return tuple(Pattern(int(bin_type), row) for bin_type, row in zip(bin_types, counts, strict=True) if row.any())


class _GivenBins:
    """Its variables are the copies of each item on each bin where they may be; then, for items in conflict, whether
    any is on the bin.
    """

    def __init__(self, formulation: CompactFormulation, bin_types: Ints) -> None:
        self._formulation, self._bin_types = formulation, bin_types
        self._most = formulation.max_per_bin[:, bin_types]
        self._items, self._bins = np.nonzero(self._most > 0)
        self._pairs = len(self._items)
        self._size = self._pairs
        self._rows = RowWriter()
        self._demands()
        self._capacities()
        self._conflicts()
        self._side_constraints()
        self.program = self._program()

    def counts(self, values: Floats) -> Ints:
        """int64[bins, items]: the copies of a solution."""
        counts = np.zeros(self._most.T.shape, dtype=np.int64)
        counts[self._bins, self._items] = np.round(values[: self._pairs]).astype(np.int64)
        return counts

    def _demands(self) -> None:
        constrained = self._formulation.constrained
        demands = constrained.demands.astype(np.float64)
        self._rows.add(constrained.demand_of[self._items], np.arange(self._pairs), 1.0)
        self._rows.close(demands, demands)

    def _capacities(self) -> None:
        instance, number = self._formulation.constrained.instance, len(self._bin_types)
        for resource in self._formulation.resources:
            sizes = instance.sizes[self._items, resource] / instance.scale[resource]
            asks = np.flatnonzero(sizes)
            self._rows.add(self._bins[asks], asks, sizes[asks])
            self._rows.close_at_most(instance.capacities[self._bin_types, resource] / instance.scale[resource])
        for limit in instance.cardinality_limits:
            members = np.flatnonzero(np.isin(self._items, limit.items))
            self._rows.add(self._bins[members], members, 1.0)
            self._rows.close_at_most(np.full(number, float(limit.cap)))

    def _conflicts(self) -> None:
        conflicts = np.triu(self._formulation.constrained.instance.conflicts, 1)
        column = np.full(self._most.shape, -1)
        column[self._items, self._bins] = np.arange(self._pairs)
        is_on: dict[tuple[int, int], int] = {}
        for (one, other), place in product(np.argwhere(conflicts), range(len(self._bin_types))):
            if self._most[one, place] and self._most[other, place]:
                pair = [self._is_on(is_on, int(item), place, column) for item in (one, other)]
                self._rows.add(np.zeros(2, dtype=np.int64), np.array(pair), 1.0)
                self._rows.close_at_most(np.ones(1))

    def _is_on(self, is_on: dict[tuple[int, int], int], item: int, place: int, column: Ints) -> int:
        """The variable that says whether the item is on the bin, which begins with the first conflict."""
        if (item, place) not in is_on:
            is_on[item, place] = self._size
            self._size += 1
            columns = np.array([column[item, place], is_on[item, place]])
            self._rows.add(np.zeros(2, dtype=np.int64), columns, np.array([1.0, -float(self._most[item, place])]))
            self._rows.close_at_most(np.zeros(1))
        return is_on[item, place]

    def _side_constraints(self) -> None:
        for row in self._formulation.constrained.side_constraints:
            if row.items.any():
                on_bins = float(row.bin_types[self._bin_types].sum()) if len(row.bin_types) else 0.0
                self._rows.add_row(row.items[self._items], row.upper - on_bins)

    def _program(self) -> LinearProgram:
        most = self._most[self._items, self._bins].astype(np.float64)
        upper = np.concatenate([most, np.ones(self._size - self._pairs)])
        program = self._rows.program(np.zeros(self._size), upper)
        return replace(program, integers=self._size)


def _holds(formulation: CompactFormulation, bin_types: Ints, counts: Ints) -> bool:
    """Whether the bins hold just what is to be packed, by whole numbers."""
    constrained, instance = formulation.constrained, formulation.constrained.instance
    packed = np.bincount(constrained.demand_of, weights=counts.sum(axis=0), minlength=len(constrained.demands))
    is_on = counts > 0
    apart = instance.conflicts & ~np.eye(len(instance.demands), dtype=np.bool_)
    return bool(
        (packed == constrained.demands).all()
        and (counts @ instance.sizes <= instance.capacities[bin_types]).all()
        and (counts <= formulation.max_per_bin.T[bin_types]).all()
        and all((counts[:, limit.items].sum(axis=1) <= limit.cap).all() for limit in instance.cardinality_limits)
        and not ((is_on @ apart) & is_on).any()
        and all(
            row.items @ counts.sum(axis=0) + row.bin_types[bin_types].sum() <= row.upper + 1e-6
            for row in constrained.side_constraints
            if row.items.any()
        )
    )
