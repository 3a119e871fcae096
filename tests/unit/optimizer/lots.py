"""Small lots, drawn at random, and their cheapest nodes, found by trying everything: slow, and plain to see through."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import product

import numpy as np
from hypothesis import strategies as st

from joinery.optimizer.arrays import UNLIMITED, Ints, Mask
from joinery.optimizer.instance.packing_instance import Group, Lot
from joinery.optimizer.instance.patterns import Shape
from joinery.scheduling.optimise.orders import exclusive

Counts = tuple[int, ...]


def holds(lot: Lot, kind: int, pods: Sequence[int]) -> bool:
    """Whether a node of the kind may hold so many pods of each item."""
    there = [item for item, count in enumerate(pods) if count]
    if not all(lot.admits[item, kind] for item in there):
        return False
    for resource in range(lot.room.shape[1]):
        if sum(int(lot.requests[item, resource]) * pods[item] for item in there) > lot.room[kind, resource]:
            return False
    if any(sum(pods[int(item)] for item in group.members) > group.cap for group in lot.groups):
        return False
    return not any(lot.clashes[a, b] and (a != b or pods[a] > 1) for a in there for b in there)


def cheapest(lot: Lot) -> float:
    """What the cheapest nodes for all pods cost in $/h; infinite if no nodes hold them."""
    kinds = range(len(lot.price))
    stocked = [kind for kind in kinds if lot.stock[kind] < UNLIMITED]
    piles = sorted({int(lot.pile[kind]) for kind in stocked})

    @cache
    def one_node(pods: Counts) -> float:
        fit = (float(lot.price[k]) for k in kinds if k not in stocked and holds(lot, k, pods))
        return min(fit, default=float("inf"))

    @cache
    def may_stand(kind: int, pods: Counts) -> bool:
        return holds(lot, kind, pods)

    @cache
    def all_nodes(left: Counts, stock: Counts) -> float:
        if not any(left):
            return 0.0
        found = float("inf")
        for pods in _shares(left):
            rest = tuple(a - b for a, b in zip(left, pods, strict=True))
            if np.isfinite(one_node(pods)):
                found = min(found, one_node(pods) + all_nodes(rest, stock))
            for kind in stocked:
                place = piles.index(int(lot.pile[kind]))
                if stock[place] and may_stand(kind, pods):
                    fewer = (*stock[:place], stock[place] - 1, *stock[place + 1 :])
                    found = min(found, float(lot.price[kind]) + all_nodes(rest, fewer))
        return found

    there = {int(lot.pile[kind]): int(lot.stock[kind]) for kind in stocked}
    return all_nodes(tuple(map(int, lot.counts)), tuple(there[pile] for pile in piles))


def _shares(left: Counts) -> Iterator[Counts]:
    """Every choice of pods for one node that has the first pod of all."""
    first = next(item for item, count in enumerate(left) if count)
    return product(*(range(1 if item == first else 0, count + 1) for item, count in enumerate(left)))


def wrong(lot: Lot, shapes: Iterable[Shape]) -> list[str]:
    """What speaks against the nodes: what one of them may not hold, pods that have no place or two, more nodes than there are."""
    listed = list(shapes)
    found = [f"{shape} overfull" for shape in listed if not holds(lot, shape.kind, [int(n) for n in shape.pods])]
    placed = sum((shape.pods * shape.times for shape in listed), np.zeros(len(lot.counts), dtype=np.int64))
    if not np.array_equal(placed, lot.counts):
        found.append(f"{placed} pods of {lot.counts} have a place")
    for kind in np.flatnonzero(lot.stock < UNLIMITED):
        taken = sum(shape.times for shape in listed if lot.pile[shape.kind] == lot.pile[kind])
        if taken > lot.stock[kind]:
            found.append(f"{taken} nodes of pile {lot.pile[kind]}, there are {lot.stock[kind]}")
    return found


@st.composite
def lots(draw: st.DrawFn, *, most_pods: int = 6, stocked: bool = False) -> Lot:
    """A few sizes of pod and kinds of node; the last kind takes any pod. With ``stocked``, there are few nodes of some kinds, which
    are almost free, and some of those kinds share what there is.
    """
    items, kinds, resources = draw(st.integers(1, 4)), draw(st.integers(1, 4)), draw(st.integers(1, 3))
    counts = _counts(draw, items, most_pods)
    requests = np.array([[draw(st.integers(0, 7)) for _ in range(resources)] for _ in counts], dtype=np.int64)
    requests[:, -1] = np.maximum(requests[:, -1], 1)  # every pod takes at least one place
    room = np.array([[draw(st.integers(1, 12)) for _ in range(resources)] for _ in range(kinds)], dtype=np.int64)
    room[-1] = np.maximum(room[-1], 7)
    admits = np.array([[draw(st.integers(0, 4)) > 0 for _ in range(kinds)] for _ in counts])
    admits[:, -1] = True
    clashes = _clashes(draw, len(counts))
    stock, pile = np.full(kinds, UNLIMITED), np.arange(kinds)
    price = np.array([draw(st.integers(1, 30)) / 10 for _ in range(kinds)])
    if stocked:
        there = [draw(st.integers(0, 2)) for _ in range(2)]
        pile[:-1] = [draw(st.sampled_from((0, 1, kinds + number))) for number in range(kinds - 1)]
        stock[:-1] = [there[number] if number < len(there) else UNLIMITED for number in pile[:-1]]
        pile[-1] = 2 * kinds
        price[stock < UNLIMITED] = 1e-6
    return Lot(
        requests=requests,
        counts=np.array(counts, dtype=np.int64),
        price=price,
        room=room,
        admits=admits & (room[None] >= requests[:, None]).all(axis=2),
        groups=(*_groups(draw, len(counts)), *(Group(np.array(m), cap) for m, cap in exclusive(clashes))),
        clashes=clashes,
        stock=stock,
        pile=pile,
    )


def _counts(draw: st.DrawFn, items: int, most: int) -> list[int]:
    counts = [draw(st.integers(1, 3)) for _ in range(items)]
    while sum(counts) > most:
        counts[counts.index(max(counts))] -= 1
    return counts


def _groups(draw: st.DrawFn, items: int) -> tuple[Group, ...]:
    drawn = draw(st.lists(st.tuples(st.sets(st.integers(0, items - 1), min_size=1), st.integers(1, 3)), max_size=2))
    return tuple(Group(np.array(sorted(members), dtype=np.int64), cap) for members, cap in drawn)


def _clashes(draw: st.DrawFn, items: int) -> Mask:
    clashes = np.zeros((items, items), dtype=np.bool_)
    for a, b in draw(st.lists(st.tuples(st.integers(0, items - 1), st.integers(0, items - 1)), max_size=2)):
        clashes[a, b] = clashes[b, a] = True
    return clashes


def places(lot: Lot) -> st.SearchStrategy[Ints]:
    """A place for every kind, at most two of them."""
    size = len(lot.price)
    return st.lists(st.integers(0, 1), min_size=size, max_size=size).map(lambda found: np.array(found, dtype=np.int64))


def seeded(items: int, *, seed: int = 7, kinds: int = 24) -> Lot:
    """So many different pods, one to three of each, for kinds of three ratios of memory to CPU in doubling sizes."""
    random = np.random.default_rng(seed)
    cores = 2 ** (np.arange(kinds) // 3 % 7 + 1)
    memory = cores * np.array([2, 4, 8])[np.arange(kinds) % 3]
    room = np.stack([cores * 1000 - 100, memory * 1024 - 500, np.full(kinds, 110)], axis=1)
    requests = np.stack(
        [random.integers(50, 1500, items), random.integers(64, 6000, items), np.ones(items, dtype=np.int64)], axis=1
    )
    noise = 1 + random.random(kinds) / 10
    return Lot(
        requests=requests,
        counts=random.integers(1, 4, items),
        price=(0.03 * cores + 0.004 * memory) * noise,
        room=room,
        admits=np.asarray((room[None] >= requests[:, None]).all(axis=2)),
        groups=(),
        clashes=np.zeros((items, items), dtype=np.bool_),
    )
