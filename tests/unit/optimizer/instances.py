"""Small instances, drawn at random, and their cheapest nodes,
found by trying everything: slow, and plain to see through.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import product

import numpy as np
from hypothesis import strategies as st

from joinery.optimizer.arrays import UNLIMITED, Ints, Mask
from joinery.optimizer.instance.packing_instance import CardinalityLimit, PackingInstance
from joinery.optimizer.instance.patterns import Pattern
from joinery.scheduling.optimise.orders import exclusive

Counts = tuple[int, ...]


def holds(instance: PackingInstance, bin_type: int, counts: Sequence[int]) -> bool:
    """Whether a node of the kind may hold so many pods of each item."""
    there = [item for item, count in enumerate(counts) if count]
    if not all(instance.compatible[item, bin_type] for item in there):
        return False
    for resource in range(instance.capacities.shape[1]):
        if (
            sum(int(instance.sizes[item, resource]) * counts[item] for item in there)
            > instance.capacities[bin_type, resource]
        ):
            return False
    if any(sum(counts[int(item)] for item in group.items) > group.cap for group in instance.cardinality_limits):
        return False
    return not any(instance.conflicts[a, b] and (a != b or counts[a] > 1) for a in there for b in there)


def cheapest(instance: PackingInstance) -> float:
    """What the cheapest nodes for all pods cost in $/h; infinite if no nodes hold them."""
    bin_types = range(len(instance.costs))
    stocked = [bin_type for bin_type in bin_types if instance.available[bin_type] < UNLIMITED]
    supplies = sorted({int(instance.supply[bin_type]) for bin_type in stocked})

    @cache
    def one_node(counts: Counts) -> float:
        fit = (float(instance.costs[k]) for k in bin_types if k not in stocked and holds(instance, k, counts))
        return min(fit, default=float("inf"))

    @cache
    def may_stand(bin_type: int, counts: Counts) -> bool:
        return holds(instance, bin_type, counts)

    @cache
    def all_nodes(left: Counts, available: Counts) -> float:
        if not any(left):
            return 0.0
        found = float("inf")
        for counts in _shares(left):
            rest = tuple(a - b for a, b in zip(left, counts, strict=True))
            if np.isfinite(one_node(counts)):
                found = min(found, one_node(counts) + all_nodes(rest, available))
            for bin_type in stocked:
                block = supplies.index(int(instance.supply[bin_type]))
                if available[block] and may_stand(bin_type, counts):
                    fewer = (*available[:block], available[block] - 1, *available[block + 1 :])
                    found = min(found, float(instance.costs[bin_type]) + all_nodes(rest, fewer))
        return found

    there = {int(instance.supply[bin_type]): int(instance.available[bin_type]) for bin_type in stocked}
    return all_nodes(tuple(map(int, instance.demands)), tuple(there[supply] for supply in supplies))


def _shares(left: Counts) -> Iterator[Counts]:
    """Every choice of pods for one node that has the first pod of all."""
    first = next(item for item, count in enumerate(left) if count)
    return product(*(range(1 if item == first else 0, count + 1) for item, count in enumerate(left)))


def wrong(instance: PackingInstance, patterns: Iterable[Pattern]) -> list[str]:
    """What speaks against the nodes: what one of them may not hold,
    pods that have no place or two, more nodes than there are.
    """
    listed = list(patterns)
    found = [
        f"{pattern} overfull"
        for pattern in listed
        if not holds(instance, pattern.bin_type, [int(n) for n in pattern.counts])
    ]
    placed = sum(
        (pattern.counts * pattern.copies for pattern in listed), np.zeros(len(instance.demands), dtype=np.int64)
    )
    if not np.array_equal(placed, instance.demands):
        found.append(f"{placed} counts of {instance.demands} have a block")
    for bin_type in np.flatnonzero(instance.available < UNLIMITED):
        taken = sum(
            pattern.copies for pattern in listed if instance.supply[pattern.bin_type] == instance.supply[bin_type]
        )
        if taken > instance.available[bin_type]:
            found.append(
                f"{taken} nodes of supply {instance.supply[bin_type]}, there are {instance.available[bin_type]}"
            )
    return found


@st.composite
def instances(draw: st.DrawFn, *, most_pods: int = 6, stocked: bool = False) -> PackingInstance:
    """A few sizes of pod and bin_types of node; the last kind takes any pod. With ``stocked``, there are few nodes of
    some bin_types, which are almost free, and some of those bin_types share what there is.
    """
    items, bin_types, resources = draw(st.integers(1, 4)), draw(st.integers(1, 4)), draw(st.integers(1, 3))
    demands = _counts(draw, items, most_pods)
    requests = np.array([[draw(st.integers(0, 7)) for _ in range(resources)] for _ in demands], dtype=np.int64)
    requests[:, -1] = np.maximum(requests[:, -1], 1)  # every pod takes at least one block
    room = np.array([[draw(st.integers(1, 12)) for _ in range(resources)] for _ in range(bin_types)], dtype=np.int64)
    room[-1] = np.maximum(room[-1], 7)
    admits = np.array([[draw(st.integers(0, 4)) > 0 for _ in range(bin_types)] for _ in demands])
    admits[:, -1] = True
    clashes = _clashes(draw, len(demands))
    available, supply = np.full(bin_types, UNLIMITED), np.arange(bin_types)
    price = np.array([draw(st.integers(1, 30)) / 10 for _ in range(bin_types)])
    if stocked:
        there = [draw(st.integers(0, 2)) for _ in range(2)]
        supply[:-1] = [draw(st.sampled_from((0, 1, bin_types + number))) for number in range(bin_types - 1)]
        available[:-1] = [there[number] if number < len(there) else UNLIMITED for number in supply[:-1]]
        supply[-1] = 2 * bin_types
        price[available < UNLIMITED] = 1e-6
    return PackingInstance(
        sizes=requests,
        demands=np.array(demands, dtype=np.int64),
        costs=price,
        capacities=room,
        compatible=admits & (room[None] >= requests[:, None]).all(axis=2),
        cardinality_limits=(
            *_groups(draw, len(demands)),
            *(CardinalityLimit(np.array(m), cap) for m, cap in exclusive(clashes)),
        ),
        conflicts=clashes,
        available=available,
        supply=supply,
    )


def _counts(draw: st.DrawFn, items: int, most: int) -> list[int]:
    demands = [draw(st.integers(1, 3)) for _ in range(items)]
    while sum(demands) > most:
        demands[demands.index(max(demands))] -= 1
    return demands


def _groups(draw: st.DrawFn, items: int) -> tuple[CardinalityLimit, ...]:
    drawn = draw(st.lists(st.tuples(st.sets(st.integers(0, items - 1), min_size=1), st.integers(1, 3)), max_size=2))
    return tuple(CardinalityLimit(np.array(sorted(members), dtype=np.int64), cap) for members, cap in drawn)


def _clashes(draw: st.DrawFn, items: int) -> Mask:
    clashes = np.zeros((items, items), dtype=np.bool_)
    for a, b in draw(st.lists(st.tuples(st.integers(0, items - 1), st.integers(0, items - 1)), max_size=2)):
        clashes[a, b] = clashes[b, a] = True
    return clashes


def places(instance: PackingInstance) -> st.SearchStrategy[Ints]:
    """A place for every kind, at most two of them."""
    size = len(instance.costs)
    return st.lists(st.integers(0, 1), min_size=size, max_size=size).map(lambda found: np.array(found, dtype=np.int64))


def seeded(items: int, *, seed: int = 7, bin_types: int = 24) -> PackingInstance:
    """So many different pods, one to three of each,
    for bin_types of three ratios of memory to CPU in doubling sizes.
    """
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
