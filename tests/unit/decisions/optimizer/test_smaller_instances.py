"""Instances made smaller: by block, by aggregates of nearly equal items, by a core of bin types. Nothing is lost on
the way.
"""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinery.decisions.optimizer.arrays import UNLIMITED
from joinery.decisions.optimizer.bounds.assignment_bound import item_charges
from joinery.decisions.optimizer.instance.aggregation import aggregate
from joinery.decisions.optimizer.instance.decomposition import decompose, independent_parts
from joinery.decisions.optimizer.instance.likeness import in_order
from joinery.decisions.optimizer.instance.packing_instance import CardinalityLimit, PackingInstance
from joinery.decisions.optimizer.instance.patterns import Pattern, Patterns
from joinery.decisions.optimizer.relaxation.assignment import AssignmentRelaxation
from joinery.decisions.optimizer.relaxation.core import CoreSelection
from joinery.decisions.optimizer.relaxation.relaxation import AggregatedRelaxation, ResidualRelaxation
from joinery.decisions.optimizer.tuning import AGGREGATES, MAX_ITEMS
from tests.properties import examples
from tests.unit.decisions.optimizer.instances import blocks, holds, instances, seeded, wrong


@examples(100)
@given(instances(most_copies=12), st.data())
def test_blocks_share_out_every_copy_and_never_mix(instance: PackingInstance, data: st.DataObject) -> None:
    """Each part has bin types of one block only, which hold all its items, and together the parts have every copy
    once.
    """
    block = data.draw(blocks(instance))
    total = np.zeros_like(instance.demands)
    for part in decompose(instance, block, instance.demands):
        assert len(set(block[part.bin_types].tolist())) == 1 or len(set(block.tolist())) == 1
        assert part.instance.compatible[part.instance.demands > 0].any(axis=1).all()
        assert (part.instance.sizes == instance.sizes[part.items]).all()
        assert (part.instance.costs == instance.costs[part.bin_types]).all()
        total[part.items] += part.instance.demands
    assert total.tolist() == instance.demands.tolist()


@examples(100)
@given(instances(most_copies=12), st.data())
def test_a_restricted_instance_keeps_its_rules(instance: PackingInstance, data: st.DataObject) -> None:
    """Limits and conflicts of the items that stay are those of the whole instance, by their new numbers."""
    items = np.array(sorted(data.draw(st.sets(st.integers(0, len(instance.demands) - 1), min_size=1))))
    part = instance.restrict(items, np.arange(len(instance.costs)), instance.demands[items])
    kept = [(sorted(items[g.items].tolist()), g.cap) for g in part.cardinality_limits]
    listed = [([m for m in g.items.tolist() if m in items], g.cap) for g in instance.cardinality_limits]
    assert kept == [(members, cap) for members, cap in listed if members]
    assert (part.conflicts == instance.conflicts[np.ix_(items, items)]).all()


@examples(100)
@given(instances(most_copies=12))
def test_aggregates_hold_every_copy_and_only_items_of_one_look(instance: PackingInstance) -> None:
    """No copy is lost in an aggregate, and items that share one have the same limits with others and the same cap of
    their own.
    """
    aggregation = aggregate(instance)
    together = np.bincount(aggregation.aggregate_of, weights=instance.demands)
    assert together.tolist() == aggregation.instance.demands.tolist()
    for cell in range(len(aggregation.instance.demands)):
        inside = np.flatnonzero(aggregation.aggregate_of == cell)
        joint = instance.limit_members[:, instance.limit_members.sum(axis=0) > 1]
        assert len({joint[item].tobytes() for item in inside}) == 1
        assert len({_own_cap(instance, int(item)) for item in inside}) == 1
        sizes = instance.sizes[inside]
        assert (sizes.min(axis=0) <= aggregation.instance.sizes[cell]).all()
        assert (aggregation.instance.sizes[cell] <= sizes.max(axis=0)).all()


def _own_cap(instance: PackingInstance, item: int) -> int:
    return min((one.cap for one in instance.cardinality_limits if one.items.tolist() == [item]), default=UNLIMITED)


@examples(100)
@given(instances(most_copies=12), st.integers(1, 3))
def test_what_the_duals_of_aggregates_prove_is_never_above_the_whole_relaxation(
    instance: PackingInstance, number: int
) -> None:
    """However few aggregates there are, of items that are however different: no packing costs less than the bound."""
    aggregation, whole = aggregate(instance, number), AssignmentRelaxation(instance).solve(instance.demands)
    guide = AssignmentRelaxation(aggregation.instance, cuts=False).solve(aggregation.instance.demands)
    assert guide is not None
    assert whole is not None
    charges, excess = item_charges(instance, guide.duals.for_items_of(aggregation, instance))
    assert float(instance.demands @ charges) - excess <= whole.cost + 1e-6


def test_replicas_that_are_apart_are_aggregated_with_their_limits() -> None:
    """Of three hundred workloads, some with many replicas, eighty limits stay, and they prove nearly what three hundred
    prove.
    """
    alike = seeded(300)
    instance = replace(
        alike,
        demands=1 + 200 // (1 + np.arange(300)),
        cardinality_limits=tuple(CardinalityLimit(np.array([item]), 1) for item in range(300)),
        conflicts=np.eye(300, dtype=np.bool_),
    )
    aggregation, whole = aggregate(instance), AssignmentRelaxation(instance, cuts=False).solve(instance.demands)
    assert len(aggregation.instance.cardinality_limits) <= AGGREGATES
    guide = AssignmentRelaxation(aggregation.instance, cuts=False).solve(aggregation.instance.demands)
    assert guide is not None
    assert whole is not None
    charges, _ = item_charges(instance, guide.duals.for_items_of(aggregation, instance))
    assert len(guide.duals.rows) <= AGGREGATES * len(instance.costs) < 300 * len(instance.costs) / 3
    assert float(instance.demands @ charges) == pytest.approx(whole.cost, rel=0.02)


def test_aggregates_are_fewer_than_items_and_of_nearly_one_size() -> None:
    """Four hundred sizes become a number that is solved quickly, each aggregate a small part of the whole range."""
    instance = seeded(400)
    aggregation = aggregate(instance)
    assert len(aggregation.instance.demands) < MAX_ITEMS
    assert aggregation.instance.demands.sum() == instance.demands.sum()
    apart = np.abs(instance.sizes - aggregation.instance.sizes[aggregation.aggregate_of])[:, :2].mean(axis=0)
    assert (apart < 0.1 * np.ptp(instance.sizes[:, :2], axis=0)).all()


@examples(100)
@given(instances(most_copies=12))
def test_the_aggregated_relaxation_shares_out_every_copy(instance: PackingInstance) -> None:
    """Read as the instance's own, the optimum of the aggregates puts each item on compatible bins, and on no others."""
    answer = AggregatedRelaxation(instance).solve(instance.demands)
    assert answer is not None
    assert (answer.assigned[~instance.compatible] == 0).all()
    assert (answer.assigned.sum(axis=1) <= instance.demands + 1e-6).all()
    assert (answer.item_duals >= 0).all()


def test_what_is_assigned_of_many_items_adds_up() -> None:
    """Four hundred sizes, none of which is too large for any bin type: what is assigned of each item is its demand."""
    instance = seeded(400)
    answer = AggregatedRelaxation(instance).solve(instance.demands)
    assert answer is not None
    np.testing.assert_allclose(
        answer.assigned[instance.compatible.all(axis=1)].sum(axis=1), instance.demands[instance.compatible.all(axis=1)]
    )


@examples(100)
@given(instances(most_copies=12), st.integers(1, 4))
def test_a_core_leaves_every_item_a_bin_type(instance: PackingInstance, sorts: int) -> None:
    """However few classes are asked for, no item is left without a compatible bin type."""
    bin_types = CoreSelection(instance).core(sorts)
    assert instance.compatible[:, bin_types].any(axis=1).all()
    assert bin_types.tolist() == sorted(set(bin_types.tolist()))


def test_bin_types_of_one_capacity_and_cost_are_in_the_core_together() -> None:
    """The same type in another block is as good, and is there for items that are tied to that block."""
    instance = seeded(20, bin_types=12)
    twice = instance.restrict(np.arange(20), np.tile(np.arange(12), 2), instance.demands)
    bin_types = set(CoreSelection(twice).core(3).tolist())
    assert {(bin_type + 12) % 24 for bin_type in bin_types} == bin_types


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_leaving_out_what_has_run_out_hardly_changes_the_duals(seed: int) -> None:
    """With few items left, others than before, or all again, the smaller relaxation buys what the whole one buys:
    it may only have fewer of the rows that are added in the course.
    """
    instance = seeded(40, seed=seed)
    items = np.arange(len(instance.demands))
    shrinking = ResidualRelaxation(instance)
    for chosen in (items < 40, items < 15, items < 12, items >= 30, items < 40):
        demands = np.where(chosen, instance.demands, 0)
        small, whole = shrinking.solve(demands), AssignmentRelaxation(instance).solve(demands)
        assert small is not None
        assert whole is not None
        assert small.cost == pytest.approx(whole.cost, rel=0.03)
        assert float(demands @ small.item_duals) == pytest.approx(small.cost, rel=1e-6)
        assert np.allclose(small.assigned.sum(axis=1), demands)


@pytest.mark.parametrize("items", [5, 20, 60])
def test_a_plain_packing_is_as_good_a_beginning_as_nothing(items: int) -> None:
    """Wherever the solver begins, its optimum costs the same but for rows that are added in the course."""
    instance = seeded(items)
    swift, slow = (
        AssignmentRelaxation(instance, swift=True).solve(instance.demands),
        AssignmentRelaxation(instance).solve(instance.demands),
    )
    assert swift is not None
    assert slow is not None
    assert swift.cost == pytest.approx(slow.cost, rel=0.01)


@examples(100)
@given(instances(most_copies=12, limited=True))
def test_nothing_connects_independent_parts(instance: PackingInstance) -> None:
    """Every item that some bin type is for is in one part, with all bin types that are for it; no supply is in two."""
    parts = independent_parts(instance)
    items = [item for part in parts for item in part.items.tolist()]
    assert sorted(items) == np.flatnonzero(instance.compatible.any(axis=1)).tolist()
    supplies = [set(instance.supply[part.bin_types].tolist()) for part in parts]
    assert sum(map(len, supplies)) == len(set().union(*supplies))
    for part in parts:
        outside = np.setdiff1d(np.arange(len(instance.costs)), part.bin_types)
        assert not instance.compatible[np.ix_(part.items, outside)].any()


@examples(100)
@given(instances(most_copies=12), st.data())
def test_what_a_leader_has_on_a_bin_fits_on_that_of_its_like(leader: PackingInstance, data: st.DataObject) -> None:
    """Though items and bin types come in another order, and of an item there is a copy less."""
    items = np.array(data.draw(st.permutations(range(len(leader.demands)))))
    bin_types = np.array(data.draw(st.permutations(range(len(leader.costs)))))
    less = np.eye(len(items), dtype=np.int64)[0] * (leader.demands[items[0]] > 1)
    like = leader.restrict(items, bin_types, leader.demands[items] - less)
    _, (_, led) = in_order([leader, like])
    contents = list(product(*(range(count + 1) for count in leader.demands.tolist())))
    filled = [(k, one) for k in range(len(bin_types)) for one in contents if holds(leader, k, one)]
    read = (
        led[1].read(Patterns(np.array([k for k, _ in filled]), np.array([one for _, one in filled]))) if led else None
    )
    for bin_type, counts in zip(read.bin_types, read.counts, strict=True) if read else ():
        assert holds(like, int(bin_type), counts.tolist())
    taken, residual = led[1].taken_over([Pattern(k, np.array(one)) for k, one in filled]) if led else ([], like.demands)
    assert (residual >= 0).all()
    assert wrong(replace(like, demands=like.demands - residual), taken) == []


@examples(100)
@given(instances(most_copies=12))
def test_a_relaxation_keeps_limits_that_it_did_not_begin_with(instance: PackingInstance) -> None:
    """Of one item that alone counts for a limit, a bin type's bins have no more copies than the limit allows them."""
    relaxation = AssignmentRelaxation(instance)
    for demands in (instance.demands, np.maximum(instance.demands - 1, 0)):
        solution = relaxation.solve(demands)
        assert solution is not None
        for limit in instance.cardinality_limits:
            held = solution.assigned[limit.items].sum(axis=0)
            assert (held <= limit.cap * solution.bins + 1e-6).all()
