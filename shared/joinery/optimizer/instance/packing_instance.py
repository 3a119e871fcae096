"""A **instance**: how many pods of which size are to be put on nodes of which kinds, in arrays.

An *item* is a size of pod with a count, a *kind* a size of node with a price; amounts are whole numbers in one order of
resources. ``groups`` and ``clashes`` say which pods may not share a node.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from joinery.optimizer.arrays import UNLIMITED, Floats, Ints, Mask


@dataclass(frozen=True, eq=False)
class CardinalityLimit:
    """Items (indices) of which at most ``cap`` pods may share a node."""

    items: Ints
    cap: int


@dataclass(frozen=True, eq=False, kw_only=True)
class PackingInstance:
    """``sizes``: items x resources; ``demands``: items; ``costs``: kinds, in $/h; ``capacities``: kinds x resources; ``compatible``: items x
    kinds; ``conflicts``: items x items, where True on the diagonal means at most one pod of the item on a node; ``available``: how many
    nodes there are of a kind, without end unless given; ``supply``: a number by kind: kinds of one supply have one available between them.
    """

    sizes: Ints
    demands: Ints
    costs: Floats
    capacities: Ints
    compatible: Mask
    cardinality_limits: tuple[CardinalityLimit, ...]
    conflicts: Mask
    available: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    supply: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def __post_init__(self) -> None:
        if not len(self.available):
            object.__setattr__(self, "available", np.full(len(self.costs), UNLIMITED))
        if not len(self.supply):
            object.__setattr__(self, "supply", np.arange(len(self.costs)))

    @cached_property
    def is_limited(self) -> Mask:
        """The kinds of which there are only so many."""
        few: Mask = self.available < UNLIMITED
        return few

    @cached_property
    def scale(self) -> Floats:
        """The largest room of any kind by resource: amounts are compared as shares of it."""
        largest: Floats = self.capacities.max(axis=0, initial=1).astype(np.float64)
        return np.maximum(largest, 1.0)

    @cached_property
    def max_per_bin(self) -> Ints:
        """How many pods of an item alone a node of a kind holds: items x kinds."""
        asked = self.sizes[:, None, :]
        room = np.where(asked > 0, self.capacities[None] // np.maximum(asked, 1), UNLIMITED)
        most: Ints = np.where(self.compatible, room.min(axis=2, initial=UNLIMITED), 0)
        for group in self.cardinality_limits:
            most[group.items] = np.minimum(most[group.items], group.cap)
        alone: Ints = np.minimum(most, np.where(self.conflicts.diagonal(), 1, UNLIMITED)[:, None])
        return alone

    @cached_property
    def has_conflicting_items(self) -> bool:
        """Whether some item clashes with another one than itself."""
        return bool((self.conflicts & ~np.eye(len(self.demands), dtype=np.bool_)).any())

    @cached_property
    def limit_members(self) -> Mask:
        """Which item is in which group: items x groups."""
        found = np.zeros((len(self.demands), len(self.cardinality_limits)), dtype=np.bool_)
        for index, group in enumerate(self.cardinality_limits):
            found[group.items, index] = True
        return found

    @cached_property
    def limit_caps(self) -> Ints:
        """The cap of every group."""
        return np.array([group.cap for group in self.cardinality_limits], dtype=np.int64)

    def restrict(self, items: Ints, bin_types: Ints, demands: Ints) -> "PackingInstance":
        """The same with these items and kinds only, and other counts."""
        block = {int(item): index for index, item in enumerate(items)}
        groups = []
        for group in self.cardinality_limits:
            kept = [block[int(item)] for item in group.items if int(item) in block]
            if kept:
                groups.append(CardinalityLimit(np.array(kept, dtype=np.int64), group.cap))
        return PackingInstance(
            sizes=self.sizes[items],
            demands=demands,
            costs=self.costs[bin_types],
            capacities=self.capacities[bin_types],
            compatible=self.compatible[np.ix_(items, bin_types)],
            cardinality_limits=tuple(groups),
            conflicts=self.conflicts[np.ix_(items, items)],
            available=self.available[bin_types],
            supply=self.supply[bin_types],
        )

    def after_buying(self, available: Ints, bin_type: int, times: int) -> Ints:
        """The available (by kind) after so many nodes of the kind were taken."""
        if not self.is_limited[bin_type]:
            return available
        left: Ints = np.where(self.supply == self.supply[bin_type], available - times, available)
        return left
