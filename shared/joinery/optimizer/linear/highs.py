"""The one place that talks to HiGHS: a linear program in arrays, solved again and again with other bounds, rows, columns or costs."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from joinery.optimizer.arrays import Floats, Ints

Indices = NDArray[np.int32]

_EXACT = 1e-9
_DUAL, _PRIMAL = 1, 4
"""HiGHS's strategies: the one goes on where rows or bounds have changed, the other from a given vertex or where columns were added."""


@dataclass(frozen=True, eq=False, kw_only=True)
class LinearProgram:
    """Minimise cost . v with 0 <= v <= most and lower <= A v <= upper; A as triplets (row, column, value).

    ``integers``: so many of the first variables may be whole numbers only; such a program is asked for by ``Solver.whole``.
    """

    costs: Floats
    upper_bounds: Floats
    row_lower: Floats
    row_upper: Floats
    rows: Indices
    columns: Indices
    values: Floats
    integers: int = 0


@dataclass(frozen=True, eq=False)
class LinearSolution:
    """Values and reduced costs by variable, dual prices by row."""

    values: Floats
    reduced_costs: Floats
    duals: Floats


class Solver:
    """A program that HiGHS keeps, with its last basis. Single-threaded and deterministic.

    ``grows``: columns will be added; ``exact``: prices are wanted to more digits than HiGHS usually gives.
    """

    def __init__(self, program: LinearProgram, *, grows: bool = False, exact: bool = False) -> None:
        import highspy  # a tenth of a second, which doors that pack nothing need not spend

        self._optimal = highspy.HighsModelStatus.kOptimal
        self._status = highspy.HighsBasisStatus
        self._new_basis: Any = highspy.HighsBasis
        self._highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        for name, value in (("output_flag", False), ("threads", 1), ("random_seed", 0)):
            self._highs.setOptionValue(name, value)
        if exact:
            for name in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
                self._highs.setOptionValue(name, _EXACT)
        self._strategy = _PRIMAL if grows else _DUAL
        self._highs.setOptionValue("simplex_strategy", self._strategy)
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = len(program.costs), len(program.row_lower)
        model.col_cost_ = program.costs
        model.col_lower_ = np.zeros(len(program.costs))
        model.col_upper_ = np.minimum(program.upper_bounds, highspy.kHighsInf)
        model.row_lower_, model.row_upper_ = program.row_lower, program.row_upper
        model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        model.a_matrix_.start_, model.a_matrix_.index_, model.a_matrix_.value_ = _by_column(program)
        if program.integers:
            bin_types = highspy.HighsVarType
            number = len(program.costs) - program.integers
            model.integrality_ = [bin_types.kInteger] * program.integers + [bin_types.kContinuous] * number
        self._highs.passModel(model)

    def warm_start(self, basic: Ints, tight: Ints) -> None:
        """Start the next solve from a vertex: only these variables are above zero, and of these rows none has slack."""
        columns, rows = [self._status.kLower] * self._highs.getNumCol(), [self._status.kBasic] * self._highs.getNumRow()
        for column in basic:
            columns[column] = self._status.kBasic
        for row in tight:
            rows[row] = self._status.kUpper
        basis = self._new_basis()
        basis.col_status, basis.row_status, basis.valid = columns, rows, True
        self._highs.setBasis(basis)
        self._highs.setOptionValue("simplex_strategy", _PRIMAL)

    def add_row(self, columns: Indices, values: Floats) -> None:
        """One more row: the sum of these columns times these values is at most zero."""
        self._highs.addRow(-np.inf, 0.0, len(columns), columns.astype(np.int32), values)

    def set_upper_bounds(self, most: Floats) -> None:
        """Other upper bounds on the first variables."""
        columns: Indices = np.arange(len(most), dtype=np.int32)
        self._highs.changeColsBounds(len(most), columns, np.zeros(len(most)), most)

    def set_bounds(self, low: Floats, high: Floats) -> None:
        """Other ends for all variables."""
        self._highs.changeColsBounds(len(low), np.arange(len(low), dtype=np.int32), low, high)

    def set_row_upper(self, first: int, most: Floats) -> None:
        """Other upper bounds on the rows from ``first`` on."""
        rows: Indices = np.arange(first, first + len(most), dtype=np.int32)
        self._highs.changeRowsBounds(len(most), rows, np.full(len(most), -np.inf), most)

    def add_columns(self, cost: Floats, values: Floats) -> None:
        """More columns without upper end: their costs, and their values in every row (rows x columns)."""
        columns, rows = np.nonzero(values.T)
        starts = np.searchsorted(columns, np.arange(len(cost))).astype(np.int32)
        ends = np.full(len(cost), np.inf)
        entries = values.T[columns, rows].astype(np.float64)
        self._highs.addCols(
            len(cost), cost, np.zeros(len(cost)), ends, len(rows), starts, rows.astype(np.int32), entries
        )

    def set_costs(self, cost: Floats) -> None:
        """Other costs for the first columns. The last vertex is as possible as it was, so the next solve goes on from it."""
        self._highs.changeColsCost(len(cost), np.arange(len(cost), dtype=np.int32), cost)
        self._highs.setOptionValue("simplex_strategy", _PRIMAL)

    def solve_integer(self, branches: int) -> Floats | None:
        """The optimum in whole numbers, or the best one in so many branches; None if there is none."""
        self._highs.setOptionValue("mip_max_nodes", branches)
        self._highs.run()
        found = self._highs.getSolution()
        return np.asarray(found.col_value) if found.value_valid else None

    def solve(self, lower: Floats, upper: Floats) -> LinearSolution | None:
        """The optimum where the first rows lie between these values; None if there is none."""
        rows: Indices = np.arange(len(lower), dtype=np.int32)
        self._highs.changeRowsBounds(len(lower), rows, lower, upper)
        self._highs.run()
        self._highs.setOptionValue("simplex_strategy", self._strategy)
        if self._highs.getModelStatus() != self._optimal:
            return None
        found = self._highs.getSolution()
        return LinearSolution(np.asarray(found.col_value), np.asarray(found.col_dual), np.asarray(found.row_dual))

    def farkas_ray(self) -> Floats | None:
        """Prices of the rows that, large enough, prove of the program just tried that nothing keeps its rows; None if there are none."""
        status, is_there, *found = self._highs.getDualRay()
        return np.asarray(found[0]) if is_there and found else None


def _by_column(program: LinearProgram) -> tuple[Indices, Indices, Floats]:
    order = np.lexsort((program.rows, program.columns))
    lengths = np.bincount(program.columns, minlength=len(program.costs))
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return starts, program.rows[order].astype(np.int32), program.values[order]
