"""When a pause is in force, and until when: by the clocks of its zone."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from joinery.objects.karpenter.labels import PAUSE, PAUSED
from joinery.objects.karpenter.meta import with_metadata
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.karpenter.pause import LEAD, pause_of, pause_of_buffers, paused_of, pauses
from simulator.builders import node_pool

NIGHT = "from 0 20 * * mon-thu for 11h in Europe/Berlin; from 0 20 * * fri for 59h in Europe/Berlin"


def _pool(name: str = "default", **annotations: str) -> NodePool:
    keys = {"pause": PAUSE, "paused": PAUSED}
    return with_metadata(node_pool(name), annotations={keys[key]: text for key, text in annotations.items()})


def _at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_a_person_s_word_counts_in_an_hour_that_the_clocks_leave_out() -> None:
    """A pause has begun when it is in force, so that whoever resumes it has done so afterwards."""
    pause = "from 30 2 * * * for 5h in Europe/Berlin"
    assert not pauses([_pool(pause=pause)], _at("2026-03-29T01:15"))
    now = _at("2026-03-29T01:45")
    assert pauses([_pool(pause=pause)], now)["default"].since == _at("2026-03-29T01:30")
    assert not pauses([_pool(pause=pause, paused=now.isoformat())], now)


@pytest.mark.parametrize(
    ("now", "until"),
    [
        ("2026-01-12T18:59", None),  # a Monday, 19:59 in Berlin
        ("2026-01-12T19:00", "2026-01-13T06:00"),
        ("2026-01-13T05:54", "2026-01-13T06:00"),
        ("2026-01-13T06:00", None),
        ("2026-07-13T18:00", "2026-07-14T05:00"),  # in summer an hour earlier
        ("2026-03-28T12:00", "2026-03-30T05:00"),  # the clocks are put forward on that weekend
    ],
)
def test_a_pause_is_by_the_clocks_of_its_zone(now: str, until: str | None) -> None:
    """It ends at seven in the morning, in winter, in summer, and after the night in which they are changed."""
    pause = pauses([_pool(pause=NIGHT)], _at(now)).get("default")
    assert (pause.until if pause else None) == (_at(until) if until else None)


def test_a_pause_is_over_before_its_window() -> None:
    """What comes back is there when the window ends: a node takes minutes."""
    end = _at("2026-01-13T06:00")
    for before, is_paused in ((LEAD + timedelta(seconds=1), True), (LEAD, False), (timedelta(seconds=1), False)):
        assert ("default" in pauses([_pool(pause=NIGHT)], end - before)) == is_paused


def test_windows_that_follow_upon_each_other_are_one_pause() -> None:
    """Between them nothing comes back for five minutes."""
    text = "from 0 20 * * * for 4h; from 0 0 * * * for 4h; from 0 4 * * * for 3h"
    pause = pauses([_pool(pause=text)], _at("2026-01-12T23:58"))["default"]
    assert (pause.since, pause.until) == (_at("2026-01-12T20:00"), _at("2026-01-13T07:00"))


def test_the_whole_cluster_is_paused_from_any_node_pool() -> None:
    """But for those that say something of their own."""
    pools = [_pool("a", pause="all from 0 20 * * * for 11h"), _pool("b"), _pool("c", pause="never")]
    now = _at("2026-01-12T21:00")
    assert pauses(pools, now).keys() == {"a", "b"}
    assert pause_of_buffers("web", {}, pools, now) is not None
    assert pause_of_buffers("web", {PAUSE: "never"}, pools, now) is None
    assert pause_of_buffers("web", {PAUSE: "from 0 20 * * * for 1h"}, [], now) is None
    assert pause_of_buffers("web", {PAUSE: "from 0 20 * * * for 2h"}, [], now) is not None


def test_a_person_s_word_goes_before_the_schedule() -> None:
    """Paused until it is resumed; resumed until the next window begins."""
    night, next_night = _at("2026-01-12T21:00"), _at("2026-01-13T21:00")
    assert pauses([_pool(paused="true")], night)["default"].until is None
    resumed = _pool(pause=NIGHT, paused="2026-01-12T20:30:00Z")
    assert pauses([resumed], night) == {}
    assert pauses([resumed], next_night).keys() == {"default"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("at night", "'at night' is not \"from CRON for DURATION in ZONE\""),
        ("from 0 20 * * * for 11h in Berlin", "there is no time zone 'Berlin'"),
        ("from 0 25 * * * for 11h", "schedule '0 25 * * *': the hour '25' is not between 0 and 23"),
        ("all", "is not"),
    ],
)
def test_what_is_no_schedule_is_said(text: str, problem: str) -> None:
    """And pauses nothing: such a NodePool is not valid, and buys nothing either."""
    with pytest.raises(ValueError, match=re.escape(problem)):
        pause_of(text)
    assert pauses([_pool(pause=text)], _at("2026-01-12T21:00")) == {}


def test_what_is_no_word_of_a_person_s_is_said() -> None:
    """``true``, or a moment with its zone."""
    for text in ("yes", "2026-01-12T20:30:00"):
        with pytest.raises(ValueError, match="neither"):
            paused_of(text)
