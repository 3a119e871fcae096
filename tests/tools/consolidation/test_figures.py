"""How a decision compares with another controller's."""

from dataclasses import replace

import pytest

from joinery.decisions.disruption.decision import CurvePoint, DecidedCommand, DisruptionDecision, StayingNode
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.objections import Objection, ObjectionCode
from tools.bench.frame import Target
from tools.consolidation.figures import Decision, Measured, targets
from tools.consolidation.judging import Verdict, sample

_COMMAND = DecidedCommand(
    reason=DisruptionReason.UNDERUTILIZED, message="", retire=("c1",), pods=("default/a", "default/b"), savings=0.1
)
_CURVE = (CurvePoint(0, 0.4), CurvePoint(2, 0.3))
_DISRUPTIONS = DisruptionDecision(commands=(_COMMAND,), before=0.6, after=0.3, lower_bound=0.3, curve=_CURVE)
_REFERENCE = {"after": 0.35, "evictions": 4, "repack": 0.25}
_QUIET = Decision(DisruptionDecision(before=0.3, after=0.3))
_LOUD = Decision(replace(_DISRUPTIONS, before=0.3, after=0.2))
_BUDGET = StayingNode("c1", Objection(ObjectionCode.BUDGET, "the budget"))
_WAITING = Decision(replace(_DISRUPTIONS, staying=(_BUDGET,)))
MEASURED = Measured(name="a", decision=Decision(_DISRUPTIONS), reference=_REFERENCE)


def test_an_eviction_counts_one_cent() -> None:
    """Both sides' evictions count, so moving much for little is no way to win."""
    assert MEASURED.objective == pytest.approx(0.32)
    assert MEASURED.ratio == pytest.approx(0.32 / 0.39)


def test_the_curve_says_how_many_evictions_buy_the_references_price() -> None:
    """0.35 $/h is reached at two evictions, where the reference needs four."""
    assert MEASURED.share_of_evictions == pytest.approx(0.5)
    assert replace(MEASURED, reference={**_REFERENCE, "after": 0.1}).share_of_evictions == float("inf")


def test_a_decision_is_right_if_nobody_objects_and_a_second_one_finds_nothing() -> None:
    """Verification, the judge, and the second decision each have a say."""
    assert MEASURED.ok
    assert not replace(MEASURED, violations=("one",)).ok
    assert not replace(MEASURED, verdict=Verdict(1, ({"check": "any"},))).ok
    assert not replace(MEASURED, rounds=(_LOUD,)).ok
    assert replace(MEASURED, rounds=(_QUIET,)).ok


def test_the_worst_file_decides_about_free_moves() -> None:
    """A median would hide a file that is far off."""
    free = [replace(MEASURED, free=Decision(DisruptionDecision(after=after))) for after in (0.25, 0.26)]
    target = next(one for one in targets(free) if one.figure.startswith("free"))
    assert target == Target("free moves against a repacking, worst file", "at most 101.0%", "104.00%", False)


def test_of_many_states_ten_are_looked_at() -> None:
    """The judge takes seconds a state on large files."""
    assert sample(3) == [1, 2, 3]
    assert sample(100) == [1, 12, 23, 34, 45, 56, 67, 78, 89, 100]
    assert sample(0) == []


def test_what_waits_for_a_budget_comes_in_a_later_round() -> None:
    """The reference had as many rounds as it needed, so both sides' evictions of all rounds count."""
    spread = replace(MEASURED, decision=_WAITING, rounds=(_LOUD,))
    assert (spread.after, spread.evictions) == (0.2, 4)
    assert spread.found_again
    assert not replace(spread, rounds=(_LOUD, _QUIET)).found_again
    assert replace(MEASURED, rounds=(_LOUD,)).after == 0.3


def test_a_bound_that_the_reference_undercuts_is_none() -> None:
    """And a state costs what the decision said that it would."""
    dearer = Decision(DisruptionDecision(before=0.4))
    claimed = replace(MEASURED, decision=Decision(replace(_DISRUPTIONS, lower_bound=0.5)), rounds=(dearer,))
    assert claimed.contradictions == [
        "the lower bound is 0.5, and the reference reaches 0.3900",
        "0.3 $/h are to be left, and it is 0.4",
    ]
    assert not claimed.ok
