"""The relaxation over all patterns of a small instance: column generation to its end, with exact pricing.

It is stronger than the compact formulation, because a pattern is what really fits on a bin. Its optimum is Gilmore and
Gomory's bound (1961, "A linear programming approach to the cutting-stock problem"), and at its duals the patterns that
a cheaper packing could have are mostly few enough to be listed, where at the compact formulation's they are not.

Pricing lists the patterns of negative reduced cost (``listing``). At the duals of a master with few columns these are
countless. So it is done at a point between those and the best duals known to have none (Ben-Ameur and Neto 2007,
"Acceleration of cutting-plane and column generation algorithms"). Where there are none at that point, it is the new
best one and its value a bound: at whatever round this ends, what is returned proves something.
"""

import numpy as np

from joinery.decisions.optimizer.arrays import Floats, Ints, Mask
from joinery.decisions.optimizer.bounds.compact import CompactFormulation
from joinery.decisions.optimizer.bounds.duality import of_right_sign
from joinery.decisions.optimizer.bounds.listing import Listed, Overflow, list_patterns
from joinery.decisions.optimizer.bounds.pattern_duals import PatternDuals
from joinery.decisions.optimizer.linear.highs import LinearProgram, Patience, Solver

_ROUNDS = 80
#: Bins that are filled in part while patterns are sought, times the items.
_WIDTH = 40_000
_NEW = 80
#: New columns of a round at most.
_NEW_PER_TYPE = 3
#: How near to the best duals pricing is done: at first, and after lists that were not complete; and by how much less
#: after a point at which there was nothing new.
_NEAR, _NEARER, _STEP = 0.7, 0.95, 0.3
#: Work of all lists, as they count it.
_ALLOWANCE = 3_000_000
#: The first columns are patterns whose reduced cost is at most this share of what a bin costs.
_BEGUN_WITHIN = 0.05
#: $/h. No reduced cost is so far below zero.
_TOLERANCE = 1e-8
#: A bound within this share of the master's optimum is not worth lifting.
_CLOSE = 1e-5
_NO_ROWS: Floats = np.zeros(0)


def converge(formulation: CompactFormulation, duals: PatternDuals, patience: Patience | None = None) -> PatternDuals:
    """The best duals that were proven. ``duals``: of the compact formulation's optimum."""
    return _Generation(formulation, duals, patience).run()


class _Generation:
    """Between ``best``, duals at which no pattern has a negative reduced cost, and the master's."""

    def __init__(self, formulation: CompactFormulation, duals: PatternDuals, patience: Patience | None) -> None:
        self._formulation, self._instance = formulation, formulation.constrained.instance
        self._best = duals
        self._rows = np.flatnonzero(_is_coupling(formulation))
        self._by_type, self._by_item = _coefficients(formulation, self._rows)
        self._solver = Solver(self._without_columns(), grows=True, exact=True, patience=patience)

    def run(self) -> PatternDuals:
        near, left = _NEAR, _ALLOWANCE
        begun_with = self._listed(self._best, _BEGUN_WITHIN * float(self._instance.costs.mean()))
        self._add(begun_with, self._best, np.inf)
        for _ in range(_ROUNDS):
            solution = self._solver.solve(_NO_ROWS, _NO_ROWS)
            if solution is None:
                break
            master = self._of_right_sign(solution.duals)
            end = self._best.with_coupling(self._formulation, master, 0.0)
            if end.base - self._best.base <= _CLOSE * abs(end.base):
                break
            between = near * self._best.coupling + (1 - near) * master
            point = self._best.with_coupling(self._formulation, between, _TOLERANCE)
            listed = self._listed(point, -_TOLERANCE)
            left -= listed.work
            if left <= 0:
                break
            if listed.is_complete and not len(listed.reduced_costs):
                if point.base > self._best.base:
                    self._best = point
                near = max(near - _STEP, 0.0)
            elif not self._add(listed, end, -_TOLERANCE):
                near = max(near - _STEP, 0.0) if listed.is_complete else _NEARER
        return self._best

    def _listed(self, duals: PatternDuals, gap: float) -> Listed:
        return list_patterns(
            self._instance,
            self._formulation.max_per_bin,
            duals,
            gap,
            _WIDTH // len(self._instance.demands),
            overflow=Overflow.BEST_BINS,
        )

    def _add(self, listed: Listed, end: PatternDuals, below: float) -> int:
        """Make columns of the best few; returns how many. ``end``: duals at which their reduced cost is ``below``."""
        patterns, instance = listed.patterns, self._instance
        bin_types = patterns.bin_types
        reduced = end.bin_costs[bin_types] - (patterns.counts * end.item_duals.T[bin_types]).sum(axis=1)
        relative = listed.reduced_costs / np.maximum(instance.costs[bin_types], 1e-9)
        order = np.argsort(relative, kind="stable")
        order = order[reduced[order] < below]
        chosen = patterns.select(_few_of_each_type(bin_types, order))
        if len(chosen.bin_types):
            values = self._by_type[:, chosen.bin_types] + self._by_item @ chosen.counts.T
            self._solver.add_columns(instance.costs[chosen.bin_types], values)
        return len(chosen.bin_types)

    def _without_columns(self) -> LinearProgram:
        """Copies without a bin only, each for the cost of a known packing; columns come after them."""
        constrained, program = self._formulation.constrained, self._formulation.program
        demands = np.arange(len(constrained.demands))
        lower, upper = program.row_lower[self._rows], program.row_upper[self._rows].copy()
        if not constrained.limits_items:
            upper[demands] = np.inf
        return LinearProgram(
            costs=np.full(len(demands), self._formulation.cutoff),
            upper_bounds=np.full(len(demands), np.inf),
            row_lower=lower,
            row_upper=upper,
            rows=demands.astype(np.int32),
            columns=demands.astype(np.int32),
            values=np.ones(len(demands)),
        )

    def _of_right_sign(self, duals: Floats) -> Floats:
        """The duals (float64[coupling rows]) with zero for those that lean on an end which their row does not have."""
        constrained = self._formulation.constrained
        kept = of_right_sign(self._formulation.program, self._whole(duals))[self._rows]
        if not constrained.limits_items:
            # A copy too many may be left out, so the demands are "at least" rows.
            number = len(constrained.demands)
            kept[:number] = np.maximum(kept[:number], 0.0)
        return self._whole(kept)

    def _whole(self, duals: Floats) -> Floats:
        """float64[rows], with zero for a bin's own rows."""
        whole = np.zeros(len(self._best.coupling))
        whole[self._rows] = duals
        return whole


def _is_coupling(formulation: CompactFormulation) -> Mask:
    """bool[rows]: those that are not of one bin alone."""
    rows = np.arange(len(formulation.program.row_lower))
    coupling: Mask = (rows < formulation.demand_rows.stop) | (rows >= formulation.first_coupling_row)
    return coupling


def _coefficients(formulation: CompactFormulation, rows: Ints) -> tuple[Floats, Floats]:
    """float64[rows, bin types] and float64[rows, items]: what a bin, and a copy on it, counts in the coupling rows."""
    program, instance = formulation.program, formulation.constrained.instance
    place = np.full(len(program.row_lower), -1)
    place[rows] = np.arange(len(rows))
    by_type, by_item = np.zeros((len(rows), len(instance.costs))), np.zeros((len(rows), len(instance.demands)))
    row, column = place[program.rows], program.columns
    of_type = (row >= 0) & (column < formulation.bin_type_count)
    by_type[row[of_type], column[of_type]] = program.values[of_type]
    pair = column - formulation.bin_type_count
    of_item = (row >= 0) & (pair >= 0) & (pair < formulation.pair_count)
    by_item[row[of_item], formulation.items[pair[of_item]]] = program.values[of_item]
    return by_type, by_item


def _few_of_each_type(bin_types: Ints, order: Ints) -> Ints:
    """The first of the order (indices), not many of one bin type."""
    taken: dict[int, int] = {}
    chosen = []
    for index in order:
        number = taken.get(int(bin_types[index]), 0)
        if number < _NEW_PER_TYPE:
            taken[int(bin_types[index])] = number + 1
            chosen.append(int(index))
        if len(chosen) == _NEW:
            break
    return np.array(chosen, dtype=np.int64)
