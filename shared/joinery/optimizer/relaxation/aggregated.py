"""The relaxation of an aggregated instance."""

import numpy as np

from joinery.optimizer.arrays import Ints
from joinery.optimizer.instance.aggregation import cells
from joinery.optimizer.instance.packing_instance import Lot
from joinery.optimizer.relaxation.assignment import Assignment, AssignmentProgram


class CoarseProgram:
    """The assignment program of a lot's cells, read as if it were the lot's: a guide, and no proof."""

    def __init__(self, lot: Lot) -> None:
        self._lot = lot
        self._cells = cells(lot)
        self._program = AssignmentProgram(self._cells.lot, swift=True)
        self._size = (lot.requests / lot.scale).sum(axis=1) / self._cells.size[self._cells.of]

    def solve(self, counts: Ints, stock: Ints | None = None) -> Assignment | None:
        """Every item has its cell's shares, and is worth what its cell is for its size."""
        together = np.bincount(self._cells.of, weights=counts, minlength=len(self._cells.lot.counts))
        answer = self._program.solve(together.astype(np.int64), stock)
        if answer is None:
            return None
        part = counts / np.maximum(together[self._cells.of], 1)
        shares = np.where(self._lot.admits, answer.shares[self._cells.of] * part[:, None], 0.0)
        worth = answer.worth[self._cells.of] * self._size
        return Assignment(answer.nodes, answer.reduced, shares, worth, answer.room, answer.price)
