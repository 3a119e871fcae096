"""The pricing problem: which patterns have a negative reduced cost at the master's duals.

The best pattern of a bin type is the optimum of a knapsack with many constraints. Solving that exactly takes seconds
where thirty copies fit on a bin, and any pattern that pays will do, so it is sought in two cheap ways, many bins at a
time:

- bins are filled in random order from the items that waste little on their type. Strictly greedy orders find the same
  few patterns again and again; random ones among the items that waste nothing find the combinations that fill a bin
  exactly;
- in good bins one copy is exchanged for others. Where a bin holds few copies, the exact combination is rarely hit by
  filling.
"""

from dataclasses import replace

import numpy as np

from joinery.decisions.optimizer import tuning
from joinery.decisions.optimizer.arrays import Floats, Ints, Mask
from joinery.decisions.optimizer.columns.master import MasterSolution, RestrictedMaster
from joinery.decisions.optimizer.instance.packing_instance import PackingInstance
from joinery.decisions.optimizer.instance.patterns import Patterns
from joinery.decisions.optimizer.rounding.filling import fill

#: Weight of what an item takes, beside its dual: of items with the same dual that which takes less.
_TIE = 1e-6


class PricingHeuristic:
    """The search for patterns of one instance.

    ``rates``: float64[items, bin types], $/h that the assignment relaxation charges for what a copy takes on a bin of
    the type.
    ``bin_types``: int64[tried], indices.
    """

    def __init__(self, instance: PackingInstance, rates: Floats, bin_types: Ints) -> None:
        self._instance, self._rates, self._bin_types = instance, rates, bin_types

    def with_demands(self, demands: Ints) -> "PricingHeuristic":
        """The search for patterns of these demands (int64[items])."""
        return PricingHeuristic(replace(self._instance, demands=demands), self._rates, self._bin_types)

    def of_negative_reduced_cost(
        self, master: RestrictedMaster, solution: MasterSolution, random: np.random.Generator
    ) -> Patterns:
        """Patterns that would make the master's optimum cheaper; of each bin type the best few.

        Sought by filling; and in those that the master buys and the best of the new ones, with single items exchanged.
        """
        filled = self.by_filling(solution.item_duals, tuning.FILLED_PER_TYPE, random)
        value = filled.counts @ solution.item_duals / solution.bin_costs[filled.bin_types]
        bought = master.columns.select(np.flatnonzero(solution.copies > 1e-9))
        bought = Patterns(bought.bin_types, np.minimum(bought.counts, self._instance.demands))
        best = filled.select(np.argsort(-value, kind="stable")[: tuning.EXCHANGED])
        return _best_few(filled.join(self.by_exchange(solution.item_duals, bought.join(best))), solution)

    def by_filling(self, item_duals: Floats, times: int, random: np.random.Generator) -> Patterns:
        """A bin of every type filled so many times, in random orders that tend to begin with what takes little for its
        dual.
        """
        bin_types = np.tile(self._bin_types, times)
        noise = np.repeat(np.resize(tuning.FILLING_NOISES, times), len(self._bin_types))[:, None]
        keys = self._taken_per_dual(item_duals, bin_types) + noise * random.random((len(bin_types), len(item_duals)))
        counts = fill(self._instance, bin_types, self._orders(bin_types, keys), self._instance.demands)
        return Patterns(bin_types, counts)

    def by_exchange(self, item_duals: Floats, patterns: Patterns) -> Patterns:
        """Every pattern with one copy of each of its items exchanged for the best others that fit,
        and then filled up.
        """
        row, item = np.nonzero(patterns.counts)
        reduced = patterns.select(row)
        reduced.counts[np.arange(len(row)), item] -= 1
        gain = np.where(self._fits(reduced), item_duals - _TIE * self._rates[:, reduced.bin_types].T, -1.0)
        gain[np.arange(len(row)), item] = -1.0
        width = min(tuning.EXCHANGES, len(item_duals))
        best: Ints = np.argpartition(-gain, width - 1, axis=1)[:, :width]
        which, other = np.repeat(np.arange(len(row)), width), best.reshape(-1)
        is_gain = gain[which, other] > 0
        exchanged = reduced.select(which[is_gain])
        exchanged.counts[np.arange(len(exchanged.bin_types)), other[is_gain]] += 1
        has_room = np.flatnonzero(self._fits(exchanged).any(axis=1))
        if len(has_room):
            open_bins = exchanged.select(has_room)
            orders = self._orders(open_bins.bin_types, self._taken_per_dual(item_duals, open_bins.bin_types))
            demands = self._instance.demands
            exchanged.counts[has_room] = fill(self._instance, open_bins.bin_types, orders, demands, open_bins.counts)
        return exchanged

    def _taken_per_dual(self, item_duals: Floats, bin_types: Ints) -> Floats:
        """float64[bins, items]: what a copy takes on each bin,
        as a multiple of its dual; one where it wastes nothing.
        """
        taken: Floats = (self._rates[:, bin_types] / np.maximum(item_duals, 1e-9)[:, None]).T
        return taken

    def _orders(self, bin_types: Ints, keys: Floats) -> Ints:
        """int64[bins, items]: the compatible items of each bin by key (float64[bins, items]); incompatible ones come
        last.
        """
        is_compatible = self._instance.compatible.T[bin_types]
        longest = int(is_compatible.sum(axis=1).max(initial=0))
        return np.argsort(np.where(is_compatible, keys, np.inf), axis=1, kind="stable")[:, :longest]

    def _fits(self, patterns: Patterns) -> Mask:
        """bool[patterns, items]: which item may have one more copy on each bin."""
        instance, bin_types, counts = self._instance, patterns.bin_types, patterns.counts
        free = instance.capacities[bin_types] - counts @ instance.sizes
        fits: Mask = counts < np.minimum(instance.demands, instance.max_per_bin.T[bin_types])
        for resource in np.flatnonzero((instance.sizes > 0).any(axis=0)):
            fits &= instance.sizes[:, resource] <= free[:, [resource]]
        for limit in instance.cardinality_limits:
            if len(limit.items) > 1:
                fits[np.ix_(counts[:, limit.items].sum(axis=1) >= limit.cap, limit.items)] = False
        if instance.has_conflicting_items:
            for item in np.flatnonzero(instance.conflicts.any(axis=1)):
                fits[np.ix_(counts[:, item] > 0, instance.conflicts[item])] = False
        return fits


def _best_few(patterns: Patterns, solution: MasterSolution) -> Patterns:
    """Those of negative reduced cost, of each bin type the best few."""
    costs = solution.bin_costs[patterns.bin_types]
    gain = (patterns.counts @ solution.item_duals - costs) / costs
    order = np.argsort(-gain, kind="stable")
    order = order[gain[order] > 1e-7]
    bin_types, rank = patterns.bin_types[order], np.zeros(len(order), dtype=np.int64)
    for bin_type in np.unique(bin_types):
        rank[bin_types == bin_type] = np.arange((bin_types == bin_type).sum())
    return patterns.select(order[rank < tuning.NEW_PER_TYPE])
