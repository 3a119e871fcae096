"""Schedules of buffers, and the capacity types of their nodes."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinery.decisions.headroom.annotations import capacity_types, is_in_force
from joinery.objects.karpenter.cron import local_windows
from joinery.objects.karpenter.labels import BUFFER_CAPACITY_TYPES, BUFFER_SCHEDULE
from tests.properties import examples

WEEKDAYS = "from 30 7 * * mon-fri for 11h in Europe/Berlin"


def at(text: str) -> datetime:
    """In UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("schedule", "moment", "counts"),
    [
        (WEEKDAYS, "2026-01-05T06:29", False),
        (WEEKDAYS, "2026-01-05T06:30", True),
        (WEEKDAYS, "2026-01-05T17:29", True),
        (WEEKDAYS, "2026-01-05T17:30", False),
        # In summer it is as early by the clock, and an hour earlier in UTC.
        (WEEKDAYS, "2026-07-06T05:29", False),
        (WEEKDAYS, "2026-07-06T05:30", True),
        (WEEKDAYS, "2026-01-04T08:00", False),
        ("from 0 9 * * * for 1h", "2026-01-04T09:30", True),
        ("from 0 9 * * * for 1h; from 0 20 * * * for 4h", "2026-01-04T23:59", True),
        ("from 0 22 * * * for 4h in America/New_York", "2026-01-05T06:59", True),
        ("from @daily for 24h", "2026-01-05T06:59", True),
        ("from 0 0 29 2 * for 1h", "2028-02-29T00:59", True),
        # Clocks go from two to three: half past two comes as if they did not, and a window ends so, too.
        ("from 30 2 * * * for 5h in Europe/Berlin", "2026-03-29T01:29", False),
        ("from 30 2 * * * for 5h in Europe/Berlin", "2026-03-29T01:30", True),
        ("from 0 22 * * * for 4h30m in Europe/Berlin", "2026-03-29T01:29", True),
        ("from 0 22 * * * for 4h30m in Europe/Berlin", "2026-03-29T01:30", False),
        # And from three to two: of half past two the first counts, and nothing opens twice.
        ("from 30 2 * * * for 1h in Europe/Berlin", "2026-10-25T00:30", True),
        ("from 30 2 * * * for 1h in Europe/Berlin", "2026-10-25T01:15", True),
        ("from 30 2 * * * for 1h in Europe/Berlin", "2026-10-25T02:29", True),
        ("from 0 22 * * * for 4h30m in Europe/Berlin", "2026-10-25T00:29", True),
        ("from 0 22 * * * for 4h30m in Europe/Berlin", "2026-10-25T01:15", False),
    ],
)
def test_a_buffer_counts_while_its_schedule_is_open(schedule: str, moment: str, counts: bool) -> None:
    """By the clocks of its zone; in UTC where it names none."""
    assert is_in_force({BUFFER_SCHEDULE: schedule}, at(moment)) is counts


def test_a_buffer_without_a_schedule_always_counts() -> None:
    """It need not say so."""
    assert is_in_force({}, at("2026-01-05T06:29"))


@pytest.mark.parametrize(
    ("schedule", "problem"),
    [
        ("", 'is not "from CRON for DURATION in ZONE"'),
        ("30 7 * * mon-fri", 'is not "from CRON for DURATION in ZONE"'),
        ("from 30 7 * * for 1h", "has 4 fields, not 5"),
        ("from 30 25 * * * for 1h", "the hour"),
        ("from 30 7 * * * for ever", "duration"),
        ("from 30 7 * * * for Never", "does not end"),
        ("from 30 7 * * * for 1h in Berlin", "there is no time zone 'Berlin'"),
        ("from 30 7 * * * for 1h in ../../etc/passwd", "there is no time zone"),
        ("from 30 7 * * * for 0h", "duration '0h' is none"),
        ("from 30 7 * * * for -3h", "duration '-3h' is none"),
        ("from 0 0 30 2 * for 1h", "its day never comes"),
        ("from 30 7 * * * for 1h;", 'is not "from CRON for DURATION in ZONE"'),
    ],
)
def test_a_schedule_that_cannot_be_read_is_named(schedule: str, problem: str) -> None:
    """With the annotation and what is wrong."""
    with pytest.raises(ValueError, match=BUFFER_SCHEDULE) as raised:
        is_in_force({BUFFER_SCHEDULE: schedule}, at("2026-01-05T06:29"))
    assert problem in str(raised.value)


@given(st.integers(0, 6 * 365 * 24).map(lambda hours: datetime(2024, 1, 1, tzinfo=UTC) + timedelta(hours=hours)))
@examples(30)
def test_a_daily_window_opens_at_its_hour_on_every_day(moment: datetime) -> None:
    """Also on the days on which the clocks are changed: it opens at half past seven by them, whatever the day."""
    (window,) = local_windows("from 30 7 * * * for 1h in Europe/Berlin")
    local = moment.astimezone(window.zone)
    opens = local.replace(hour=7, minute=30, second=0, microsecond=0).astimezone(UTC)
    assert window.is_open(opens)
    assert not window.is_open(opens - timedelta(minutes=1))


@pytest.mark.parametrize(
    ("text", "types"), [("spot", ("spot",)), (" on-demand, spot ", ("on-demand", "spot")), ("reserved", ("reserved",))]
)
def test_capacity_types_are_listed(text: str, types: tuple[str, ...]) -> None:
    """Separated by commas."""
    assert capacity_types({BUFFER_CAPACITY_TYPES: text}) == types


def test_an_unknown_capacity_type_is_named() -> None:
    """With the annotation and those that there are."""
    with pytest.raises(ValueError, match=f"the annotation {BUFFER_CAPACITY_TYPES}: 'Spot' is none of spot"):
        capacity_types({BUFFER_CAPACITY_TYPES: "Spot"})
