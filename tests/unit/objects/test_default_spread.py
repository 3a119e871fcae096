"""The setting DefaultSpread, as people write it."""

import pytest

from joinery.objects.default_spread import DefaultSpread, default_spreads_of

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"


def test_a_key_and_a_skew_say_enough() -> None:
    """What is left out is what a scheduler does most strictly, for everybody's pods."""
    assert default_spreads_of(f"{ZONE} 1") == (DefaultSpread(ZONE, 1, "DoNotSchedule", ""),)


def test_several_constraints_may_be_for_several_schedulers() -> None:
    """Each profile of a scheduler has its own."""
    assert default_spreads_of(f"{ZONE} 2 ScheduleAnyway for batch, {HOST} 3  DoNotSchedule") == (
        DefaultSpread(ZONE, 2, "ScheduleAnyway", "batch"),
        DefaultSpread(HOST, 3, "DoNotSchedule"),
    )


def test_off_is_nothing() -> None:
    """As without the setting."""
    assert default_spreads_of("off") == ()


@pytest.mark.parametrize(
    "text", ["", ZONE, f"{ZONE} 0", f"{ZONE} one", f"{ZONE} 1 Never", "-zone 1", f"{ZONE} 1, {ZONE} 2", f"{ZONE} 1,"]
)
def test_what_no_scheduler_would_start_with_is_refused(text: str) -> None:
    """The stack does not start with it either."""
    with pytest.raises(ValueError, match=r"topology key|skew|twice"):
        default_spreads_of(text)
