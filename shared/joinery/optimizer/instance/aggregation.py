"""Fewer items where there are too many for the program: items of nearly one size are taken together in cells."""

import heapq
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from joinery.optimizer.arrays import Floats, Ints, Mask
from joinery.optimizer.instance.packing_instance import Group, Lot

MOST_ITEMS = 150
"""What the program solves quickly."""
_CELLS = 80


@dataclass(frozen=True, eq=False)
class Cells:
    """``of``: the cell of every item of the lot; ``lot``: the cells as items, each of the mean size of its pods."""

    of: Ints
    lot: Lot

    @cached_property
    def size(self) -> Floats:
        """How large the pods of a cell are on the whole."""
        total: Floats = (self.lot.requests / self.lot.scale).sum(axis=1)
        return total


def cells(lot: Lot, number: int = _CELLS) -> Cells:
    """About so many. Only items that the same kinds admit, size apart, and that are in the same groups, share a cell."""
    large: Mask = np.asarray((lot.room[None] >= lot.requests[:, None]).all(axis=2))
    looks: dict[tuple[bytes, bytes], list[int]] = {}
    for item in range(len(lot.counts)):
        # A kind too small for the item says nothing about what else keeps the item from it.
        looks.setdefault(((lot.admits[item] | ~large[item]).tobytes(), lot.members[item].tobytes()), []).append(item)
    parts = _divided(lot, [np.array(items, dtype=np.int64) for items in looks.values()], number)
    of = np.zeros(len(lot.counts), dtype=np.int64)
    for index, part in enumerate(parts):
        of[part] = index
    weights = [np.maximum(lot.counts[part], 1) for part in parts]
    return Cells(
        of,
        Lot(
            requests=np.array(
                [np.average(lot.requests[p], axis=0, weights=w) for p, w in zip(parts, weights, strict=True)]
            ).astype(np.int64),
            counts=np.array([lot.counts[part].sum() for part in parts]),
            price=lot.price,
            room=lot.room,
            admits=np.array([lot.admits[part].any(axis=0) for part in parts]),
            groups=tuple(Group(np.unique(of[group.members]), group.cap) for group in lot.groups),
            clashes=np.zeros((len(parts), len(parts)), dtype=np.bool_),
            stock=lot.stock,
            pile=lot.pile,
        ),
    )


def _divided(lot: Lot, parts: list[Ints], number: int) -> list[Ints]:
    """Halve the part whose sizes differ most until there are so many."""
    heap = [(-width, index, column) for index, part in enumerate(parts) for width, column in [_width(lot, part)]]
    heapq.heapify(heap)
    while len(parts) < number and heap and heap[0][0] < 0:
        _, widest, column = heapq.heappop(heap)
        ordered = parts[widest][np.argsort(lot.requests[parts[widest], column], kind="stable")]
        parts[widest] = ordered[: len(ordered) // 2]
        parts.append(ordered[len(ordered) // 2 :])
        for half in (widest, len(parts) - 1):
            width, wide = _width(lot, parts[half])
            heapq.heappush(heap, (-width, half, wide))
    return parts


def _width(lot: Lot, part: Ints) -> tuple[float, int]:
    """How far the sizes of a part differ all in all, and in which resource most."""
    sizes = lot.requests[part] / lot.scale
    apart = ((sizes - sizes.min(axis=0)) * lot.counts[part][:, None]).sum(axis=0)
    column = int(apart.argmax())
    return float(apart[column]), column
