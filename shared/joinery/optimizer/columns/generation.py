"""From a packing to a cheaper one by patterns: seek those that the program would rather buy, then buy whole ones."""

from collections.abc import Callable

import numpy as np

from joinery.optimizer.arrays import Ints
from joinery.optimizer.columns.diving import Cart, dive
from joinery.optimizer.columns.master import PatternProgram, Purchase
from joinery.optimizer.columns.pricing import Pricing
from joinery.optimizer.effort import Effort
from joinery.optimizer.instance.packing_instance import Lot
from joinery.optimizer.instance.patterns import Patterns, Shape, price_of
from joinery.optimizer.relaxation.merged_duals import Outlook

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


def by_patterns(
    lot: Lot,
    outlook: Outlook,
    best: list[Shape],
    finish: Callable[[Ints, Ints, float], list[Shape] | None],
    effort: Effort,
    random: np.random.Generator,
) -> list[Shape]:
    """A packing of the same pods that costs no more than ``best``. ``finish``: nodes for the few pods that are left in the
    end, from the stock that is left, if they cost less than so much.
    """
    patterns = PatternProgram(lot, outlook.worth)
    patterns.add(Patterns(np.array([shape.kind for shape in best]), np.array([shape.pods for shape in best])))
    answer = _generate(lot, patterns, outlook, effort, random)
    if answer is None:
        return best
    for likely in _LIKELY:
        cart = Cart(lot)
        cart.take_whole(patterns.known, answer)
        dive(patterns, cart, likely)
        saved = price_of(lot, best) * (1 - 1e-9) - price_of(lot, cart.shapes)
        rest = finish(cart.left, cart.stock, saved) if cart.left.any() else []
        if rest is not None and price_of(lot, rest) < saved:
            best = cart.shapes + rest
        if price_of(lot, best) <= answer.price * _GOOD_ENOUGH or effort.is_spent():
            break
    return best


def _generate(
    lot: Lot, patterns: PatternProgram, outlook: Outlook, effort: Effort, random: np.random.Generator
) -> Purchase | None:
    """The optimum over all patterns that could be found."""
    near = np.flatnonzero(outlook.reduced <= _NEAR * lot.price)
    pricing = Pricing(lot, lot.requests @ outlook.room.T, near)
    bands = iter(_BANDS)
    band, before = next(bands), np.inf
    for _ in range(effort.rounds):
        answer = patterns.solve(lot.counts, lot.stock, band)
        if answer is None or effort.is_over():
            return None
        fresh = patterns.add(_wanted(_found(patterns, pricing, answer, random), answer))
        is_slow = fresh < _FEW or answer.total > before - _SLOW * abs(answer.total)
        before = answer.total
        if is_slow:
            band, before = next(bands, 0.0), np.inf
            if not band:
                break
    return patterns.solve(lot.counts, lot.stock)


def _found(patterns: PatternProgram, pricing: Pricing, answer: Purchase, random: np.random.Generator) -> Patterns:
    filled = pricing.filled(answer.worth, _WAYS, random)
    value = filled.pods @ answer.worth / answer.cost[filled.kinds]
    bought = patterns.known.part(np.flatnonzero(answer.times > 1e-9))
    top = filled.part(np.argsort(-value, kind="stable")[:_BEST])
    return filled.join(pricing.exchanged(answer.worth, bought.join(top)))


def _wanted(found: Patterns, answer: Purchase) -> Patterns:
    """Those whose pods are worth more than they cost; of each kind the best few."""
    cost = answer.cost[found.kinds]
    gain = (found.pods @ answer.worth - cost) / cost
    order = np.argsort(-gain, kind="stable")
    order = order[gain[order] > 1e-7]
    kinds, rank = found.kinds[order], np.zeros(len(order), dtype=np.int64)
    for kind in np.unique(kinds):
        rank[kinds == kind] = np.arange((kinds == kind).sum())
    return found.part(order[rank < _OF_A_KIND])
