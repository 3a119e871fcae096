"""Rows of a program as they are written, a block of them at a time."""

import numpy as np

from joinery.optimizer.arrays import Floats, Ints
from joinery.optimizer.linear.highs import Indices, LinearProgram


class RowWriter:
    """``height``: of what is complete. Coefficients are given first, with rows counted from there; then the block is ended."""

    def __init__(self) -> None:
        self.height = 0
        self._rows: list[Indices] = []
        self._columns: list[Indices] = []
        self._values: list[Floats] = []
        self._lower: list[Floats] = []
        self._upper: list[Floats] = []

    def add(self, rows: Ints, columns: Ints, values: Floats | float) -> None:
        """One coefficient each; one value may be meant for all."""
        self._rows.append((rows + self.height).astype(np.int32))
        self._columns.append(columns.astype(np.int32))
        self._values.append(np.broadcast_to(np.asarray(values, dtype=np.float64), rows.shape))

    def add_row(self, coefficients: Floats, most: float) -> None:
        """A whole row by itself: the first columns times these come to ``close_at_most`` at most. It is scaled for the solver."""
        some = np.flatnonzero(coefficients)
        scale = max(float(np.abs(coefficients).max(initial=0.0)), 1e-300)
        self.add(np.zeros(len(some), dtype=np.int64), some, coefficients[some] / scale)
        self.close_at_most(np.array([most / scale]))

    def close_at_most(self, upper: Floats) -> slice:
        """End a block of rows without lower end; where they are."""
        return self.close(np.full(len(upper), -np.inf), upper)

    def close(self, lower: Floats, upper: Floats) -> slice:
        """End a block of rows; where they are."""
        self._lower.append(lower)
        self._upper.append(upper)
        first, self.height = self.height, self.height + len(upper)
        return slice(first, self.height)

    def program(self, cost: Floats, most: Floats) -> LinearProgram:
        """All of them, over variables with these costs and upper ends."""
        return LinearProgram(
            costs=cost,
            upper_bounds=most,
            row_lower=np.concatenate(self._lower),
            row_upper=np.concatenate(self._upper),
            rows=np.concatenate(self._rows),
            columns=np.concatenate(self._columns),
            values=np.concatenate(self._values),
        )
