"""Consolidation over patterns: what really fits on a bin, instead of fractions of it.

Where items are large, no bin can be filled as the relaxation would. A pattern of a standing bin is its residents and
whole copies beside them, one of a new bin is whole copies. Column generation finds patterns that pay (Gilmore and
Gomory 1961, "A linear programming approach to the cutting-stock problem"), and an integer program chooses among those
that were found::

    minimise    sum_q c_q z_q                    c_q: what keeping the bin costs, or its price if it is new
    subject to  sum_q a_iq z_q        >= demand_i
                sum_{q of group g} z_q <= bins of g    standing bins that are alike in everything are one group

Bins are filled greedily as long as that finds patterns that pay, and then filled best (``knapsack``) until none pays.
So there is a bound, whenever that ends: at duals y of the demands, of which no new bin holds more than it costs, every
solution costs at least y . demand, and for each standing bin what keeping it costs less than it holds at best.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from joinery.decisions.optimizer import tuning
from joinery.decisions.optimizer.arrays import Floats, Ints, Mask
from joinery.decisions.optimizer.consolidation.instance import ConsolidationInstance
from joinery.decisions.optimizer.consolidation.knapsack import BestContent, Together, best_content, proven_content
from joinery.decisions.optimizer.consolidation.relaxation import KeepRelaxation, KeepSolution
from joinery.decisions.optimizer.effort import Effort
from joinery.decisions.optimizer.instance.patterns import Pattern, cost_of
from joinery.decisions.optimizer.linear.highs import LinearProgram, Solver
from joinery.decisions.optimizer.rounding.filling import fill


@dataclass(frozen=True, eq=False)
class PatternChoice:
    """A solution in whole bins.

    ``keep``: bool[standing bins]. ``inflow``: int64[items, standing bins], copies beside the residents. ``new``: new
    bins. ``cost``: $/h, moves included. There may be room for more copies than there are.
    """

    keep: Mask
    inflow: Ints
    new: tuple[Pattern, ...]
    cost: float


class PatternSearch:
    """Column generation for one instance. ``relaxed``: where to begin."""

    def __init__(self, instance: ConsolidationInstance, relaxed: KeepSolution, effort: Effort) -> None:
        self._instance, self._effort = instance, effort
        #: $/h that no solution undercuts, moves included, as far as is known.
        self.bound = relaxed.cost
        duals = relaxed.item_duals
        self._random = np.random.default_rng(effort.seed)
        self._group, self._first, self._count = _groups(instance)
        standing, types = instance.standing, len(instance.bins.costs) - instance.standing
        #: The bin type of each row of what is priced: a standing bin of each group, then the types of new bins.
        self._bin_types = np.concatenate([self._first, standing + np.arange(types)])
        self._base = np.zeros((len(self._bin_types), len(duals)), dtype=np.int64)
        self._base[: len(self._first)] = instance.residents.T[self._first]
        self._costs = np.concatenate([instance.keeping[self._first], instance.bins.costs[standing:]])
        self._duals: Floats = duals
        self._group_duals = np.zeros(len(self._bin_types))
        #: float64[items], $/h of a copy that is left unpacked: dear enough never to be wanted.
        self._unpacked = np.full(len(duals), 10.0 * float(instance.bins.costs.max(initial=1.0)))
        self._row_lower, self._row_upper = self._row_bounds()
        self._share, self._together = self._shares(), Together.of(instance.bins)
        self._rows: list[int] = []
        self._covers: list[Ints] = []
        self._known: set[tuple[int, bytes]] = set()
        self._solver = Solver(self._empty(), grows=True)
        self._value = np.inf
        self._copies: Floats = np.zeros(0)
        self._reduced: Floats = np.zeros(0)

    def relax(self) -> Floats | None:
        """Generate patterns until none pay.

        float64[standing bins]: how much of each the optimum over fractions of them keeps; None where there is none yet.
        """
        self._begin()
        dry = 0
        for round_ in range(min(tuning.PATTERN_ROUNDS, 8 + tuning.PRICED_PAIRS // max(self._base.size, 1))):
            if self._effort.is_over() or dry == tuning.DRY_ROUNDS:
                break
            noises = tuning.MORE_ORDER_NOISES * dry if dry else tuning.ORDER_NOISES
            added = sum(self._price(noise, is_first=round_ < 2) for noise in noises)
            dry = 0 if added else dry + 1
            if not self._solve():
                return None
        if not len(self._copies) or not self._converge():
            return None
        kept = np.zeros(len(self._bin_types))
        np.add.at(kept, np.array(self._rows, dtype=np.int64), self._copies)
        share = kept[: len(self._first)] / self._count
        # Of bins that are alike as many are kept as in sum, in their order.
        place = np.zeros(self._instance.standing)
        for group in range(len(self._first)):
            members = np.flatnonzero(self._group == group)
            place[members] = np.clip(share[group] * len(members) - np.arange(len(members)), 0.0, 1.0)
        return place

    @property
    def relaxed(self) -> float:
        """$/h of that optimum, moves included. No bound, because there are more patterns."""
        return self._value + self._instance.fixed_cost

    def _row_bounds(self) -> tuple[Floats, Floats]:
        """A row for each item, then one for each group of standing bins."""
        demands = self._instance.bins.demands.astype(np.float64)
        lower = np.concatenate([demands, np.full(len(self._first), -np.inf)])
        return lower, np.concatenate([np.full(len(demands), np.inf), self._count.astype(np.float64)])

    def _shares(self) -> Floats:
        """float64[rows, items]: the shares of a bin's resources that a copy takes, in sum."""
        bins = self._instance.bins
        capacities = np.maximum(bins.capacities[self._bin_types] / bins.scale, 1e-3)
        shares: Floats = ((bins.sizes / bins.scale)[None] / capacities[:, None, :]).sum(axis=2)
        return shares

    def _empty(self) -> LinearProgram:
        """Only the columns that leave copies unpacked."""
        items = len(self._unpacked)
        rows: Ints = np.arange(items)
        return LinearProgram(
            costs=self._unpacked,
            upper_bounds=np.full(items, np.inf),
            row_lower=self._row_lower,
            row_upper=self._row_upper,
            rows=rows.astype(np.int32),
            columns=rows.astype(np.int32),
            values=np.ones(items),
        )

    def _begin(self) -> None:
        """Every standing bin as it is."""
        groups: Ints = np.arange(len(self._first))
        self._add(groups, self._base[: len(groups)])

    def _price(self, noise: float, *, is_first: bool = False) -> int:
        """Fill a bin of every row in an order that begins with what takes little for its dual; add what pays.

        At the relaxation's duals no pattern pays, so the first ones are added anyway.
        """
        bins = self._instance.bins
        wanted = (bins.max_per_bin[:, self._bin_types] > 0).T & (self._duals > 1e-9)
        taken = self._share / np.maximum(self._duals, 1e-12)
        keys = np.where(wanted, taken * np.exp(noise * self._random.standard_normal(taken.shape)), np.inf)
        longest = int(wanted.sum(axis=1).max(initial=0))
        orders = np.argsort(keys, axis=1, kind="stable")[:, :longest]
        counts = fill(bins, self._bin_types, orders, np.where(self._duals > 1e-9, bins.demands, 0))
        covers = counts + self._base
        reduced = self._costs - covers @ self._duals - self._group_duals
        pays = np.arange(len(reduced)) if is_first else np.flatnonzero(reduced < -1e-6)
        return self._add(pays, covers[pays])

    def _converge(self) -> bool:
        """Fill the bin of every row best, until no pattern pays or there is little left to prove. False where HiGHS has
        no optimum.

        Not where the relaxation proves it.
        """
        fixed, proofs = self._instance.fixed_cost, 0
        for _ in range(tuning.EXACT_ROUNDS):
            is_near = self._value + fixed - self.bound <= tuning.NEAR_BOUND * (self._value + fixed)
            if is_near or self._effort.is_over():
                break
            if not self._add_best(best_content):
                proofs += 1
                if proofs > tuning.PROOFS or not self._add_best(proven_content):
                    break
            if not self._solve():
                return False
        return True

    def _add_best(self, content: Callable[[Floats, Ints, Ints, Ints, float, Together], BestContent]) -> int:
        """Fill the bin of every row best, and add what pays; how many patterns that are. There is a bound then, unless
        time is up.
        """
        bins, rows, covers = self._instance.bins, list[int](), list[Ints]()
        most = np.minimum(bins.max_per_bin[:, self._bin_types].T, bins.demands)
        room = np.maximum(bins.capacities[self._bin_types], 0)
        asked = self._costs - self._base @ self._duals - self._group_duals
        worth = np.zeros(len(asked))
        for row, above in enumerate(asked.tolist()):
            if self._effort.is_over():
                return 0
            best = best_content(self._duals, bins.sizes, room[row], most[row], above + 1e-6, self._together)
            if not best.is_near:
                best = content(self._duals, bins.sizes, room[row], most[row], above + 1e-6, self._together)
            worth[row] = best.value
            if best.counts is not None:
                rows.append(row)
                covers.append(best.counts + self._base[row])
        self.bound = max(self.bound, self._bound_at(worth))
        return self._add(np.array(rows, dtype=np.int64), np.array(covers, dtype=np.int64))

    def _bound_at(self, worth: Floats) -> float:
        """$/h that no solution undercuts, at the duals of the demands. They count less where a new bin would hold more
        than it costs (Farley 1990, "A note on bounding a class of linear programming problems").
        """
        groups, bins = len(self._first), self._instance.bins
        new = self._bin_types[groups:]
        is_limited, costs = bins.is_limited[new], self._costs[groups:]
        scale = min(1.0, float((costs / np.maximum(worth[groups:], 1e-12))[~is_limited].min(initial=np.inf)))
        held = scale * (self._base @ self._duals + worth)
        limited = np.minimum(costs - held[groups:], 0.0)[is_limited] @ bins.available[new][is_limited]
        kept = np.minimum(self._costs[:groups] - held[:groups], 0.0) @ self._count
        return self._instance.fixed_cost + scale * float(self._duals @ bins.demands) + float(kept + limited)

    def _add(self, rows: Ints, covers: Ints) -> int:
        """New columns; how many were not known."""
        fresh = []
        for index, (row, cover) in enumerate(zip(rows, covers, strict=True)):
            key = int(row), cover.tobytes()
            if key not in self._known:
                self._known.add(key)
                self._rows.append(int(row))
                self._covers.append(cover)
                fresh.append(index)
        if fresh:
            of_group = (np.arange(len(self._first))[:, None] == rows[fresh]).astype(np.float64)
            self._solver.add_columns(self._costs[rows[fresh]], np.concatenate([covers[fresh].T, of_group]))
        return len(fresh)

    def _solve(self) -> bool:
        """The optimum over the patterns there are; False where HiGHS has none."""
        items = len(self._duals)
        solution = self._solver.solve(self._row_lower, self._row_upper)
        if solution is None:
            return False
        self._duals = np.maximum(solution.duals[:items], 0.0)
        self._group_duals[: len(self._first)] = np.minimum(solution.duals[items:], 0.0)
        costs = np.concatenate([self._unpacked, self._costs[self._rows]])
        self._value, self._reduced = float(costs @ solution.values), solution.reduced_costs[items:]
        self._copies = solution.values[items:]
        return True

    def choose(self, below: float) -> PatternChoice | None:
        """The cheapest whole bins, after ``relax``; None if none were found that cost less than ``below``.

        No pattern is in such a choice whose reduced cost is more than what is to be gained.
        """
        if self.relaxed >= below:
            return None
        least: Ints = np.argsort(self._reduced, kind="stable")[: tuning.COLUMNS]
        few = np.sort(least[self._reduced[least] <= below - self.relaxed])
        rows, covers = np.array(self._rows)[few], np.array(self._covers)[few]
        copies = Solver(self._integer_program(rows, covers)).solve_integer(tuning.BRANCHES)
        return None if copies is None else self._as_choice(few, np.round(copies).astype(np.int64), below)

    def _as_choice(self, columns: Ints, copies: Ints, below: float) -> PatternChoice | None:
        """So many ``copies`` of these columns; None if they leave something, or cost ``below`` or more."""
        instance = self._instance
        rows = np.array(self._rows, dtype=np.int64)[columns]
        covers = np.array([self._covers[column] for column in columns], dtype=np.int64).reshape(len(columns), -1)
        if (covers.T @ copies < instance.bins.demands).any():
            return None
        keep, inflow = np.zeros(instance.standing, dtype=np.bool_), np.zeros_like(instance.residents)
        for row in np.flatnonzero(copies):
            if rows[row] < len(self._first):
                alike = np.flatnonzero((self._group == rows[row]) & ~keep)[: copies[row]]
                keep[alike] = True
                inflow[:, alike] = (covers[row] - self._base[rows[row]])[:, None]
        new = tuple(
            Pattern(int(self._bin_types[rows[row]]), covers[row], int(copies[row]))
            for row in np.flatnonzero(copies)
            if rows[row] >= len(self._first)
        )
        keep |= ~instance.may_retire
        cost = instance.cost(keep, cost_of(instance.bins, new))
        return PatternChoice(keep, inflow, new, cost) if cost < below else None

    def _integer_program(self, rows: Ints, covers: Ints) -> LinearProgram:
        item, column = np.nonzero(covers.T)
        items, groups = len(self._duals), len(self._first)
        standing = np.flatnonzero(rows < groups)
        return LinearProgram(
            costs=self._costs[rows],
            upper_bounds=np.full(len(rows), float(self._instance.bins.demands.sum() + self._count.max(initial=0))),
            row_lower=self._row_lower,
            row_upper=self._row_upper,
            rows=np.concatenate([item, items + rows[standing]]).astype(np.int32),
            columns=np.concatenate([column, standing]).astype(np.int32),
            values=np.concatenate([covers.T[item, column].astype(np.float64), np.ones(len(standing))]),
            integers=len(rows),
        )


def lower_bound(instance: ConsolidationInstance, effort: Effort, enough: float) -> float:
    """$/h that no solution undercuts; a tighter one is sought where it is below ``enough``."""
    question = b"bound" + np.float64(enough).tobytes() + instance.digest
    return effort.once(question, lambda: _lower_bound(instance, effort, enough), len(question))


def _lower_bound(instance: ConsolidationInstance, effort: Effort, enough: float) -> float:
    relaxation = KeepRelaxation(instance, effort.patience())
    relaxed = relaxation.solve()
    if relaxed is None or relaxed.cost >= enough or effort.is_over():
        return relaxed.cost if relaxed else 0.0
    bound = max(relaxed.cost, relaxation.bound_of_whole_bins())
    if bound >= enough or int(instance.bins.compatible.sum()) > tuning.PATTERN_PAIRS or effort.is_over():
        return bound
    patterns = PatternSearch(instance, relaxed, effort)
    patterns.relax()
    return max(bound, patterns.bound)


def _groups(instance: ConsolidationInstance) -> tuple[Ints, Ints, Ints]:
    """int64[standing bins], the group of each; int64[groups], its first bin; int64[groups], how many it has."""
    number: dict[tuple[bytes, ...], int] = {}
    first, group = [], np.zeros(instance.standing, dtype=np.int64)
    bins = instance.bins
    for index in range(instance.standing):
        key = (
            bins.capacities[index].tobytes(),
            instance.residents[:, index].tobytes(),
            bins.max_per_bin[:, index].tobytes(),
            instance.keeping[index].tobytes(),
            instance.may_retire[index].tobytes(),
        )
        if key not in number:
            number[key] = len(number)
            first.append(index)
        group[index] = number[key]
    return group, np.array(first, dtype=np.int64), np.bincount(group, minlength=len(first))
