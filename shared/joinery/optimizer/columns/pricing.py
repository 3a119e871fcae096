"""Pricing: which nodes would make the pattern program's next optimum cheaper.

At the optimum's prices a node is worth what its pods are charged; one that is worth more than it costs is wanted. The best would be a
knapsack with many constraints for every kind, so it is looked for in two cheap ways, many nodes at a time: nodes are filled
in random order from the pods that waste little on their kind, and of good nodes one pod is changed for another.
"""

import numpy as np

from joinery.optimizer.arrays import Floats, Ints, Mask
from joinery.optimizer.instance.packing_instance import PackingInstance
from joinery.optimizer.instance.patterns import Patterns
from joinery.optimizer.rounding.filling import fill

_NOISES = (0.1, 0.5)
_EXCHANGES = 2
"""So many pods are tried in the place of one."""
_TIE = 1e-6
"""Of pods worth the same, the one that takes less room."""


class PricingHeuristic:
    """The search for patterns of one instance. ``rates``: what the assignment program charges, items x kinds; ``kinds``: those tried."""

    def __init__(self, instance: PackingInstance, rates: Floats, bin_types: Ints) -> None:
        self._lot, self._rates, self._kinds = instance, rates, bin_types

    def by_filling(self, item_duals: Floats, ways: int, random: np.random.Generator) -> Patterns:
        """Nodes of every kind filled in several random orders, in which pods that take little room for their worth tend to be first."""
        bin_types = np.tile(self._kinds, ways)
        noise = np.repeat(np.resize(_NOISES, ways), len(self._kinds))[:, None]
        order = self._greed(item_duals, bin_types) + noise * random.random((len(bin_types), len(item_duals)))
        return Patterns(bin_types, fill(self._lot, bin_types, self._sequences(bin_types, order), self._lot.demands))

    def by_exchange(self, item_duals: Floats, patterns: Patterns) -> Patterns:
        """Every node with one pod of each of its items changed for the best others that fit, and then filled up."""
        row, item = np.nonzero(patterns.counts)
        fewer = patterns.select(row)
        fewer.counts[np.arange(len(row)), item] -= 1
        gain = np.where(self._fits(fewer), item_duals - _TIE * self._rates[:, fewer.bin_types].T, -1.0)
        gain[np.arange(len(row)), item] = -1.0
        width = min(_EXCHANGES, len(item_duals))
        best: Ints = np.argpartition(-gain, width - 1, axis=1)[:, :width]
        which, other = np.repeat(np.arange(len(row)), width), best.reshape(-1)
        good = gain[which, other] > 0
        found = fewer.select(which[good])
        found.counts[np.arange(len(found.bin_types)), other[good]] += 1
        open_ = np.flatnonzero(self._fits(found).any(axis=1))
        if len(open_):
            some = found.select(open_)
            sequences = self._sequences(some.bin_types, self._greed(item_duals, some.bin_types))
            found.counts[open_] = fill(self._lot, some.bin_types, sequences, self._lot.demands, some.counts)
        return found

    def _greed(self, item_duals: Floats, bin_types: Ints) -> Floats:
        """What each pod is charged on each node by the assignment program, as a multiple of its worth: nodes x items."""
        greed: Floats = (self._rates[:, bin_types] / np.maximum(item_duals, 1e-9)[:, None]).T
        return greed

    def _sequences(self, bin_types: Ints, order: Floats) -> Ints:
        """The items that each node's kind admits, in order; where one admits fewer than another, others come after them."""
        admitted = self._lot.compatible.T[bin_types]
        longest = int(admitted.sum(axis=1).max(initial=0))
        return np.argsort(np.where(admitted, order, np.inf), axis=1, kind="stable")[:, :longest]

    def _fits(self, patterns: Patterns) -> Mask:
        """Which item may have one more pod on each node: nodes x items."""
        instance, bin_types, counts = self._lot, patterns.bin_types, patterns.counts
        free = instance.capacities[bin_types] - counts @ instance.sizes
        may: Mask = instance.compatible.T[bin_types] & (counts < instance.demands)
        for resource in np.flatnonzero((instance.sizes > 0).any(axis=0)):
            may &= instance.sizes[:, resource] <= free[:, [resource]]
        for group in instance.cardinality_limits:
            may[np.ix_(counts[:, group.items].sum(axis=1) >= group.cap, group.items)] = False
        for item in np.flatnonzero(instance.conflicts.any(axis=1)):
            may[np.ix_(counts[:, item] > 0, instance.conflicts[item])] = False
        return may
