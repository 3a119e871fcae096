"""Local search by destroy and repair: take a few of the most wasteful bins apart, pack their items again, keep what is
cheaper.

This is large neighbourhood search (Shaw 1998, "Using constraint programming and local search methods to solve vehicle
routing problems"), also known as ruin and recreate (Schrimpf, Schneider, Stamm-Wilbrandt and Dueck 2000, "Record
breaking optimization results using the ruin and recreate principle"), without ever accepting a dearer packing.

Bins are chosen at random, weighted by waste: their cost less what their items' duals pay for. Always taking the worst
would try the same few again and again. Half of the time they are of one block (zone), because items that are tied to a
zone can only be put together there. The items are offered the bin types of those blocks whose reduced cost is small;
others would only make the programs slower.
"""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from joinery.decisions.optimizer import tuning
from joinery.decisions.optimizer.arrays import Floats, Ints
from joinery.decisions.optimizer.bounds.exact import solve_exactly
from joinery.decisions.optimizer.effort import Effort
from joinery.decisions.optimizer.instance.decomposition import Subinstance
from joinery.decisions.optimizer.instance.packing_instance import PackingInstance, is_little
from joinery.decisions.optimizer.instance.patterns import Pattern, cost_of
from joinery.decisions.optimizer.instance.side_constraints import unconstrained
from joinery.decisions.optimizer.relaxation.assignment import AssignmentRelaxation
from joinery.decisions.optimizer.relaxation.merged_duals import MergedDuals
from joinery.decisions.optimizer.rounding.rounding import RoundingRule, round_up


def destroy_and_repair(
    instance: PackingInstance,
    block: Ints,
    patterns: list[Pattern],
    duals: MergedDuals,
    enough: float,
    effort: Effort,
    random: np.random.Generator,
) -> list[Pattern]:
    """A packing of the same items that costs no more.

    ``block``: int64[bin types]; ``duals``: of the instance's relaxation; ``enough``: $/h at which to stop.
    """
    is_candidate = (duals.reduced_costs <= tuning.NEAR_FOR_REPAIR * instance.costs) | instance.is_limited
    soon_solved = tuning.SOON_REPAIRED if is_little(instance) else 0
    bins = [Pattern(pattern.bin_type, pattern.counts) for pattern in patterns for _ in range(pattern.copies)]
    for _ in range(effort.repairs):
        if len(bins) < 2 or effort.is_spent() or cost_of(instance, bins) <= enough:
            break
        chosen = _choose_wasteful(instance, block, bins, duals.item_duals, random)
        destroyed = [bins[index] for index in chosen]
        kept = [pattern for index, pattern in enumerate(bins) if index not in chosen]
        bought = [pattern.bin_type for pattern in destroyed]
        is_offered = is_candidate & np.isin(block, block[bought])
        is_offered[bought] = True
        freed = _freed(instance, np.flatnonzero(is_offered), destroyed, kept)
        repaired = _repair(freed, cost_of(instance, destroyed), soon_solved, effort, random)
        if repaired is not None:
            bins = kept + repaired
    return _merged(bins)


def _choose_wasteful(
    instance: PackingInstance, block: Ints, bins: list[Pattern], item_duals: Floats, random: np.random.Generator
) -> list[int]:
    """Indices of two to seven bins, the more likely the more of their cost their items' duals leave unpaid."""
    bin_types = [pattern.bin_type for pattern in bins]
    costs = instance.costs[bin_types]
    # Every bin has a small chance: the best packing may need one taken apart that wastes nothing.
    waste = np.maximum(costs - np.array([pattern.counts for pattern in bins]) @ item_duals, 0.0) + 1e-3 * costs + 1e-9
    is_limited = instance.is_limited[bin_types]
    if is_limited.any() and not is_limited.all():
        # Bins of a limited supply waste no money, but their capacity may be worth more to other items.
        waste[is_limited] = waste[~is_limited].mean()
    blocks = block[bin_types]
    is_same_block = blocks == blocks[random.choice(len(bins), p=waste / waste.sum())]
    if is_same_block.sum() > 1 and random.random() < 0.5:
        waste = np.where(is_same_block, waste, 0.0)
    size = int(random.integers(2, min(np.count_nonzero(waste), tuning.MOST_DESTROYED) + 1))
    return [int(index) for index in random.choice(len(bins), size=size, replace=False, p=waste / waste.sum())]


def _freed(instance: PackingInstance, bin_types: Ints, destroyed: list[Pattern], kept: list[Pattern]) -> Subinstance:
    """What the destroyed bins held, and these bin types (indices) less what the kept bins use of limited supplies."""
    available = instance.available
    for pattern in kept:
        available = instance.after_buying(available, pattern.bin_type, 1)
    demands: Ints = np.sum([pattern.counts for pattern in destroyed], axis=0)
    items = np.flatnonzero(demands)
    freed = replace(instance.restrict(items, bin_types, demands[items]), available=available[bin_types])
    return Subinstance(items, bin_types, freed, len(demands))


def _repair(
    freed: Subinstance, below: float, soon_solved: int, effort: Effort, random: np.random.Generator
) -> list[Pattern] | None:
    """Bins for what was freed, as single patterns of the whole instance; None if none were found that cost less than
    ``below``. No more than ``soon_solved`` copies get the cheapest bins of all.
    """
    instance = freed.instance
    if instance.demands.sum() <= soon_solved and below > 0:
        effort.use(instance)
        result = solve_exactly(unconstrained(instance), below * (1 - 1e-9), patience=effort.patience(), work=0)
        if result.is_tight:
            return _single(freed, result.patterns) if result.patterns else None
    rule = RoundingRule(
        share=1.0,
        tolerance=0.0,
        noise=float(random.choice(tuning.REPAIR_NOISES)),
        by_opportunity_cost=bool(instance.is_limited.any() and random.integers(2)),
    )
    rounded = round_up(instance, AssignmentRelaxation(instance), rule, random, effort=effort, below=below)
    if rounded is None or rounded.residual.any():
        return None
    return _single(freed, rounded.patterns)


def _single(freed: Subinstance, patterns: Iterable[Pattern]) -> list[Pattern]:
    """Patterns of the freed instance, as single ones of the whole instance."""
    lifted = map(freed.lift, patterns)
    return [Pattern(pattern.bin_type, pattern.counts) for pattern in lifted for _ in range(pattern.copies)]


def _merged(bins: list[Pattern]) -> list[Pattern]:
    """Equal bins as one pattern, in the order in which they first come."""
    equal: dict[tuple[int, bytes], list[Pattern]] = {}
    for pattern in bins:
        equal.setdefault((pattern.bin_type, pattern.counts.tobytes()), []).append(pattern)
    return [Pattern(same[0].bin_type, same[0].counts, len(same)) for same in equal.values()]
