"""Column generation: patterns that a bin holds, sought at the duals of a master problem, and bought whole."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinery.decisions.optimizer.arrays import UNLIMITED
from joinery.decisions.optimizer.bounds.lower_bound import lower_bound
from joinery.decisions.optimizer.columns.master import RestrictedMaster
from joinery.decisions.optimizer.columns.pricing import PricingHeuristic
from joinery.decisions.optimizer.effort import Effort
from joinery.decisions.optimizer.instance.packing_instance import PackingInstance
from joinery.decisions.optimizer.instance.patterns import Pattern, Patterns, cost_of
from joinery.decisions.optimizer.relaxation.assignment import AssignmentRelaxation
from joinery.decisions.optimizer.search import pack
from tests.properties import examples
from tests.unit.decisions.optimizer.instances import instances, one_block, seeded, wrong

PENNY = 1e-6


def _of(patterns: list[Pattern]) -> Patterns:
    return Patterns(
        np.array([pattern.bin_type for pattern in patterns]), np.array([pattern.counts for pattern in patterns])
    )


def _slots() -> PackingInstance:
    """Bins of four slots, and items that fill them only in fours of the right sizes: greedy orders leave a slot or
    half of the capacity.
    """
    requests = np.array([[7, 1], [5, 1], [3, 1], [1, 1]])
    room = np.array([[16, 4], [7, 1]])
    demands = np.array([40, 40, 40, 40])
    return PackingInstance(
        sizes=requests,
        demands=demands,
        costs=np.array([1.0, 0.6]),
        capacities=room,
        compatible=np.asarray((room[None] >= requests[:, None]).all(axis=2)),
        cardinality_limits=(),
        conflicts=np.zeros((4, 4), dtype=np.bool_),
    )


@examples(80)
@given(instances(most_copies=12), st.integers(0, 99))
def test_every_pattern_that_is_sought_can_be_built(instance: PackingInstance, seed: int) -> None:
    """Filled or exchanged, a bin holds what its type may hold, within limits and conflicts, and no copy that does not
    exist.
    """
    answer = AssignmentRelaxation(instance).solve(instance.demands)
    assert answer is not None
    pricing = PricingHeuristic(instance, instance.sizes @ answer.capacity_duals.T, np.arange(len(instance.costs)))
    filled = pricing.by_filling(answer.item_duals, 3, np.random.default_rng(seed))
    found = filled.join(pricing.by_exchange(answer.item_duals, filled))
    for bin_type, counts in zip(found.bin_types, found.counts, strict=True):
        overfull = [text for text in wrong(instance, [Pattern(int(bin_type), counts)]) if "overfull" in text]
        assert overfull == []
        assert (counts <= instance.demands).all()


@examples(80)
@given(instances(most_copies=10))
def test_patterns_cost_no_more_than_the_packing_they_come_from_and_no_less_than_the_bound(
    instance: PackingInstance,
) -> None:
    """The master may buy fractions of known patterns: never dearer than the packing, and never cheaper than what is
    proven.
    """
    packing = pack(instance, one_block(instance), Effort(pricing_rounds=0, repairs=0))
    program = RestrictedMaster(instance, np.ones(len(instance.demands)))
    program.add_columns(_of(packing))
    answer = program.solve(instance.demands, instance.available)
    assert answer is not None
    assert lower_bound(instance) - PENNY <= answer.cost <= cost_of(instance, packing) + PENNY


def test_a_pattern_becomes_a_column_once() -> None:
    """The same pattern again adds nothing."""
    instance = seeded(5)
    program, nodes = RestrictedMaster(instance, np.ones(5)), _of(pack(instance, one_block(instance), Effort()))
    assert program.add_columns(nodes) == len(
        {(int(k), p.tobytes()) for k, p in zip(nodes.bin_types, nodes.counts, strict=True)}
    )
    assert program.add_columns(nodes) == 0


@pytest.mark.parametrize("band", [0.0, 0.05, 0.5])
def test_duals_stay_within_their_box(band: float) -> None:
    """Whatever few patterns are known, every dual is the first one, give or take the width of the box."""
    instance = seeded(12)
    first = AssignmentRelaxation(instance).solve(instance.demands)
    assert first is not None
    program = RestrictedMaster(instance, first.item_duals)
    program.add_columns(_of(pack(instance, one_block(instance), Effort(pricing_rounds=0, repairs=0))))
    answer = program.solve(instance.demands, instance.available, band)
    assert answer is not None
    assert (np.abs(answer.item_duals - first.item_duals) <= band * first.item_duals + PENNY).all()


def test_no_more_bins_are_bought_than_there_are() -> None:
    """No more is bought of a limited supply, and its dual is part of what a bin costs."""
    instance = _slots()
    scarce = PackingInstance(
        sizes=instance.sizes,
        demands=instance.demands,
        costs=instance.costs,
        capacities=instance.capacities,
        compatible=instance.compatible,
        cardinality_limits=(),
        conflicts=instance.conflicts,
        available=np.array([30, UNLIMITED]),
    )
    program = RestrictedMaster(scarce, np.full(4, 0.25))
    program.add_columns(Patterns(np.array([0]), np.array([[1, 1, 1, 1]])))
    program.add_columns(Patterns(np.ones(4, dtype=np.int64), np.eye(4, dtype=np.int64)))
    answer = program.solve(scarce.demands, scarce.available)
    assert answer is not None
    assert answer.copies.tolist() == pytest.approx([30, 10, 10, 10, 10])
    assert answer.bin_costs[0] == pytest.approx(2.4)


def _accelerated() -> PackingInstance:
    """Items of one accelerator each in six ratios of memory to CPU, and bins of one, four and eight: what production
    traces ask for.
    """
    requests = np.array([[113, 492, 1], [80, 305, 1], [157, 584, 1], [98, 416, 1], [119, 471, 1], [120, 164, 1]])
    room = np.array([[36, 140, 1], [156, 600, 1], [156, 1236, 1], [316, 1236, 1], [475, 1785, 4], [954, 3548, 8]])
    return PackingInstance(
        sizes=requests,
        demands=np.array([857, 486, 158, 195, 778, 158]),
        costs=np.array([0.526, 1.323, 1.539, 2.014, 3.912, 7.824]),
        capacities=room,
        compatible=np.asarray((room[None] >= requests[:, None]).all(axis=2)),
        cardinality_limits=(),
        conflicts=np.zeros((6, 6), dtype=np.bool_),
    )


def test_columns_find_the_fours_that_fill_a_bin_of_accelerators() -> None:
    """Four copies share a bin if their sizes are chosen together: that is found, and comes within one percent of the
    bound.
    """
    instance = _accelerated()
    without, found = (
        pack(instance, one_block(instance), Effort(pricing_rounds=rounds, repairs=0)) for rounds in (0, 60)
    )
    assert wrong(instance, found) == []
    assert cost_of(instance, found) < 0.99 * cost_of(instance, without)
    assert cost_of(instance, found) < 1.01 * lower_bound(instance)
