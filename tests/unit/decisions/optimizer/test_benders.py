"""Whole bins that could hold everything: what they cost at least, and whether given ones do."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinery.decisions.optimizer.arrays import UNLIMITED, Ints
from joinery.decisions.optimizer.bounds.benders import WholeBins, solve_over_whole_bins
from joinery.decisions.optimizer.bounds.bin_values import BinValues
from joinery.decisions.optimizer.bounds.branch_and_bound import BranchAndBound, Cut
from joinery.decisions.optimizer.bounds.compact import CompactFormulation
from joinery.decisions.optimizer.bounds.given_bins import pack_into
from joinery.decisions.optimizer.bounds.pattern_duals import pattern_duals
from joinery.decisions.optimizer.instance.packing_instance import PackingInstance
from joinery.decisions.optimizer.instance.patterns import cost_of
from joinery.decisions.optimizer.instance.side_constraints import ConstrainedInstance, SideConstraint, unconstrained
from tests.properties import examples
from tests.unit.decisions.optimizer.instances import (
    cheapest,
    holds,
    instances,
    seeded,
    two_variables,
    whole_numbers,
    wrong,
)

PENNY = 1e-7


def _formulation(instance: PackingInstance, cutoff: float) -> CompactFormulation:
    return CompactFormulation(unconstrained(instance), cutoff)


def _solved(formulation: CompactFormulation, *, goes_on: bool = True) -> WholeBins:
    search = BranchAndBound(formulation.program, formulation.cutoff, 1)
    search.solve_root()
    return solve_over_whole_bins(formulation, pattern_duals(formulation, search.duals), goes_on=goes_on)


@examples(80)
@given(instances() | instances(limited=True), st.floats(0, 1))
def test_whole_bins_cost_no_more_than_the_cheapest_packing_and_those_found_hold_everything(
    instance: PackingInstance, dearer: float
) -> None:
    """However dear the packing that was known."""
    best = cheapest(instance)
    result = _solved(_formulation(instance, best * (1 + dearer) + 1e-3))
    assert result.bound <= best + PENNY
    assert result.patterns is not None
    assert wrong(instance, result.patterns) == []
    assert cost_of(instance, result.patterns) == pytest.approx(best)


@examples(60)
@given(instances() | instances(limited=True))
def test_nothing_is_found_that_is_no_cheaper_than_what_is_known(instance: PackingInstance) -> None:
    """Bins that cost as much are of no interest."""
    best = cheapest(instance)
    result = _solved(_formulation(instance, best), goes_on=False)
    assert result.patterns is None
    assert result.bound <= best + PENNY


@pytest.mark.parametrize("seed", range(4))
def test_a_bound_over_whole_bins_is_tighter_than_one_over_fractions(seed: int) -> None:
    """Twelve items of one to three copies need a few bins, and fractions of bins say little about so few."""
    instance = seeded(12, seed=seed)
    formulation = _formulation(instance, 10.0)
    in_fractions = BranchAndBound(formulation.program, 10.0, 1).solve_root()
    result = _solved(formulation)
    assert result.patterns is not None
    assert wrong(instance, result.patterns) == []
    assert in_fractions < result.bound <= cost_of(instance, result.patterns) * (1 + 1e-9)


def _worth(instance: PackingInstance, most: Sequence[int], bin_type: int, prices: Sequence[float]) -> float:
    """Of the best pattern, found by trying everything."""
    contents = product(*(range(copies + 1) for copies in most))
    return max(
        sum(price * count for price, count in zip(prices, counts, strict=True))
        for counts in contents
        if holds(instance, bin_type, counts)
    )


@examples(60)
@given(instances(), st.data())
def test_no_bin_is_worth_more_than_its_value(instance: PackingInstance, data: st.DataObject) -> None:
    """At any prices, and seldom is it worth much less."""
    number = len(instance.demands)
    prices = data.draw(st.lists(st.floats(0, 3), min_size=number, max_size=number))
    values = BinValues(_formulation(instance, 100.0))
    by_type, in_fractions = values.of(np.array(prices)), values.in_fractions(np.array(prices))
    for bin_type in range(len(instance.costs)):
        best = _worth(instance, list(instance.demands), bin_type, prices)
        assert best <= by_type[bin_type] + PENNY
        assert by_type[bin_type] <= max(in_fractions[bin_type], best) * (1 + 1e-6) + PENNY
        assert by_type[bin_type] <= best * 1.0011 + PENNY


@examples(60)
@given(instances(), st.data())
def test_given_bins_hold_everything_or_are_refused(instance: PackingInstance, data: st.DataObject) -> None:
    """Held against all ways to fill them."""
    last = len(instance.costs) - 1
    bins = np.array(data.draw(st.lists(st.integers(0, last), min_size=1, max_size=3)), dtype=np.int64)
    patterns = pack_into(_formulation(instance, 100.0), bins)
    assert (patterns is not None) == _can_hold(instance, bins)
    if patterns is not None:
        assert wrong(instance, patterns) == []


def _can_hold(instance: PackingInstance, bins: Ints) -> bool:
    states = {tuple(map(int, instance.demands))}
    for bin_type in bins:
        states = {
            tuple(a - b for a, b in zip(left, counts, strict=True))
            for left in states
            for counts in product(*(range(copies + 1) for copies in left))
            if holds(instance, int(bin_type), counts)
        }
    return any(not any(left) for left in states)


def test_where_no_bin_is_within_the_gap_the_known_packing_is_cheapest() -> None:
    """A bin that costs more than the known packing is in none that costs less."""
    instance = PackingInstance(
        sizes=np.array([[1]]),
        demands=np.array([1]),
        costs=np.array([3.0]),
        capacities=np.array([[1]]),
        compatible=np.ones((1, 1), dtype=np.bool_),
        cardinality_limits=(),
        conflicts=np.zeros((1, 1), dtype=np.bool_),
    )
    result = _solved(_formulation(instance, 2.0))
    assert result.bound == pytest.approx(2.0)
    assert result.patterns is None


def test_side_constraints_are_part_of_a_cut() -> None:
    """Three copies that may be in either of two zones, two in each at most: a bin in each is needed, though one would
    hold all.
    """
    instance = PackingInstance(
        sizes=np.array([[1], [1]]),
        demands=np.array([3, 3]),
        costs=np.array([1.0, 1.25]),
        capacities=np.array([[4], [4]]),
        compatible=np.eye(2, dtype=np.bool_),
        cardinality_limits=(),
        conflicts=np.zeros((2, 2), dtype=np.bool_),
    )
    rows = tuple(SideConstraint(np.eye(2)[zone], np.zeros(2), 2.0) for zone in range(2))
    constrained = ConstrainedInstance(
        instance=instance, demand_of=np.array([0, 0]), demands=np.array([3]), side_constraints=rows
    )
    result = _solved(CompactFormulation(constrained, 3.0))
    assert result.bound == pytest.approx(2.25)
    assert result.patterns is not None
    assert sum(pattern.counts.sum() for pattern in result.patterns) == 3


@examples(80)
@given(instances(), st.data())
def test_whatever_the_prices_of_the_first_cut_the_bound_holds(instance: PackingInstance, data: st.DataObject) -> None:
    """Also where a side constraint is priced so high that the cut says nothing."""
    best, items = cheapest(instance), len(instance.demands)
    row = SideConstraint(np.eye(items)[0], np.zeros(len(instance.costs)), float(instance.demands[0]))
    constrained = replace(unconstrained(instance), side_constraints=(row,))
    formulation = CompactFormulation(constrained, 2 * best)
    rows = len(formulation.program.relaxation.row_lower)
    prices = data.draw(st.lists(st.floats(-3, 3), min_size=rows, max_size=rows))
    result = solve_over_whole_bins(formulation, pattern_duals(formulation, np.array(prices)), goes_on=True)
    assert result.bound <= best + PENNY


@examples(80)
@given(instances(), st.data())
def test_a_cut_that_is_nothing_but_rounding_is_none(instance: PackingInstance, data: st.DataObject) -> None:
    """Where a side constraint lets in all copies and no more, its price may cancel theirs."""
    best, items = cheapest(instance), len(instance.demands)
    no_bins = np.zeros(len(instance.costs))
    side = tuple(SideConstraint(np.eye(items)[item], no_bins, float(instance.demands[item])) for item in range(items))
    formulation = CompactFormulation(replace(unconstrained(instance), side_constraints=side), 2 * best)
    duals = np.zeros(len(formulation.program.relaxation.row_lower))
    prices = np.array(data.draw(st.lists(st.integers(0, 9), min_size=items, max_size=items))) / 10
    duals[formulation.demand_rows], duals[-items:] = prices, -prices
    result = solve_over_whole_bins(formulation, pattern_duals(formulation, duals), goes_on=True)
    assert result.bound <= best + PENNY


def test_a_limit_of_bins_is_kept() -> None:
    """Three small bins would be cheapest, and there may be two bins."""
    instance = PackingInstance(
        sizes=np.array([[1]]),
        demands=np.array([3]),
        costs=np.array([1.0, 2.5]),
        capacities=np.array([[1], [2]]),
        compatible=np.ones((1, 2), dtype=np.bool_),
        cardinality_limits=(),
        conflicts=np.zeros((1, 1), dtype=np.bool_),
    )
    row = SideConstraint(np.zeros(1), np.ones(2), 2.0)
    constrained = ConstrainedInstance(
        instance=instance, demand_of=np.array([0]), demands=np.array([3]), side_constraints=(row,)
    )
    result = _solved(CompactFormulation(constrained, 6.0))
    assert result.bound == pytest.approx(3.5)
    assert result.patterns is not None
    assert sorted(pattern.bin_type for pattern in result.patterns) == [0, 1]


@pytest.mark.parametrize("limit", ["a supply", "a side constraint"])
def test_no_bin_is_added_that_a_limit_refuses(limit: str) -> None:
    """Cut to pieces the copies are on two bins. Whole ones need three, and there are two."""
    instance = PackingInstance(
        sizes=np.array([[7], [4]]),
        demands=np.array([2, 1]),
        costs=np.array([2.0]),
        capacities=np.array([[10]]),
        compatible=np.ones((2, 1), dtype=np.bool_),
        cardinality_limits=(),
        conflicts=np.zeros((2, 2), dtype=np.bool_),
        available=np.array([2 if limit == "a supply" else UNLIMITED]),
    )
    rows = (SideConstraint(np.zeros(2), np.ones(1), 2.0),) if limit == "a side constraint" else ()
    constrained = replace(unconstrained(instance), side_constraints=rows)
    assert _solved(CompactFormulation(constrained, 10.0)).patterns is None


def test_a_solution_that_breaks_a_cut_is_none() -> None:
    """3.5 is the least that holds seven; with at most one y it is two and a half x more than one."""
    search = BranchAndBound(
        whole_numbers(two_variables()), 10.0, 99, check=lambda values: values[1] < 0.5 or Cut(np.array([0.0, 1.0]), 0.0)
    )
    result = search.solve()
    assert result.bound == pytest.approx(4.0)
    assert result.values == pytest.approx([4.0, 0.0])


def test_a_refusal_without_proof_lifts_no_bound_but_the_search_goes_on() -> None:
    """Nobody knows whether whoever refused was right."""
    refusing = BranchAndBound(
        whole_numbers(two_variables()), 10.0, 99, check=lambda values: bool(values[1] < 0.5), goes_on=True
    )
    result = refusing.solve()
    assert result.bound == pytest.approx(3.5)
    assert result.values == pytest.approx([4.0, 0.0])
    assert BranchAndBound(whole_numbers(two_variables()), 10.0, 99, check=lambda values: False).solve().values is None
