"""The whole search for a consolidation, in its order: relaxation, rounding and placing, patterns, small steps."""

from dataclasses import dataclass

import numpy as np

from joinery.optimizer.arrays import UNLIMITED, Floats, Ints, Mask
from joinery.optimizer.consolidation.instance import ConsolidationInstance
from joinery.optimizer.consolidation.patterns import PatternSearch
from joinery.optimizer.consolidation.placing import Placing, placed, weightings
from joinery.optimizer.consolidation.relaxation import KeepRelaxation, KeepSolution, is_kept
from joinery.optimizer.effort import Effort
from joinery.optimizer.instance.packing_instance import PackingInstance
from joinery.optimizer.instance.patterns import cost_of
from joinery.optimizer.rounding.filling import fill, greedy_orders
from joinery.optimizer.search import pack

_MARGINS = (0.0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.08)
"""The room that whole copies may waste, as a share of all, in turn: with more, the relaxation keeps more bins."""
_FEW_PAIRS = 12_000
"""Patterns and ``pack`` are for instances with no more compatible items and bins. Where there are more, what placing
wastes is little.
"""
_GOOD_ENOUGH = 0.001
_STEPS = 60
"""Bins that each kind of small step is tried with."""
_NEGLIGIBLE = 1e-6


@dataclass(frozen=True, eq=False)
class Consolidation:
    """``keep``: bool[standing bins]. ``inflow``: int64[items, standing bins], copies beside the residents. ``bought``:
    $/h, about, of new bins for the rest. ``cost``: $/h, about, moves included. ``bound``: $/h that none undercuts.
    """

    keep: Mask
    inflow: Ints
    bought: float
    cost: float
    bound: float
    method: str


def consolidate(instance: ConsolidationInstance, effort: Effort) -> Consolidation:
    """Which standing bins to keep, nearly the cheapest; all of them if that is proven to be best."""
    as_it_is = instance.cost_as_it_is
    everything = np.ones(instance.standing, dtype=np.bool_)
    stay = Consolidation(everything, np.zeros_like(instance.residents), 0.0, as_it_is, as_it_is, "bound")
    if not len(instance.bins.demands) or not instance.may_retire.any():
        return stay
    relaxation = KeepRelaxation(instance)
    relaxed = relaxation.solve()
    if relaxed is None or relaxed.cost >= as_it_is - _NEGLIGIBLE:
        return stay
    return _Search(instance, relaxation, relaxed, effort).run(stay)


class _Search:
    def __init__(
        self, instance: ConsolidationInstance, relaxation: KeepRelaxation, relaxed: KeepSolution, effort: Effort
    ) -> None:
        self._instance, self._relaxation, self._relaxed, self._effort = instance, relaxation, relaxed, effort
        self._is_small = int(instance.bins.compatible.sum()) <= _FEW_PAIRS
        # What each bin would be missed for, the least missed first.
        worth = relaxed.item_duals @ instance.residents - instance.keeping
        self._least_missed = np.argsort(worth, kind="stable")

    def run(self, stay: Consolidation) -> Consolidation:
        """The cheapest of what several ways lead to."""
        best = stay
        for way in (self._by_rounding, self._by_packing, self._by_patterns):
            if self._effort.is_over() or best.cost <= self._relaxed.cost * (1 + _GOOD_ENOUGH):
                break
            other = way(best)
            if other is not None and other.cost < best.cost - _NEGLIGIBLE:
                best = other
        return Consolidation(best.keep, best.inflow, best.bought, best.cost, self._relaxed.cost, best.method)

    def _of(self, placing: Placing, method: str) -> Consolidation:
        bought = self._covering(placing.left)
        cost = self._instance.cost(placing.keep, bought)
        return Consolidation(placing.keep, placing.inflow, bought, cost, self._relaxed.cost, method)

    def _by_rounding(self, best: Consolidation) -> Consolidation | None:
        """What the relaxation keeps more than half of, with more and more room to waste; then small steps from it."""
        start: Placing | None = None
        least = best.cost
        solution: KeepSolution | None = self._relaxed
        for margin in _MARGINS:
            if margin:
                solution = self._relaxation.solve(margin)
            if solution is None or solution.cost >= least or self._effort.is_over():
                break
            placing = placed(self._instance, is_kept(solution) | ~self._instance.may_retire)
            cost = self._of(placing, "rounding").cost
            if cost < least:
                start, least = placing, cost
            if not placing.left.any():
                break
        return None if start is None else self._of(self._improved(start), "rounding")

    def _improved(self, start: Placing) -> Placing:
        """Keep one more bin, or retire one more, as long as that costs less."""
        best = self._with_more_kept(start)
        for bin_ in self._least_missed[: _STEPS * 4]:
            if self._effort.is_over():
                break
            if best.keep[bin_] and self._instance.may_retire[bin_] and self._instance.keeping[bin_] > 0:
                best = self._cheaper(best, int(bin_), is_retired=True)
        return best

    def _with_more_kept(self, start: Placing) -> Placing:
        best = start
        for bin_ in self._least_missed[::-1]:
            if not best.left.any() or self._effort.is_over():
                break
            if not best.keep[bin_]:
                best = self._cheaper(best, int(bin_), is_retired=False)
        return best

    def _cheaper(self, placing: Placing, bin_: int, *, is_retired: bool) -> Placing:
        other = placing.copy()
        if is_retired:
            other.retire(bin_)
        else:
            other.keep_after_all(bin_)
        other.place(weightings(self._instance)[0])
        if is_retired and other.left.sum() > placing.left.sum():
            return placing
        return other if self._of(other, "").cost < self._of(placing, "").cost - _NEGLIGIBLE else placing

    def _covering(self, left: Ints) -> float:
        """$/h, about, of new bins for these copies; infinite where there are none for them."""
        instance, bought, left = self._instance, 0.0, left.copy()
        bins = instance.bins
        types: Ints = np.arange(instance.standing, len(bins.costs))
        while left.any():
            items = np.flatnonzero(left)
            bin_types, orders = greedy_orders(bins, self._relaxed.item_duals + 1e-9, types, items)
            counts = fill(bins, bin_types, orders, left)
            value = counts @ (self._relaxed.item_duals + 1e-9) / bins.costs[bin_types]
            chosen = int(value.argmax()) if len(value) else -1
            if chosen < 0 or not counts[chosen].any():
                return float(np.inf)
            copies = max(1, int((left[counts[chosen] > 0] // counts[chosen][counts[chosen] > 0]).min()))
            left -= copies * counts[chosen]
            bought += copies * float(bins.costs[bin_types[chosen]])
        return bought

    def _by_patterns(self, best: Consolidation) -> Consolidation | None:
        if not self._is_small:
            return None
        choice = PatternSearch(self._instance, self._relaxed.item_duals, self._effort).run(best.cost)
        if choice is None:
            return None
        return Consolidation(choice.keep, choice.inflow, choice.bought, choice.cost, self._relaxed.cost, "patterns")

    def _by_packing(self, best: Consolidation) -> Consolidation | None:
        """The bins that the relaxation keeps, and its residents packed with all care into them and new ones."""
        keep = is_kept(self._relaxed) | ~self._instance.may_retire
        if not self._is_small or self._instance.cost(keep, 0.0) >= best.cost - _NEGLIGIBLE:
            return None
        displaced, bins = self._instance.displaced(keep), self._instance.bins
        items = np.flatnonzero(displaced)
        usable = np.concatenate([keep, np.ones(len(bins.costs) - len(keep), dtype=np.bool_)])
        usable &= bins.compatible[items].any(axis=0)
        bin_types = np.flatnonzero(usable)
        rest = bins.restrict(items, bin_types, displaced[items])
        standing = bin_types < len(keep)
        free = _with_costs(rest, np.where(standing, _NEGLIGIBLE, rest.costs))
        patterns = pack(free, np.zeros(len(bin_types), dtype=np.int64), self._effort)
        if sum(int(pattern.counts.sum()) * pattern.copies for pattern in patterns) < displaced.sum():
            return None
        inflow = np.zeros_like(self._instance.residents)
        for pattern in patterns:
            if standing[pattern.bin_type]:
                inflow[items, bin_types[pattern.bin_type]] += pattern.counts
        new = [pattern for pattern in patterns if not standing[pattern.bin_type]]
        bought = cost_of(free, new)
        return Consolidation(keep, inflow, bought, self._instance.cost(keep, bought), self._relaxed.cost, "packing")


def _with_costs(instance: PackingInstance, costs: Floats) -> PackingInstance:
    """The same with other costs, and one each of the bins that cost next to nothing."""
    return PackingInstance(
        sizes=instance.sizes,
        demands=instance.demands,
        costs=costs,
        capacities=instance.capacities,
        compatible=instance.compatible,
        cardinality_limits=instance.cardinality_limits,
        conflicts=instance.conflicts,
        available=np.where(costs <= _NEGLIGIBLE, 1, UNLIMITED),
    )
