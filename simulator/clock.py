"""A clock that a test or the engine moves on, so that an hour of simulated time takes a second."""

from datetime import UTC, datetime, timedelta

START = datetime(2026, 8, 24, 9, 0, tzinfo=UTC)


class Clock:
    """The simulated moment, UTC. It only moves forward."""

    def __init__(self, start: datetime = START) -> None:
        if start.tzinfo is None:
            raise ValueError("the simulated clock needs a time zone")
        self._now = start.astimezone(UTC)

    def now(self) -> datetime:
        return self._now

    def advance(self, by: timedelta) -> datetime:
        """Move on, and return the new moment. Raises ``ValueError`` for a step back."""
        return self.move_to(self._now + by)

    def move_to(self, moment: datetime) -> datetime:
        """Move on to that moment. Raises ``ValueError`` if it is past."""
        if moment < self._now:
            raise ValueError(f"time does not go back: from {self._now} to {moment}")
        self._now = moment
        return moment
