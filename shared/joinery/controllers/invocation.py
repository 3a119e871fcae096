"""An invocation: what a run may know of the call that it is part of."""

from collections.abc import Callable
from dataclasses import dataclass


def _a_minute() -> float:
    return 60.0


@dataclass(frozen=True)
class Invocation:
    """One call of a door.

    ``id``: Lambda's request id. Every delivery of a message has another, so no two runs that overlap share one.
    ``remaining``: the seconds until Lambda kills the call. Without it, it is a call of a minute that takes no time.
    """

    id: str
    remaining: Callable[[], float] = _a_minute

    def stopwatch(self) -> Callable[[], float]:
        """What tells the seconds since now."""
        begun = self.remaining()
        return lambda: begun - self.remaining()
