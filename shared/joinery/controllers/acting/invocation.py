"""One call of a door: what a controller may know of it, which is not all that it is part of."""

from collections.abc import Callable
from dataclasses import dataclass

from joinery.gateways.doorbell.gateway import LONGEST_RING

#: Seconds in which a run whose calls are over rings, even where nobody answers that, and logs.
_END_SECONDS = LONGEST_RING + 1


def _a_minute() -> float:
    return 60.0


@dataclass(frozen=True)
class Invocation:
    """One call of a door.

    ``id``: Lambda's request id. Every delivery of a message has another, so no two runs that overlap share one.
    ``remaining``: the seconds until Lambda kills the call. Without it, it is a call of a minute that takes no time. It
    is asked from several threads.
    """

    id: str
    remaining: Callable[[], float] = _a_minute

    def stopwatch(self) -> Callable[[], float]:
        """A function that returns the seconds since this call."""
        begun = self.remaining()
        return lambda: begun - self.remaining()

    def within(self, seconds: float) -> "Invocation":
        """The same call, as if it ended after so many seconds from now, unless it ends earlier."""
        since = self.stopwatch()
        return Invocation(self.id, lambda: min(self.remaining(), seconds - since()))

    def has_time_for(self, seconds: float) -> bool:
        """Whether a call that takes so long at most may be begun.

        Something is kept for what the run still has to do when its calls are over.
        """
        return self.remaining() >= seconds + _END_SECONDS
