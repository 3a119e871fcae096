"""The dive: whole bins bought from the master problem, a little at a time."""

import numpy as np

from joinery.optimizer.columns.master import MasterSolution, RestrictedMaster
from joinery.optimizer.instance.packing_instance import PackingInstance
from joinery.optimizer.instance.patterns import Pattern, Patterns


def dive(patterns: RestrictedMaster, cart: "PartialPacking", likely: float) -> None:
    """Buy what is wanted for the pods that are left, a little at a time, while something is wanted so often."""
    while cart.residual.any() and likely < 1:
        answer = patterns.solve(cart.residual, cart.available)
        if answer is None:
            break
        if not (cart.fix_whole(patterns.columns, answer) or cart.fix_largest(patterns.columns, answer, likely)):
            break


class PartialPacking:
    """What is bought so far (``patterns``), the pods that are ``residual``, and what is left of each kind (``available``)."""

    def __init__(self, instance: PackingInstance) -> None:
        self._lot = instance
        self.patterns: list[Pattern] = []
        self.residual, self.available = instance.demands, instance.available

    def fix_whole(self, known: Patterns, answer: MasterSolution) -> bool:
        """What is wanted in whole numbers, as far as there are pods and nodes for it; whether there was any."""
        wanted = np.flatnonzero(answer.copies >= 1 - 1e-6)
        return any([self._take(known, int(index), int(answer.copies[index] + 1e-6)) for index in wanted])

    def fix_largest(self, known: Patterns, answer: MasterSolution, likely: float) -> bool:
        """One node of the pattern that is wanted most, of those for which there are pods, if it is wanted at all."""
        times = np.where((known.counts <= self.residual).all(axis=1), answer.copies, 0.0)
        index = int(times.argmax())
        return bool(times[index] >= max(likely, 1e-6)) and self._take(known, index, 1)

    def _take(self, known: Patterns, index: int, times: int) -> bool:
        bin_type, counts = int(known.bin_types[index]), known.counts[index]
        held = counts > 0
        times = min(times, int((self.residual[held] // counts[held]).min()), int(self.available[bin_type]))
        if times > 0:
            self.patterns.append(Pattern(bin_type, counts, times))
            self.residual = self.residual - counts * times
            self.available = self._lot.after_buying(self.available, bin_type, times)
        return times > 0
