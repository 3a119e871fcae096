"""The whole search for a packing, in its order: the core, rounding, column generation, local search, and for few items
all patterns.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from joinery.decisions.optimizer import tuning
from joinery.decisions.optimizer.arrays import Ints
from joinery.decisions.optimizer.bounds.exact import FIRST_WORK, LAST_WORK, WORK, ExactResult, is_small, solve_exactly
from joinery.decisions.optimizer.columns.descent import descend
from joinery.decisions.optimizer.columns.generation import generate_and_dive
from joinery.decisions.optimizer.effort import Effort
from joinery.decisions.optimizer.instance.decomposition import Subinstance, independent_parts
from joinery.decisions.optimizer.instance.likeness import Likeness, in_order
from joinery.decisions.optimizer.instance.packing_instance import PackingInstance, is_little
from joinery.decisions.optimizer.instance.patterns import Pattern, Patterns, cost_of
from joinery.decisions.optimizer.instance.reachable import with_reachable_capacities
from joinery.decisions.optimizer.instance.side_constraints import unconstrained
from joinery.decisions.optimizer.local_search import destroy_and_repair
from joinery.decisions.optimizer.relaxation.core import CoreSelection
from joinery.decisions.optimizer.relaxation.merged_duals import MergedDuals
from joinery.decisions.optimizer.rounding.blocks import BlockRounding
from joinery.decisions.optimizer.rounding.rounding import RoundingRule

_ROUNDING = 1e-9
#: A packing that columns are generated from: how good it is makes no difference to where they end.
_HASTY = RoundingRule(share=1.0, tolerance=0.2, keeps_duals=True)
#: A packing of a part, which may be what is bought, or where columns are generated from.
_SWIFT, _SWIFTER = RoundingRule(tolerance=0.01), RoundingRule(tolerance=0.03)


def pack(
    instance: PackingInstance, block: Ints, effort: Effort, selection: CoreSelection | None = None
) -> list[Pattern]:
    """Bins for all demands, nearly the cheapest. Where time was up before the end, copies may be left without a bin.

    ``block``: int64[bin types], see ``decomposition``; blocks are packed by themselves at first. ``selection``: of the
    instance, if there is one already.
    """
    parts = independent_parts(instance) if len(instance.demands) > tuning.MAX_ITEMS else []
    if len(parts) > 1:
        return _packed_in_parts(parts, block, effort)
    if not _is_searched_whole(instance):
        return _packed(instance, block, effort, selection)
    # Other ways to place a few pods often end in the same orders. Then the core is not asked either.
    question = instance.digest + block.tobytes()
    return list(effort.once(question, lambda: _packed(instance, block, effort, None), instance.compatible.nbytes))


def _packed(instance: PackingInstance, block: Ints, effort: Effort, selection: CoreSelection | None) -> list[Pattern]:
    random = np.random.default_rng(effort.seed)
    best, result, relaxed = _searched(instance, block, effort, selection, random)
    work = LAST_WORK if instance.demands.sum() <= tuning.SOON_SOLVED else WORK
    result = result or _solved_exactly(instance, best, effort, work)
    best = list((result and result.patterns) or best)
    if effort.is_over() or not _is_far(cost_of(instance, best), result, relaxed):
        return best
    # From other duals the search takes another way, which mostly ends a little elsewhere, for few copies some percent.
    tightened = with_reachable_capacities(instance, instance.demands)
    other = _searched(tightened, block, effort, selection, random).patterns
    is_cheaper = cost_of(instance, other) < cost_of(instance, best) * (1 - _ROUNDING)
    return other if is_cheaper and _copies_on(other) == instance.demands.sum() else best


def _is_far(cost: float, result: ExactResult | None, relaxed: float) -> bool:
    """Whether a packing that costs so much ($/h) is far from what is proven, or where nothing is, from its relaxation's
    optimum ($/h).
    """
    if result is None:
        return cost > relaxed * tuning.FAR_FROM_OPTIMUM
    return not result.is_tight and cost > result.bound * tuning.GOOD_ENOUGH


def _packed_in_parts(parts: Sequence[Subinstance], block: Ints, effort: Effort) -> list[Pattern]:
    """All parts are rounded before the first one is improved: if time is up then, there are bins for all of them. Each
    has its share of the effort. Those that are alike share what is found for one of them.
    """
    random = np.random.default_rng(effort.seed)
    leaders = dict(in_order([part.instance for part in parts]))
    begun: dict[int, _Start] = {}
    for number, led in leaders.items():
        if not effort.is_over():
            own_block = block[parts[number].bin_types]
            start = led and _begin_like(begun[led[0]], led[1], own_block, effort, random)
            begun[number] = start or _begin(parts[number].instance, own_block, effort, None, random, is_part=True)
    copies = sum(int(part.instance.demands.sum()) for part in parts)
    patterns: list[Pattern] = []
    found: dict[int, Patterns] = {}
    for number, start in begun.items():
        part, led = parts[number], leaders[number]
        known = led[1].read(found[led[0]]) if led and led[0] in found else None
        better, columns = _improved(start, effort, part.instance.demands.sum() / copies, random, known)
        if columns is not None:
            found[number] = columns
        patterns += map(part.lift, better)
    return patterns


class _Searched(NamedTuple):
    """``result``: the proof that nothing is cheaper, if there is one already. ``relaxed``: $/h, the optimum of the
    relaxations; infinite if there is none.
    """

    patterns: list[Pattern]
    result: ExactResult | None
    relaxed: float


def _searched(
    instance: PackingInstance, block: Ints, effort: Effort, selection: CoreSelection | None, random: np.random.Generator
) -> _Searched:
    """Rounded, and improved where that does not take too long."""
    start = _begin(instance, block, effort, selection, random, is_part=False)
    best = _of_whole(start.core, start.patterns)
    relaxed = np.inf if start.duals is None else start.duals.cost
    if instance.demands.sum() <= tuning.SOON_SOLVED:
        result = _solved_exactly(instance, best, effort, FIRST_WORK)
        best = list((result and result.patterns) or best)
        if result is not None and result.is_tight:
            return _Searched(best, result, relaxed)
    improved, _ = _improved(start, effort, 1.0, random)
    is_cheaper = cost_of(instance, improved) < cost_of(instance, best) * (1 - _ROUNDING)
    return _Searched(improved if is_cheaper else best, None, relaxed)


@dataclass(frozen=True, eq=False)
class _Start:
    """A packing to improve. ``core``: int64[core], bin types of the instance (indices). ``instance``: with these only.
    ``block``: int64[core]. ``patterns``: of that; ``duals``: of its relaxations, None where copies have no bin.
    """

    core: Ints
    instance: PackingInstance
    block: Ints
    patterns: list[Pattern]
    duals: MergedDuals | None


def _of_whole(core: Ints, patterns: Sequence[Pattern]) -> list[Pattern]:
    """Patterns of some bin types (indices) as those of the whole instance."""
    return [replace(pattern, bin_type=int(core[pattern.bin_type])) for pattern in patterns]


def _begin(
    instance: PackingInstance,
    block: Ints,
    effort: Effort,
    selection: CoreSelection | None,
    random: np.random.Generator,
    *,
    is_part: bool,
) -> _Start:
    """Rounded in the core. ``is_part``: of an instance with more parts, which may not all be improved before time is
    up.
    """
    is_large_part = is_part and instance.demands.sum() > tuning.FEW_COPIES
    core = _core(instance, selection, effort, tuning.CORE_CLASSES_OF_PART if is_large_part else tuning.CORE_CLASSES)
    restricted = instance.restrict(np.arange(len(instance.demands)), core, instance.demands)
    has_few_pairs = _has_few_pairs(restricted)
    rule = RoundingRule()
    if is_part:
        rule = _SWIFT
    elif has_few_pairs and not restricted.is_limited.any():
        # Which items get the bins of a limited supply is decided with more care than by a hasty rule.
        rule = _HASTY
    is_swift = is_part or not has_few_pairs
    patterns, duals = _rounded(restricted, block[core], rule, effort, random, is_swift=is_swift)
    if is_part and len(restricted.demands) > tuning.MAX_ITEMS:
        # Aggregates guide by and large: which of two ways to round is better differs by some percent, either way.
        other, other_duals = _rounded(restricted, block[core], _SWIFTER, effort, random, is_swift=is_swift)
        if other_duals is not None and (duals is None or cost_of(restricted, other) < cost_of(restricted, patterns)):
            patterns, duals = other, other_duals
    return _Start(core, restricted, block[core], patterns, duals)


def _begin_like(
    leader: _Start, likeness: Likeness, block: Ints, effort: Effort, random: np.random.Generator
) -> _Start | None:
    """The leader's bins, and others for what is left; None where it has none to follow."""
    whole = likeness.instance
    core = np.unique(likeness.bin_types[leader.core])
    core = core[core >= 0]
    if leader.duals is None or not whole.compatible[:, core].any(axis=1).all():
        return None
    instance = whole.restrict(np.arange(len(whole.demands)), core, whole.demands)
    taken, residual = likeness.taken_over(_of_whole(leader.core, leader.patterns))
    rounding = BlockRounding(instance, block[core], effort, random, is_swift=True)
    duals = rounding.duals()
    rest, is_whole = rounding.pack(residual, instance.available, _SWIFT) if residual.any() else ([], duals)
    if duals is None or is_whole is None:
        return None
    return _Start(core, instance, block[core], [*_of_core(core, taken), *rest], duals)


def _of_core(core: Ints, patterns: Iterable[Pattern]) -> list[Pattern]:
    """Patterns of the whole instance, whose bin types are all in the core, as those of that."""
    return [replace(pattern, bin_type=int(np.searchsorted(core, pattern.bin_type))) for pattern in patterns]


def _core(instance: PackingInstance, selection: CoreSelection | None, effort: Effort, classes: int) -> Ints:
    if _is_searched_whole(instance):
        return np.arange(len(instance.costs))
    return (selection or CoreSelection(instance, patience=effort.patience())).core(classes)


def _solved_exactly(instance: PackingInstance, best: list[Pattern], effort: Effort, work: int) -> ExactResult | None:
    """The cheapest bins of all, where the instance is small and ``best`` packs all of it; None elsewhere."""
    constrained = unconstrained(instance)
    if effort.is_over() or _copies_on(best) < instance.demands.sum() or not is_small(constrained):
        return None
    return solve_exactly(constrained, cost_of(instance, best), patience=effort.patience(), work=work)


def _copies_on(patterns: Sequence[Pattern]) -> int:
    """How many copies are on the bins."""
    return sum(int(pattern.counts.sum()) * pattern.copies for pattern in patterns)


def _improved(
    start: _Start, effort: Effort, share: float, random: np.random.Generator, known: Patterns | None = None
) -> tuple[list[Pattern], Patterns | None]:
    """Bins of the whole instance that cost no more: by column generation over all blocks at once, then by local search,
    if there are few pairs; and the columns, of the whole instance too, if some were generated.

    ``share``: of the effort. ``known``: columns of the whole instance that are good enough to generate none.
    """
    instance, block, best, duals = start.instance, start.block, start.patterns, start.duals
    if duals is None or not _has_few_pairs(instance):
        return _of_whole(start.core, best), None
    near = np.flatnonzero((duals.reduced_costs <= tuning.NEAR_FOR_REPAIR * instance.costs) | instance.is_limited)
    of_near = instance.restrict(np.arange(len(instance.demands)), near, instance.demands)
    rounding = BlockRounding(of_near, block[near], effort, random, is_swift=share < 1.0)

    def finish(residual: Ints, available: Ints, below: float) -> list[Pattern] | None:
        patterns, rest_duals = rounding.pack(residual, available[near], RoundingRule(), below)
        return None if rest_duals is None else _of_whole(near, patterns)

    enough, columns = duals.cost * tuning.GOOD_ENOUGH, None
    effort.begin(instance, share)
    # Where nearly every copy differs from the others, the rounds of a part end long before columns are worth a dive.
    is_futile = share < 1.0 and instance.demands.sum() <= tuning.FEW_COPIES and not is_little(instance)
    if cost_of(instance, best) > enough and not is_futile:
        own = known and known.among(start.core)
        best, columns = generate_and_dive(instance, duals, best, finish, effort, random, own)
    if is_little(instance) and cost_of(instance, best) > enough:
        best = descend(instance, duals, best, effort, random)
    best = destroy_and_repair(instance, block, best, duals, enough, effort, random)
    return _of_whole(start.core, best), columns and Patterns(start.core[columns.bin_types], columns.counts)


def _rounded(
    instance: PackingInstance,
    block: Ints,
    rule: RoundingRule,
    effort: Effort,
    random: np.random.Generator,
    *,
    is_swift: bool,
) -> tuple[list[Pattern], MergedDuals | None]:
    """A packing to start from, and the duals of its relaxations.

    Where limited supplies hold some items and not all, which ones they hold decides what is bought for the others.
    Then it is the cheaper of two packings: by the relaxation's wishes, and by opportunity cost.
    """
    rounding = BlockRounding(instance, block, effort, random, is_swift=is_swift)
    best, duals = rounding.pack(instance.demands, instance.available, rule)
    if duals is None or not instance.is_limited.any():
        return best, duals
    if not all(instance.is_limited[pattern.bin_type] for pattern in best):
        rule = replace(rule, by_opportunity_cost=True)
        other, other_duals = rounding.pack(instance.demands, instance.available, rule)
        if other_duals is not None and cost_of(instance, other) < cost_of(instance, best):
            best = other
    return best, duals


def _is_searched_whole(instance: PackingInstance) -> bool:
    """Whether all bin types are in the core."""
    return is_little(instance) and _has_few_pairs(instance)


def _has_few_pairs(instance: PackingInstance) -> bool:
    is_many = len(instance.demands) > tuning.MAX_ITEMS
    return int(instance.compatible.sum()) <= (tuning.FEW_PAIRS_OF_MANY_ITEMS if is_many else tuning.FEW_PAIRS)
