"""A lot that spans places (zones) is first packed place by place: pods that are tied to one never share a node with those of another."""

from dataclasses import dataclass

import numpy as np

from joinery.optimizer.arrays import Floats, Ints, Mask
from joinery.optimizer.instance.packing_instance import Lot
from joinery.optimizer.instance.patterns import Shape


@dataclass(frozen=True, eq=False)
class Part:
    """A lot of its own; ``items`` and ``kinds`` say which of the whole lot's its own are."""

    items: Ints
    kinds: Ints
    lot: Lot

    def restore(self, shape: Shape, width: int) -> Shape:
        """A shape of the part as one of the whole lot, which has ``width`` items."""
        pods = np.zeros(width, dtype=np.int64)
        pods[self.items] = shape.pods
        return Shape(int(self.kinds[shape.kind]), pods, shape.times)


def by_place(lot: Lot, place: Ints, counts: Ints) -> list[Part]:
    """One part for every place that some of so many pods go to; ``place``: by kind. Pods that may be anywhere are dealt out as the
    tied ones are.
    """
    count = int(place.max(initial=0)) + 1
    shares = _shares(lot, counts, np.stack([lot.admits[:, place == p].any(axis=1) for p in range(count)], axis=1))
    parts = []
    for p in range(count):
        items, kinds = np.flatnonzero(shares[:, p]), np.flatnonzero(place == p)
        if len(items):
            parts.append(Part(items, kinds, lot.part(items, kinds, shares[items, p])))
    return parts


def _shares(lot: Lot, counts: Ints, may: Mask) -> Ints:
    """How many pods of each item go to each place: items x places."""
    size = counts * (lot.requests / lot.scale).max(axis=1, initial=0.0)
    tied = may.sum(axis=1) == 1
    load: Floats = (size[:, None] * (may & tied[:, None])).sum(axis=0) + 1e-9
    wanted = may * load
    exact = counts[:, None] * wanted / np.maximum(wanted.sum(axis=1, keepdims=True), 1e-300)
    shares: Ints = np.floor(exact + 1e-9).astype(np.int64)
    for item in np.flatnonzero(shares.sum(axis=1) < counts):
        order = np.argsort(shares[item] - np.where(may[item], exact[item], -np.inf), kind="stable")
        shares[item, order[: counts[item] - shares[item].sum()]] += 1
    return shares
