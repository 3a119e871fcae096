"""A drain that makes no progress is attempted less and less often."""

from datetime import timedelta

import pytest

from joinery.decisions.lifecycle.draining.stall import Stall, is_deadline_near, pace, stall_in
from joinery.objects.karpenter.labels import DRAIN_STALLED, INTERRUPTED_AT
from simulator import builders
from simulator.clock import START


def _attempts(minutes: int, *, tick: float = 5, annotations: dict[str, str] | None = None) -> list[int]:
    """The seconds at which a drain is attempted whose three pods never go, if it is looked at every so many seconds."""
    attempts, known = [], dict(annotations or {})
    for number in range(int(minutes * 60 / tick)):
        now = START + timedelta(seconds=number * tick)
        found = pace(known, 3, now)
        known |= found.stall.annotation
        if found.is_due:
            attempts.append(round(number * tick))
    return attempts


def test_the_time_between_attempts_doubles_up_to_a_minute() -> None:
    """From the tick's five seconds on."""
    assert _attempts(5) == [0, 5, 10, 20, 40, 80, 135, 190, 245]


def test_the_schedules_ring_is_always_in_time() -> None:
    """Without ticks a run comes once a minute, a little early or late: no attempt is put off to the next."""
    assert _attempts(10, tick=59) == [59 * number for number in range(10)]


def test_progress_begins_anew() -> None:
    """Any pod that is gone means that others may go now."""
    stalled = Stall(3, START, START + timedelta(minutes=10)).annotation
    assert pace(stalled, 2, START + timedelta(minutes=10, seconds=1)).is_due


def test_a_node_that_ec2_takes_is_never_slow() -> None:
    """It has two minutes, and a budget may be free again at any moment."""
    assert _attempts(2, annotations={INTERRUPTED_AT: START.isoformat()}) == list(range(0, 120, 5))


@pytest.mark.parametrize("text", ["", "?", "[]", "{}", '{"pods": 1, "since": "soon", "asked": "now"}', "null"])
def test_an_annotation_that_cannot_be_read_is_none(text: str) -> None:
    """The drain is attempted."""
    assert stall_in({DRAIN_STALLED: text}, START) is None
    assert pace({DRAIN_STALLED: text}, 1, START).is_due


@pytest.mark.parametrize("ahead", [timedelta(seconds=1), timedelta(days=900)])
def test_pods_that_were_asked_at_a_time_to_come_are_asked(ahead: timedelta) -> None:
    """Somebody edited it, and the drain would wait for that time. A clock that is a little ahead is believed."""
    annotation = Stall(3, START, START + ahead).annotation
    assert pace(annotation, 3, START).is_due is (ahead > timedelta(minutes=1))


def test_a_drain_that_waits_since_a_time_to_come_is_not_worth_ticks_for_ever() -> None:
    """Each tick is paid for."""
    known = Stall(3, START.replace(year=2900), START).annotation
    later = START + timedelta(minutes=3)
    assert not pace(known, 3, later).is_worth_ticks(later)


@pytest.mark.parametrize(("minutes", "is_near"), [(-10, False), (-1, True), (3, True), (8, False)])
def test_a_deadline_brings_the_ticks_back(minutes: float, is_near: bool) -> None:
    """Some pod must be told early enough: its own grace before the deadline."""
    pods = [builders.pod("a", termination_grace_period_seconds=120)]
    assert is_deadline_near(START + timedelta(minutes=minutes), pods, START) is is_near
