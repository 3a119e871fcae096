"""The dive: whole bins bought from the master problem, a little at a time."""

import numpy as np

from joinery.optimizer.columns.master import PatternProgram, Purchase
from joinery.optimizer.instance.packing_instance import Lot
from joinery.optimizer.instance.patterns import Patterns, Shape


def dive(patterns: PatternProgram, cart: "Cart", likely: float) -> None:
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
