"""Fewer items: items of nearly one size are taken together.

The time of the assignment relaxation grows with items times bin types, and faster. The optimum over aggregates is
neither a packing of the items nor a bound on one, but its duals are nearly right for every item, and that is what the
relaxation is wanted for.
"""

import heapq
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from joinery.decisions.optimizer import tuning
from joinery.decisions.optimizer.arrays import Floats, Ints, Mask
from joinery.decisions.optimizer.instance.packing_instance import CardinalityLimit, PackingInstance


@dataclass(frozen=True, eq=False)
class Aggregation:
    """``aggregate_of``: int64[items], the aggregate that each item of the original is in (index). ``instance``: the
    aggregates as its items, each of the mean size of its copies; bin types, supplies and cardinality limits are those
    of the original.
    """

    aggregate_of: Ints
    instance: PackingInstance

    @cached_property
    def size(self) -> Floats:
        """float64[aggregates]: the sum of a copy's sizes, each as a share of its resource's scale."""
        total: Floats = (self.instance.sizes / self.instance.scale).sum(axis=1)
        return total


def aggregate(instance: PackingInstance, number: int = tuning.AGGREGATES) -> Aggregation:
    """About so many aggregates. Items share one only if they differ in nothing but size: same bin types, same limits.

    Conflicts are dropped. The aggregates of conflicting items may hold others too, which conflict with nothing.
    """
    parts = _split(instance, _alike_but_for_size(instance), number)
    aggregate_of = np.zeros(len(instance.demands), dtype=np.int64)
    for index, part in enumerate(parts):
        aggregate_of[part] = index
    weights = [np.maximum(instance.demands[part], 1) for part in parts]
    means = [np.average(instance.sizes[p], axis=0, weights=w) for p, w in zip(parts, weights, strict=True)]
    return Aggregation(
        aggregate_of,
        PackingInstance(
            sizes=np.array(means).astype(np.int64),
            demands=np.array([instance.demands[part].sum() for part in parts]),
            costs=instance.costs,
            capacities=instance.capacities,
            compatible=np.array([instance.compatible[part].any(axis=0) for part in parts]),
            cardinality_limits=tuple(
                CardinalityLimit(np.unique(aggregate_of[limit.items]), limit.cap)
                for limit in instance.cardinality_limits
            ),
            conflicts=np.zeros((len(parts), len(parts)), dtype=np.bool_),
            available=instance.available,
            supply=instance.supply,
        ),
    )


def _alike_but_for_size(instance: PackingInstance) -> list[Ints]:
    """Items (indices) that may share an aggregate."""
    is_large_enough: Mask = np.asarray((instance.capacities[None] >= instance.sizes[:, None]).all(axis=2))
    groups: dict[tuple[bytes, bytes], list[int]] = {}
    for item in range(len(instance.demands)):
        # A bin type that is merely too small for the item says nothing about what else keeps the item off it.
        allowed = instance.compatible[item] | ~is_large_enough[item]
        groups.setdefault((allowed.tobytes(), instance.limit_members[item].tobytes()), []).append(item)
    return [np.array(items, dtype=np.int64) for items in groups.values()]


def _split(instance: PackingInstance, parts: list[Ints], number: int) -> list[Ints]:
    """Halve the part whose sizes differ most until there are so many parts."""
    heap = [
        (-spread, index, column) for index, part in enumerate(parts) for spread, column in [_spread(instance, part)]
    ]
    heapq.heapify(heap)
    while len(parts) < number and heap and heap[0][0] < 0:
        _, widest, column = heapq.heappop(heap)
        ordered = parts[widest][np.argsort(instance.sizes[parts[widest], column], kind="stable")]
        parts[widest] = ordered[: len(ordered) // 2]
        parts.append(ordered[len(ordered) // 2 :])
        for half in (widest, len(parts) - 1):
            spread, column = _spread(instance, parts[half])
            heapq.heappush(heap, (-spread, half, column))
    return parts


def _spread(instance: PackingInstance, part: Ints) -> tuple[float, int]:
    """How far the sizes of a part differ, summed over its copies, in the resource (index) where that is most."""
    sizes = instance.sizes[part] / instance.scale
    above_least = ((sizes - sizes.min(axis=0)) * instance.demands[part][:, None]).sum(axis=0)
    column = int(above_least.argmax())
    return float(above_least[column]), column
