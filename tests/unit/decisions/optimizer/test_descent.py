"""Dives that seek new patterns on the way down: what few copies are packed with."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from joinery.decisions.optimizer.columns.descent import descend
from joinery.decisions.optimizer.effort import Effort
from joinery.decisions.optimizer.instance.decomposition import decompose
from joinery.decisions.optimizer.instance.packing_instance import PackingInstance
from joinery.decisions.optimizer.instance.patterns import Pattern, cost_of
from joinery.decisions.optimizer.relaxation.assignment import AssignmentRelaxation
from joinery.decisions.optimizer.relaxation.merged_duals import MergedDuals
from joinery.decisions.optimizer.search import pack
from tests.properties import examples
from tests.unit.decisions.optimizer.instances import instances, one_block, wrong

HASTY = Effort(pricing_rounds=0, repairs=0)


def _duals(instance: PackingInstance) -> MergedDuals:
    duals = MergedDuals.empty(instance)
    for part in decompose(instance, one_block(instance), instance.demands):
        solution = AssignmentRelaxation(part.instance).solve(part.instance.demands)
        assert solution is not None
        duals.add(part, solution)
    return duals


def _one_bin_each(instance: PackingInstance) -> list[Pattern]:
    """Every copy on a bin of the last type, which takes any of them."""
    last, items = len(instance.costs) - 1, np.eye(len(instance.demands), dtype=np.int64)
    return [Pattern(last, items[item], int(demand)) for item, demand in enumerate(instance.demands)]


@examples(80)
@given(instances(most_copies=10), st.integers(0, 99))
def test_a_descent_packs_the_same_copies_for_no_more(instance: PackingInstance, seed: int) -> None:
    """Whatever it starts from, its bins hold all copies and no more, and cost no more than those."""
    start = _one_bin_each(instance)
    after = descend(instance, _duals(instance), start, Effort(), np.random.default_rng(seed))
    assert wrong(instance, after) == []
    assert cost_of(instance, after) <= cost_of(instance, start)


@examples(40)
@given(instances(most_copies=10, limited=True), st.integers(0, 99))
def test_a_descent_overdraws_no_supply(instance: PackingInstance, seed: int) -> None:
    """Bins of which there are only so many are not bought more often."""
    start = pack(instance, one_block(instance), HASTY)
    after = descend(instance, _duals(instance), start, Effort(), np.random.default_rng(seed))
    assert wrong(instance, after) == []


def _apart() -> PackingInstance:
    """Copies of three items that keep away from their like, and small ones that fill up: on how many bins they are is
    what decides, and of that a relaxation in fractions knows little.
    """
    sizes = np.array([[1000, 4], [2000, 2], [500, 8], [250, 1], [750, 3]])
    vcpus = np.array([1, 2, 4, 8, 16, 32])
    capacities = np.concatenate([np.outer(vcpus, [960, memory]) for memory in (2, 4, 8)])
    costs = np.concatenate([vcpus * price for price in (0.0425, 0.05, 0.065)])
    return PackingInstance(
        sizes=sizes,
        demands=np.array([9, 7, 8, 20, 12]),
        costs=costs,
        capacities=capacities,
        compatible=np.asarray((capacities[None] >= sizes[:, None]).all(axis=2)),
        cardinality_limits=(),
        conflicts=np.diag(np.array([True, True, True, False, False])),
    )


def test_few_copies_that_keep_apart_are_packed_nearly_in_the_cheapest_way() -> None:
    """A descent alone comes near what is proven to be cheapest, without any local search."""
    instance = _apart()
    after = descend(instance, _duals(instance), _one_bin_each(instance), Effort(), np.random.default_rng(0))
    assert wrong(instance, after) == []
    assert cost_of(instance, after) < 1.03 * cost_of(instance, pack(instance, one_block(instance), HASTY))
