"""From a packing to a cheaper one by patterns: seek those that the program would rather buy, then buy whole ones."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from joinery.optimizer.assignment import Assignment
from joinery.optimizer.effort import Effort
from joinery.optimizer.lot import Amounts, Floats, Lot, Shape, price_of
from joinery.optimizer.patterns import PatternProgram, Patterns, Purchase
from joinery.optimizer.places import Part
from joinery.optimizer.pricing import Pricing

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


@dataclass(eq=False)
class Outlook:
    """What the assignment program says of a lot. ``worth``: what pods are charged, by item; ``room``: what a unit of each resource
    is charged, kinds x resources; ``reduced``: costs of kinds; ``price``: in all, in $/h.
    """

    worth: Floats
    room: Floats
    reduced: Floats
    price: float = 0.0

    @classmethod
    def of_nothing(cls, lot: Lot) -> "Outlook":
        """Before anything is noted."""
        return cls(np.full(len(lot.counts), np.inf), np.zeros(lot.room.shape), np.zeros(len(lot.price)))

    def note(self, part: Part, answer: Assignment) -> None:
        """What the program of one part says."""
        self.worth[part.items] = np.minimum(self.worth[part.items], answer.worth)
        self.room[part.kinds], self.reduced[part.kinds] = answer.room, answer.reduced
        self.price += answer.price


def by_patterns(
    lot: Lot,
    outlook: Outlook,
    best: list[Shape],
    finish: Callable[[Amounts, Amounts, float], list[Shape] | None],
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
        _dive(patterns, cart, likely)
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


def _dive(patterns: PatternProgram, cart: "Cart", likely: float) -> None:
    """Buy what is wanted for the pods that are left, a little at a time, while something is wanted so often."""
    while cart.left.any() and likely < 1:
        answer = patterns.solve(cart.left, cart.stock)
        if answer is None:
            break
        if not (cart.take_whole(patterns.known, answer) or cart.take_likeliest(patterns.known, answer, likely)):
            break


class Cart:
    """What is bought so far (``shapes``), the pods that are ``left``, and what is left of each kind (``stock``)."""

    def __init__(self, lot: Lot) -> None:
        self._lot = lot
        self.shapes: list[Shape] = []
        self.left, self.stock = lot.counts, lot.stock

    def take_whole(self, known: Patterns, answer: Purchase) -> bool:
        """What is wanted in whole numbers, as far as there are pods and nodes for it; whether there was any."""
        wanted = np.flatnonzero(answer.times >= 1 - 1e-6)
        return any([self._take(known, int(index), int(answer.times[index] + 1e-6)) for index in wanted])

    def take_likeliest(self, known: Patterns, answer: Purchase, likely: float) -> bool:
        """One node of the pattern that is wanted most, of those for which there are pods, if it is wanted at all."""
        times = np.where((known.pods <= self.left).all(axis=1), answer.times, 0.0)
        index = int(times.argmax())
        return bool(times[index] >= max(likely, 1e-6)) and self._take(known, index, 1)

    def _take(self, known: Patterns, index: int, times: int) -> bool:
        kind, pods = int(known.kinds[index]), known.pods[index]
        held = pods > 0
        times = min(times, int((self.left[held] // pods[held]).min()), int(self.stock[kind]))
        if times > 0:
            self.shapes.append(Shape(kind, pods, times))
            self.left = self.left - pods * times
            self.stock = self._lot.less(self.stock, kind, times)
        return times > 0
