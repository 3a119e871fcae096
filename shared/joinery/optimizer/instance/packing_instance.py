"""A **lot**: how many pods of which size are to be put on nodes of which kinds, in arrays.

An *item* is a size of pod with a count, a *kind* a size of node with a price; amounts are whole numbers in one order of
resources. ``groups`` and ``clashes`` say which pods may not share a node.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from joinery.optimizer.arrays import UNLIMITED, Floats, Ints, Mask


@dataclass(frozen=True, eq=False)
class Group:
    """Items (indices) of which at most ``cap`` pods may share a node."""

    members: Ints
    cap: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Lot:
    """``requests``: items x resources; ``counts``: items; ``price``: kinds, in $/h; ``room``: kinds x resources; ``admits``: items x
    kinds; ``clashes``: items x items, where True on the diagonal means at most one pod of the item on a node; ``stock``: how many
    nodes there are of a kind, without end unless given; ``pile``: a number by kind: kinds of one pile have one stock between them.
    """

    requests: Ints
    counts: Ints
    price: Floats
    room: Ints
    admits: Mask
    groups: tuple[Group, ...]
    clashes: Mask
    stock: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    pile: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def __post_init__(self) -> None:
        if not len(self.stock):
            object.__setattr__(self, "stock", np.full(len(self.price), UNLIMITED))
        if not len(self.pile):
            object.__setattr__(self, "pile", np.arange(len(self.price)))

    @cached_property
    def scarce(self) -> Mask:
        """The kinds of which there are only so many."""
        few: Mask = self.stock < UNLIMITED
        return few

    @cached_property
    def scale(self) -> Floats:
        """The largest room of any kind by resource: amounts are compared as shares of it."""
        largest: Floats = self.room.max(axis=0, initial=1).astype(np.float64)
        return np.maximum(largest, 1.0)

    @cached_property
    def most(self) -> Ints:
        """How many pods of an item alone a node of a kind holds: items x kinds."""
        asked = self.requests[:, None, :]
        room = np.where(asked > 0, self.room[None] // np.maximum(asked, 1), UNLIMITED)
        most: Ints = np.where(self.admits, room.min(axis=2, initial=UNLIMITED), 0)
        for group in self.groups:
            most[group.members] = np.minimum(most[group.members], group.cap)
        alone: Ints = np.minimum(most, np.where(self.clashes.diagonal(), 1, UNLIMITED)[:, None])
        return alone

    @cached_property
    def has_strangers(self) -> bool:
        """Whether some item clashes with another one than itself."""
        return bool((self.clashes & ~np.eye(len(self.counts), dtype=np.bool_)).any())

    @cached_property
    def members(self) -> Mask:
        """Which item is in which group: items x groups."""
        found = np.zeros((len(self.counts), len(self.groups)), dtype=np.bool_)
        for index, group in enumerate(self.groups):
            found[group.members, index] = True
        return found

    @cached_property
    def caps(self) -> Ints:
        """The cap of every group."""
        return np.array([group.cap for group in self.groups], dtype=np.int64)

    def part(self, items: Ints, kinds: Ints, counts: Ints) -> "Lot":
        """The same with these items and kinds only, and other counts."""
        place = {int(item): index for index, item in enumerate(items)}
        groups = []
        for group in self.groups:
            kept = [place[int(item)] for item in group.members if int(item) in place]
            if kept:
                groups.append(Group(np.array(kept, dtype=np.int64), group.cap))
        return Lot(
            requests=self.requests[items],
            counts=counts,
            price=self.price[kinds],
            room=self.room[kinds],
            admits=self.admits[np.ix_(items, kinds)],
            groups=tuple(groups),
            clashes=self.clashes[np.ix_(items, items)],
            stock=self.stock[kinds],
            pile=self.pile[kinds],
        )

    def less(self, stock: Ints, kind: int, times: int) -> Ints:
        """The stock (by kind) after so many nodes of the kind were taken."""
        if not self.scarce[kind]:
            return stock
        left: Ints = np.where(self.pile == self.pile[kind], stock - times, stock)
        return left
