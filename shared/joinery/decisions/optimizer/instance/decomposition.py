"""An instance that spans zones, taken apart into one instance for each zone.

Bin types are in **blocks**: no bin of one block can hold an item that only another block's bins may hold. Where pods
are tied to zones, a block is a zone, and one program for each block takes a tenth of the time of one program for all
of them. What it costs is that items which may be in several blocks are dealt out before anything is packed.
"""

from dataclasses import dataclass

import numpy as np

from joinery.decisions.optimizer.arrays import Floats, Ints, Mask
from joinery.decisions.optimizer.instance.packing_instance import PackingInstance
from joinery.decisions.optimizer.instance.patterns import Pattern


@dataclass(frozen=True, eq=False)
class Subinstance:
    """Some items and bin types of a whole instance, as an instance of their own.

    ``items``: int64[its items], ``bin_types``: int64[its bin types]: their indices in the whole instance. ``whole``:
    items of that.
    """

    items: Ints
    bin_types: Ints
    instance: PackingInstance
    whole: int

    def lift(self, pattern: Pattern) -> Pattern:
        """A pattern of this instance as one of the whole instance."""
        counts = np.zeros(self.whole, dtype=np.int64)
        counts[self.items] = pattern.counts
        return Pattern(int(self.bin_types[pattern.bin_type]), counts, pattern.copies)


def decompose(instance: PackingInstance, block: Ints, demands: Ints) -> list[Subinstance]:
    """One subinstance for every block that gets items. ``block``: int64[bin types], numbers from 0; ``demands``:
    int64[items].
    """
    count = int(block.max(initial=0)) + 1
    possible = np.stack([instance.compatible[:, block == b].any(axis=1) for b in range(count)], axis=1)
    shares = _dealt_out(instance, demands, possible)
    parts = []
    for b in range(count):
        for items, bin_types in _components(instance, np.flatnonzero(shares[:, b]), np.flatnonzero(block == b)):
            restricted = instance.restrict(items, bin_types, shares[items, b])
            parts.append(Subinstance(items, bin_types, restricted, len(demands)))
    return parts


def independent_parts(instance: PackingInstance) -> list[Subinstance]:
    """The instance taken apart where nothing connects two parts: no bin type is for items of both, and no supply."""
    return [
        Subinstance(
            items, bin_types, instance.restrict(items, bin_types, instance.demands[items]), len(instance.demands)
        )
        for items, bin_types in components(instance)
    ]


def components(instance: PackingInstance) -> list[tuple[Ints, Ints]]:
    """The items and bin types (indices) of its independent parts."""
    return _components(instance, np.arange(len(instance.demands)), np.arange(len(instance.costs)))


def _components(instance: PackingInstance, items: Ints, bin_types: Ints) -> list[tuple[Ints, Ints]]:
    """These items and bin types (indices), taken apart where no bin type or supply is for items of two parts."""
    compatible = instance.compatible[np.ix_(items, bin_types)]
    supplies = np.unique(instance.supply[bin_types], return_inverse=True)[1].ravel()
    parts: list[Mask] = []
    for row in np.unique(compatible, axis=0):
        reached = np.isin(supplies, supplies[row])
        touching = [part for part in parts if (part & reached).any()]
        parts = [part for part in parts if not (part & reached).any()] + [np.logical_or.reduce([reached, *touching])]
    return [(items[compatible[:, part].any(axis=1)], bin_types[part]) for part in parts]


def _dealt_out(instance: PackingInstance, demands: Ints, possible: Mask) -> Ints:
    """int64[items, blocks]: copies of each item that go to each block; ``possible``: bool[items, blocks].

    Free items follow the tied ones: the more tied items a block has, the more odd gaps there are in its bins to fill.
    What whole numbers leave over goes to the blocks with the largest remainders.
    """
    size = demands * (instance.sizes / instance.scale).max(axis=1, initial=0.0)
    is_tied = possible.sum(axis=1) == 1
    load: Floats = (size[:, None] * (possible & is_tied[:, None])).sum(axis=0) + 1e-9
    weight = possible * load
    exact = demands[:, None] * weight / np.maximum(weight.sum(axis=1, keepdims=True), 1e-300)
    shares: Ints = np.floor(exact + 1e-9).astype(np.int64)
    for item in np.flatnonzero(shares.sum(axis=1) < demands):
        order = np.argsort(shares[item] - np.where(possible[item], exact[item], -np.inf), kind="stable")
        shares[item, order[: demands[item] - shares[item].sum()]] += 1
    return shares
