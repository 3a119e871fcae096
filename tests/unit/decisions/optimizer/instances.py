"""Small instances, drawn at random, and their cheapest bins, found by trying everything: slow, and plain to see
through.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import product

import numpy as np
from hypothesis import strategies as st

from joinery.decisions.optimizer.arrays import UNLIMITED, Ints, Mask
from joinery.decisions.optimizer.instance.packing_instance import CardinalityLimit, PackingInstance
from joinery.decisions.optimizer.instance.patterns import Pattern
from joinery.decisions.scheduling.optimise.orders import exclusive

Counts = tuple[int, ...]


def holds(instance: PackingInstance, bin_type: int, counts: Sequence[int]) -> bool:
    """Whether a bin of the type may hold so many copies of each item."""
    packed = [item for item, count in enumerate(counts) if count]
    if not all(instance.compatible[item, bin_type] for item in packed):
        return False
    for resource, capacity in enumerate(instance.capacities[bin_type]):
        if sum(int(instance.sizes[item, resource]) * counts[item] for item in packed) > capacity:
            return False
    if any(sum(counts[int(item)] for item in limit.items) > limit.cap for limit in instance.cardinality_limits):
        return False
    return not any(instance.conflicts[a, b] and (a != b or counts[a] > 1) for a in packed for b in packed)


def cheapest(instance: PackingInstance) -> float:
    """What the cheapest bins for all demands cost in $/h; infinite if no bins hold them."""
    bin_types = range(len(instance.costs))
    limited = [bin_type for bin_type in bin_types if instance.available[bin_type] < UNLIMITED]
    supplies = sorted({int(instance.supply[bin_type]) for bin_type in limited})

    @cache
    def bought_bin(counts: Counts) -> float:
        costs = (float(instance.costs[k]) for k in bin_types if k not in limited and holds(instance, k, counts))
        return min(costs, default=float("inf"))

    @cache
    def fits(bin_type: int, counts: Counts) -> bool:
        return holds(instance, bin_type, counts)

    @cache
    def all_bins(left: Counts, available: Counts) -> float:
        if not any(left):
            return 0.0
        least = float("inf")
        for counts in _contents(left):
            rest = tuple(a - b for a, b in zip(left, counts, strict=True))
            if np.isfinite(bought_bin(counts)):
                least = min(least, bought_bin(counts) + all_bins(rest, available))
            for bin_type in limited:
                place = supplies.index(int(instance.supply[bin_type]))
                if available[place] and fits(bin_type, counts):
                    fewer = (*available[:place], available[place] - 1, *available[place + 1 :])
                    least = min(least, float(instance.costs[bin_type]) + all_bins(rest, fewer))
        return least

    available = {int(instance.supply[bin_type]): int(instance.available[bin_type]) for bin_type in limited}
    return all_bins(tuple(map(int, instance.demands)), tuple(available[supply] for supply in supplies))


def _contents(left: Counts) -> Iterator[Counts]:
    """Every content of a bin that has the first copy of all: some bin must."""
    first = next(item for item, count in enumerate(left) if count)
    return product(*(range(1 if item == first else 0, count + 1) for item, count in enumerate(left)))


def wrong(instance: PackingInstance, patterns: Iterable[Pattern]) -> list[str]:
    """What speaks against the bins: overfull ones, copies that are packed twice or not at all, more bins than there
    are.
    """
    packing = list(patterns)
    errors = [f"{one} overfull" for one in packing if not holds(instance, one.bin_type, [int(n) for n in one.counts])]
    packed = sum((one.counts * one.copies for one in packing), np.zeros(len(instance.demands), dtype=np.int64))
    if not np.array_equal(packed, instance.demands):
        errors.append(f"{packed} copies of {instance.demands} are packed")
    for bin_type in np.flatnonzero(instance.available < UNLIMITED):
        supply, available = instance.supply[bin_type], instance.available[bin_type]
        taken = sum(one.copies for one in packing if instance.supply[one.bin_type] == supply)
        if taken > available:
            errors.append(f"{taken} bins of supply {supply}, there are {available}")
    return errors


@st.composite
def instances(draw: st.DrawFn, *, most_copies: int = 6, limited: bool = False) -> PackingInstance:
    """A few items and bin types; the last bin type takes any item.

    With ``limited``, there are few bins of some types, which are almost free, and some of those types share a supply.
    """
    items, bin_types, resources = draw(st.integers(1, 4)), draw(st.integers(1, 4)), draw(st.integers(1, 3))
    demands = _demands(draw, items, most_copies)
    sizes = np.array([[draw(st.integers(0, 7)) for _ in range(resources)] for _ in demands], dtype=np.int64)
    sizes[:, -1] = np.maximum(sizes[:, -1], 1)  # every copy takes something
    capacities = np.array([[draw(st.integers(1, 12)) for _ in range(resources)] for _ in range(bin_types)])
    capacities[-1] = np.maximum(capacities[-1], 7)
    compatible = np.array([[draw(st.integers(0, 4)) > 0 for _ in range(bin_types)] for _ in demands])
    compatible[:, -1] = True
    conflicts = _conflicts(draw, len(demands))
    available, supply = np.full(bin_types, UNLIMITED), np.arange(bin_types)
    costs = np.array([draw(st.integers(1, 30)) / 10 for _ in range(bin_types)])
    if limited:
        left = [draw(st.integers(0, 2)) for _ in range(2)]
        supply[:-1] = [draw(st.sampled_from((0, 1, bin_types + number))) for number in range(bin_types - 1)]
        available[:-1] = [left[number] if number < len(left) else UNLIMITED for number in supply[:-1]]
        supply[-1] = 2 * bin_types
        costs[available < UNLIMITED] = 1e-6
    cliques = [CardinalityLimit(np.array(members), cap) for members, cap in exclusive(conflicts)]
    return PackingInstance(
        sizes=sizes,
        demands=np.array(demands, dtype=np.int64),
        costs=costs,
        capacities=capacities,
        compatible=compatible & (capacities[None] >= sizes[:, None]).all(axis=2),
        cardinality_limits=(*_limits(draw, len(demands)), *cliques),
        conflicts=conflicts,
        available=available,
        supply=supply,
    )


def _demands(draw: st.DrawFn, items: int, most: int) -> list[int]:
    demands = [draw(st.integers(1, 3)) for _ in range(items)]
    while sum(demands) > most:
        demands[demands.index(max(demands))] -= 1
    return demands


def _limits(draw: st.DrawFn, items: int) -> tuple[CardinalityLimit, ...]:
    drawn = draw(st.lists(st.tuples(st.sets(st.integers(0, items - 1), min_size=1), st.integers(1, 3)), max_size=2))
    return tuple(CardinalityLimit(np.array(sorted(members), dtype=np.int64), cap) for members, cap in drawn)


def _conflicts(draw: st.DrawFn, items: int) -> Mask:
    conflicts = np.zeros((items, items), dtype=np.bool_)
    for a, b in draw(st.lists(st.tuples(st.integers(0, items - 1), st.integers(0, items - 1)), max_size=2)):
        conflicts[a, b] = conflicts[b, a] = True
    return conflicts


def blocks(instance: PackingInstance) -> st.SearchStrategy[Ints]:
    """A block for every bin type, at most two of them."""
    size = len(instance.costs)
    numbers = st.lists(st.integers(0, 1), min_size=size, max_size=size)
    return numbers.map(lambda drawn: np.array(drawn, dtype=np.int64))


def one_block(instance: PackingInstance) -> Ints:
    """All bin types in one block."""
    return np.zeros(len(instance.costs), dtype=np.int64)


def seeded(items: int, *, seed: int = 7, bin_types: int = 24) -> PackingInstance:
    """So many items, one to three copies of each, for bin types of three ratios of memory to CPU in doubling sizes."""
    random = np.random.default_rng(seed)
    cores = 2 ** (np.arange(bin_types) // 3 % 7 + 1)
    memory = cores * np.array([2, 4, 8])[np.arange(bin_types) % 3]
    room = np.stack([cores * 1000 - 100, memory * 1024 - 500, np.full(bin_types, 110)], axis=1)
    requests = np.stack(
        [random.integers(50, 1500, items), random.integers(64, 6000, items), np.ones(items, dtype=np.int64)], axis=1
    )
    noise = 1 + random.random(bin_types) / 10
    return PackingInstance(
        sizes=requests,
        demands=random.integers(1, 4, items),
        costs=(0.03 * cores + 0.004 * memory) * noise,
        capacities=room,
        compatible=np.asarray((room[None] >= requests[:, None]).all(axis=2)),
        cardinality_limits=(),
        conflicts=np.zeros((items, items), dtype=np.bool_),
    )
