"""A **task**: a lot with what binds its nodes together, for whoever wants to know the least that it can cost.

A lot says what one node may hold. A task also says how pods are dealt out over domains and what all nodes may take together: a
*sort* of pods may be wanted as any of several items (in one zone or another), and rows count over all nodes.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from joinery.optimizer.arrays import Floats, Ints, Mask
from joinery.optimizer.instance.packing_instance import Lot

_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Row:
    """``items`` (by item) times the pods, and ``kinds`` (by kind) times the nodes, come to ``most`` together at most."""

    items: Floats
    kinds: Floats
    most: float


@dataclass(frozen=True, eq=False, kw_only=True)
class Task:
    """``of``: the sort of every item of the lot; ``wanted``: how many pods of each sort need a node, as any of its items."""

    lot: Lot
    of: Ints
    wanted: Ints
    rows: tuple[Row, ...] = ()

    @cached_property
    def most(self) -> Ints:
        """How many pods of each item there are at most, by the rows that count nothing but pods."""
        most = self.wanted[self.of].astype(np.float64)
        for row in self.rows:
            mine = row.items > 0
            if not row.kinds.any() and (row.items >= 0).all():
                most[mine] = np.minimum(most[mine], row.most / row.items[mine])
        whole: Ints = np.floor(most + _ROUNDING).astype(np.int64)
        return whole

    @property
    def is_dealt(self) -> bool:
        """Whether some row counts pods, so that one too many is not the same as none too few."""
        return any(row.items.any() for row in self.rows)

    def among(self, kinds: Ints, admits: Mask) -> "Task":
        """The same with these kinds only, which admit no more than said (items x kinds)."""
        lot = replace(
            self.lot, price=self.lot.price[kinds], room=self.lot.room[kinds], admits=admits,
            stock=self.lot.stock[kinds], pile=self.lot.pile[kinds],
        )  # fmt: skip
        rows = tuple(Row(row.items, row.kinds[kinds], row.most) for row in self.rows)
        return Task(lot=lot, of=self.of, wanted=self.wanted, rows=rows)


def plain(lot: Lot) -> Task:
    """The task of a lot and nothing else."""
    return Task(lot=lot, of=np.arange(len(lot.counts)), wanted=lot.counts)
