"""Cron expressions, read as robfig/cron v3 reads them."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinery.objects.karpenter.cron import parse
from tests.properties import examples

#: A Wednesday.
NOON = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("expression", "after"),
    [
        ("* * * * *", "2026-03-04 12:01"),
        ("0 12 * * *", "2026-03-05 12:00"),
        ("*/15 * * * *", "2026-03-04 12:15"),
        ("5/20 * * * *", "2026-03-04 12:05"),
        ("10-20/5,50 * * * *", "2026-03-04 12:10"),
        ("0 9 * * MON-FRI", "2026-03-05 09:00"),
        ("0 9 * * sat", "2026-03-07 09:00"),
        ("0 0 * * 0", "2026-03-08 00:00"),
        ("0 0 1 JAN ?", "2027-01-01 00:00"),
        ("0 0 29 2 *", "2028-02-29 00:00"),
        ("0 0 13 * FRI", "2026-03-06 00:00"),
        ("0 0 */2 * FRI", "2026-03-05 00:00"),
        ("0 0 */1 * FRI", "2026-03-06 00:00"),
        ("0 0 5 * *", "2026-03-05 00:00"),
        ("@hourly", "2026-03-04 13:00"),
        ("@daily", "2026-03-05 00:00"),
        ("@midnight", "2026-03-05 00:00"),
        ("@weekly", "2026-03-08 00:00"),
        ("@monthly", "2026-04-01 00:00"),
        ("@yearly", "2027-01-01 00:00"),
        ("@annually", "2027-01-01 00:00"),
    ],
)
def test_the_next_time_is_after_the_moment_and_never_at_it(expression: str, after: str) -> None:
    """Asked at noon on a Wednesday. Where both kinds of day are restricted, one of them is enough."""
    assert f"{parse(expression).next_after(NOON):%Y-%m-%d %H:%M}" == after


@pytest.mark.parametrize(
    "expression",
    [
        "", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * 32 * *", "* * * 13 *", "* * * * 7",
        "5-1 * * * *", "*/0 * * * *", "a * * * *", "-1 * * * *", "1.5 * * * *", "* * L * *", "* * * * FRI#2",
        ", * * * *", "@every 1h", "@reboot", "TZ=Asia/Tokyo 0 9 * * *", "MON * * * *", "\u0661 * * * *",
    ],
)  # fmt: skip
def test_what_is_no_expression_is_refused(expression: str) -> None:
    """Among it what other dialects allow: Sunday as 7, L, #, time zones."""
    with pytest.raises(ValueError, match="."):
        parse(expression)


def test_a_day_that_never_comes_has_no_next_time() -> None:
    """The search ends."""
    assert parse("0 0 30 2 *").next_after(NOON) is None


FIELDS = st.tuples(
    st.sampled_from(["*", "0", "*/7", "3-40/9", "1,30,59"]),
    st.sampled_from(["*", "0", "9-17", "*/5", "23"]),
    st.sampled_from(["*", "1", "31", "10-20", "*/9"]),
    st.sampled_from(["*", "2", "JUN-AUG", "*/5"]),
    st.sampled_from(["*", "1-5", "SUN", "*/3"]),
)
MOMENTS = st.integers(0, 5 * 366 * 24 * 3600).map(lambda seconds: NOON + timedelta(seconds=seconds))


@given(FIELDS, MOMENTS)
@examples(50)
def test_no_time_is_left_out_before_the_next_one(fields: tuple[str, ...], moment: datetime) -> None:
    """The next time after any moment before it, and after the last minute before it, is the same."""
    schedule = parse(" ".join(fields))
    after = schedule.next_after(moment)
    if after is None:
        return
    assert after > moment
    assert (after.second, after.microsecond) == (0, 0)
    assert schedule.next_after(moment + (after - moment) / 2) == after
    assert schedule.next_after(after - timedelta(microseconds=1)) == after
