"""The whole search for a consolidation, in its order: relaxation, rounding and placing, patterns, small steps.

Where time is up before the relaxation is solved, the answer is a rough one: bins that cost more than new ones for what
they hold.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from joinery.decisions.optimizer import tuning
from joinery.decisions.optimizer.arrays import Ints, Mask
from joinery.decisions.optimizer.consolidation.instance import Consolidation, ConsolidationInstance
from joinery.decisions.optimizer.consolidation.new_bins import covering
from joinery.decisions.optimizer.consolidation.patterns import PatternSearch
from joinery.decisions.optimizer.consolidation.placing import Placing, placed, weightings
from joinery.decisions.optimizer.consolidation.relaxation import KeepRelaxation, KeepSolution, is_kept
from joinery.decisions.optimizer.consolidation.repetition import improved
from joinery.decisions.optimizer.effort import Effort
from joinery.decisions.optimizer.instance.decomposition import Subinstance
from joinery.decisions.optimizer.instance.patterns import Pattern, cost_of
from joinery.decisions.optimizer.search import pack

_NEGLIGIBLE = 1e-6
#: The method of a consolidation for which time was up before there was a relaxation.
ROUGH = "rough"
#: The method where a bound proves that nothing else costs less.
BOUND = "bound"
#: The answer to what takes so much is not kept: some 1,000 nodes with 500 kinds of pods.
_REMEMBERED_BYTES = 4 * 2**20


def consolidate(instance: ConsolidationInstance, effort: Effort, *, is_swift: bool = False) -> Consolidation:
    """Which standing bins to keep, nearly the cheapest; all of them if that is proven to be best.

    ``is_swift``: rounding and small steps only, for a look at what else could be chosen.
    """
    if is_swift or instance.residents.nbytes > _REMEMBERED_BYTES:
        return _sought(instance, effort, is_swift=is_swift)
    return effort.once(
        b"consolidate" + instance.digest,
        lambda: _sought(instance, effort, is_swift=False),
        instance.residents.nbytes,
    )


def _sought(instance: ConsolidationInstance, effort: Effort, *, is_swift: bool) -> Consolidation:
    best = _searched(instance, effort, is_swift=is_swift)
    is_large = int(instance.bins.compatible.sum()) > tuning.MANY_BIN_PAIRS
    return best if is_swift or is_large else _repeated(instance, best, effort)


def _searched(instance: ConsolidationInstance, effort: Effort, *, is_swift: bool) -> Consolidation:
    """The same, without looking at the solution again."""
    as_it_is = instance.cost_as_it_is
    everything = np.ones(instance.standing, dtype=np.bool_)
    inflow = np.zeros_like(instance.residents)
    stay = Consolidation(everything, inflow, (), as_it_is, as_it_is, BOUND)
    if not instance.may_retire.any():
        return stay
    if not len(instance.bins.demands):
        # Nothing has to be packed, as in a cluster without pods: whatever may go goes.
        keep = ~instance.may_retire
        cost = instance.cost(keep, 0.0)
        return Consolidation(keep, inflow, (), cost, cost, BOUND)
    if effort.is_over():
        return _rough(instance)
    relaxation = KeepRelaxation(instance, effort.patience())
    relaxed = relaxation.solve()
    if relaxed is None and effort.is_over():
        return _rough(instance)
    if relaxed is None or relaxed.cost >= as_it_is - _NEGLIGIBLE:
        return stay
    return _Search(instance, relaxation, relaxed, effort, is_swift=is_swift).run(replace(stay, bound=relaxed.cost))


def _rough(instance: ConsolidationInstance) -> Consolidation:
    """What takes no search: a bin goes where what it holds costs less at the least price of a copy. Proves nothing."""
    bins, new = instance.bins, slice(instance.standing, None)
    fits = bins.compatible[:, new] & (bins.max_per_bin[:, new] > 0)
    each = np.where(fits, bins.costs[None, new] / np.maximum(bins.max_per_bin[:, new], 1), np.inf)
    prices = np.minimum(each.min(axis=1, initial=np.inf), bins.costs.sum())  # where none can be bought, it stays
    keep = ~instance.may_retire | (prices @ instance.residents >= instance.keeping)
    cost = instance.cost(keep, float(prices @ instance.displaced(keep)))
    return Consolidation(keep, np.zeros_like(instance.residents), (), cost, 0.0, ROUGH)


def _repeated(instance: ConsolidationInstance, best: Consolidation, effort: Effort) -> Consolidation:
    """The solution, looked at again as long as that finds something."""
    for _ in range(tuning.REPETITIONS):
        if effort.is_over() or best.cost <= best.bound * (1 + tuning.NEAR_RELAXATION):
            break
        other = improved(instance, best, lambda rest: _searched(rest, effort, is_swift=True))
        if other is None or other.cost >= best.cost - _NEGLIGIBLE:
            break
        best = other
    return best


class _Priced(NamedTuple):
    """``cost``: $/h, with moves and about what new bins for the copies that are left cost."""

    placing: Placing
    cost: float


class _Search:
    def __init__(
        self,
        instance: ConsolidationInstance,
        relaxation: KeepRelaxation,
        relaxed: KeepSolution,
        effort: Effort,
        *,
        is_swift: bool,
    ) -> None:
        self._instance, self._relaxation, self._relaxed, self._effort = instance, relaxation, relaxed, effort
        self._is_swift = is_swift
        pairs = int(instance.bins.compatible.sum())
        self._is_small = not is_swift and pairs <= tuning.FEW_BIN_PAIRS
        self._has_patterns = not is_swift and pairs <= tuning.PATTERN_PAIRS
        self._is_large = pairs > tuning.MANY_BIN_PAIRS
        self._bound = relaxed.cost
        # What each bin would be missed for, the least missed first.
        worth = relaxed.item_duals @ instance.residents - instance.keeping
        self._least_missed = np.argsort(worth, kind="stable")

    def run(self, stay: Consolidation) -> Consolidation:
        """The cheapest of what several ways lead to."""
        best = self._cheaper_of(stay, self._by_rounding(stay))
        if self._has_patterns and not self._is_done(best):
            best = self._by_patterns(best)
        if self._is_swift and not self._is_done(best):
            # From what stands, which may be the solution that is looked at again.
            as_it_is = Placing.begin(self._instance, stay.keep)
            best = self._cheaper_of(best, self._stepped(_Priced(as_it_is, stay.cost)))
        if best.cost > self._bound * (1 + tuning.NEAR_PATTERNS) and not self._effort.is_over():
            best = self._cheaper_of(best, self._by_packing(is_kept(self._relaxed.keep), best))
        if best is stay and self._effort.is_over():
            # What the relaxation keeps is a better guess than nothing.
            keep = is_kept(self._relaxed.keep) | ~self._instance.may_retire
            best = replace(stay, keep=keep, cost=self._relaxed.cost, method="relaxation")
        return replace(best, bound=self._bound)

    def _is_done(self, best: Consolidation) -> bool:
        return self._effort.is_over() or best.cost <= self._bound * (1 + tuning.NEAR_RELAXATION)

    def _cheaper_of(self, best: Consolidation, other: Consolidation | None) -> Consolidation:
        return other if other is not None and other.cost < best.cost - _NEGLIGIBLE else best

    def _by_patterns(self, best: Consolidation) -> Consolidation:
        """Whole patterns, and what the relaxation over patterns keeps, where those leave much to gain."""
        patterns = PatternSearch(self._instance, self._relaxed, self._effort)
        keep = patterns.relax()
        self._bound = patterns.bound
        enough = patterns.relaxed * (1 + tuning.NEAR_PATTERNS)
        if keep is None or self._effort.is_over() or best.cost <= enough:
            return best
        choice = patterns.choose(best.cost)
        if choice is not None:
            best = Consolidation(choice.keep, choice.inflow, choice.new, choice.cost, self._bound, "patterns")
        if self._effort.is_over() or best.cost <= enough:
            return best
        return self._cheaper_of(best, self._by_packing(is_kept(keep), best))

    # --- rounding ---

    def _by_rounding(self, best: Consolidation) -> Consolidation | None:
        """Small steps from the cheapest start; where they leave much to gain, from the others too."""
        stepped: Consolidation | None = None
        for start in sorted(self._starts(best.cost), key=lambda start: start.cost):
            if stepped is not None and not self._is_worth_more(stepped):
                break
            other = self._stepped(start)
            stepped = other if stepped is None else self._cheaper_of(stepped, other)
        return stepped

    def _is_worth_more(self, stepped: Consolidation) -> bool:
        """Whether another start may lead to much less than this end of the first, in a time that is worth it."""
        is_far = stepped.cost > self._relaxed.cost * (1 + tuning.FAR_FROM_RELAXATION)
        return is_far and not (self._is_small or self._is_large or self._is_swift or self._effort.is_over())

    def _starts(self, least: float) -> list["_Priced"]:
        """What the relaxation keeps more than half of, with more and more room to waste."""
        starts = list[_Priced]()
        solution: KeepSolution | None = self._relaxed
        for margin in tuning.SWIFT_MARGINS if self._is_swift else tuning.MARGINS:
            if margin:
                solution = self._relaxation.solve(margin)
            if solution is None or solution.cost >= least or (starts and self._effort.is_over()):
                break
            keep = is_kept(solution.keep) | ~self._instance.may_retire
            if any((start.placing.keep == keep).all() for start in starts):
                continue
            starts.append(self._priced(placed(self._instance, keep, self._effort)))
            least = min(least, starts[-1].cost)
            if not starts[-1].placing.left.any():
                break
        return starts

    def _stepped(self, start: "_Priced") -> Consolidation:
        """The end of small steps."""
        placing, cost = self._with_fewer(self._with_more(start))
        new = tuple(self._covering(placing.left) or ())
        return Consolidation(placing.keep, placing.inflow, new, cost, self._relaxed.cost, "rounding")

    def _with_more(self, best: "_Priced") -> "_Priced":
        """Keep one more bin after another, while copies are left and that costs less."""
        others = [int(bin_) for bin_ in self._least_missed[::-1] if not best.placing.keep[bin_]]
        for bin_ in others[: tuning.STEPS]:
            if not best.placing.left.any() or self._effort.is_over():
                break
            other = best.placing.copy()
            other.keep_after_all(bin_)
            best = self._least(best, other)
        return best

    def _with_fewer(self, best: "_Priced") -> "_Priced":
        """Retire one bin after another, if the others have room for what it holds."""
        instance = self._instance
        others = [
            int(bin_)
            for bin_ in self._least_missed
            if best.placing.keep[bin_] and instance.may_retire[bin_] and instance.keeping[bin_] > 0
        ]
        for bin_ in others[: tuning.STEPS]:
            if self._effort.is_over():
                break
            other = best.placing.copy()
            other.retire(bin_)
            best = self._least(best, other)
        return best

    def _least(self, best: "_Priced", other: Placing) -> "_Priced":
        other.place(weightings(self._instance)[0])
        priced = self._priced(other, best.cost - _NEGLIGIBLE)
        return priced if priced.cost < best.cost - _NEGLIGIBLE else best

    def _priced(self, placing: Placing, below: float = float(np.inf)) -> "_Priced":
        new = self._covering(placing.left, below - self._instance.cost(placing.keep, 0.0))
        bought = float(np.inf) if new is None else cost_of(self._instance.bins, new)
        return _Priced(placing, self._instance.cost(placing.keep, bought))

    def _covering(self, left: Ints, below: float = float(np.inf)) -> list[Pattern] | None:
        """New bins for these copies, filled greedily."""
        return covering(self._instance, self._relaxed.item_duals, left, below, self._effort.is_over)

    def _by_packing(self, keep: Mask, best: Consolidation) -> Consolidation | None:
        """These bins (bool[standing bins]), and the residents of the others packed with all care there and in new ones.

        None if that cannot cost less, or takes too long.
        """
        keep = keep | ~self._instance.may_retire
        if not self._is_small or self._instance.cost(keep, 0.0) >= best.cost - _NEGLIGIBLE:
            return None
        displaced, bins = self._instance.displaced(keep), self._instance.bins
        items = np.flatnonzero(displaced)
        usable = np.concatenate([keep, np.ones(len(bins.costs) - len(keep), dtype=np.bool_)])
        usable &= bins.compatible[items].any(axis=0)
        bin_types = np.flatnonzero(usable)
        part = Subinstance(items, bin_types, bins.restrict(items, bin_types, displaced[items]), len(bins.demands))
        standing = bin_types < len(keep)
        free = replace(part.instance, costs=np.where(standing, _NEGLIGIBLE, part.instance.costs))
        # Bins without residents leave nothing to pack, and no bin to pack it into.
        patterns = pack(free, np.zeros(len(bin_types), dtype=np.int64), self._effort) if len(bin_types) else []
        if sum(int(pattern.counts.sum()) * pattern.copies for pattern in patterns) < displaced.sum():
            return None
        inflow = np.zeros_like(self._instance.residents)
        for pattern in patterns:
            if standing[pattern.bin_type]:
                inflow[items, bin_types[pattern.bin_type]] += pattern.counts
        new = [part.lift(pattern) for pattern in patterns if not standing[pattern.bin_type]]
        cost = self._instance.cost(keep, cost_of(bins, new))
        return Consolidation(keep, inflow, tuple(new), cost, self._relaxed.cost, "packing")
