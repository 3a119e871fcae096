"""Instances of more items than a relaxation takes: their aggregation guides, and the bound is proven all the same."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import count

import numpy as np
import pytest

from joinery.decisions.optimizer.arrays import UNLIMITED
from joinery.decisions.optimizer.bounds.assignment_bound import item_charges
from joinery.decisions.optimizer.bounds.lower_bound import lower_bound
from joinery.decisions.optimizer.effort import Effort
from joinery.decisions.optimizer.instance.decomposition import independent_parts
from joinery.decisions.optimizer.instance.packing_instance import CardinalityLimit, PackingInstance
from joinery.decisions.optimizer.instance.patterns import cost_of
from joinery.decisions.optimizer.relaxation.assignment import AssignmentRelaxation
from joinery.decisions.optimizer.search import pack
from joinery.decisions.optimizer.tuning import MAX_ITEMS
from tests.unit.decisions.optimizer.instances import one_block, seeded, wrong


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_three_hundred_different_items_are_packed_close_to_their_bound(seed: int) -> None:
    """Every copy is packed, and the packing costs less than a tenth more than the bound."""
    instance = seeded(300, seed=seed)
    assert len(instance.demands) > MAX_ITEMS
    patterns = pack(instance, np.zeros(len(instance.costs), dtype=np.int64), Effort())
    proven = lower_bound(instance)
    assert wrong(instance, patterns) == []
    assert 0 < proven <= cost_of(instance, patterns) < 1.1 * proven


def test_the_bound_of_many_items_is_below_that_of_the_whole_relaxation() -> None:
    """Duals for the core only, and a grid for other bin types: a little weaker than all bin types at once, and never
    stronger.
    """
    instance = seeded(MAX_ITEMS + 50)
    program = AssignmentRelaxation(instance)
    answer = program.solve(instance.demands)
    assert answer is not None
    assert 0.97 * answer.cost < lower_bound(instance) <= answer.cost + 1e-6


def test_the_duals_charge_what_their_optimum_costs() -> None:
    """With the solver's own duals nothing is lost: the proof reaches the optimum of the relaxation."""
    instance = seeded(60)
    program = AssignmentRelaxation(instance)
    answer = program.solve(instance.demands)
    assert answer is not None
    least, excess = item_charges(instance, answer.duals)
    assert float(instance.demands @ least) - excess == pytest.approx(answer.cost, rel=1e-6)


def _with_standing(instance: PackingInstance, nodes: int) -> PackingInstance:
    """The same with a few nodes that exist, as large as the largest bin types."""
    room = np.repeat(instance.capacities[[instance.capacities[:, 0].argmax()]], nodes, axis=0)
    return PackingInstance(
        sizes=instance.sizes,
        demands=instance.demands,
        costs=np.concatenate([instance.costs, np.zeros(nodes)]),
        capacities=np.concatenate([instance.capacities, room]),
        compatible=np.concatenate([instance.compatible, (room[None] >= instance.sizes[:, None]).all(axis=2)], axis=1),
        cardinality_limits=(),
        conflicts=instance.conflicts,
        available=np.concatenate([instance.available, np.ones(nodes, dtype=np.int64)]),
    )


def test_standing_nodes_lower_the_bound_of_many_items_by_what_they_save() -> None:
    """Free nodes take items off the bill, more of them more, down to nothing where all fit; the bound is never
    negative.
    """
    instance = seeded(MAX_ITEMS + 50)
    assert (instance.available == UNLIMITED).all()
    bounds = [lower_bound(_with_standing(instance, nodes)) for nodes in (0, 1, 3, 30)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[1] < bounds[0]
    assert bounds[-1] == 0


def side_by_side(seeds: Sequence[int], items: int) -> PackingInstance:
    """Instances of these seeds, of which no bin type is for items of another one; each copy is alone with its like."""
    each, parts = [seeded(items, seed=seed) for seed in seeds], len(seeds)
    is_own = np.kron(np.eye(parts, dtype=np.bool_), np.ones((items, len(each[0].costs)), dtype=np.bool_))
    return PackingInstance(
        sizes=np.concatenate([one.sizes for one in each]),
        demands=np.concatenate([one.demands for one in each]) * 3,
        costs=np.concatenate([one.costs for one in each]),
        capacities=np.concatenate([one.capacities for one in each]),
        compatible=np.concatenate([np.tile(one.compatible, parts) for one in each]) & is_own,
        cardinality_limits=tuple(CardinalityLimit(np.array([item]), 1) for item in range(parts * items)),
        conflicts=np.eye(parts * items, dtype=np.bool_),
    )


def test_parts_that_nothing_connects_are_packed_close_to_their_bound() -> None:
    """Three parts of seventy items, more than a relaxation takes at once, whose replicas are apart."""
    instance = side_by_side([1, 2, 3], 70)
    assert len(instance.demands) > MAX_ITEMS
    patterns = pack(instance, one_block(instance), Effort())
    proven = lower_bound(instance)
    assert wrong(instance, patterns) == []
    assert 0 < proven <= cost_of(instance, patterns) < 1.05 * proven


def test_parts_that_are_alike_share_what_is_found_for_one_of_them() -> None:
    """Every part has all of its copies, whole and close to its bound, though one of them has fewer than the others."""
    alike = side_by_side([1, 1, 1], 70)
    instance = replace(alike, demands=alike.demands - (np.arange(len(alike.demands)) % 80 == 0))
    patterns = pack(instance, one_block(instance), Effort())
    assert wrong(instance, patterns) == []
    assert cost_of(instance, patterns) < 1.05 * lower_bound(instance)


def test_parts_are_all_packed_before_any_is_improved() -> None:
    """Time is up once all of them have bins: nothing is left without one."""
    instance = side_by_side([1, 2, 3], 70)
    asked = count()
    effort = Effort(pricing_rounds=0, repairs=0, is_time_up=lambda: next(asked) < 0)
    rounded = pack(instance, one_block(instance), effort)
    needed, asked = next(asked), count()
    hurried = pack(instance, one_block(instance), Effort(is_time_up=lambda: next(asked) >= needed))
    assert wrong(instance, rounded) == wrong(instance, hurried) == []


def test_the_bound_of_parts_is_the_sum_of_theirs() -> None:
    """Nothing is lost by proving it of each part."""
    instance = side_by_side([1, 2], 30)
    of_each = [lower_bound(part.instance) for part in independent_parts(instance)]
    assert len(of_each) == 2
    assert lower_bound(instance) == pytest.approx(sum(of_each))
