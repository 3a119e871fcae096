"""Patterns: nodes that can be built, sought at the prices of a program, and bought whole."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinery.optimizer.arrays import UNLIMITED, Ints
from joinery.optimizer.bounds.lower_bound import bound
from joinery.optimizer.columns.master import PatternProgram
from joinery.optimizer.columns.pricing import Pricing
from joinery.optimizer.effort import Effort
from joinery.optimizer.instance.packing_instance import Lot
from joinery.optimizer.instance.patterns import Patterns, Shape, price_of
from joinery.optimizer.relaxation.assignment import AssignmentProgram
from joinery.optimizer.search import pack
from tests.properties import examples
from tests.unit.optimizer.lots import lots, seeded, wrong

PENNY = 1e-6


def _of(shapes: list[Shape]) -> Patterns:
    return Patterns(np.array([shape.kind for shape in shapes]), np.array([shape.pods for shape in shapes]))


def _one_place(lot: Lot) -> Ints:
    return np.zeros(len(lot.price), dtype=np.int64)


def _slots() -> Lot:
    """Nodes of four slots, and pods that only fill them in fours of the right sizes: greedy orders leave a slot or half the room."""
    requests = np.array([[7, 1], [5, 1], [3, 1], [1, 1]])
    room = np.array([[16, 4], [7, 1]])
    counts = np.array([40, 40, 40, 40])
    return Lot(
        requests=requests,
        counts=counts,
        price=np.array([1.0, 0.6]),
        room=room,
        admits=np.asarray((room[None] >= requests[:, None]).all(axis=2)),
        groups=(),
        clashes=np.zeros((4, 4), dtype=np.bool_),
    )


@examples(80)
@given(lots(most_pods=12), st.integers(0, 99))
def test_every_pattern_that_is_sought_can_be_built(lot: Lot, seed: int) -> None:
    """Filled or exchanged, a node holds what its kind has room for, within groups and clashes, and no pod that does not exist."""
    answer = AssignmentProgram(lot).solve(lot.counts)
    assert answer is not None
    pricing = Pricing(lot, lot.requests @ answer.room.T, np.arange(len(lot.price)))
    filled = pricing.filled(answer.worth, 3, np.random.default_rng(seed))
    found = filled.join(pricing.exchanged(answer.worth, filled))
    for kind, pods in zip(found.kinds, found.pods, strict=True):
        overfull = [text for text in wrong(lot, [Shape(int(kind), pods)]) if "overfull" in text]
        assert overfull == []
        assert (pods <= lot.counts).all()


@examples(80)
@given(lots(most_pods=10))
def test_patterns_cost_no_more_than_the_packing_they_come_from_and_no_less_than_the_bound(lot: Lot) -> None:
    """The program may buy fractions of known nodes: that is never dearer than the nodes, and never cheaper than what is proven."""
    packing = pack(lot, _one_place(lot), Effort(rounds=0, tries=0))
    program = PatternProgram(lot, np.ones(len(lot.counts)))
    program.add(_of(packing))
    answer = program.solve(lot.counts, lot.stock)
    assert answer is not None
    assert bound(lot) - PENNY <= answer.price <= price_of(lot, packing) + PENNY


def test_a_pattern_is_made_known_once() -> None:
    """The same node again adds nothing."""
    lot = seeded(5)
    program, nodes = PatternProgram(lot, np.ones(5)), _of(pack(lot, _one_place(lot), Effort()))
    assert program.add(nodes) == len({(int(k), p.tobytes()) for k, p in zip(nodes.kinds, nodes.pods, strict=True)})
    assert program.add(nodes) == 0


@pytest.mark.parametrize("band", [0.0, 0.05, 0.5])
def test_prices_stay_within_their_band(band: float) -> None:
    """A pod is charged what the first prices say, give or take the band, whatever few patterns are known."""
    lot = seeded(12)
    first = AssignmentProgram(lot).solve(lot.counts)
    assert first is not None
    program = PatternProgram(lot, first.worth)
    program.add(_of(pack(lot, _one_place(lot), Effort(rounds=0, tries=0))))
    answer = program.solve(lot.counts, lot.stock, band)
    assert answer is not None
    assert (np.abs(answer.worth - first.worth) <= band * first.worth + PENNY).all()


def test_no_more_nodes_are_wanted_than_there_are() -> None:
    """Of a kind with a limited stock no more is bought, and its scarcity is part of what it counts as."""
    lot = _slots()
    scarce = Lot(
        requests=lot.requests,
        counts=lot.counts,
        price=lot.price,
        room=lot.room,
        admits=lot.admits,
        groups=(),
        clashes=lot.clashes,
        stock=np.array([30, UNLIMITED]),
    )
    program = PatternProgram(scarce, np.full(4, 0.25))
    program.add(Patterns(np.array([0]), np.array([[1, 1, 1, 1]])))
    program.add(Patterns(np.ones(4, dtype=np.int64), np.eye(4, dtype=np.int64)))
    answer = program.solve(scarce.counts, scarce.stock)
    assert answer is not None
    assert answer.times.tolist() == pytest.approx([30, 10, 10, 10, 10])
    assert answer.cost[0] == pytest.approx(2.4)


def _accelerated() -> Lot:
    """Pods of one accelerator each in six ratios of memory to CPU, and nodes of one, four and eight: what production traces ask for."""
    requests = np.array([[113, 492, 1], [80, 305, 1], [157, 584, 1], [98, 416, 1], [119, 471, 1], [120, 164, 1]])
    room = np.array([[36, 140, 1], [156, 600, 1], [156, 1236, 1], [316, 1236, 1], [475, 1785, 4], [954, 3548, 8]])
    return Lot(
        requests=requests,
        counts=np.array([857, 486, 158, 195, 778, 158]),
        price=np.array([0.526, 1.323, 1.539, 2.014, 3.912, 7.824]),
        room=room,
        admits=np.asarray((room[None] >= requests[:, None]).all(axis=2)),
        groups=(),
        clashes=np.zeros((6, 6), dtype=np.bool_),
    )


def test_patterns_find_the_fours_that_fill_a_node_of_accelerators() -> None:
    """Four pods share a node if their sizes are chosen together: that is found, and comes within one percent of the bound."""
    lot = _accelerated()
    without, found = (pack(lot, _one_place(lot), Effort(rounds=rounds, tries=0)) for rounds in (0, 60))
    assert wrong(lot, found) == []
    assert price_of(lot, found) < 0.99 * price_of(lot, without)
    assert price_of(lot, found) < 1.01 * bound(lot)
