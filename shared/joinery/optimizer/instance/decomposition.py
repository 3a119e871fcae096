"""A instance that spans places (zones) is first packed place by place: pods that are tied to one never share a node with those of another."""

from dataclasses import dataclass

import numpy as np

from joinery.optimizer.arrays import Floats, Ints, Mask
from joinery.optimizer.instance.packing_instance import PackingInstance
from joinery.optimizer.instance.patterns import Pattern


@dataclass(frozen=True, eq=False)
class Subinstance:
    """A instance of its own; ``items`` and ``bin_types`` say which of the whole instance's its own are."""

    items: Ints
    bin_types: Ints
    instance: PackingInstance

    def lift(self, pattern: Pattern, width: int) -> Pattern:
        """A pattern of the part as one of the whole instance, which has ``width`` items."""
        counts = np.zeros(width, dtype=np.int64)
        counts[self.items] = pattern.counts
        return Pattern(int(self.bin_types[pattern.bin_type]), counts, pattern.copies)


def decompose(instance: PackingInstance, block: Ints, demands: Ints) -> list[Subinstance]:
    """One part for every place that some of so many pods go to; ``place``: by kind. Pods that may be anywhere are dealt out as the
    tied ones are.
    """
    count = int(block.max(initial=0)) + 1
    shares = _shares(
        instance, demands, np.stack([instance.compatible[:, block == p].any(axis=1) for p in range(count)], axis=1)
    )
    parts = []
    for p in range(count):
        items, bin_types = np.flatnonzero(shares[:, p]), np.flatnonzero(block == p)
        if len(items):
            parts.append(Subinstance(items, bin_types, instance.restrict(items, bin_types, shares[items, p])))
    return parts


def _shares(instance: PackingInstance, demands: Ints, may: Mask) -> Ints:
    """How many pods of each item go to each place: items x places."""
    size = demands * (instance.sizes / instance.scale).max(axis=1, initial=0.0)
    tied = may.sum(axis=1) == 1
    load: Floats = (size[:, None] * (may & tied[:, None])).sum(axis=0) + 1e-9
    wanted = may * load
    exact = demands[:, None] * wanted / np.maximum(wanted.sum(axis=1, keepdims=True), 1e-300)
    shares: Ints = np.floor(exact + 1e-9).astype(np.int64)
    for item in np.flatnonzero(shares.sum(axis=1) < demands):
        order = np.argsort(shares[item] - np.where(may[item], exact[item], -np.inf), kind="stable")
        shares[item, order[: demands[item] - shares[item].sum()]] += 1
    return shares
