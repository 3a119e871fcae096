"""Fewer items where there are too many for the program: items of nearly one size are taken together in cells."""

import heapq
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from joinery.optimizer.arrays import Floats, Ints, Mask
from joinery.optimizer.instance.packing_instance import CardinalityLimit, PackingInstance

MOST_ITEMS = 150
"""What the program solves quickly."""
_CELLS = 80


@dataclass(frozen=True, eq=False)
class Aggregation:
    """``aggregate_of``: the cell of every item of the instance; ``instance``: the cells as items, each of the mean size of its pods."""

    aggregate_of: Ints
    instance: PackingInstance

    @cached_property
    def size(self) -> Floats:
        """How large the pods of a cell are on the whole."""
        total: Floats = (self.instance.sizes / self.instance.scale).sum(axis=1)
        return total


def aggregate(instance: PackingInstance, number: int = _CELLS) -> Aggregation:
    """About so many. Only items that the same kinds admit, size apart, and that are in the same groups, share a cell."""
    large: Mask = np.asarray((instance.capacities[None] >= instance.sizes[:, None]).all(axis=2))
    looks: dict[tuple[bytes, bytes], list[int]] = {}
    for item in range(len(instance.demands)):
        # A kind too small for the item says nothing about what else keeps the item from it.
        looks.setdefault(
            ((instance.compatible[item] | ~large[item]).tobytes(), instance.limit_members[item].tobytes()), []
        ).append(item)
    parts = _divided(instance, [np.array(items, dtype=np.int64) for items in looks.values()], number)
    of = np.zeros(len(instance.demands), dtype=np.int64)
    for index, part in enumerate(parts):
        of[part] = index
    weights = [np.maximum(instance.demands[part], 1) for part in parts]
    return Aggregation(
        of,
        PackingInstance(
            sizes=np.array(
                [np.average(instance.sizes[p], axis=0, weights=w) for p, w in zip(parts, weights, strict=True)]
            ).astype(np.int64),
            demands=np.array([instance.demands[part].sum() for part in parts]),
            costs=instance.costs,
            capacities=instance.capacities,
            compatible=np.array([instance.compatible[part].any(axis=0) for part in parts]),
            cardinality_limits=tuple(
                CardinalityLimit(np.unique(of[group.items]), group.cap) for group in instance.cardinality_limits
            ),
            conflicts=np.zeros((len(parts), len(parts)), dtype=np.bool_),
            available=instance.available,
            supply=instance.supply,
        ),
    )


def _divided(instance: PackingInstance, parts: list[Ints], number: int) -> list[Ints]:
    """Halve the part whose sizes differ most until there are so many."""
    heap = [(-width, index, column) for index, part in enumerate(parts) for width, column in [_width(instance, part)]]
    heapq.heapify(heap)
    while len(parts) < number and heap and heap[0][0] < 0:
        _, widest, column = heapq.heappop(heap)
        ordered = parts[widest][np.argsort(instance.sizes[parts[widest], column], kind="stable")]
        parts[widest] = ordered[: len(ordered) // 2]
        parts.append(ordered[len(ordered) // 2 :])
        for half in (widest, len(parts) - 1):
            width, wide = _width(instance, parts[half])
            heapq.heappush(heap, (-width, half, wide))
    return parts


def _width(instance: PackingInstance, part: Ints) -> tuple[float, int]:
    """How far the sizes of a part differ all in all, and in which resource most."""
    sizes = instance.sizes[part] / instance.scale
    apart = ((sizes - sizes.min(axis=0)) * instance.demands[part][:, None]).sum(axis=0)
    column = int(apart.argmax())
    return float(apart[column]), column
