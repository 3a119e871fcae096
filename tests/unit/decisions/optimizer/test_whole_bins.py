"""Bounds on programs with whole numbers: whatever duals the solver suggests, what they prove holds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinery.decisions.optimizer.bounds.compact import CompactFormulation
from joinery.decisions.optimizer.bounds.duality import dual_bound
from joinery.decisions.optimizer.bounds.enumeration import least_cost
from joinery.decisions.optimizer.bounds.exact import solve_exactly
from joinery.decisions.optimizer.bounds.pattern_duals import pattern_duals
from joinery.decisions.optimizer.bounds.pattern_relaxation import converge
from joinery.decisions.optimizer.instance.packing_instance import PackingInstance
from joinery.decisions.optimizer.instance.patterns import cost_of
from joinery.decisions.optimizer.instance.side_constraints import ConstrainedInstance, SideConstraint, unconstrained
from tests.properties import examples
from tests.unit.decisions.optimizer.instances import cheapest, instances, wrong

PENNY = 1e-7


@examples(80)
@given(instances() | instances(limited=True), st.floats(0, 1))
def test_a_small_instance_is_solved_exactly(instance: PackingInstance, dearer: float) -> None:
    """However dear the packing that was known: the bound is what the cheapest bins cost, and such bins are found."""
    best = cheapest(instance)
    answer = solve_exactly(unconstrained(instance), best * (1 + dearer) + 1e-3)
    assert answer.is_tight
    assert best - 1e-6 <= answer.bound <= best + PENNY
    assert answer.patterns is not None
    assert wrong(instance, answer.patterns) == []
    assert cost_of(instance, answer.patterns) == pytest.approx(best)


@examples(80)
@given(instances() | instances(limited=True))
def test_a_packing_that_is_cheapest_is_known_to_be(instance: PackingInstance) -> None:
    """Its own cost is the bound, but for what is taken off for the rounding of floats."""
    best = cheapest(instance)
    assert solve_exactly(unconstrained(instance), best).bound == pytest.approx(best, rel=1e-6, abs=PENNY)


@examples(80)
@given(instances(limited=True), st.data())
def test_any_duals_prove_a_bound_that_holds(instance: PackingInstance, data: st.DataObject) -> None:
    """The solver may err: its duals are only a suggestion."""
    best = cheapest(instance)
    program = CompactFormulation(unconstrained(instance).with_supply_rows(), best + 1.0).program
    rows = len(program.row_lower)
    prices = np.array(data.draw(st.lists(st.floats(-3, 3), min_size=rows, max_size=rows)))
    assert dual_bound(program, prices, np.zeros(len(program.costs)), program.upper_bounds) <= best + PENNY


def test_side_constraints_count() -> None:
    """Two copies that may be in either of two zones, one in each at most, need a bin in each, though one would hold
    both.
    """
    instance = PackingInstance(
        sizes=np.array([[1], [1]]),
        demands=np.array([2, 2]),
        costs=np.array([1.0, 1.25]),
        capacities=np.array([[4], [4]]),
        compatible=np.eye(2, dtype=np.bool_),
        cardinality_limits=(),
        conflicts=np.zeros((2, 2), dtype=np.bool_),
    )
    rows = tuple(SideConstraint(np.eye(2)[zone], np.zeros(2), 1.0) for zone in range(2))
    constrained = ConstrainedInstance(
        instance=instance, demand_of=np.array([0, 0]), demands=np.array([2]), side_constraints=rows
    )
    answer = solve_exactly(constrained, 3.0)
    assert answer.bound == pytest.approx(2.25)
    assert answer.patterns is not None
    assert sorted((pattern.bin_type, *pattern.counts) for pattern in answer.patterns) == [(0, 1, 0), (1, 0, 1)]


def test_where_no_bin_is_left_that_could_be_in_a_cheaper_packing_the_known_one_is_cheapest() -> None:
    """The bound of the relaxation is just too far below the known packing to say so by itself."""
    instance = PackingInstance(
        sizes=np.array([[2000, 7230980096, 1], [1000, 3657433088, 1], [2000, 5502926848, 1]]),
        demands=np.array([5, 1, 2]),
        costs=np.array([0.306, 0.612, 0.153, 0.3456, 0.6912, 0.1728, 0.4536, 0.9072, 0.2268]),
        capacities=np.array(
            [[7910, 14849933312, 58], [15890, 28711059456, 234], [3920, 6903824384, 58], [7910, 30741102592, 58]]
            + [[15890, 60493398016, 234], [3920, 14849933312, 58], [7910, 62523441152, 58]]
            + [[15890, 124059123712, 234], [3920, 30741102592, 58]]
        ),
        compatible=np.ones((3, 9), dtype=np.bool_),
        cardinality_limits=(),
        conflicts=np.zeros((3, 3), dtype=np.bool_),
    )
    answer = solve_exactly(unconstrained(instance), 0.6912)
    assert answer.is_tight
    assert answer.bound == pytest.approx(0.6912, rel=1e-5)


@examples(80)
@given(instances(most_copies=6) | instances(limited=True), st.floats(0, 1))
def test_generated_columns_lift_a_bound_that_holds(instance: PackingInstance, dearer: float) -> None:
    """Wherever it ends, the duals prove no more than the cheapest bins cost, and no less than those that it began
    with.
    """
    best = cheapest(instance)
    formulation = CompactFormulation(unconstrained(instance).with_supply_rows(), best * (1 + dearer) + 1e-3)
    before = pattern_duals(formulation, formulation.relaxed()[1])
    after = converge(formulation, before)
    assert least_cost(formulation, after) <= best + PENNY
    assert least_cost(formulation, after) >= least_cost(formulation, before) - 1e-4


def test_a_bin_holds_whole_copies_and_the_relaxation_over_patterns_knows() -> None:
    """Two sizes of which no two fit together: half of each bin is paid for in vain, and no fractions mend that."""
    sizes, capacities = np.array([[6, 2], [2, 6], [5, 5]]), np.array([[8, 7], [16, 15]])
    instance = PackingInstance(
        sizes=sizes,
        demands=np.array([30, 30, 30]),
        costs=np.array([1.0, 1.95]),
        capacities=capacities,
        compatible=np.ones((3, 2), dtype=np.bool_),
        cardinality_limits=(),
        conflicts=np.zeros((3, 3), dtype=np.bool_),
    )
    formulation = CompactFormulation(unconstrained(instance), 90.0)
    by_fractions, duals = formulation.relaxed()
    patterns = converge(formulation, pattern_duals(formulation, duals))
    assert least_cost(formulation, patterns) > 1.01 * by_fractions
