"""The dive: whole bins bought from the restricted master problem, a little at a time.

The master problem buys patterns in fractions. What it wants in whole numbers is bought; then the pattern that it wants
most; then the master problem is solved for what is left, and so on. This is the diving heuristic of Sadykov,
Vanderbeck, Pessoa, Tahiri and Uchoa (2019, "Primal heuristics for branch and price: the assets of diving methods").
Without generating columns on the way down: the last few items are rounded from the assignment relaxation instead,
which fits them better than any pattern known.
"""

from dataclasses import dataclass

import numpy as np

from joinery.decisions.optimizer.arrays import Ints
from joinery.decisions.optimizer.columns.master import MasterSolution, RestrictedMaster
from joinery.decisions.optimizer.instance.packing_instance import PackingInstance
from joinery.decisions.optimizer.instance.patterns import Pattern, Patterns

#: A count so near to a whole number is one.
ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class PartialPacking:
    """``patterns``: bins bought so far. ``residual``: int64[items], copies that are left. ``available``: int64[bin
    types], bins left.
    """

    instance: PackingInstance
    patterns: tuple[Pattern, ...]
    residual: Ints
    available: Ints

    def with_whole(self, columns: Patterns, solution: MasterSolution) -> "PartialPacking":
        """With all that is wanted in whole numbers, as far as there are copies and bins for it; itself if that is
        nothing.
        """
        packing = self
        for index in np.flatnonzero(solution.copies >= 1 - ROUNDING):
            packing = packing._with(columns, int(index), int(solution.copies[index] + ROUNDING))
        return packing

    def with_largest(self, columns: Patterns, solution: MasterSolution, threshold: float) -> "PartialPacking":
        """With one bin of the pattern that is wanted most, of those whose copies are all left.

        Itself if that is wanted less often than ``threshold``.
        """
        copies = np.where((columns.counts <= self.residual).all(axis=1), solution.copies, 0.0)
        index = int(copies.argmax())
        return self._with(columns, index, 1) if copies[index] >= max(threshold, ROUNDING) else self

    def _with(self, columns: Patterns, index: int, copies: int) -> "PartialPacking":
        """With so many bins of a column, or as many as there are copies and bins for."""
        bin_type, counts = int(columns.bin_types[index]), columns.counts[index]
        held = counts > 0
        copies = min(copies, int((self.residual[held] // counts[held]).min()), int(self.available[bin_type]))
        if copies <= 0:
            return self
        return PartialPacking(
            self.instance,
            (*self.patterns, Pattern(bin_type, counts, copies)),
            self.residual - counts * copies,
            self.instance.after_buying(self.available, bin_type, copies),
        )


def dive(master: RestrictedMaster, packing: PartialPacking, threshold: float) -> PartialPacking:
    """Go on from a partial packing until no pattern is wanted as often as ``threshold``; at 1 or more not at all."""
    while packing.residual.any() and threshold < 1:
        solution = master.solve(packing.residual, packing.available)
        if solution is None:
            break
        longer = packing.with_whole(master.columns, solution)
        if longer is packing:
            longer = packing.with_largest(master.columns, solution, threshold)
        if longer is packing:
            break
        packing = longer
    return packing
