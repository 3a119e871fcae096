"""Filling bins greedily: never more than a bin holds, never more than there is, and as much as possible of what comes
first.
"""

from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from joinery.decisions.optimizer.arrays import Ints
from joinery.decisions.optimizer.instance.packing_instance import CardinalityLimit, PackingInstance
from joinery.decisions.optimizer.rounding.filling import fill, greedy_orders, without_conflicts
from tests.properties import examples
from tests.unit.decisions.optimizer.instances import holds, instances


def _rows(instance: PackingInstance, data: st.DataObject) -> tuple[Ints, Ints]:
    """Up to four bins of any types, each with its own order of items."""
    bin_types = data.draw(st.lists(st.integers(0, len(instance.costs) - 1), min_size=1, max_size=4))
    orders = [data.draw(st.permutations(range(len(instance.demands)))) for _ in bin_types]
    return np.array(bin_types), np.array(orders)


@examples(100)
@given(instances(), st.data())
def test_no_bin_is_overfull(instance: PackingInstance, data: st.DataObject) -> None:
    """No capacity, limit, conflict or demand is overdrawn, whatever the order."""
    bin_types, orders = _rows(instance, data)
    counts = fill(instance, bin_types, orders, instance.demands)
    assert (counts <= instance.demands).all()
    assert all(holds(instance, int(bin_type), row.tolist()) for bin_type, row in zip(bin_types, counts, strict=True))


@examples(100)
@given(instances(), st.data())
def test_nothing_more_fits_on_a_filled_bin(instance: PackingInstance, data: st.DataObject) -> None:
    """One more copy of any item that is left would be too much."""
    bin_types, orders = _rows(instance, data)
    for bin_type, row in zip(bin_types, fill(instance, bin_types, orders, instance.demands), strict=True):
        for item in np.flatnonzero(row < instance.demands):
            more = row.copy()
            more[item] += 1
            assert not holds(instance, int(bin_type), more.tolist())


@examples(100)
@given(instances(), st.data())
def test_filling_goes_on_from_what_is_on_a_bin(instance: PackingInstance, data: st.DataObject) -> None:
    """A bin that is filled in two steps keeps what it had and is as right as one that is filled at once."""
    bin_types, orders = _rows(instance, data)
    start = fill(instance, bin_types, orders[:, :1], instance.demands)
    counts = fill(instance, bin_types, orders[:, ::-1], instance.demands, start)
    assert (counts >= start).all()
    assert all(holds(instance, int(bin_type), row.tolist()) for bin_type, row in zip(bin_types, counts, strict=True))


@examples(50)
@given(instances(), st.integers(40, 100), st.randoms(use_true_random=False))
def test_many_items_fill_a_bin_as_they_would_in_turn(instance: PackingInstance, many: int, chance: Random) -> None:
    """Items that are taken together, or passed over together, are those that each alone would take or pass over."""
    items = np.array([chance.randrange(len(instance.demands)) for _ in range(many)])
    bin_types = np.arange(len(instance.costs))
    wide = PackingInstance(
        sizes=instance.sizes[items],
        demands=instance.demands[items],
        costs=instance.costs,
        capacities=4 * instance.capacities,
        compatible=instance.compatible[items],
        cardinality_limits=(CardinalityLimit(np.arange(0, many, 3), 5),) if chance.random() < 0.5 else (),
        conflicts=np.zeros((many, many), dtype=np.bool_),
    )
    orders = np.array([chance.sample(range(many), many) for _ in bin_types])
    one_by_one = fill(wide, bin_types, orders[:, :1], wide.demands)
    for position in range(1, many):
        one_by_one = fill(wide, bin_types, orders[:, [position]], wide.demands, one_by_one)
    assert (fill(wide, bin_types, orders, wide.demands) == one_by_one).all()


@examples(100)
@given(instances(), st.data())
def test_items_in_conflict_are_taken_apart(instance: PackingInstance, data: st.DataObject) -> None:
    """Of any copies those stay that may share a bin, and all that conflict with nothing."""
    demands = data.draw(st.lists(st.integers(0, 3), min_size=len(instance.demands), max_size=len(instance.demands)))
    heap, item_duals = np.array([demands]), np.arange(len(demands), dtype=np.float64)
    kept = without_conflicts(instance, heap, item_duals)[0]
    assert (kept <= heap[0]).all()
    assert not any(
        instance.conflicts[a, b] and (a != b or kept[a] > 1) for a in kept.nonzero()[0] for b in kept.nonzero()[0]
    )
    at_peace = ~instance.conflicts.any(axis=1)
    assert (kept[at_peace] == heap[0][at_peace]).all()


@examples(100)
@given(instances(), st.data())
def test_every_order_has_every_item_once(instance: PackingInstance, data: st.DataObject) -> None:
    """Each bin type gets a few orders, and each order names every item that is left once and no other."""
    live = np.array(sorted(data.draw(st.sets(st.integers(0, len(instance.demands) - 1), min_size=1))))
    item_duals = np.array(
        data.draw(st.lists(st.floats(0, 5), min_size=len(instance.demands), max_size=len(instance.demands)))
    )
    bin_types, orders = greedy_orders(instance, item_duals, np.arange(len(instance.costs)), live)
    assert set(bin_types.tolist()) == set(range(len(instance.costs)))
    assert all(sorted(order) == live.tolist() for order in orders.tolist())
