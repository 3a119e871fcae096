"""From fractions to whole nodes, and local search over them: every pod once, nothing overfull, and never dearer."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinery.optimizer.arrays import UNLIMITED, Ints
from joinery.optimizer.effort import Effort
from joinery.optimizer.instance.packing_instance import Lot
from joinery.optimizer.instance.patterns import Shape, price_of
from joinery.optimizer.local_search import refine
from joinery.optimizer.relaxation.assignment import Assignment, AssignmentProgram
from joinery.optimizer.relaxation.merged_duals import Outlook
from joinery.optimizer.rounding.rounding import Judgement, round_up
from joinery.optimizer.search import pack
from tests.properties import examples
from tests.unit.optimizer.lots import lots, places, seeded, wrong

JUDGEMENTS = st.builds(
    Judgement,
    share=st.sampled_from((0.5, 0.8, 1.0)),
    band=st.sampled_from((0.0, 0.003, 0.05)),
    noise=st.sampled_from((0.0, 0.02, 0.3)),
)


def _begun(**given: int) -> Effort:
    effort = Effort(**given)  # type: ignore[arg-type]
    effort.begin()
    return effort


def _singly(lot: Lot) -> list[Shape]:
    """Every pod on a node of its own, of the last kind: as wasteful as can be."""
    return [
        Shape(len(lot.price) - 1, np.eye(len(lot.counts), dtype=np.int64)[item], int(count))
        for item, count in enumerate(lot.counts)
    ]


def _one_place(lot: Lot) -> Ints:
    return np.zeros(len(lot.price), dtype=np.int64)


def _outlook(answer: Assignment) -> Outlook:
    return Outlook(answer.worth, answer.room, answer.reduced, answer.price)


@examples(60)
@given(lots(most_pods=12), JUDGEMENTS, st.integers(0, 99))
def test_every_pod_gets_one_place(lot: Lot, judgement: Judgement, seed: int) -> None:
    """However nodes are judged, each pod is on one of them, and none is overfull."""
    found = round_up(lot, AssignmentProgram(lot), judgement, np.random.default_rng(seed), effort=_begun())
    assert found is not None
    shapes, left = found
    assert not left.any()
    assert wrong(lot, shapes) == []


@examples(60)
@given(lots(most_pods=12), JUDGEMENTS, st.floats(0.05, 5))
def test_rounding_gives_up_where_it_cannot_be_cheap_enough(lot: Lot, judgement: Judgement, below: float) -> None:
    """Nodes are found for less than the given price, or none are."""
    program, random = AssignmentProgram(lot), np.random.default_rng(0)
    found = round_up(lot, program, judgement, random, effort=_begun(), below=below)
    assert found is None or price_of(lot, found[0]) < below


@examples(60)
@given(lots(most_pods=10), st.integers(0, 99), st.data())
def test_refined_nodes_hold_the_same_pods_for_no_more(lot: Lot, seed: int, data: st.DataObject) -> None:
    """Local search takes the most wasteful nodes apart, in one place or several, and keeps what it cannot better."""
    before = _singly(lot)
    answer = AssignmentProgram(lot).solve(lot.counts)
    assert answer is not None
    random = np.random.default_rng(seed)
    after = refine(lot, data.draw(places(lot)), before, _outlook(answer), answer.price, _begun(tries=8), random)
    assert wrong(lot, after) == []
    assert price_of(lot, after) <= price_of(lot, before) + 1e-9


def test_free_nodes_go_to_the_pods_that_cost_most_elsewhere() -> None:
    """One free node holds either a pod that needs a dear node, or one that needs a cheap one, which the program cannot tell apart."""
    lot = Lot(
        requests=np.array([[20, 1], [1, 12]]),
        counts=np.array([1, 1]),
        price=np.array([0.1, 0.3, 1e-6]),
        room=np.array([[20, 8], [20, 16], [20, 16]]),
        admits=np.array([[True, True, True], [False, True, True]]),
        groups=(),
        clashes=np.zeros((2, 2), dtype=np.bool_),
        stock=np.array([UNLIMITED, UNLIMITED, 1]),
    )
    shapes = pack(lot, np.zeros(3, dtype=np.int64), Effort())
    assert price_of(lot, shapes) == pytest.approx(0.1, abs=1e-5)


def test_local_search_finds_what_single_nodes_waste() -> None:
    """Thirty kinds of pods, each on a node of its own, cost at least a quarter less after a hundred tries."""
    lot = seeded(30)
    answer = AssignmentProgram(lot).solve(lot.counts)
    assert answer is not None
    after = refine(
        lot, _one_place(lot), _singly(lot), _outlook(answer), 0.0, _begun(tries=100), np.random.default_rng(0)
    )
    assert wrong(lot, after) == []
    assert price_of(lot, after) < 0.75 * price_of(lot, _singly(lot))


def test_local_search_leaves_free_nodes_in_peace() -> None:
    """Nodes that cost nothing waste nothing, and yet some of them are taken apart without an error."""
    lot = replace(seeded(6), price=np.zeros(24))
    answer = AssignmentProgram(lot).solve(lot.counts)
    assert answer is not None
    after = refine(
        lot, _one_place(lot), _singly(lot), _outlook(answer), -1.0, _begun(tries=20), np.random.default_rng(0)
    )
    assert wrong(lot, after) == []


@examples(60)
@given(lots(most_pods=10), st.data())
def test_one_seed_gives_one_packing(lot: Lot, data: st.DataObject) -> None:
    """The same lot and seed give the very same nodes."""
    place, seed = data.draw(places(lot)), data.draw(st.integers(0, 99))
    first, second = (pack(lot, place, Effort(seed=seed, rounds=3, tries=4)) for _ in range(2))
    assert [(s.kind, s.pods.tolist(), s.times) for s in first] == [(s.kind, s.pods.tolist(), s.times) for s in second]


def test_more_effort_never_costs_more() -> None:
    """Patterns and local search only replace a packing by a cheaper one."""
    lot = seeded(40)
    place = np.zeros(len(lot.price), dtype=np.int64)
    prices = [price_of(lot, pack(lot, place, Effort(rounds=n, tries=t))) for n, t in ((0, 0), (60, 0), (60, 30))]
    assert prices == sorted(prices, reverse=True)


def test_a_search_whose_time_is_up_at_once_buys_nothing() -> None:
    """What then has no place is the caller's to buy; the effort says that the stopwatch struck."""
    effort = Effort(is_time_up=lambda: True)
    assert pack(seeded(20), np.zeros(24, dtype=np.int64), effort) == []
    assert effort.struck


def test_a_search_whose_time_is_up_midway_keeps_what_it_has() -> None:
    """Half of a packing is right as far as it goes: no pod has two places, and nothing is overfull."""
    lot, asked = seeded(40), iter(range(1000))
    effort = Effort(is_time_up=lambda: next(asked) >= 3)
    shapes = pack(lot, np.zeros(24, dtype=np.int64), effort)
    placed = np.sum([shape.pods * shape.times for shape in shapes], axis=0)
    assert effort.struck
    assert 0 < placed.sum() < lot.counts.sum()
    assert (placed <= lot.counts).all()


def test_effort_is_counted_not_timed() -> None:
    """Improving ends when the allowance is used up, on a machine of any speed, and not because a stopwatch said so."""
    lot, effort = seeded(40), Effort(allowance=50.0)
    effort.begin()
    assert not effort.is_spent()
    for _ in range(100):
        effort.use(lot)
    assert effort.is_spent()
    assert not effort.struck
