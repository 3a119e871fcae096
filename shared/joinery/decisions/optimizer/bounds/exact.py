"""The least that a small instance can cost: proven, and often with bins that cost just that.

For few pods a bin more or less is a large part of the cost, so a bound that allows fractions of bins says little.
Five steps, each on what the one before has left:

1. the compact formulation is solved without whole numbers. Its optimum is a bound already;
2. reduced cost fixing (Crowder, Johnson and Padberg 1983, "Solving large-scale zero-one linear programming problems"):
   a bin type, or an item on a bin type, whose reduced cost exceeds the gap to the best packing known is in no cheaper
   one, and is left out;
3. if the patterns that a cheaper packing could have are few enough to be listed (``enumeration``), branch and bound
   over them in whole numbers;
4. if not, column generation to its end (``pattern_relaxation``) lifts the bound, and at its duals fewer patterns are
   within the gap, so that is tried again;
5. where they are still too many, or branching over them came to no end, whole bins are decided upon first, and only
   then what is on them (``benders``).
"""

from dataclasses import dataclass, replace

import numpy as np

from joinery.decisions.optimizer.arrays import Floats, Ints, Mask
from joinery.decisions.optimizer.bounds.benders import solve_over_whole_bins
from joinery.decisions.optimizer.bounds.branch_and_bound import CLOSE, BranchAndBound, IntegerProgram
from joinery.decisions.optimizer.bounds.compact import CompactFormulation
from joinery.decisions.optimizer.bounds.duality import of_right_sign, reduced_costs
from joinery.decisions.optimizer.bounds.enumeration import TooManyPatternsError, enumerate_patterns, least_cost
from joinery.decisions.optimizer.bounds.pattern_duals import PatternDuals, pattern_duals
from joinery.decisions.optimizer.bounds.pattern_program import PatternFormulation
from joinery.decisions.optimizer.bounds.pattern_relaxation import converge
from joinery.decisions.optimizer.instance.patterns import Pattern, Patterns, cost_of
from joinery.decisions.optimizer.instance.reachable import with_reachable_capacities
from joinery.decisions.optimizer.instance.side_constraints import ConstrainedInstance

#: Instances with no more compatible pairs of an item and a bin type are small.
SMALL_PAIRS = 4_000
#: Instances with no more copies to pack are small.
SMALL_DEMAND = 200
#: Of more different demands there are too many patterns, whatever the duals.
_FEW_DEMANDS = 40
#: Milliseconds of a slow core, about, that branching may take; over listed patterns a program is solved again in a
#: tenth of what is computed.
_ALLOWANCE, _LISTED_ALLOWANCE = 150.0, 3_000.0
#: Entries of a program that a slow core solves again in a millisecond, about.
_PACE = 250
_FEWEST_SOLVES = 4


@dataclass(frozen=True, eq=False)
class ExactResult:
    """``bound``: $/h that no packing costs less than. ``patterns``: bins that cost just that, if they are cheaper than
    the known packing and were found. ``is_tight``: the known packing, or ``patterns``, cost just the bound.
    """

    bound: float
    patterns: tuple[Pattern, ...] | None = None
    is_tight: bool = False


def is_small(constrained: ConstrainedInstance) -> bool:
    """Whether solving it exactly is worth the time."""
    return int(constrained.demands.sum()) <= SMALL_DEMAND and int(constrained.instance.compatible.sum()) <= SMALL_PAIRS


def solve_exactly(
    constrained: ConstrainedInstance, cutoff: float, *, is_thorough: bool = True, generates: bool = True
) -> ExactResult:
    """The least cost, or as much as could be proven of it. ``cutoff``: $/h of a known packing.

    ``is_thorough``: only the bound is wanted: also branch where patterns are too many to be listed, which lifts it and
    finds no packing, and do not seek a packing that is not the cheapest.
    ``generates``: also generate columns, and branch for longer.
    """
    kept = _affordable(constrained, cutoff)
    reduced = constrained.restrict(kept, constrained.instance.compatible[:, kept])
    reduced = replace(reduced, instance=with_reachable_capacities(reduced.instance, reduced.max_items))
    formulation = CompactFormulation(reduced, cutoff)
    search = _search(formulation.program, cutoff)
    bound = search.solve_root()
    if bound >= cutoff * (1 - CLOSE):
        return ExactResult(bound, is_tight=True)
    bin_types, compatible = _not_fixed(formulation, search.duals, cutoff - bound)
    reduced, kept = reduced.restrict(bin_types, compatible), kept[bin_types]
    formulation = CompactFormulation(reduced, cutoff)
    search = _search(formulation.program, cutoff)
    bound = min(max(bound, search.solve_root()), cutoff)
    if generates:
        result = _generated(formulation, search.duals, bound, goes_on=not is_thorough)
    else:
        listed = _listed(formulation, pattern_duals(formulation, search.duals), bound, _ALLOWANCE)
        result = listed or ExactResult(max(bound, search.solve().bound) if is_thorough else bound)
    packing = result.patterns and tuple(replace(one, bin_type=int(kept[one.bin_type])) for one in result.patterns)
    return replace(result, patterns=packing)


def _generated(formulation: CompactFormulation, duals: Floats, bound: float, *, goes_on: bool) -> ExactResult:
    """Steps 3 to 5. ``duals``: float64[rows], of the compact formulation's optimum."""
    best = pattern_duals(formulation, duals)
    result = _listed(formulation, best, bound, _LISTED_ALLOWANCE)
    if result is None and len(formulation.constrained.demands) <= _FEW_DEMANDS:
        best = converge(formulation, best)
        bound = min(max(bound, least_cost(formulation, best)), formulation.cutoff)
        result = _listed(formulation, best, bound, _LISTED_ALLOWANCE)
    if result is not None and result.is_tight:
        return result
    whole = solve_over_whole_bins(formulation, best, goes_on=goes_on)
    bound = max(bound, whole.bound, 0.0 if result is None else result.bound)
    cost = formulation.cutoff
    if whole.patterns is not None:
        cost = cost_of(formulation.constrained.instance, whole.patterns)
    return ExactResult(bound, whole.patterns, cost <= bound * (1 + CLOSE))


def _listed(formulation: CompactFormulation, duals: PatternDuals, bound: float, allowance: float) -> ExactResult | None:
    """Step 3: the least cost over the patterns that a cheaper packing could have; None where they are too many."""
    try:
        patterns = enumerate_patterns(formulation, duals)
    except TooManyPatternsError:
        return None
    if not len(patterns.bin_types):
        # No bin of a packing that costs less than the cutoff is left.
        return ExactResult(max(bound, formulation.cutoff * (1 - CLOSE)), is_tight=True)
    result = _solve_over(formulation.constrained, patterns, formulation.cutoff, allowance)
    return replace(result, bound=max(bound, result.bound))


def _affordable(constrained: ConstrainedInstance, cutoff: float) -> Ints:
    """The bin types (indices) that a packing cheaper than the cutoff could have."""
    instance = constrained.instance
    affordable: Ints = np.flatnonzero((instance.costs <= cutoff * (1 + CLOSE)) & (instance.available > 0))
    return affordable


def _search(program: IntegerProgram, cutoff: float, allowance: float = _ALLOWANCE) -> BranchAndBound:
    """As many solves as the allowance pays for."""
    solves = int(allowance * _PACE / len(program.relaxation.values))
    return BranchAndBound(program, cutoff, max(_FEWEST_SOLVES, solves))


def _not_fixed(formulation: CompactFormulation, duals: Floats, gap: float) -> tuple[Ints, Mask]:
    """Bin types (indices) that a cheaper packing could have, and bool[items, those], what it could put on them."""
    program, bin_types = formulation.program.relaxation, formulation.bin_type_count
    reduced = reduced_costs(program, of_right_sign(program, duals))
    # A little more than the gap, which is a difference of rounded sums.
    is_within = reduced <= gap * (1 + 1e-6) + 1e-9
    kept: Ints = np.flatnonzero(is_within[:bin_types])
    is_kept = is_within[bin_types : bin_types + formulation.pair_count]
    compatible = np.zeros(formulation.constrained.instance.compatible.shape, dtype=np.bool_)
    compatible[formulation.items[is_kept], formulation.bin_types[is_kept]] = True
    return kept, compatible[:, kept]


def _solve_over(constrained: ConstrainedInstance, patterns: Patterns, cutoff: float, allowance: float) -> ExactResult:
    """The least cost of bins of these patterns, in whole numbers."""
    formulation = PatternFormulation(constrained, patterns, cutoff)
    result = _search(formulation.program, cutoff, allowance).solve()
    if result.bound >= cutoff * (1 - CLOSE):
        return ExactResult(result.bound, is_tight=True)
    packing = None if result.values is None else formulation.packing(result.values)
    return ExactResult(result.bound, packing, packing is not None)
