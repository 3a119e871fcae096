"""Fewer items: items of nearly one size are taken together.

The time of the assignment relaxation grows with items times bin types, and faster. The optimum over aggregates is
neither a packing of the items nor a bound on one, but its duals are nearly right for every item, and that is what the
relaxation is wanted for.

Where the replicas of every workload are apart, every item has a limit of its own, and to keep all of them takes a row
for each item on each bin type. So limits of one item are added up: where a bin holds one copy of each of five items, it
holds five copies of their aggregate. That is nearly right where the five ask for nearly as many bins. What an item
needs is **bins**: its demand by its cap.
"""

import heapq
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from joinery.decisions.optimizer import tuning
from joinery.decisions.optimizer.arrays import UNLIMITED, Floats, Ints, Mask
from joinery.decisions.optimizer.instance.packing_instance import CardinalityLimit, PackingInstance


@dataclass(frozen=True, eq=False)
class Aggregation:
    """``aggregate_of``: int64[items], the aggregate that each item of the original is in (index). ``instance``: the
    aggregates as its items, each of the mean size of its copies; bin types and supplies are those of the original.
    ``limits``: for each of its cardinality limits those of the original (indices) that it stands for: a limit of
    several items for itself, that of one aggregate for those of its items.
    """

    aggregate_of: Ints
    instance: PackingInstance
    limits: tuple[tuple[int, ...], ...]

    @cached_property
    def size(self) -> Floats:
        """float64[aggregates]: the sum of a copy's sizes, each as a share of its resource's scale."""
        total: Floats = (self.instance.sizes / self.instance.scale).sum(axis=1)
        return total


def aggregate(instance: PackingInstance, number: int = tuning.AGGREGATES) -> Aggregation:
    """About so many aggregates. Items share one only if they differ in nothing but size and demand: same bin types,
    same limits with other items, and the same cap of their own.

    Conflicts are dropped. The aggregates of conflicting items may hold others too, which conflict with nothing.
    """
    own = _own_limits(instance)
    caps = np.append(instance.limit_caps, UNLIMITED)[own]
    parts = _split(instance, caps, _alike_but_for_size(instance, caps), number)
    aggregate_of = np.zeros(len(instance.demands), dtype=np.int64)
    for index, part in enumerate(parts):
        aggregate_of[part] = index
    joint = [(n, limit) for n, limit in enumerate(instance.cardinality_limits) if len(limit.items) > 1]
    capped = [(index, part) for index, part in enumerate(parts) if own[part[0]] >= 0]
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
            cardinality_limits=(
                *(CardinalityLimit(np.unique(aggregate_of[limit.items]), limit.cap) for _, limit in joint),
                *(CardinalityLimit(np.array([index]), int(caps[part].sum())) for index, part in capped),
            ),
            conflicts=np.zeros((len(parts), len(parts)), dtype=np.bool_),
            available=instance.available,
            supply=instance.supply,
        ),
        (*((number,) for number, _ in joint), *(tuple(own[part].tolist()) for _, part in capped)),
    )


def _own_limits(instance: PackingInstance) -> Ints:
    """int64[items]: the limit (index) that is about the item alone, of several the least; -1 where there is none."""
    own: Ints = np.full(len(instance.demands), -1)
    for number in np.argsort(-instance.limit_caps, kind="stable"):
        items = instance.cardinality_limits[number].items
        if len(items) == 1:
            own[items] = number
    return own


def _alike_but_for_size(instance: PackingInstance, caps: Ints) -> list[Ints]:
    """Items (indices) that may share an aggregate. ``caps``: int64[items], of their own."""
    is_large_enough: Mask = np.asarray((instance.capacities[None] >= instance.sizes[:, None]).all(axis=2))
    joint = instance.limit_members[:, instance.limit_members.sum(axis=0) > 1]
    groups: dict[tuple[bytes, bytes, int], list[int]] = {}
    for item in range(len(instance.demands)):
        # A bin type that is merely too small for the item says nothing about what else keeps the item off it.
        allowed = instance.compatible[item] | ~is_large_enough[item]
        groups.setdefault((allowed.tobytes(), joint[item].tobytes(), int(caps[item])), []).append(item)
    return [np.array(items, dtype=np.int64) for items in groups.values()]


def _split(instance: PackingInstance, caps: Ints, parts: list[Ints], number: int) -> list[Ints]:
    """Halve the part that differs most, in size or in the bins it needs, until there are so many parts.

    A copy that is larger than another one takes so much more room. An item that needs a bin more takes at least the
    room of a bin: of the smallest that may hold it.
    """
    sizes = instance.sizes / instance.scale
    bins = np.where(caps < UNLIMITED, instance.demands / caps, 0.0)
    room = (instance.capacities / instance.scale).max(axis=1, initial=0.0)
    smallest = np.where(instance.compatible, room, np.inf).min(axis=1, initial=np.inf)
    looks = np.concatenate([sizes, bins[:, None]], axis=1)
    counts = np.concatenate([np.broadcast_to(instance.demands[:, None], sizes.shape), smallest[:, None]], axis=1)
    heap = [
        (-spread, index, column)
        for index, part in enumerate(parts)
        for spread, column in [_spread(looks, counts, part)]
    ]
    heapq.heapify(heap)
    while len(parts) < number and heap and heap[0][0] < 0:
        _, widest, column = heapq.heappop(heap)
        ordered = parts[widest][np.argsort(looks[parts[widest], column], kind="stable")]
        middle = len(ordered) // 2 if column < sizes.shape[1] else _middle(bins[ordered])
        parts[widest] = ordered[:middle]
        parts.append(ordered[middle:])
        for half in (widest, len(parts) - 1):
            spread, column = _spread(looks, counts, parts[half])
            heapq.heappush(heap, (-spread, half, column))
    return parts


def _middle(bins: Floats) -> int:
    """How many of these items, the least first, need half of the bins: few workloads have most of the replicas."""
    together = bins.cumsum()
    return int(np.clip(np.searchsorted(together, together[-1] / 2), 1, len(bins) - 1))


def _spread(looks: Floats, counts: Floats, part: Ints) -> tuple[float, int]:
    """How far the items of a part differ, and in what (column) that is most.

    ``looks``: float64[items, columns]; ``counts``: how much it counts there.
    """
    above_least = ((looks[part] - looks[part].min(axis=0)) * counts[part]).sum(axis=0)
    column = int(above_least.argmax())
    return float(above_least[column]), column
