"""Which patterns have a small reduced cost? All bin types are listed at once, item by item.

After each item, bins that no filling with later items could bring within the gap are dropped. What later items can pay
is bounded in three ways, each as valid as the duals are:

- by prices of what is free (``capacity_duals``), with what an item pays beyond what it takes;
- by what is free and the most that a later item pays for a unit of it, resource by resource and at those prices;
- by each item alone, in whole copies.
"""

from dataclasses import dataclass
from enum import Enum, auto

import numpy as np

from joinery.decisions.optimizer.arrays import Floats, Ints, Mask
from joinery.decisions.optimizer.bounds.pattern_duals import PatternDuals
from joinery.decisions.optimizer.instance.packing_instance import PackingInstance
from joinery.decisions.optimizer.instance.patterns import Patterns

#: Bins of a step, as a multiple of those that are looked at after it.
_MOST_CHOICES = 4


class Overflow(Enum):
    """What is listed where it is not all: nothing, all patterns of the bin types that have few, or those bins of any
    type that may pay most.
    """

    NOTHING = auto()
    WHOLE_TYPES = auto()
    BEST_BINS = auto()


@dataclass(frozen=True, eq=False)
class Listed:
    """``reduced_costs``: float64[patterns]. ``is_whole``: bool[bin types], whether these are all patterns of the type
    within the gap. ``work``: bins that were filled in part, each times the items that were still to come.
    """

    patterns: Patterns
    reduced_costs: Floats
    is_whole: Mask
    work: int

    @property
    def is_complete(self) -> bool:
        """Whether these are all patterns within the gap."""
        return bool(self.is_whole.all())


@dataclass(eq=False)
class _Bins:
    """Bins that are filled in part. ``bin_types``: int64[bins]; ``counts``: int64[bins, items]; ``free``: int64[bins,
    resources]; ``paid``: float64[bins], by their copies so far.
    """

    bin_types: Ints
    counts: Ints
    free: Ints
    paid: Floats

    def select(self, chosen: Ints) -> "_Bins":
        return _Bins(self.bin_types[chosen], self.counts[chosen], self.free[chosen], self.paid[chosen])


def list_patterns(
    instance: PackingInstance,
    most: Ints,
    duals: PatternDuals,
    gap: float,
    width: int,
    *,
    overflow: Overflow,
    is_filled: bool = False,
) -> Listed:
    """Patterns whose reduced cost is at most ``gap`` ($/h). ``most``: int64[items, bin types], copies on a bin.

    ``is_filled``: only those on which no further copy of the smallest item fits.

    ``overflow``: what is listed where there are more than ``width`` bins after some item.
    """
    order = np.argsort(-(instance.sizes / instance.scale).sum(axis=1), kind="stable")
    later = _LaterItems(instance, most, duals, order)
    number = len(instance.costs)
    bins = _Bins(
        np.arange(number),
        np.zeros((number, len(instance.demands)), dtype=np.int64),
        instance.capacities,
        np.zeros(number),
    )
    is_whole, work = np.ones(number, dtype=np.bool_), 0
    for step, item in enumerate(order):
        fits = fitting(instance, int(item), bins.counts, bins.free, most[item, bins.bin_types])
        least = fits if is_filled and step + 1 == len(order) else np.zeros_like(fits)
        choices = 1 + fits - least
        if choices.sum() > _MOST_CHOICES * width:
            if overflow is Overflow.NOTHING:
                return _nothing(instance, work)
            # Those that may pay most come first.
            kept = np.flatnonzero(np.cumsum(choices) <= _MOST_CHOICES * width)
            if overflow is Overflow.WHOLE_TYPES:
                kept = _of_few(bins.bin_types, choices, number, _MOST_CHOICES * width)
            is_whole[np.delete(bins.bin_types, kept)] = False
            bins, choices, least = bins.select(kept), choices[kept], least[kept]
        bins = _with_item(instance, duals, bins, int(item), choices, least)
        below = duals.bin_costs[bins.bin_types] - bins.paid - later.pay(step, bins)
        kept = np.flatnonzero(below <= gap)
        bins, below = bins.select(kept), below[kept]
        below = np.maximum(below, duals.bin_costs[bins.bin_types] - bins.paid - later.pay_alone(step, bins))
        work += len(below) * (len(order) - step)
        kept = np.flatnonzero(below <= gap)
        if len(kept) > width:
            if overflow is Overflow.NOTHING:
                return _nothing(instance, work)
            bins, below = bins.select(kept), below[kept]
            costs = np.maximum(instance.costs[bins.bin_types], 1e-9)
            kept = np.argsort(below / costs, kind="stable")[:width]
            if overflow is Overflow.WHOLE_TYPES:
                kept = _of_few(bins.bin_types, np.ones_like(bins.bin_types), number, width)
            is_whole[np.delete(bins.bin_types, kept)] = False
        bins = bins.select(kept)
    bins = bins.select(np.flatnonzero(bins.counts.any(axis=1)))
    return Listed(Patterns(bins.bin_types, bins.counts), duals.bin_costs[bins.bin_types] - bins.paid, is_whole, work)


def _nothing(instance: PackingInstance, work: int) -> Listed:
    patterns = Patterns(np.zeros(0, dtype=np.int64), np.zeros((0, len(instance.demands)), dtype=np.int64))
    return Listed(patterns, np.zeros(0), np.zeros(len(instance.costs), dtype=np.bool_), work)


def _of_few(bin_types: Ints, weights: Ints, number: int, width: int) -> Ints:
    """Which of the bins (indices) are of types that have few, as many types as come to no more than ``width``."""
    of_type = np.bincount(bin_types, weights=weights, minlength=number)
    order = np.argsort(of_type, kind="stable")
    is_kept = np.zeros(number, dtype=np.bool_)
    is_kept[order[np.cumsum(of_type[order]) <= width]] = True
    kept: Ints = np.flatnonzero(is_kept[bin_types])
    return kept


def _with_item(
    instance: PackingInstance, duals: PatternDuals, bins: _Bins, item: int, choices: Ints, least: Ints
) -> _Bins:
    """Each bin with every number of copies of the item that it may get; ``choices``: int64[bins], how many they are;
    ``least``: int64[bins], the first of them.
    """
    parent = np.repeat(np.arange(len(choices)), choices)
    copies = np.arange(len(parent)) - np.repeat(np.cumsum(choices) - choices - least, choices)
    filled = bins.select(parent)
    filled.counts[:, item] = copies
    filled.free = filled.free - copies[:, None] * instance.sizes[item]
    filled.paid = filled.paid + copies * duals.item_duals[item, filled.bin_types]
    return filled


class _LaterItems:
    """What the items after each step could pay at most."""

    def __init__(self, instance: PackingInstance, most: Ints, duals: PatternDuals, order: Ints) -> None:
        self._instance, self._most, self._duals, self._order = instance, most, duals, order
        self._resources = np.flatnonzero((instance.sizes > 0).any(axis=0))
        paid = np.where(most > 0, np.maximum(duals.item_duals, 0.0), 0.0)
        self._beyond = _from_the_end(np.add, (duals.item_row_duals * most)[order])
        taken = [instance.sizes @ duals.capacity_duals.T]
        taken += [np.broadcast_to(instance.sizes[:, [one]], paid.shape) for one in self._resources]
        # The most that any later item pays for a unit; no bound where it takes nothing.
        per_unit = [np.divide(paid, one, out=np.where(paid > 0, np.inf, 0.0), where=one > 0) for one in taken]
        self._per_unit = [_from_the_end(np.maximum, one[order]) for one in per_unit]

    def pay(self, step: int, bins: _Bins) -> Floats:
        """float64[bins], by prices of what is free."""
        if step + 1 == len(self._order):
            return np.zeros(len(bins.paid))
        duals, bin_types = self._duals, bins.bin_types
        priced = (bins.free * duals.capacity_duals[bin_types]).sum(axis=1)
        most: Floats = priced + self._beyond[step + 1, bin_types] + duals.conflict_duals[bin_types]
        for number, limit in enumerate(self._instance.cardinality_limits):
            left = limit.cap - bins.counts[:, limit.items].sum(axis=1)
            most = most + duals.limit_duals[number, bin_types] * left
        amounts = [priced, *(bins.free[:, one] for one in self._resources)]
        for per_unit, amount in zip(self._per_unit, amounts, strict=True):
            rate = per_unit[step + 1, bin_types]
            # Where an item takes nothing of it, the amount bounds nothing.
            is_bound = np.isfinite(rate)
            most = np.where(is_bound, np.minimum(most, np.where(is_bound, rate, 0.0) * amount), most)
        return most

    def pay_alone(self, step: int, bins: _Bins) -> Floats:
        """float64[bins], if each later item had all that is free to itself."""
        instance, total = self._instance, np.zeros(len(bins.paid))
        for item in self._order[step + 1 :]:
            copies = self._most[item, bins.bin_types]
            for resource in np.flatnonzero(instance.sizes[item] > 0):
                copies = np.minimum(copies, bins.free[:, resource] // instance.sizes[item, resource])
            total += np.maximum(self._duals.item_duals[item, bins.bin_types], 0.0) * copies
        return total


def _from_the_end(how: np.ufunc, rows: Floats) -> Floats:
    """[rows + 1, ...]: of each row and all after it; zero after the last."""
    result = np.zeros((len(rows) + 1, *rows.shape[1:]))
    result[:-1] = how.accumulate(rows[::-1], axis=0)[::-1]
    return result


def fitting(instance: PackingInstance, item: int, counts: Ints, free: Ints, most: Ints) -> Ints:
    """int64[bins]: copies of the item that each bin may still get, ``most`` (int64[bins]) at most.

    ``counts``: int64[bins, items]; ``free``: int64[bins, resources].
    """
    copies = most
    for resource in np.flatnonzero(instance.sizes[item] > 0):
        copies = np.minimum(copies, free[:, resource] // instance.sizes[item, resource])
    for limit in instance.cardinality_limits:
        if item in limit.items:
            copies = np.minimum(copies, limit.cap - counts[:, limit.items].sum(axis=1))
    conflicting = np.flatnonzero(instance.conflicts[item])
    conflicting = conflicting[conflicting != item]
    if len(conflicting):
        copies = np.where(counts[:, conflicting].any(axis=1), 0, copies)
    allowed: Ints = np.maximum(copies, 0)
    return allowed
