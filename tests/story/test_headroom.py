"""A buffer's day: room is bought by the hour, given to pods at once, taken back by EC2, and given up by the hour."""

from collections.abc import Callable, Sequence
from datetime import datetime

import pytest

from simulator.story.leaks import leaks
from simulator.story.timeline import Entry
from tests.story.conftest import PlayedScenario


@pytest.fixture(scope="module")
def day(played: Callable[..., PlayedScenario]) -> PlayedScenario:
    """The scenario, played once."""
    return played("headroom")


def _launches(day: PlayedScenario, hour: int, minute: int) -> Sequence[Entry]:
    launched = day.lines("provisioning", "launches")
    return [one for one in launched if (one.at.hour, one.at.minute) == (hour, minute)]


def _all_run(day: PlayedScenario, pods: int) -> list[datetime]:
    return [one.at for one in day.lines("kubelet", "all run") if one.subject == f"{pods} pods"]


def test_room_is_bought_when_the_window_opens_and_not_before(day: PlayedScenario) -> None:
    """In the night there is a node for the two pods that run, and no more."""
    assert [len(_launches(day, 9, minute)) for minute in (0, 5)] == [1, 1]


def test_pods_run_in_seconds_in_room_that_is_kept(day: PlayedScenario) -> None:
    """None of the four waits for a node. What they took is bought anew meanwhile."""
    (first, *_) = _all_run(day, 6)
    (came,) = [one.at for one in day.lines("workloads", "create") if one.subject == "4 pods"]
    assert (first - came).total_seconds() < 5
    assert len(_launches(day, 9, 12)) == 1


def test_what_ec2_takes_back_is_bought_anew_for_pods_and_for_the_room(day: PlayedScenario) -> None:
    """Three nodes go, the buffer's among them; the pods run elsewhere within the warning's two minutes."""
    assert len(day.lines("ec2", "warns")) == 3
    rooms = [one for one in _launches(day, 9, 20) if "web" not in one.why]
    assert (len(_launches(day, 9, 20)) - len(rooms), len(rooms)) == (3, 2)
    again = max(_all_run(day, 6))
    assert (again - day.lines("ec2", "warns")[0].at).total_seconds() < 120


def test_room_goes_when_the_window_closes(day: PlayedScenario) -> None:
    """As empty nodes go: one after the other, and never one of which pods have need."""
    retired = [one for one in day.lines("lifecycle", "retires") if "Empty" in one.why]
    assert [(one.at.hour, one.at.minute) for one in retired] == [(9, 30), (9, 31), (9, 32), (9, 33)]
    assert day.lines("lifecycle", "evicts") == [one for one in day.lines("lifecycle", "evicts") if one.at.minute == 20]


def test_it_is_there_again_in_the_next_window_and_nothing_leaks(day: PlayedScenario) -> None:
    """One node for four chunks, beside that of the two pods that are left."""
    assert len(_launches(day, 9, 50)) == 1
    assert len(day.simulation.world.cluster.nodes) == 2
    assert leaks(day.simulation) == ()
