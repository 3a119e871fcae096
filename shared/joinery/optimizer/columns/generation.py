"""From a packing to a cheaper one by patterns: seek those that the program would rather buy, then buy whole ones."""

from collections.abc import Callable

import numpy as np

from joinery.optimizer.arrays import Ints
from joinery.optimizer.columns.diving import PartialPacking, dive
from joinery.optimizer.columns.master import MasterSolution, RestrictedMaster
from joinery.optimizer.columns.pricing import PricingHeuristic
from joinery.optimizer.effort import Effort
from joinery.optimizer.instance.packing_instance import PackingInstance
from joinery.optimizer.instance.patterns import Pattern, Patterns, cost_of
from joinery.optimizer.relaxation.merged_duals import MergedDuals

_BANDS = (0.02, 0.05, 0.1, 0.2, 0.5, np.inf)
"""How far prices may stray from the assignment program's, in turn."""
_FEW = 5
_SLOW = 1e-4
"""The next band is due when fewer new patterns than that were found, or they made less of a difference than this share."""
_WAYS = 6
"""So often each kind is filled in a round."""
_NEAR = 0.05
"""Kinds whose reduced cost is at most this share of their price are filled."""
_BEST = 30
"""So many of the filled nodes are improved on, besides those that the program buys."""
_OF_A_KIND = 8
"""So many new patterns of one kind at most are made known in a round."""
_LIKELY = (0.5, 1.0, 0.0)
"""Once nothing is wanted once, the pattern that is wanted most may be bought if it is wanted so often. Tried in turn."""
_GOOD_ENOUGH = 1.002
"""Nodes this close to what the patterns cost in fractions are not tried for again."""


def generate_columns(
    instance: PackingInstance,
    duals: MergedDuals,
    best: list[Pattern],
    finish: Callable[[Ints, Ints, float], list[Pattern] | None],
    effort: Effort,
    random: np.random.Generator,
) -> list[Pattern]:
    """A packing of the same pods that costs no more than ``best``. ``finish``: nodes for the few pods that are left in the
    end, from the available that is left, if they cost less than so much.
    """
    patterns = RestrictedMaster(instance, duals.item_duals)
    patterns.add_columns(
        Patterns(np.array([pattern.bin_type for pattern in best]), np.array([pattern.counts for pattern in best]))
    )
    answer = _generate(instance, patterns, duals, effort, random)
    if answer is None:
        return best
    for likely in _LIKELY:
        cart = PartialPacking(instance)
        cart.fix_whole(patterns.columns, answer)
        dive(patterns, cart, likely)
        saved = cost_of(instance, best) * (1 - 1e-9) - cost_of(instance, cart.patterns)
        rest = finish(cart.residual, cart.available, saved) if cart.residual.any() else []
        if rest is not None and cost_of(instance, rest) < saved:
            best = cart.patterns + rest
        if cost_of(instance, best) <= answer.cost * _GOOD_ENOUGH or effort.is_spent():
            break
    return best


def _generate(
    instance: PackingInstance,
    patterns: RestrictedMaster,
    duals: MergedDuals,
    effort: Effort,
    random: np.random.Generator,
) -> MasterSolution | None:
    """The optimum over all patterns that could be found."""
    near = np.flatnonzero(duals.reduced_costs <= _NEAR * instance.costs)
    pricing = PricingHeuristic(instance, instance.sizes @ duals.capacity_duals.T, near)
    bands = iter(_BANDS)
    band, before = next(bands), np.inf
    for _ in range(effort.pricing_rounds):
        answer = patterns.solve(instance.demands, instance.available, band)
        if answer is None or effort.is_over():
            return None
        fresh = patterns.add_columns(_wanted(_found(patterns, pricing, answer, random), answer))
        is_slow = fresh < _FEW or answer.objective > before - _SLOW * abs(answer.objective)
        before = answer.objective
        if is_slow:
            band, before = next(bands, 0.0), np.inf
            if not band:
                break
    return patterns.solve(instance.demands, instance.available)


def _found(
    patterns: RestrictedMaster, pricing: PricingHeuristic, answer: MasterSolution, random: np.random.Generator
) -> Patterns:
    filled = pricing.by_filling(answer.item_duals, _WAYS, random)
    value = filled.counts @ answer.item_duals / answer.bin_costs[filled.bin_types]
    bought = patterns.columns.select(np.flatnonzero(answer.copies > 1e-9))
    top = filled.select(np.argsort(-value, kind="stable")[:_BEST])
    return filled.join(pricing.by_exchange(answer.item_duals, bought.join(top)))


def _wanted(found: Patterns, answer: MasterSolution) -> Patterns:
    """Those whose pods are worth more than they cost; of each kind the best few."""
    cost = answer.bin_costs[found.bin_types]
    gain = (found.counts @ answer.item_duals - cost) / cost
    order = np.argsort(-gain, kind="stable")
    order = order[gain[order] > 1e-7]
    bin_types, rank = found.bin_types[order], np.zeros(len(order), dtype=np.int64)
    for bin_type in np.unique(bin_types):
        rank[bin_types == bin_type] = np.arange((bin_types == bin_type).sum())
    return found.select(order[rank < _OF_A_KIND])
