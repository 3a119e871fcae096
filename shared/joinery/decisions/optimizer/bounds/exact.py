"""The least that a small instance can cost: proven, and mostly with bins that cost just that.

For few pods a bin more or less is a large part of the cost, so a bound that allows fractions of bins says little.
Four steps, each on what the one before has left:

1. the compact formulation is solved without whole numbers. Its optimum is a bound already;
2. reduced cost fixing (Crowder, Johnson and Padberg 1983, "Solving large-scale zero-one linear programming problems"):
   a bin type, or an item on a bin type, whose reduced cost exceeds the gap to the best packing known is in no cheaper
   one, and is left out;
3. column generation to its end (``pattern_relaxation``) lifts the bound;
4. the patterns of the least reduced cost are listed (``enumeration``), some thousand of them, and the cheapest packing
   of these alone is sought in whole numbers (``branch_and_bound``). Any other pattern makes a packing dearer than the
   bound by at least its reduced cost. So if that is more than the packing found costs, it is the cheapest of all; if
   not, the bound is lifted that far, and more patterns are listed.
"""

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from joinery.decisions.optimizer.arrays import Floats, Ints, Mask
from joinery.decisions.optimizer.bounds.branch_and_bound import BranchAndBound
from joinery.decisions.optimizer.bounds.compact import CompactFormulation
from joinery.decisions.optimizer.bounds.duality import of_right_sign, reduced_costs
from joinery.decisions.optimizer.bounds.enumeration import (
    Enumerated,
    enumerate_few,
    enumerate_patterns,
    enumerate_whole_types,
    least_cost,
)
from joinery.decisions.optimizer.bounds.pattern_duals import PatternDuals, pattern_duals
from joinery.decisions.optimizer.bounds.pattern_program import CLOSE, PatternProgram
from joinery.decisions.optimizer.bounds.pattern_relaxation import converge
from joinery.decisions.optimizer.instance.patterns import Pattern
from joinery.decisions.optimizer.instance.reachable import with_reachable_capacities
from joinery.decisions.optimizer.instance.side_constraints import ConstrainedInstance
from joinery.decisions.optimizer.linear.highs import Patience

#: Instances with no more compatible pairs of an item and a bin type are small.
SMALL_PAIRS = 8_000
#: Instances with no more copies to pack are small.
SMALL_DEMAND = 200
#: Of more different demands there are too many patterns, whatever the duals.
_FEW_DEMANDS = 40
#: Patterns that are listed: at the duals of the compact formulation; at better ones at first, and how many times as
#: many then.
_FEW_LISTED, _LISTED, _MORE = 500, 3_000, 3
#: A linear program takes as long as its patterns times its rows do, of each so many more than it has.
_MORE_PATTERNS, _MORE_ROWS = 10_000, 40
#: The same for a pair of an item and a bin type that is filled in fractions, and how many such pairs are few.
_WORK_OF_A_PAIR, _FEW_PAIRS = 3_000, 400
#: Where patterns within so small a share of the gap are all that can be listed, longer lists would prove no more.
_FAR = 0.2
#: Linear programs times that, over few patterns. About a tenth of a second.
_FEW_WORK = 50_000_000
#: The same in all: before a search, whose packing shows better which patterns matter; for a proof; and after a search.
FIRST_WORK, WORK, LAST_WORK = 150_000_000, 350_000_000, 600_000_000
#: With less of it nothing is begun: a dozen linear programs.
_LEAST_WORK = 10_000_000


@dataclass(frozen=True, eq=False)
class ExactResult:
    """``bound``: $/h that no packing costs less than. ``patterns``: bins that are cheaper than the known packing, if
    any were found. ``is_tight``: the known packing, or ``patterns``, cost just the bound.
    """

    bound: float
    patterns: tuple[Pattern, ...] | None = None
    is_tight: bool = False


def is_small(constrained: ConstrainedInstance) -> bool:
    """Whether solving it exactly is worth the time."""
    return int(constrained.demands.sum()) <= SMALL_DEMAND and int(constrained.instance.compatible.sum()) <= SMALL_PAIRS


def solve_exactly(
    constrained: ConstrainedInstance, cutoff: float, *, patience: Patience | None = None, work: int = WORK
) -> ExactResult:
    """The least cost, or as much as could be proven of it. ``cutoff``: $/h of a known packing.

    ``patience``: how long each linear program may take. ``work``: how much all of them may; none: only what is soon
    done.
    """
    patience = patience or Patience()
    constrained = constrained.with_supply_rows()
    kept = _affordable(constrained, cutoff)
    reduced = constrained.restrict(kept, constrained.instance.compatible[:, kept])
    reduced = replace(reduced, instance=with_reachable_capacities(reduced.instance, reduced.max_items))
    formulation = CompactFormulation(reduced, cutoff)
    bound, duals = formulation.relaxed(patience)
    if bound >= cutoff * (1 - CLOSE):
        return ExactResult(bound, is_tight=True)
    bin_types, compatible = _not_fixed(formulation, duals, cutoff - bound)
    reduced, kept = reduced.restrict(bin_types, compatible), kept[bin_types]
    formulation = CompactFormulation(reduced, cutoff)
    again, duals = formulation.relaxed(patience)
    bound = min(max(bound, again), cutoff)
    if patience.is_over():
        return ExactResult(bound)
    search = _Search(formulation, pattern_duals(formulation, duals), bound, patience, work)
    result = search.of_few()
    if work:
        result = search.of_all()
    packing = result.patterns and tuple(replace(one, bin_type=int(kept[one.bin_type])) for one in result.patterns)
    return replace(result, patterns=packing)


class _Search:
    """Steps 3 and 4. ``duals``: of the compact formulation's optimum; ``bound``: $/h, what is proven so far."""

    def __init__(
        self, formulation: CompactFormulation, duals: PatternDuals, bound: float, patience: Patience, work: int
    ) -> None:
        self._formulation, self._duals, self._bound, self._patience = formulation, duals, bound, patience
        self._cost, self._packing = formulation.cutoff, cast("tuple[Pattern, ...] | None", None)
        self._work_left = work

    def of_few(self) -> ExactResult:
        """Step 4 without step 3, where few patterns are within the gap."""
        gap = self._cost - least_cost(self._formulation, self._duals)
        enumerated = enumerate_few(self._formulation, self._duals, gap, _FEW_LISTED)
        if enumerated is not None:
            self._seek(enumerated, _FEW_WORK)
        return ExactResult(self._bound, self._packing, not self._is_open())

    def of_all(self) -> ExactResult:
        """Both steps, where patterns are not few."""
        if self._is_open() and len(self._formulation.constrained.demands) <= _FEW_DEMANDS:
            self._duals = converge(self._formulation, self._duals, self._patience)
        least, reach, most = least_cost(self._formulation, self._duals), -np.inf, _LISTED
        self._bound = max(self._bound, min(least, self._cost))
        while self._is_open() and self._work_left > _LEAST_WORK and not self._patience.is_over():
            enumerated = enumerate_patterns(self._formulation, self._duals, self._cost - least, most)
            if enumerated.reach <= reach:
                break
            self._seek(enumerated, self._work_left, is_thorough=True)
            reach, most = enumerated.reach, most * _MORE
            if self._is_open() and reach < _FAR * (self._cost - least) and self._bound >= least + reach * (1 - CLOSE):
                # Where nothing could be listed, nothing else is to come.
                self._fill(self._cost - least, self._work_left if reach <= 0 else self._work_left // 2)
        return ExactResult(self._bound, self._packing, not self._is_open())

    def _is_open(self) -> bool:
        return self._cost > self._bound * (1 + CLOSE)

    def _fill(self, gap: float, work: int) -> None:
        """Whole bins of the types of which there are too many patterns, if there are few such types."""
        enumerated = enumerate_whole_types(self._formulation, self._duals, gap)
        if self._pairs(enumerated) <= _FEW_PAIRS:
            self._seek(enumerated, work, is_thorough=True)

    def _pairs(self, enumerated: Enumerated) -> int:
        return int(self._formulation.constrained.instance.compatible[:, enumerated.filled].sum())

    def _seek(self, enumerated: Enumerated, work: int, *, is_thorough: bool = False) -> None:
        """The cheapest packing of these patterns and bins."""
        number, bound = len(enumerated.patterns.bin_types), self._cost
        beyond = least_cost(self._formulation, self._duals) + enumerated.reach
        if number or len(enumerated.filled):
            constrained = self._formulation.constrained
            rows = len(constrained.demands) + len(constrained.side_constraints)
            work_of_a_solve = (number + _MORE_PATTERNS) * (rows + _MORE_ROWS)
            work_of_a_solve += _WORK_OF_A_PAIR * self._pairs(enumerated)
            found = BranchAndBound(
                PatternProgram(constrained, enumerated.patterns, enumerated.filled, self._cost, self._patience),
                max(1, work // work_of_a_solve),
                is_thorough=is_thorough,
            ).solve()
            self._work_left -= found.solves * work_of_a_solve
            self._cost, self._packing, bound = found.cost, found.packing or self._packing, found.bound
        self._bound = max(self._bound, min(bound, beyond, self._cost))


def _affordable(constrained: ConstrainedInstance, cutoff: float) -> Ints:
    """The bin types (indices) that a packing cheaper than the cutoff could have."""
    instance = constrained.instance
    affordable: Ints = np.flatnonzero((instance.costs <= cutoff * (1 + CLOSE)) & (instance.available > 0))
    return affordable


def _not_fixed(formulation: CompactFormulation, duals: Floats, gap: float) -> tuple[Ints, Mask]:
    """Bin types (indices) that a cheaper packing could have, and bool[items, those], what it could put on them."""
    program, bin_types = formulation.program, formulation.bin_type_count
    reduced = reduced_costs(program, of_right_sign(program, duals))
    # A little more than the gap, which is a difference of rounded sums.
    is_within = reduced <= gap * (1 + 1e-6) + 1e-9
    kept: Ints = np.flatnonzero(is_within[:bin_types])
    is_kept = is_within[bin_types : bin_types + formulation.pair_count]
    compatible = np.zeros(formulation.constrained.instance.compatible.shape, dtype=np.bool_)
    compatible[formulation.items[is_kept], formulation.bin_types[is_kept]] = True
    return kept, compatible[:, kept]
