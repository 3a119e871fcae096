"""The cheapest packing of listed patterns, and of those that are worth listing."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinery.decisions.optimizer.arrays import UNLIMITED, Ints
from joinery.decisions.optimizer.bounds.branch_and_bound import BranchAndBound, Cheapest
from joinery.decisions.optimizer.bounds.compact import CompactFormulation
from joinery.decisions.optimizer.bounds.enumeration import enumerate_patterns, least_cost
from joinery.decisions.optimizer.bounds.exact import ExactResult, solve_exactly
from joinery.decisions.optimizer.bounds.pattern_duals import pattern_duals
from joinery.decisions.optimizer.bounds.pattern_program import PatternProgram
from joinery.decisions.optimizer.effort import Effort
from joinery.decisions.optimizer.instance.packing_instance import PackingInstance
from joinery.decisions.optimizer.instance.patterns import Patterns, cost_of
from joinery.decisions.optimizer.instance.side_constraints import ConstrainedInstance, SideConstraint, unconstrained
from joinery.decisions.optimizer.linear.highs import Patience
from joinery.decisions.optimizer.search import pack
from tests.properties import examples
from tests.unit.decisions.optimizer.instances import cheapest, holds, instances, seeded, wrong

PENNY = 1e-7


def _every_pattern(instance: PackingInstance) -> Patterns:
    found = [
        (bin_type, counts)
        for bin_type in range(len(instance.costs))
        for counts in product(*(range(copies + 1) for copies in instance.demands))
        if any(counts) and holds(instance, bin_type, counts)
    ]
    return Patterns(np.array([bin_type for bin_type, _ in found]), np.array([counts for _, counts in found]))


def _found(instance: PackingInstance, patterns: Patterns, cutoff: float, solves: int = 10_000) -> Cheapest:
    return _of(instance, patterns, np.zeros(0, dtype=np.int64), cutoff, solves)


def _of(instance: PackingInstance, patterns: Patterns, filled: Ints, cutoff: float, solves: int = 10_000) -> Cheapest:
    constrained = unconstrained(instance).with_supply_rows()
    return BranchAndBound(PatternProgram(constrained, patterns, filled, cutoff, None), solves).solve()


@examples(80)
@given(instances() | instances(limited=True), st.floats(0, 1))
def test_of_all_patterns_the_cheapest_packing_is_found(instance: PackingInstance, dearer: float) -> None:
    """However dear the packing that was known."""
    best = cheapest(instance)
    found = _found(instance, _every_pattern(instance), best * (1 + dearer) + 1e-3)
    assert found.bound == pytest.approx(best)
    assert found.cost == pytest.approx(best)
    assert found.packing is not None
    assert wrong(instance, found.packing) == []


@examples(60)
@given(instances() | instances(limited=True))
def test_nothing_is_found_that_is_no_cheaper_than_what_is_known(instance: PackingInstance) -> None:
    """A packing that costs as much is of no interest."""
    best = cheapest(instance)
    found = _found(instance, _every_pattern(instance), best)
    assert found.packing is None
    assert found.bound == pytest.approx(best)


@examples(60)
@given(instances() | instances(limited=True), st.integers(1, 12))
def test_little_work_proves_less_and_nothing_false(instance: PackingInstance, solves: int) -> None:
    """What was found until then is right."""
    best = cheapest(instance)
    found = _found(instance, _every_pattern(instance), 2 * best + 1e-3, solves)
    assert found.bound <= best + PENNY
    assert found.packing is None or wrong(instance, found.packing) == []


@examples(80)
@given(instances() | instances(limited=True), st.integers(0, 255), st.integers(1, 200))
def test_bins_that_are_filled_in_fractions_prove_less_and_nothing_false(
    instance: PackingInstance, chosen: int, solves: int
) -> None:
    """Whichever bin types they are, and however soon the search ends; and what is found has whole copies on each."""
    best, every = cheapest(instance), _every_pattern(instance)
    filled = np.flatnonzero([chosen >> bin_type & 1 for bin_type in range(len(instance.costs))])
    listed = every.select(np.flatnonzero(~np.isin(every.bin_types, filled)))
    found = _of(instance, listed, filled, 2 * best + 1e-3, solves)
    assert found.bound <= best + PENNY
    assert found.cost >= best - PENNY
    assert found.packing is None or wrong(instance, found.packing) == []


@examples(60)
@given(instances() | instances(limited=True), st.integers(1, 30))
def test_a_packing_with_a_pattern_that_is_not_listed_costs_more_than_the_reach(
    instance: PackingInstance, most: int
) -> None:
    """So the cheapest packing costs as much as that of the listed patterns, or as the reach says at least."""
    best = cheapest(instance)
    formulation = CompactFormulation(unconstrained(instance).with_supply_rows(), 2 * best + 1e-3)
    duals = pattern_duals(formulation, formulation.relaxed()[1])
    least = least_cost(formulation, duals)
    listed = enumerate_patterns(formulation, duals, formulation.cutoff - least, most)
    number = len(listed.patterns.bin_types)
    bound = _found(instance, listed.patterns, formulation.cutoff).bound if number else np.inf
    assert number <= 2 * most
    assert min(bound, least + listed.reach) <= best + PENNY


@pytest.mark.parametrize("seed", [0, 1, 2, 4])
def test_a_dozen_items_get_the_cheapest_bins(seed: int) -> None:
    """Of one to three copies each, more than can be tried: what is proven and what is found agree."""
    instance = seeded(12, seed=seed)
    known = cost_of(instance, pack(instance, np.zeros(len(instance.costs), dtype=np.int64), Effort()))
    result = solve_exactly(unconstrained(instance), 1.01 * known)
    assert result.is_tight
    assert result.patterns is not None
    assert wrong(instance, result.patterns) == []
    assert cost_of(instance, result.patterns) == pytest.approx(result.bound)


@examples(20)
@given(instances())
def test_where_time_is_up_nothing_false_is_proven(instance: PackingInstance) -> None:
    """The first linear program is cut short already."""
    best = cheapest(instance)
    result = solve_exactly(unconstrained(instance), 2 * best + 1e-3, patience=Patience(is_time_up=lambda: True))
    assert result.bound <= best + PENNY
    assert result.patterns is None or wrong(instance, result.patterns) == []


def test_where_no_bin_is_within_the_gap_the_known_packing_is_cheapest() -> None:
    """A bin that costs more than the known packing is in none that costs less."""
    instance = _plain(sizes=[[1]], demands=[1], costs=[3.0], capacities=[[1]])
    result = solve_exactly(unconstrained(instance), 2.0)
    assert result.bound == pytest.approx(2.0)
    assert result.patterns is None


def test_copies_that_zones_share_are_dealt_out() -> None:
    """Three copies that may be in either of two zones, two in each at most: a bin in each is needed, though one would
    hold all.
    """
    instance = replace(
        _plain(sizes=[[1], [1]], demands=[3, 3], costs=[1.0, 1.25], capacities=[[4], [4]]),
        compatible=np.eye(2, dtype=np.bool_),
    )
    rows = tuple(SideConstraint(np.eye(2)[zone], np.zeros(2), 2.0) for zone in range(2))
    result = solve_exactly(
        ConstrainedInstance(
            instance=instance, demand_of=np.array([0, 0]), demands=np.array([3]), side_constraints=rows
        ),
        3.0,
    )
    assert result.bound == pytest.approx(2.25)
    assert result.patterns is not None
    assert sum(pattern.counts.sum() for pattern in result.patterns) == 3


def test_a_side_constraint_that_asks_for_copies_is_kept() -> None:
    """One copy at least is to be in the dearer zone, and one bin holds both."""
    instance = replace(
        _plain(sizes=[[1], [1]], demands=[2, 2], costs=[1.0, 1.25], capacities=[[2], [2]]),
        compatible=np.eye(2, dtype=np.bool_),
    )
    row = SideConstraint(np.array([0.0, -1.0]), np.zeros(2), -1.0)
    result = solve_exactly(
        ConstrainedInstance(
            instance=instance, demand_of=np.array([0, 0]), demands=np.array([2]), side_constraints=(row,)
        ),
        3.0,
    )
    assert result.bound == pytest.approx(1.25)
    assert result.patterns is not None
    assert [pattern.bin_type for pattern in result.patterns] == [1]


def test_a_limit_of_bins_is_kept() -> None:
    """Three small bins would be cheapest, and there may be two bins."""
    instance = _plain(sizes=[[1]], demands=[3], costs=[1.0, 2.5], capacities=[[1], [2]])
    result = _limited(instance, SideConstraint(np.zeros(1), np.ones(2), 2.0), 6.0)
    assert result.bound == pytest.approx(3.5)
    assert result.patterns is not None
    assert sorted(pattern.bin_type for pattern in result.patterns) == [0, 1]


@pytest.mark.parametrize("limit", ["a supply", "a side constraint"])
def test_nothing_is_found_where_a_limit_lets_too_few_bins_be_there(limit: str) -> None:
    """Cut to pieces the copies are on two bins. Whole ones need three, and there are two."""
    plain = _plain(sizes=[[7], [4]], demands=[2, 1], costs=[2.0], capacities=[[10]])
    instance = replace(plain, available=np.array([2 if limit == "a supply" else UNLIMITED]))
    row = SideConstraint(np.zeros(2), np.ones(1), 2.0 if limit == "a side constraint" else 9.0)
    assert _limited(instance, row, 10.0).patterns is None


def _limited(instance: PackingInstance, row: SideConstraint, cutoff: float) -> ExactResult:
    return solve_exactly(replace(unconstrained(instance), side_constraints=(row,)), cutoff)


def _plain(
    *,
    sizes: Sequence[Sequence[int]],
    demands: Sequence[int],
    costs: Sequence[float],
    capacities: Sequence[Sequence[int]],
) -> PackingInstance:
    return PackingInstance(
        sizes=np.array(sizes),
        demands=np.array(demands),
        costs=np.array(costs),
        capacities=np.array(capacities),
        compatible=np.ones((len(sizes), len(costs)), dtype=np.bool_),
        cardinality_limits=(),
        conflicts=np.zeros((len(sizes), len(sizes)), dtype=np.bool_),
    )
