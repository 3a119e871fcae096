"""Whatever call of a gateway goes wrong, and however, the story ends as if it had not.

Every story (``stories``) is told once for each call that its doors make and each fault that this call can meet. What
woke the door comes again as its queue or its schedule brings it.
"""

import random
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import cache
from typing import Any

import pytest

from tests.fire.faults import Fault, Wires, faults_of
from tests.fire.soak import Tally
from tests.fire.stories import STORIES
from tests.fire.telling import Picture, Story, Telling, picture
from tests.functional.fuse import WRITES

#: So many faults of each story are tried in `make test`. A story has some three hundred.
_FEW = 8
#: An observing process is told with a fault in one of so many calls.
_SHARE = 12
_OBSERVED = timedelta(minutes=2)
#: What an observing process does: it says and records what it would have done. Its webhook rings as ever.
_SAID = {"recorder.emit", "store.record", "store.put_catalog", "doorbell.ring"}


class _Witness(Wires):
    """Wires that note in which situation each call is made: by which door, in what world."""

    def __init__(self) -> None:
        super().__init__()
        self.situations: list[str] = []
        self.situation: Callable[[], str] = str

    def through(self, name: str, go: Callable[[], Any], about: Any = None) -> Any:
        """As it is."""
        self.situations.append(f"{name} {self.situation()}")
        return super().through(name, go, about)


@cache
def _undisturbed(story: Story) -> tuple[Picture, tuple[str, ...], tuple[str, ...]]:
    """How the story ends, the calls that it makes, and the situation of each call."""
    wires = _Witness()
    telling = Telling(story, wires)
    simulation = telling.simulation
    wires.situation = lambda: f"{simulation.doors.active} {picture(simulation)}"
    telling.tell()
    return telling.end, tuple(wires.calls), tuple(wires.situations)


def _strikes(story: Story, *, is_all: bool) -> Iterator[tuple[int, Fault]]:
    """The number of a call, and its fault. ``is_all``: also calls that are like another, which ticks make by dozens."""
    _, calls, situations = _undisturbed(story)
    seen: set[str] = set()
    for number, (name, situation) in enumerate(zip(calls, situations, strict=True)):
        if is_all or situation not in seen:
            seen.add(situation)
            yield from ((number, fault) for fault in faults_of(name))


@pytest.mark.soak
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_whatever_call_goes_wrong_the_story_ends_alike(story: Story, pytestconfig: pytest.Config, tally: Tally) -> None:
    """The same pods, Nodes and claims, as many instances as ever were launched, nothing unowned, no dead letter."""
    is_all = pytestconfig.getoption("soak") > 0
    end, calls, _ = _undisturbed(story)
    strikes = list(_strikes(story, is_all=is_all))
    if not is_all:
        strikes = random.Random(story.name).sample(strikes, _FEW)
    for number, fault in strikes:
        told = Telling(story, Wires(number, fault)).tell()
        assert told.end == end, f"call {number}, {calls[number]}, {fault.value}"
    tally("stories told with one call that went wrong", len(strikes))


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_an_observing_process_writes_nothing_whatever_goes_wrong(story: Story) -> None:
    """Events, records and bells are no writes: nobody's node or pod depends on them."""
    undisturbed = _observed(story, Wires())
    for number, name in list(enumerate(undisturbed))[::_SHARE]:
        calls = _observed(story, Wires(number, next(faults_of(name), None)))
        assert {call for call in calls if call.partition(".")[2] in WRITES} <= _SAID


def _observed(story: Story, wires: Wires) -> list[str]:
    """The calls that reach the gateways from doors that observe the story for two minutes."""
    telling = Telling(story, wires, mode="observe")
    with telling:
        telling.begin()
        telling.simulation.engine.run_for(_OBSERVED)
    return wires.calls
