"""An instance of the packing problem: vector bin packing with heterogeneous bins, conflicts and cardinality limits, in
arrays.

An **item** is a size with a demand: so many equal copies of it are to be packed. A **bin type** is a capacity with a
cost. Sizes and capacities are whole numbers, in one order of resources. The words are those of the typology by
Wäscher, Haußner and Schumann (2007), "An improved typology of cutting and packing problems".
"""

import hashlib
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from joinery.decisions.optimizer import tuning
from joinery.decisions.optimizer.arrays import UNLIMITED, Floats, Ints, Mask


@dataclass(frozen=True, eq=False)
class CardinalityLimit:
    """A bin holds at most ``cap`` copies of these items together.

    ``items``: int64[n], indices of items. ``cap``: copies, of all of them in sum.
    """

    items: Ints
    cap: int


@dataclass(frozen=True, eq=False, kw_only=True)
class PackingInstance:
    """What is to be packed, and into what. Checks nothing: its arrays must agree in shape.

    ``sizes``: int64[items, resources], of one copy, in the caller's units.
    ``demands``: int64[items], copies to be packed.
    ``costs``: float64[bin types], $/h for one bin.
    ``capacities``: int64[bin types, resources], in the units of ``sizes``.
    ``compatible``: bool[items, bin types]; False also where one copy alone is too large for the bin.
    ``cardinality_limits``: each holds on every bin.
    ``conflicts``: bool[items, items], symmetric: the two never share a bin. True on the diagonal: at most one copy on
    a bin.
    ``available``: int64[bin types], bins there are; UNLIMITED unless given.
    ``supply``: int64[bin types], a label: bin types with the same label draw on one supply, so ``available`` is the
    same for them and is used up together. Each bin type has a supply of its own unless given.
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
        """bool[bin types]: those of which there are only so many."""
        limited: Mask = self.available < UNLIMITED
        return limited

    @cached_property
    def scale(self) -> Floats:
        """float64[resources]: the largest capacity of any bin type, at least one.

        Resources differ by ten orders of magnitude (bytes of memory, a GPU). As shares of the scale they can be added
        up and compared, and the linear programs are well conditioned.
        """
        largest: Floats = self.capacities.max(axis=0, initial=1).astype(np.float64)
        return np.maximum(largest, 1.0)

    @cached_property
    def max_per_bin(self) -> Ints:
        """int64[items, bin types]: copies of one item alone that a bin holds."""
        most: Ints = np.where(self.compatible, UNLIMITED, 0)
        for sizes, capacities in zip(self.sizes.T, self.capacities.T, strict=True):
            asking = np.flatnonzero(sizes)
            most[asking] = np.minimum(most[asking], capacities // sizes[asking, None])
        alone: Ints = np.minimum(most, self.most_by_rules[:, None])
        return alone

    @cached_property
    def most_by_rules(self) -> Ints:
        """int64[items]: copies of one item alone that limits and conflicts let into any bin, whatever its size."""
        most: Ints = np.where(self.conflicts.diagonal(), 1, UNLIMITED)
        for limit in self.cardinality_limits:
            most[limit.items] = np.minimum(most[limit.items], limit.cap)
        return most

    @cached_property
    def digest(self) -> bytes:
        """The same for instances that are equal, and for no others."""
        found = hashlib.blake2b(repr((self.sizes.shape, self.capacities.shape)).encode())
        arrays = (self.sizes, self.demands, self.costs, self.capacities, self.compatible, self.conflicts)
        for array in (*arrays, self.available, self.supply, self.limit_members, self.limit_caps):
            found.update(np.ascontiguousarray(array).tobytes())
        return found.digest()

    @cached_property
    def foes(self) -> Mask:
        """bool[items, items]: the ``conflicts`` with other items."""
        others: Mask = self.conflicts & ~np.eye(len(self.demands), dtype=np.bool_)
        return others

    @cached_property
    def has_conflicting_items(self) -> bool:
        """Whether some item conflicts with another one than itself."""
        return bool(self.foes.any())

    @cached_property
    def limit_members(self) -> Mask:
        """bool[items, cardinality limits]: which item counts for which limit."""
        members = np.zeros((len(self.demands), len(self.cardinality_limits)), dtype=np.bool_)
        for index, limit in enumerate(self.cardinality_limits):
            members[limit.items, index] = True
        return members

    @cached_property
    def limit_caps(self) -> Ints:
        """int64[cardinality limits]: the cap of each."""
        return np.array([limit.cap for limit in self.cardinality_limits], dtype=np.int64)

    def restrict(self, items: Ints, bin_types: Ints, demands: Ints) -> "PackingInstance":
        """The same with these items and bin types only (indices, in this order), and these demands of the items."""
        position = {int(item): index for index, item in enumerate(items)}
        limits = []
        for limit in self.cardinality_limits:
            kept = [position[int(item)] for item in limit.items if int(item) in position]
            if kept:
                limits.append(CardinalityLimit(np.array(kept, dtype=np.int64), limit.cap))
        return PackingInstance(
            sizes=self.sizes[items],
            demands=demands,
            costs=self.costs[bin_types],
            capacities=self.capacities[bin_types],
            compatible=self.compatible[np.ix_(items, bin_types)],
            cardinality_limits=tuple(limits),
            conflicts=self.conflicts[np.ix_(items, items)],
            available=self.available[bin_types],
            supply=self.supply[bin_types],
        )

    def after_buying(self, available: Ints, bin_type: int, copies: int) -> Ints:
        """int64[bin types]: what is left of ``available`` once so many bins of the type are bought."""
        if not self.is_limited[bin_type]:
            return available
        left: Ints = np.where(self.supply == self.supply[bin_type], available - copies, available)
        return left


def is_little(instance: PackingInstance) -> bool:
    """Whether there are so few copies, of so few items, that more thorough ways to pack them are soon done."""
    return int(instance.demands.sum()) <= tuning.FEW_COPIES and len(instance.demands) <= tuning.FEW_ITEMS
