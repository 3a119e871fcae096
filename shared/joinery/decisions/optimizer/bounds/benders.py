"""Which whole bins could hold everything, and what do they cost at least? Benders' decomposition.

The master problem knows bins only: x_k bins of type k, in whole numbers, and what their copies are worth. At prices u
of the demands, and v <= 0 of the side constraints that count items, let V_k be what copies on a bin of type k are
worth at most (``bin_values``)::

    minimise    sum_k c_k x_k
    subject to  sum_k V_k x_k  >=  sum_s u_s d_s + sum_r v_r b_r      a cut, for each u and v that were tried
                and the rows that count bins alone: limited supplies, limits of pools

**Claim.** Every packing keeps every cut. **Proof.** Price its copies at u_s + sum_r v_r a_ri each. Bin by bin they are
worth V_k at most. In sum they are worth sum_s u_s d_s, as every copy is packed, and sum_r v_r (a_r . copies), which is
at least sum_r v_r b_r, since v_r is not above zero and a_r . copies not above b_r. ∎

Bins that keep all cuts so far are asked whether they hold everything (``given_bins``). If the compact formulation says
no for just these bins, though copies may be cut to pieces, its duals are a cut that they break. If they do hold
everything, no packing is cheaper. The decomposition is Benders' (1962, "Partitioning procedures for solving
mixed-variables programming problems"). It suits these instances because their bins are few: what makes other bounds
loose is that a bin is whole, while many copies may nearly as well be cut to pieces.
"""

from dataclasses import dataclass, replace

import numpy as np

from joinery.decisions.optimizer.arrays import UNLIMITED, Floats, Ints, Mask
from joinery.decisions.optimizer.bounds.bin_values import BinValues
from joinery.decisions.optimizer.bounds.branch_and_bound import CLOSE, BranchAndBound, Cut, IntegerProgram
from joinery.decisions.optimizer.bounds.compact import CompactFormulation
from joinery.decisions.optimizer.bounds.duality import of_right_sign
from joinery.decisions.optimizer.bounds.given_bins import pack_into
from joinery.decisions.optimizer.bounds.pattern_duals import PatternDuals
from joinery.decisions.optimizer.bounds.rounded_cuts import rounded
from joinery.decisions.optimizer.instance.patterns import Pattern, cost_of
from joinery.decisions.optimizer.linear.highs import Solver
from joinery.decisions.optimizer.linear.rows import RowWriter

#: Programs of the master that may be solved.
_SOLVES = 1_500
#: Asking whether bins hold everything takes about as long as so many programs of the master.
_CHECK_SOLVES = 40
#: Cuts that are sought before branching, at most.
_ROOT_CUTS = 20
#: With more items times bins a program that says what is on which takes too long.
_MOST_PAIRS = 110
#: How often bins that were refused are tried with one more.
_MOST_ENLARGED = 2
#: And with no more items times bins: one more bin is sought in several tries.
_FEW_PAIRS = 80
#: A cut is broken by no less, as a share of its right side.
_BROKEN = 1e-7
#: A copy without a bin counts as no less, as a share of the dearest one.
_LEAST_PRICE = 1e-3
#: What a sum of floats may be wrong by, as a share of the absolute values summed.
_ROUNDING = 1e-9
_NO_ROWS: Floats = np.zeros(0)


@dataclass(frozen=True, eq=False)
class WholeBins:
    """``bound``: $/h that no packing costs less than, or the cutoff. ``patterns``: a packing that costs less than the
    cutoff, if one was found.
    """

    bound: float
    patterns: tuple[Pattern, ...] | None


def solve_over_whole_bins(formulation: CompactFormulation, duals: PatternDuals, *, goes_on: bool) -> WholeBins:
    """The least cost of whole bins. ``duals``: the best that are known; they are the first cut.

    ``goes_on``: also when bins were refused without proof, so that a packing is found even if it is not the cheapest.
    """
    kept = _not_fixed(formulation, duals)
    if not len(kept):
        # No bin of a packing that costs less than the cutoff is left.
        return WholeBins(formulation.cutoff, None)
    compatible = formulation.constrained.instance.compatible[:, kept]
    reduced = CompactFormulation(formulation.constrained.restrict(kept, compatible), formulation.cutoff)
    result = _Decomposition(reduced, _prices(formulation, duals.coupling), goes_on=goes_on).solve()
    packing = result.patterns and tuple(replace(one, bin_type=int(kept[one.bin_type])) for one in result.patterns)
    return WholeBins(result.bound, packing)


def _not_fixed(formulation: CompactFormulation, duals: PatternDuals) -> Ints:
    """Bin types (indices) that a packing cheaper than the cutoff could have: a bin costs what its copies are worth, and
    its reduced cost on top.
    """
    prices = _item_prices(formulation, _prices(formulation, duals.coupling))
    reduced_costs = duals.bin_costs - BinValues(formulation).of(prices)
    most = formulation.program.relaxation.upper_bounds[: formulation.bin_type_count]
    gap = formulation.cutoff - duals.base - float((np.minimum(reduced_costs, 0.0) * most).sum())
    kept: Ints = np.flatnonzero(reduced_costs <= gap * (1 + CLOSE) + _ROUNDING)
    return kept


def _prices(formulation: CompactFormulation, duals: Floats) -> Floats:
    """float64[demands + side constraints]: the duals (float64[rows]) of the rows that price items, zero for a side
    constraint that counts bins.
    """
    rows = formulation.constrained.side_constraints
    counts_items = np.array([bool(row.items.any()) for row in rows], dtype=np.bool_)
    of_rows = np.where(counts_items, duals[len(duals) - len(rows) :], 0.0)
    return np.concatenate([duals[formulation.demand_rows], of_rows])


def _item_prices(formulation: CompactFormulation, prices: Floats) -> Floats:
    """float64[items]: what a copy is priced at."""
    constrained = formulation.constrained
    number = len(constrained.demands)
    by_item: Floats = prices[constrained.demand_of]
    for price, row in zip(prices[number:], constrained.side_constraints, strict=True):
        by_item = by_item + price * row.items
    return by_item


class _Decomposition:
    """``prices``: float64[demands + side constraints], those of the first cut."""

    def __init__(self, formulation: CompactFormulation, prices: Floats, *, goes_on: bool) -> None:
        self._formulation, self._constrained = formulation, formulation.constrained
        self._instance, self._goes_on = formulation.constrained.instance, goes_on
        self._values, self._limits = BinValues(formulation), _limits(formulation)
        self._program = formulation.program.relaxation
        self._without_bins = self._copies_without_bins(prices)
        self._packing: tuple[Pattern, ...] | None = None
        self._refused = 0
        self._cuts = [self._cut(prices)]

    def solve(self) -> WholeBins:
        most = self._most_bins()
        self._cut_fractions(most)
        search = BranchAndBound(
            self._master(most),
            self._formulation.cutoff,
            _SOLVES,
            check=self._hold_everything,
            check_solves=_CHECK_SOLVES,
            goes_on=self._goes_on,
        )
        return WholeBins(search.solve().bound, self._packing)

    def _cut_fractions(self, most: Floats) -> None:
        """Cuts that fractions of bins break, before there is any branching."""
        master = Solver(self._master(most).relaxation, exact=True)
        for _ in range(_ROOT_CUTS):
            solution = master.solve(_NO_ROWS, _NO_ROWS)
            if solution is None:
                break
            bins = solution.values[: len(most)]
            cut = self._broken_cut(bins)
            cuts = [cut] if cut else rounded(self._cuts, bins)
            if not cuts:
                break
            self._cuts += cuts
            for added in cuts:
                columns = np.flatnonzero(added.coefficients)
                master.add_row(columns.astype(np.int32), added.coefficients[columns], added.upper)

    def _hold_everything(self, values: Floats) -> "bool | Cut":
        bins = np.round(values[: len(self._instance.costs)])
        cut = self._broken_cut(bins)
        if cut is not None:
            return Cut(np.append(cut.coefficients, np.zeros(len(values) - len(bins))), cut.upper)
        if bins.sum() * len(self._instance.demands) > _MOST_PAIRS:
            return False
        bin_types = np.repeat(np.arange(len(bins)), bins.astype(np.int64))
        packing = pack_into(self._formulation, bin_types)
        is_soon_tried = bins.sum() * len(self._instance.demands) <= _FEW_PAIRS
        if packing is None and self._goes_on and is_soon_tried and self._refused < _MOST_ENLARGED:
            self._enlarge(bin_types)
        self._refused += packing is None
        self._packing = packing or self._packing
        return packing is not None

    def _enlarge(self, bin_types: Ints) -> None:
        """Bins that hold nearly everything, and one more: the cheapest with which they do, by bisection."""
        costs = self._instance.costs
        spent = float(costs[bin_types].sum())
        below = self._formulation.cutoff if self._packing is None else cost_of(self._instance, self._packing)
        affordable = np.argsort(costs, kind="stable")
        is_open = self._may_be_added(np.bincount(bin_types, minlength=len(costs)))
        affordable = affordable[is_open[affordable] & (spent + costs[affordable] < below * (1 - CLOSE))]
        low, high = 0, len(affordable)
        while low < high:
            # The dearest first: mostly not even that helps.
            middle = high - 1 if high == len(affordable) else (low + high) // 2
            packing = pack_into(self._formulation, np.append(bin_types, affordable[middle]))
            low, high = (middle + 1, high) if packing is None else (low, middle)
            self._packing = packing or self._packing

    def _may_be_added(self, bins: Ints) -> Mask:
        """bool[bin types]: whether limits let one more bin join these (int64[bin types], how many of each)."""
        is_open = np.ones(len(bins), dtype=np.bool_)
        for coefficients, most in self._limits:
            is_open &= coefficients @ bins + coefficients <= most * (1 + _ROUNDING)
        return is_open

    def _copies_without_bins(self, prices: Floats) -> Solver:
        """The compact formulation, asked how much stays without a bin; each copy counts as it is priced."""
        demands = len(self._constrained.demands)
        costs = np.zeros(len(self._program.costs))
        costs[-demands:] = np.maximum(prices[:demands], _LEAST_PRICE * float(prices[:demands].max(initial=1e-9)))
        return Solver(replace(self._program, costs=costs), exact=True)

    def _broken_cut(self, bins: Floats) -> Cut | None:
        """A cut that these bins (float64[bin types], how many of each) break; None if they hold everything, cut to
        pieces.
        """
        low, high = np.zeros(len(self._program.costs)), self._program.upper_bounds.copy()
        low[: len(bins)] = high[: len(bins)] = bins
        self._without_bins.set_bounds(low, high)
        solution = self._without_bins.solve(_NO_ROWS, _NO_ROWS)
        if solution is None:
            return None
        cut = self._cut(_prices(self._formulation, of_right_sign(self._program, solution.duals)))
        return cut if cut.coefficients @ bins > cut.upper + _BROKEN * abs(cut.upper) else None

    def _cut(self, prices: Floats) -> Cut:
        """The cut at these prices, as an "at most" row, scaled to a right side of about one.

        Prices of side constraints may cancel those of copies; then nothing but the rounding of floats would be left.
        """
        ends = np.concatenate([self._constrained.demands, [row.upper for row in self._constrained.side_constraints]])
        worth, summed = float(prices @ ends), float(np.abs(prices) @ np.maximum(np.abs(ends), 1.0))
        scale = max(abs(worth), _BROKEN * summed, 1e-300)
        values = self._values.of(_item_prices(self._formulation, prices))
        return Cut(-values / scale, (_ROUNDING * summed - worth) / scale)

    def _master(self, most: Floats) -> IntegerProgram:
        """Its variables are the bins of each type, then those of at least some size in sum.

        Sums are branched on first: a branch on one type hardly changes anything, since another like it takes its place.
        """
        rows, instance, number = RowWriter(), self._instance, len(most)
        for cut in self._cuts:
            columns = np.flatnonzero(cut.coefficients)
            rows.add(np.zeros(len(columns), dtype=np.int64), columns, cut.coefficients[columns])
            rows.close_at_most(np.array([cut.upper]))
        for coefficients, upper in self._limits:
            rows.add_row(coefficients, upper)
        # A size is what a bin is worth, to a power of two.
        sizes = np.round(np.log2(np.maximum(-self._cuts[0].coefficients, 1e-9)))
        least_sizes = np.unique(sizes)
        for index, least in enumerate(least_sizes):
            members = np.append(np.flatnonzero(sizes >= least), number + index)
            rows.add(np.zeros(len(members), dtype=np.int64), members, np.append(np.ones(len(members) - 1), -1.0))
            rows.close(np.zeros(1), np.zeros(1))
        sums = np.full(len(least_sizes), float(most.sum()))
        program = rows.program(np.append(instance.costs, np.zeros(len(sums))), np.append(most, sums))
        is_integer = np.ones(number + len(sums), dtype=np.bool_)
        return IntegerProgram(program, is_integer, np.repeat([0, 1], [number, len(sums)]))

    def _most_bins(self) -> Floats:
        """float64[bin types]: bins of each type in some cheapest packing at most; one where two could be a larger bin
        that costs no more.
        """
        most = self._program.upper_bounds[: len(self._instance.costs)].copy()
        most[_have_double(self._formulation, self._values)] = 1.0
        return most


def _limits(formulation: CompactFormulation) -> list[tuple[Floats, float]]:
    """The rows that count bins alone: float64[bin types], what a bin counts, and how much there may be of it."""
    constrained, instance = formulation.constrained, formulation.constrained.instance
    limits = [(row.bin_types, row.upper) for row in constrained.side_constraints if not row.items.any()]
    for supply in np.unique(instance.supply[instance.is_limited]):
        draws = instance.is_limited & (instance.supply == supply)
        limits.append((draws.astype(np.float64), float(instance.available[draws][0])))
    return limits


def _have_double(formulation: CompactFormulation, values: BinValues) -> Mask:
    """bool[bin types]: those of which two could be one bin of another type that costs no more than the two."""
    instance = formulation.constrained.instance
    have_double = np.zeros(len(instance.costs), dtype=np.bool_)
    if instance.cardinality_limits or instance.conflicts.any():
        return have_double
    resources = formulation.resources
    # Room that no copies can use need not double. In shares of the scale: of bytes HiGHS takes a minute.
    sizes = instance.sizes / instance.scale
    usable = np.array([values.in_fractions(sizes[:, one]) for one in resources]).T * instance.scale[resources]
    usable = np.minimum(usable * (1 + _ROUNDING), instance.capacities[:, resources])
    is_free = instance.available >= UNLIMITED
    limits = np.array([counted for counted, _ in _limits(formulation)])
    for one in np.flatnonzero(is_free):
        is_double = (
            is_free
            & (instance.costs <= 2 * instance.costs[one] * (1 + _ROUNDING))
            & (instance.capacities[:, resources] >= 2 * usable[one]).all(axis=1)
            & (instance.compatible >= instance.compatible[:, [one]]).all(axis=0)
        )
        if len(limits):
            is_double &= (limits <= 2 * limits[:, [one]]).all(axis=0)
        is_double[one] = False
        have_double[one] = is_double.any()
    return have_double
