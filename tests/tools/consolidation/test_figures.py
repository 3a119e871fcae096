"""How a decision compares with another controller's."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.tools.consolidation.clusters import plan
from tools.consolidation.figures import Measured, Target, targets
from tools.consolidation.judging import Verdict, sample
from tools.consolidation.running import Asked, Run

_ONE = timedelta(seconds=1)


def _run(**cost: float) -> Run:
    document: dict[str, Any] = plan()
    document["cost"] |= cost
    return Run(plan=document, problem="", wall=_ONE, processor=_ONE, memory=50.0)


def _quiet() -> Run:
    document = plan()
    document["cost"] |= {"before": 0.3}
    return replace(_run(), plan={**document, "commands": [], "moves": {"pods": 0, "price": 0.0}})


REFERENCE = {"after": 0.35, "evictions": 4, "repack": 0.25}
MEASURED = Measured(name="a", run=_run(), reference=REFERENCE)


def test_an_eviction_counts_one_cent() -> None:
    """Both sides' evictions count, so moving much for little is no way to win."""
    assert MEASURED.objective == pytest.approx(0.32)
    assert MEASURED.ratio == pytest.approx(0.32 / 0.39)


def test_the_curve_says_how_many_evictions_buy_the_references_price() -> None:
    """0.35 $/h is reached at two evictions, where the reference needs four."""
    assert MEASURED.share_of_evictions == pytest.approx(0.5)
    assert replace(MEASURED, reference={**REFERENCE, "after": 0.1}).share_of_evictions == float("inf")


def test_a_decision_is_right_if_nobody_objects_and_a_second_one_finds_nothing() -> None:
    """The contract, the judge, and the second decision each have a say."""
    assert MEASURED.ok
    assert not replace(MEASURED, violations=("one",)).ok
    assert not replace(MEASURED, verdict=Verdict(1, ({"check": "any"},))).ok
    assert not replace(MEASURED, rounds=(_run(before=0.3),)).ok
    assert replace(MEASURED, rounds=(_quiet(),)).ok


def test_the_worst_file_decides_about_free_moves() -> None:
    """A median would hide a file that is far off."""
    good, bad = (replace(MEASURED, name=name, free=_run(after=after)) for name, after in (("a", 0.25), ("b", 0.26)))
    free = next(one for one in targets([good, bad]) if one.figure.startswith("free"))
    assert free == Target("free moves against a repacking, worst file", "at most 101.0%", "104.00%", False)


def test_what_is_asked_for_goes_to_the_command_line() -> None:
    """What is not asked for is left to the command line's own defaults."""
    asked = Asked(move_price=0.0, ignore_budgets=True, time_limit=5.0)
    assert asked.arguments() == ["--move-price", "0.0", "--time-limit", "5.0", "--ignore-budgets"]
    assert Asked().arguments() == []


def test_of_many_states_ten_are_judged() -> None:
    """The judge takes seconds a state on large files."""
    assert sample(3) == [1, 2, 3]
    assert sample(100) == [1, 12, 23, 34, 45, 56, 67, 78, 89, 100]
    assert sample(0) == []


def _held_by_a_budget(claim: str) -> Run:
    document = plan()
    document["held"] = [{"nodeClaim": claim, "reason": "the budget", "code": "Budget"}]
    return replace(_run(), plan=document)


def test_what_waits_for_a_budget_comes_in_a_later_round() -> None:
    """The reference had as many rounds as it needed, so both sides' evictions of all rounds count."""
    second = _run(before=0.3, after=0.2)
    spread = replace(MEASURED, run=_held_by_a_budget("c1"), rounds=(second,))
    assert spread.after == 0.2
    assert spread.evictions == 4
    assert not spread.is_quiet
    assert replace(spread, rounds=(second, _quiet())).is_quiet
    assert replace(MEASURED, rounds=(second,)).after == 0.3


def test_a_bound_that_the_reference_undercuts_is_none() -> None:
    """And a state costs what the decision said that it would."""
    claimed = replace(MEASURED, run=_run(lowerBound=0.5), rounds=(_run(before=0.4),))
    assert claimed.contradictions == [
        "cost.lowerBound is 0.5, and the reference reaches 0.3900",
        "cost.after is 0.3, and its state costs 0.4",
    ]
    assert not claimed.ok
