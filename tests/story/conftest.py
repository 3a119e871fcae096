"""Scenarios, run once for all the tests of a file."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from simulator.story.scenario import find, load
from simulator.story.show import run
from simulator.story.simulation import Simulation
from simulator.story.timeline import Entry


class PlayedScenario:
    """A scenario that was run: its simulation, as it is at the end, and its timeline."""

    def __init__(self, name: str, **settings: str) -> None:
        self.simulation = Simulation(load(find(Path(name))), **settings)  # type: ignore[arg-type]
        self.entries = run(self.simulation)

    def lines(self, who: str, word: str) -> list[Entry]:
        """The lines of that author with that word."""
        return [entry for entry in self.entries if (entry.who, entry.word) == (who, word)]

    def index(self, who: str, word: str, subject: str = "") -> int:
        """Where such a line is first. Fails if there is none."""
        for number, entry in enumerate(self.entries):
            if (entry.who, entry.word) == (who, word) and subject in entry.subject:
                return number
        raise AssertionError(f"the timeline has no line of {who} that {word} {subject}")

    def after(self, start: int) -> "PlayedScenario":
        """The rest of the timeline."""
        rest = object.__new__(PlayedScenario)
        rest.simulation, rest.entries = self.simulation, self.entries[start:]
        return rest


@pytest.fixture(scope="module")
def played() -> Callable[..., PlayedScenario]:
    """Runs a scenario by its name, with settings of the doors. Its tests read what came of it, and share that."""
    return cache(PlayedScenario)
