"""The one place that talks to HiGHS: a linear program in arrays, solved again and again with other bounds, rows,
columns or costs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from joinery.decisions.optimizer.arrays import Floats, Ints

#: HiGHS indexes with 32 bits.
Indices = NDArray[np.int32]

_TIGHT_TOLERANCE = 1e-9
#: HiGHS's ``simplex_strategy``. After a change of rows or bounds the last basis is still dual feasible, so the dual
#: simplex goes on from it. After new columns, new costs or a given basis it is primal feasible, so the primal simplex
#: does.
_DUAL_SIMPLEX, _PRIMAL_SIMPLEX = 1, 4


@dataclass(frozen=True, eq=False, kw_only=True)
class LinearProgram:
    """Minimise costs . v subject to 0 <= v <= upper_bounds and row_lower <= A v <= row_upper.

    ``costs``, ``upper_bounds``: float64[variables]. ``row_lower``, ``row_upper``: float64[rows]. Bounds may be
    infinite.
    ``rows``, ``columns``: int32[entries], ``values``: float64[entries]: the entries of A that are not zero.
    ``integers``: so many of the first variables must be whole numbers. Only ``Solver.solve_integer`` and
    ``Solver.integer_bound`` heed them.
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
    """An optimum: ``values`` and ``reduced_costs``: float64[variables]; ``duals``: float64[rows], right to HiGHS's
    tolerances only.
    """

    values: Floats
    reduced_costs: Floats
    duals: Floats


@dataclass(kw_only=True)
class Patience:
    """What one solve may use up. Without end, unless given.

    ``work``: simplex iterations times rows, which machines of any speed count alike. ``is_time_up``: asked at every
    iteration.
    ``ran_out``: whether some solve ended before its optimum because of that.
    """

    work: int | None = None
    is_time_up: Callable[[], bool] | None = None
    ran_out: bool = field(default=False, init=False)

    def is_over(self) -> bool:
        """Whether the stopwatch says that time is up."""
        return self.is_time_up is not None and self.is_time_up()


class Solver:
    """A program that HiGHS keeps, with its last basis. Single-threaded and deterministic.

    ``grows``: columns will be added, so solving again means the primal simplex. ``exact``: ask for duals to more
    digits than the default. ``patience``: how long each solve may take.
    """

    def __init__(
        self,
        program: LinearProgram,
        *,
        grows: bool = False,
        exact: bool = False,
        patience: Patience | None = None,
    ) -> None:
        # Imported here because it takes a tenth of a second, which the Lambda functions that pack nothing should not
        # pay.
        import highspy

        statuses = highspy.HighsModelStatus
        self._optimal, self._cut_short = statuses.kOptimal, (statuses.kIterationLimit, statuses.kInterrupt)
        self._status = highspy.HighsBasisStatus
        self._new_basis: Any = highspy.HighsBasis
        self._highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        # One problem must give one plan on every machine.
        for name, value in (("output_flag", False), ("threads", 1), ("random_seed", 0)):
            self._highs.setOptionValue(name, value)
        if exact:
            for name in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
                self._highs.setOptionValue(name, _TIGHT_TOLERANCE)
        self._strategy = _PRIMAL_SIMPLEX if grows else _DUAL_SIMPLEX
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
            types = highspy.HighsVarType
            continuous = len(program.costs) - program.integers
            model.integrality_ = [types.kInteger] * program.integers + [types.kContinuous] * continuous
        self._highs.passModel(model)
        self._patience = patience or Patience()
        self._limit_solves()

    def _limit_solves(self) -> None:
        work, is_time_up = self._patience.work, self._patience.is_time_up
        if work is not None:
            iterations = max(1, work // max(1, self._highs.getNumRow()))
            self._highs.setOptionValue("simplex_iteration_limit", iterations)
        if is_time_up is not None:
            # HiGHS calls back at every iteration, which takes it no other way.
            for event in (self._highs.cbSimplexInterrupt, self._highs.cbMipInterrupt):
                event.subscribe(lambda asked: asked.interrupt() if is_time_up() else None)

    def warm_start(self, basic: Ints, tight: Ints) -> None:
        """Start the next solve from a vertex: only these variables (indices) are above zero, and these rows (indices)
        have no slack.

        There must be as many of the one as of the other, or HiGHS completes the basis by itself.
        """
        columns, rows = [self._status.kLower] * self._highs.getNumCol(), [self._status.kBasic] * self._highs.getNumRow()
        for column in basic:
            columns[column] = self._status.kBasic
        for row in tight:
            rows[row] = self._status.kUpper
        basis = self._new_basis()
        basis.col_status, basis.row_status, basis.valid = columns, rows, True
        self._highs.setBasis(basis)
        self._highs.setOptionValue("simplex_strategy", _PRIMAL_SIMPLEX)

    @property
    def basis(self) -> Any:
        """The last basis, for ``start_from``."""
        return self._highs.getBasis()

    def start_from(self, basis: Any) -> None:
        """Start the next solve from the basis of a program of the same shape with much the same numbers."""
        self._highs.setBasis(basis)
        self._highs.setOptionValue("simplex_strategy", _PRIMAL_SIMPLEX)

    def add_row(self, columns: Indices, values: Floats, upper: float = 0.0) -> None:
        """One more row: the sum of these columns times these values is at most ``upper``."""
        self._highs.addRow(-np.inf, upper, len(columns), columns.astype(np.int32), values)

    def add_rows(self, rows: Sequence[tuple[Indices, Floats]]) -> None:
        """More rows: of each the sum of these columns times these values is at most zero."""
        if rows:
            columns, values = (np.concatenate(part) for part in zip(*rows, strict=True))
            starts = np.cumsum([0, *(len(columns) for columns, _ in rows[:-1])]).astype(np.int32)
            lower, upper = np.full(len(rows), -np.inf), np.zeros(len(rows))
            self._highs.addRows(len(rows), lower, upper, len(columns), starts, columns.astype(np.int32), values)

    def set_upper_bounds(self, upper: Floats) -> None:
        """Other upper bounds on the first variables."""
        columns: Indices = np.arange(len(upper), dtype=np.int32)
        self._highs.changeColsBounds(len(upper), columns, np.zeros(len(upper)), upper)

    def set_row_upper(self, first: int, upper: Floats) -> None:
        """Other upper ends, and no lower ones, of the rows from ``first`` on."""
        rows: Indices = np.arange(first, first + len(upper), dtype=np.int32)
        self._highs.changeRowsBounds(len(upper), rows, np.full(len(upper), -np.inf), upper)

    def add_columns(self, costs: Floats, values: Floats) -> None:
        """More variables without upper bound. ``costs``: float64[new]; ``values``: [rows, new], their entries of A."""
        columns, rows = np.nonzero(values.T)
        starts = np.searchsorted(columns, np.arange(len(costs))).astype(np.int32)
        upper = np.full(len(costs), np.inf)
        entries = values.T[columns, rows].astype(np.float64)
        self._highs.addCols(
            len(costs), costs, np.zeros(len(costs)), upper, len(rows), starts, rows.astype(np.int32), entries
        )

    def set_costs(self, costs: Floats) -> None:
        """Other costs of the first variables. The last vertex is still primal feasible, so the next solve goes on from
        it.
        """
        self._highs.changeColsCost(len(costs), np.arange(len(costs), dtype=np.int32), costs)
        self._highs.setOptionValue("simplex_strategy", _PRIMAL_SIMPLEX)

    def solve_integer(self, branches: int, most: float = np.inf) -> Floats | None:
        """float64[variables]: the optimum in whole numbers, or the best within so many branch-and-bound nodes; None if
        none was found that costs no more than ``most``.
        """
        self._highs.setOptionValue("mip_max_nodes", branches)
        self._highs.setOptionValue("objective_bound", most)
        self._highs.run()
        solution = self._highs.getSolution()
        return np.asarray(solution.col_value) if solution.value_valid else None

    def integer_bound(self, branches: int) -> float:
        """A lower bound on every solution in whole numbers, from at most so many branch-and-bound nodes, or as many as
        there is time for; minus infinity if they prove nothing.
        """
        self._highs.setOptionValue("mip_max_nodes", branches)
        self._highs.run()
        return float(self._highs.getInfo().mip_dual_bound)

    def solve(self, lower: Floats, upper: Floats) -> LinearSolution | None:
        """The optimum where the first rows lie between these ends; None if HiGHS found none, or patience ran out."""
        rows: Indices = np.arange(len(lower), dtype=np.int32)
        self._highs.changeRowsBounds(len(lower), rows, lower, upper)
        self._highs.run()
        self._highs.setOptionValue("simplex_strategy", self._strategy)
        status = self._highs.getModelStatus()
        if status != self._optimal:
            self._patience.ran_out |= status in self._cut_short
            return None
        solution = self._highs.getSolution()
        return LinearSolution(
            np.asarray(solution.col_value), np.asarray(solution.col_dual), np.asarray(solution.row_dual)
        )


def _by_column(program: LinearProgram) -> tuple[Indices, Indices, Floats]:
    """A in compressed columns: where each column starts, and the rows and values of all entries."""
    order = np.lexsort((program.rows, program.columns))
    lengths = np.bincount(program.columns, minlength=len(program.costs))
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return starts, program.rows[order].astype(np.int32), program.values[order]
