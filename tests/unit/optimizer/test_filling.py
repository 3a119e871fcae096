"""Filling nodes greedily: never more than a node holds, never more than there is, and as much as possible of what comes first."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from joinery.optimizer.arrays import Ints
from joinery.optimizer.instance.packing_instance import Lot
from joinery.optimizer.rounding.filling import apart, fill, sequences
from tests.properties import examples
from tests.unit.optimizer.lots import holds, lots


def _rows(lot: Lot, data: st.DataObject) -> tuple[Ints, Ints]:
    """Up to four nodes of any kinds, each with its own order of items."""
    kinds = data.draw(st.lists(st.integers(0, len(lot.price) - 1), min_size=1, max_size=4))
    orders = [data.draw(st.permutations(range(len(lot.counts)))) for _ in kinds]
    return np.array(kinds), np.array(orders)


@examples(100)
@given(lots(), st.data())
def test_no_node_is_overfull(lot: Lot, data: st.DataObject) -> None:
    """No resource, group, clash or count is overdrawn, whatever the order."""
    kinds, orders = _rows(lot, data)
    pods = fill(lot, kinds, orders, lot.counts)
    assert (pods <= lot.counts).all()
    assert all(holds(lot, int(kind), row.tolist()) for kind, row in zip(kinds, pods, strict=True))


@examples(100)
@given(lots(), st.data())
def test_nothing_more_fits_on_a_filled_node(lot: Lot, data: st.DataObject) -> None:
    """One more pod of any item that is left would be too much."""
    kinds, orders = _rows(lot, data)
    for kind, row in zip(kinds, fill(lot, kinds, orders, lot.counts), strict=True):
        for item in np.flatnonzero(row < lot.counts):
            more = row.copy()
            more[item] += 1
            assert not holds(lot, int(kind), more.tolist())


@examples(100)
@given(lots(), st.data())
def test_filling_goes_on_from_what_is_on_a_node(lot: Lot, data: st.DataObject) -> None:
    """A node that is filled in two steps keeps what it had and is as right as one that is filled at once."""
    kinds, orders = _rows(lot, data)
    start = fill(lot, kinds, orders[:, :1], lot.counts)
    pods = fill(lot, kinds, orders[:, ::-1], lot.counts, start)
    assert (pods >= start).all()
    assert all(holds(lot, int(kind), row.tolist()) for kind, row in zip(kinds, pods, strict=True))


@examples(100)
@given(lots(), st.data())
def test_pods_that_clash_are_taken_apart(lot: Lot, data: st.DataObject) -> None:
    """Of any heap of pods those stay that may share a node, and all that clash with nothing."""
    counts = data.draw(st.lists(st.integers(0, 3), min_size=len(lot.counts), max_size=len(lot.counts)))
    heap, worth = np.array([counts]), np.arange(len(counts), dtype=np.float64)
    kept = apart(lot, heap, worth)[0]
    assert (kept <= heap[0]).all()
    assert not any(lot.clashes[a, b] and (a != b or kept[a] > 1) for a in kept.nonzero()[0] for b in kept.nonzero()[0])
    at_peace = ~lot.clashes.any(axis=1)
    assert (kept[at_peace] == heap[0][at_peace]).all()


@examples(100)
@given(lots(), st.data())
def test_every_order_has_every_item_once(lot: Lot, data: st.DataObject) -> None:
    """Each kind gets a few orders, and each order names every live item once and no other."""
    live = np.array(sorted(data.draw(st.sets(st.integers(0, len(lot.counts) - 1), min_size=1))))
    worth = np.array(data.draw(st.lists(st.floats(0, 5), min_size=len(lot.counts), max_size=len(lot.counts))))
    kinds, orders = sequences(lot, worth, np.arange(len(lot.price)), live)
    assert set(kinds.tolist()) == set(range(len(lot.price)))
    assert all(sorted(order) == live.tolist() for order in orders.tolist())
