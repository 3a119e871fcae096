"""Durations in Go's grammar."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinery.objects.karpenter.duration import parse, spoken


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("720h", 2592000),
        ("1h30m5s", 5405),
        ("90m", 5400),
        ("0s", 0),
        ("0", 0),
        ("1.5h", 5400),
        ("100ms", 0.1),
        ("-2m", -120),
        ("720h0m0s", 2592000),
        ("1h1h", 7200),
    ],
)
def test_a_duration_is_the_sum_of_its_parts(text: str, seconds: float) -> None:
    """In whatever units it is written."""
    assert parse(text) == timedelta(seconds=seconds)


def test_never_is_no_duration() -> None:
    """Whoever asks for a moment gets none."""
    assert parse("Never") is None


@pytest.mark.parametrize(
    "text", ["", "never", "1", "1d", "h", "1h 30m", "1h30", "--1h", ".h", "1e3s", "١h", "9999999999h"]
)
def test_anything_else_is_refused_by_name(text: str) -> None:
    """The message quotes what was written."""
    with pytest.raises(ValueError, match="duration"):
        parse(text)


def test_a_text_that_is_no_duration_is_refused_at_once() -> None:
    """However long it is: an annotation may have a quarter of a million characters, and any user may write one."""
    with pytest.raises(ValueError, match="duration"):
        parse("9" * 250_000)


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6))
def test_hours_minutes_and_seconds_add_up(hours: int, minutes: int, seconds: int) -> None:
    """Values above 59 are allowed, as in Go."""
    assert parse(f"{hours}h{minutes}m{seconds}s") == timedelta(hours=hours, minutes=minutes, seconds=seconds)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0 s"),
        (99, "99 s"),
        (100, "2 min"),
        (5400, "1 h 30 min"),
        (7200, "2 h"),
        (100_000, "28 h"),
        (300_000, "3 days"),
        (344_000, "4 days"),
    ],
)
def test_a_person_hears_two_units_at_most(seconds: int, said: str) -> None:
    """``3 days, 11:20:00`` is more than anybody wants to know."""
    assert spoken(timedelta(seconds=seconds)) == said
