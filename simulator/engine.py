"""The simulated passing of time: a heap of what happens when, and a clock that jumps from one to the next.

Rules of this file: at one moment things happen in the order of ``Turn``, and within a turn in the order in which they
were asked for. Nothing here or in an actor reads a clock, a thread or an unseeded random number, so one seed gives one
run.
"""

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import IntEnum

from simulator.clock import Clock

Action = Callable[[], object]


class Turn(IntEnum):
    """The order of actions at one moment: first what changes the cluster and the cloud, then who looks at them."""

    CLOUD = 0
    KUBELET = 1
    WORKLOADS = 2
    SCHEDULER = 3
    ADMISSION = 4
    DOORS = 5
    SCENARIO = 6
    SCHEDULES = 7


@dataclass(order=True, slots=True)
class _Due:
    at: datetime
    turn: Turn
    number: int
    action: Action = field(compare=False)


class Engine:
    """Runs actions at their moments. ``rng`` is the seeded chance that actors share out by name."""

    def __init__(self, clock: Clock, seed: int = 0) -> None:
        self.clock = clock
        self.seed = seed
        self._heap: list[_Due] = []
        self._number = 0
        self._after_each: list[Action] = []

    def rng(self, name: str) -> random.Random:
        """Chance for one actor, independent of how often the others draw."""
        return random.Random(f"{name}/{self.seed}")

    def at(self, moment: datetime, turn: Turn, action: Action) -> None:
        """Do it at that moment, or now if that is past."""
        self._number += 1
        heapq.heappush(self._heap, _Due(max(moment, self.clock.now()), turn, self._number, action))

    def after(self, delay: timedelta, turn: Turn, action: Action) -> None:
        self.at(self.clock.now() + delay, turn, action)

    def every(self, period: timedelta, turn: Turn, action: Action) -> None:
        """Do it now, and again after every period."""

        def again() -> None:
            action()
            self.after(period, turn, again)

        self.at(self.clock.now(), turn, again)

    def after_each(self, look: Action) -> None:
        """Call ``look`` after every action, for those who notice what others did."""
        self._after_each.append(look)

    def run_until(self, moment: datetime, *, stop: Callable[[], bool] = lambda: False) -> bool:
        """Let everything up to that moment happen, or until ``stop`` holds. Returns whether it held."""
        self._look()
        while not stop():
            if not self._heap or self._heap[0].at > moment:
                self.clock.move_to(max(moment, self.clock.now()))
                return stop()
            self._step(heapq.heappop(self._heap))
        return True

    def run_for(self, length: timedelta, *, stop: Callable[[], bool] = lambda: False) -> bool:
        return self.run_until(self.clock.now() + length, stop=stop)

    def _step(self, due: _Due) -> None:
        self.clock.move_to(due.at)
        due.action()
        self._look()

    def _look(self) -> None:
        for look in self._after_each:
            look()
