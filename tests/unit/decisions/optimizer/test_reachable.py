"""Capacities without room that no whole copies can use."""

from dataclasses import replace
from itertools import product

import numpy as np
from hypothesis import given

from joinery.decisions.optimizer.instance.packing_instance import PackingInstance
from joinery.decisions.optimizer.instance.reachable import with_reachable_capacities
from tests.properties import examples
from tests.unit.decisions.optimizer.instances import holds, instances, seeded


@examples(80)
@given(instances() | instances(limited=True))
def test_whole_copies_fit_just_where_they_did(instance: PackingInstance) -> None:
    """Each content of a bin is held against both, for all bin types."""
    tightened = with_reachable_capacities(instance, instance.demands)
    assert (tightened.capacities <= instance.capacities).all()
    for counts in product(*(range(int(most) + 1) for most in instance.demands)):
        for bin_type in range(len(instance.costs)):
            assert holds(instance, bin_type, counts) == holds(tightened, bin_type, counts)


@examples(40)
@given(instances())
def test_a_capacity_is_a_sum_of_copies(instance: PackingInstance) -> None:
    """Of those that the bin type is compatible with."""
    tightened = with_reachable_capacities(instance, instance.demands)
    for bin_type, capacities in enumerate(tightened.capacities):
        members = np.flatnonzero(instance.compatible[:, bin_type])
        contents = np.array(list(product(*(range(int(most) + 1) for most in instance.demands[members]))))
        for resource in np.flatnonzero((instance.sizes[members] > 0).any(axis=0)):
            assert capacities[resource] in contents @ instance.sizes[members, resource]


def test_copies_of_two_and_four_fill_no_odd_capacity() -> None:
    """What is left over of one is room that relaxations need not count on."""
    instance = PackingInstance(
        sizes=np.array([[2], [4]]),
        demands=np.array([9, 9]),
        costs=np.array([1.0, 2.0]),
        capacities=np.array([[31], [7]]),
        compatible=np.ones((2, 2), dtype=np.bool_),
        cardinality_limits=(),
        conflicts=np.zeros((2, 2), dtype=np.bool_),
    )
    assert with_reachable_capacities(instance, instance.demands).capacities.tolist() == [[30], [6]]


def test_capacities_of_millions_of_bytes_are_rounded_to_what_all_sizes_have_in_common() -> None:
    """The sums themselves are added up for small capacities only."""
    instance = seeded(6)
    in_bytes = replace(instance, sizes=instance.sizes * 1_000_003, capacities=instance.capacities * 1_000_003 + 999_999)
    tightened = with_reachable_capacities(in_bytes, in_bytes.demands)
    assert (tightened.capacities % 1_000_003 == 0).all()
