"""Pricing: which nodes would make the pattern program's next optimum cheaper.

At the optimum's prices a node is worth what its pods are charged; one that is worth more than it costs is wanted. The best would be a
knapsack with many constraints for every kind, so it is looked for in two cheap ways, many nodes at a time: nodes are filled
in random order from the pods that waste little on their kind, and of good nodes one pod is changed for another.
"""

import numpy as np

from joinery.optimizer.arrays import Floats, Ints, Mask
from joinery.optimizer.instance.packing_instance import Lot
from joinery.optimizer.instance.patterns import Patterns
from joinery.optimizer.rounding.filling import fill

_NOISES = (0.1, 0.5)
_EXCHANGES = 2
"""So many pods are tried in the place of one."""
_TIE = 1e-6
"""Of pods worth the same, the one that takes less room."""


class Pricing:
    """The search for patterns of one lot. ``rates``: what the assignment program charges, items x kinds; ``kinds``: those tried."""

    def __init__(self, lot: Lot, rates: Floats, kinds: Ints) -> None:
        self._lot, self._rates, self._kinds = lot, rates, kinds

    def filled(self, worth: Floats, ways: int, random: np.random.Generator) -> Patterns:
        """Nodes of every kind filled in several random orders, in which pods that take little room for their worth tend to be first."""
        kinds = np.tile(self._kinds, ways)
        noise = np.repeat(np.resize(_NOISES, ways), len(self._kinds))[:, None]
        order = self._greed(worth, kinds) + noise * random.random((len(kinds), len(worth)))
        return Patterns(kinds, fill(self._lot, kinds, self._sequences(kinds, order), self._lot.counts))

    def exchanged(self, worth: Floats, patterns: Patterns) -> Patterns:
        """Every node with one pod of each of its items changed for the best others that fit, and then filled up."""
        row, item = np.nonzero(patterns.pods)
        fewer = patterns.part(row)
        fewer.pods[np.arange(len(row)), item] -= 1
        gain = np.where(self._fits(fewer), worth - _TIE * self._rates[:, fewer.kinds].T, -1.0)
        gain[np.arange(len(row)), item] = -1.0
        width = min(_EXCHANGES, len(worth))
        best: Ints = np.argpartition(-gain, width - 1, axis=1)[:, :width]
        which, other = np.repeat(np.arange(len(row)), width), best.reshape(-1)
        good = gain[which, other] > 0
        found = fewer.part(which[good])
        found.pods[np.arange(len(found.kinds)), other[good]] += 1
        open_ = np.flatnonzero(self._fits(found).any(axis=1))
        if len(open_):
            some = found.part(open_)
            sequences = self._sequences(some.kinds, self._greed(worth, some.kinds))
            found.pods[open_] = fill(self._lot, some.kinds, sequences, self._lot.counts, some.pods)
        return found

    def _greed(self, worth: Floats, kinds: Ints) -> Floats:
        """What each pod is charged on each node by the assignment program, as a multiple of its worth: nodes x items."""
        greed: Floats = (self._rates[:, kinds] / np.maximum(worth, 1e-9)[:, None]).T
        return greed

    def _sequences(self, kinds: Ints, order: Floats) -> Ints:
        """The items that each node's kind admits, in order; where one admits fewer than another, others come after them."""
        admitted = self._lot.admits.T[kinds]
        longest = int(admitted.sum(axis=1).max(initial=0))
        return np.argsort(np.where(admitted, order, np.inf), axis=1, kind="stable")[:, :longest]

    def _fits(self, patterns: Patterns) -> Mask:
        """Which item may have one more pod on each node: nodes x items."""
        lot, kinds, pods = self._lot, patterns.kinds, patterns.pods
        free = lot.room[kinds] - pods @ lot.requests
        may: Mask = lot.admits.T[kinds] & (pods < lot.counts)
        for resource in np.flatnonzero((lot.requests > 0).any(axis=0)):
            may &= lot.requests[:, resource] <= free[:, [resource]]
        for group in lot.groups:
            may[np.ix_(pods[:, group.members].sum(axis=1) >= group.cap, group.members)] = False
        for item in np.flatnonzero(lot.clashes.any(axis=1)):
            may[np.ix_(pods[:, item] > 0, lot.clashes[item])] = False
        return may
