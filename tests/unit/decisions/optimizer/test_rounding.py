"""From fractions to whole bins, and local search over them: every copy once, nothing overfull, and never dearer."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinery.decisions.optimizer.arrays import UNLIMITED
from joinery.decisions.optimizer.effort import Effort
from joinery.decisions.optimizer.instance.packing_instance import PackingInstance
from joinery.decisions.optimizer.instance.patterns import Pattern, cost_of
from joinery.decisions.optimizer.local_search import destroy_and_repair
from joinery.decisions.optimizer.relaxation.assignment import AssignmentRelaxation, RelaxationSolution
from joinery.decisions.optimizer.relaxation.merged_duals import MergedDuals
from joinery.decisions.optimizer.rounding.rounding import RoundingRule, round_up
from joinery.decisions.optimizer.search import pack
from tests.properties import examples
from tests.unit.decisions.optimizer.instances import blocks, instances, one_block, seeded, wrong

RULES = st.builds(
    RoundingRule,
    share=st.sampled_from((0.5, 0.8, 1.0)),
    tolerance=st.sampled_from((0.0, 0.003, 0.05)),
    noise=st.sampled_from((0.0, 0.02, 0.3)),
)


def _begun(instance: PackingInstance, **given: int) -> Effort:
    effort = Effort(**given)  # type: ignore[arg-type]
    effort.begin(instance)
    return effort


def _singly(instance: PackingInstance) -> list[Pattern]:
    """Every copy on a bin of its own, of the last type: as wasteful as can be."""
    return [
        Pattern(len(instance.costs) - 1, np.eye(len(instance.demands), dtype=np.int64)[item], int(count))
        for item, count in enumerate(instance.demands)
    ]


def _merged(answer: RelaxationSolution) -> MergedDuals:
    return MergedDuals(answer.item_duals, answer.capacity_duals, answer.reduced_costs, answer.cost)


@examples(60)
@given(instances(most_copies=12), RULES, st.integers(0, 99))
def test_every_pod_getsone_block(instance: PackingInstance, rule: RoundingRule, seed: int) -> None:
    """Whatever the rule, each copy is on one bin, and none is overfull."""
    found = round_up(
        instance, AssignmentRelaxation(instance), rule, np.random.default_rng(seed), effort=_begun(instance)
    )
    assert found is not None
    patterns, left = found
    assert not left.any()
    assert wrong(instance, patterns) == []


@examples(60)
@given(instances(most_copies=12), RULES, st.floats(0.05, 5))
def test_rounding_gives_up_where_it_cannot_be_cheap_enough(
    instance: PackingInstance, rule: RoundingRule, below: float
) -> None:
    """Bins are found for less than the given cost, or none are."""
    program, random = AssignmentRelaxation(instance), np.random.default_rng(0)
    found = round_up(instance, program, rule, random, effort=_begun(instance), below=below)
    assert found is None or cost_of(instance, found[0]) < below


@examples(60)
@given(instances(most_copies=10), st.integers(0, 99), st.data())
def test_repaired_bins_hold_the_same_items_for_no_more(
    instance: PackingInstance, seed: int, data: st.DataObject
) -> None:
    """Local search destroys the most wasteful bins, in one block or several, and keeps what it cannot better."""
    before = _singly(instance)
    answer = AssignmentRelaxation(instance).solve(instance.demands)
    assert answer is not None
    random = np.random.default_rng(seed)
    after = destroy_and_repair(
        instance, data.draw(blocks(instance)), before, _merged(answer), answer.cost, _begun(instance, repairs=8), random
    )
    assert wrong(instance, after) == []
    assert cost_of(instance, after) <= cost_of(instance, before) + 1e-9


def test_free_bins_go_to_the_items_that_cost_most_elsewhere() -> None:
    """One free bin holds either an item that needs a dear bin, or one that needs a cheap one, which the relaxation
    cannot tell apart.
    """
    instance = PackingInstance(
        sizes=np.array([[20, 1], [1, 12]]),
        demands=np.array([1, 1]),
        costs=np.array([0.1, 0.3, 1e-6]),
        capacities=np.array([[20, 8], [20, 16], [20, 16]]),
        compatible=np.array([[True, True, True], [False, True, True]]),
        cardinality_limits=(),
        conflicts=np.zeros((2, 2), dtype=np.bool_),
        available=np.array([UNLIMITED, UNLIMITED, 1]),
    )
    patterns = pack(instance, np.zeros(3, dtype=np.int64), Effort())
    assert cost_of(instance, patterns) == pytest.approx(0.1, abs=1e-5)


def test_local_search_finds_what_single_bins_waste() -> None:
    """Thirty items, each copy on a bin of its own, cost at least a quarter less after a hundred tries."""
    instance = seeded(30)
    answer = AssignmentRelaxation(instance).solve(instance.demands)
    assert answer is not None
    after = destroy_and_repair(
        instance,
        one_block(instance),
        _singly(instance),
        _merged(answer),
        0.0,
        _begun(instance, repairs=100),
        np.random.default_rng(0),
    )
    assert wrong(instance, after) == []
    assert cost_of(instance, after) < 0.75 * cost_of(instance, _singly(instance))


def test_local_search_copes_with_bins_that_cost_nothing() -> None:
    """Bins that cost nothing waste nothing, and yet some of them are destroyed without an error."""
    instance = replace(seeded(6), costs=np.zeros(24))
    answer = AssignmentRelaxation(instance).solve(instance.demands)
    assert answer is not None
    after = destroy_and_repair(
        instance,
        one_block(instance),
        _singly(instance),
        _merged(answer),
        -1.0,
        _begun(instance, repairs=20),
        np.random.default_rng(0),
    )
    assert wrong(instance, after) == []


@examples(60)
@given(instances(most_copies=10), st.data())
def test_one_seed_gives_one_packing(instance: PackingInstance, data: st.DataObject) -> None:
    """The same instance and seed give the very same bins."""
    block, seed = data.draw(blocks(instance)), data.draw(st.integers(0, 99))
    first, second = (pack(instance, block, Effort(seed=seed, pricing_rounds=3, repairs=4)) for _ in range(2))
    assert [(s.bin_type, s.counts.tolist(), s.copies) for s in first] == [
        (s.bin_type, s.counts.tolist(), s.copies) for s in second
    ]


def test_more_effort_never_costs_more() -> None:
    """Column generation and local search only replace a packing by a cheaper one."""
    instance = seeded(40)
    block = np.zeros(len(instance.costs), dtype=np.int64)
    prices = [
        cost_of(instance, pack(instance, block, Effort(pricing_rounds=n, repairs=t)))
        for n, t in ((0, 0), (60, 0), (60, 30))
    ]
    assert prices == sorted(prices, reverse=True)


def test_a_search_whose_time_is_up_at_once_buys_nothing() -> None:
    """What is then not packed is the caller's to buy for; the effort says that the stopwatch struck."""
    effort = Effort(is_time_up=lambda: True)
    assert pack(seeded(20), np.zeros(24, dtype=np.int64), effort) == []
    assert effort.struck


def test_a_search_whose_time_is_up_midway_keeps_what_it_has() -> None:
    """Half of a packing is right as far as it goes, whenever it is over: no copy is packed twice."""
    instance, sums = seeded(40), []
    for strikes_at in range(0, 600, 20):
        effort = _striking_at(strikes_at)
        patterns = pack(instance, np.zeros(24, dtype=np.int64), effort)
        assert effort.struck
        placed = sum((pattern.counts * pattern.copies for pattern in patterns), np.zeros(40, dtype=np.int64))
        assert (placed <= instance.demands).all()
        sums.append(int(placed.sum()))
    assert any(0 < placed < instance.demands.sum() for placed in sums)


def _striking_at(reading: int) -> Effort:
    """Time is up at this reading of the stopwatch, which is read at every simplex iteration too."""
    readings = iter(range(1_000_000))
    return Effort(is_time_up=lambda: next(readings) >= reading)


def test_effort_is_counted_not_timed() -> None:
    """Improving ends when the allowance is used up, on a machine of any speed, and not because a stopwatch said so."""
    instance, effort = seeded(40), Effort(allowance=50.0)
    effort.begin(instance)
    assert not effort.is_spent()
    for _ in range(100):
        effort.use(instance)
    assert effort.is_spent()
    assert not effort.struck


@examples(30)
@given(instances() | instances(limited=True), st.data())
def test_the_same_instance_gets_the_same_bins_again_and_another_one_its_own(
    instance: PackingInstance, data: st.DataObject
) -> None:
    """One effort keeps what it found; what it found for another instance is no answer."""
    effort = Effort()
    first = pack(instance, one_block(instance), effort)
    item = data.draw(st.integers(0, len(instance.demands) - 1))
    more = replace(instance, demands=instance.demands + np.eye(len(instance.demands), dtype=np.int64)[item])
    assert wrong(more, pack(more, one_block(more), effort)) == []
    assert repr(pack(replace(instance), one_block(instance), effort)) == repr(first)


def test_an_answer_that_time_cut_short_is_not_kept() -> None:
    """Whoever asks again may have more time."""
    effort = Effort(is_time_up=lambda: True)
    assert effort.once(b"question", lambda: "half an answer", 1) == "half an answer"
    assert effort.once(b"question", lambda: "an answer", 1) == "an answer"
