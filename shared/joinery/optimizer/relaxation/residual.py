"""The program of a large lot that grows smaller as pods find their nodes: most of its solves are for few items."""

from dataclasses import replace

import numpy as np

from joinery.optimizer.arrays import Ints
from joinery.optimizer.instance.packing_instance import Lot
from joinery.optimizer.relaxation.assignment import Assignment, AssignmentProgram

_LEFT = 0.6
"""The program is written anew once no more than this share of its items is left."""


class ShrinkingProgram:
    """An assignment program that leaves out the items that have run out."""

    def __init__(self, lot: Lot) -> None:
        self._lot = lot
        self._live: Ints = np.arange(len(lot.counts))
        self._program = AssignmentProgram(lot, swift=True)

    def solve(self, counts: Ints, stock: Ints | None = None) -> Assignment | None:
        """The optimum for these counts, as ``AssignmentProgram.solve``; what has run out is worth nothing."""
        live = np.flatnonzero(counts)
        if len(live) <= _LEFT * len(self._live) or not np.isin(live, self._live).all():
            part = self._lot.part(live, np.arange(len(self._lot.price)), counts[live])
            self._live, self._program = live, AssignmentProgram(part, swift=True)
        found = self._program.solve(counts[self._live], stock)
        if found is None or len(self._live) == len(counts):
            return found
        shares, worth = np.zeros(self._lot.admits.shape), np.zeros(len(counts))
        shares[self._live], worth[self._live] = found.shares, found.worth
        return replace(found, shares=shares, worth=worth)
