"""The rows of a linear program as they are written, a block at a time."""

import numpy as np

from joinery.decisions.optimizer.arrays import Floats, Ints
from joinery.decisions.optimizer.linear.highs import Indices, LinearProgram


class RowWriter:
    """Entries are added first, with rows numbered from the start of the block; closing the block gives its rows their
    ends.

    ``height``: rows in the blocks closed so far.
    """

    def __init__(self) -> None:
        self.height = 0
        self._rows: list[Indices] = []
        self._columns: list[Indices] = []
        self._values: list[Floats] = []
        self._lower: list[Floats] = []
        self._upper: list[Floats] = []

    def add(self, rows: Ints, columns: Ints, values: Floats | float) -> None:
        """Entries of the open block, one for each row and column given; a single value stands for all of them."""
        self._rows.append((rows + self.height).astype(np.int32))
        self._columns.append(columns.astype(np.int32))
        self._values.append(np.broadcast_to(np.asarray(values, dtype=np.float64), rows.shape))

    def add_row(self, coefficients: Floats, upper: float) -> None:
        """A block of one row: coefficients . (the first variables) <= upper."""
        nonzero = np.flatnonzero(coefficients)
        self.add(np.zeros(len(nonzero), dtype=np.int64), nonzero, coefficients[nonzero])
        self.close_at_most(np.array([upper]))

    def close_at_most(self, upper: Floats) -> slice:
        """Close the block, its rows without lower ends; returns which rows of the program they are."""
        return self.close(np.full(len(upper), -np.inf), upper)

    def close(self, lower: Floats, upper: Floats) -> slice:
        """Close the block; returns which rows of the program they are."""
        self._lower.append(lower)
        self._upper.append(upper)
        first, self.height = self.height, self.height + len(upper)
        return slice(first, self.height)

    def program(self, costs: Floats, upper_bounds: Floats, *, integers: int = 0) -> LinearProgram:
        """All blocks as one program, over variables with these costs and upper bounds.

        ``integers``: so many of the first ones must be whole numbers.
        """
        return LinearProgram(
            costs=costs,
            upper_bounds=upper_bounds,
            row_lower=np.concatenate(self._lower),
            row_upper=np.concatenate(self._upper),
            rows=np.concatenate(self._rows),
            columns=np.concatenate(self._columns),
            values=np.concatenate(self._values),
            integers=integers,
        )
