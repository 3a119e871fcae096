"""Backoff: what fails again and again is tried ever less often, and in the end once a minute.

A bell that failed is rung again, which is right for what passes by itself: a throttled call, a lost connection, a write
that somebody else was before. What does not pass (credentials that are refused, an endpoint without a route) would make
that a busy loop, which costs money and fills the log. After some failures in a row the schedule is left to ring, once a
minute.

A run that failed before it had done anything, because the cluster could not be read, would fail alike for whoever
rings: bells of others are not answered either for a while. That is two seconds at first and doubles from failure to
failure, so a trouble costs about as long again as it lasts: an API server that is overloaded for ten seconds must not
cost a warned node a minute of its two. A bell that is not answered meanwhile is rung again. A run that did something
and failed in a part is answered as ever.

All this is kept in memory: it saves money and decides nothing. A new execution environment tries again.

With credentials that are refused, provisioning tried 1,900 times an hour, lifecycle 600 and disruption 330 times: 26 $
a month, and 145 $ where each try waited ten seconds for an endpoint that does not answer. Now it is 60 to 72 times
each, and a few more in the first minute: 2 $, and up to 44 $.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from joinery.gateways.doorbell.gateway import Bell
from joinery.objects.errors import JoineryError

#: So many failures in a row are answered by ringing again.
QUICK_TRIES = 3
#: How long bells are not answered after the last of them; it doubles from there.
FIRST_DELAY = timedelta(seconds=2)
#: Less than the minute after which the schedule rings, so that its ring is always answered.
LONGEST_DELAY = timedelta(seconds=50)


@dataclass(frozen=True, slots=True)
class _Trouble:
    """``failures``: in a row. ``begun``: when the last one began. ``did_nothing``: whether it could not even begin."""

    failures: int
    begun: datetime
    did_nothing: bool

    @property
    def delay(self) -> timedelta:
        """For how long from when it began bells are not answered."""
        if not self.did_nothing or self.failures < QUICK_TRIES:
            return timedelta()
        # Not beyond what a timedelta can hold, for a trouble that lasts for years.
        return min(LONGEST_DELAY, FIRST_DELAY * (1 << min(self.failures - QUICK_TRIES, 10)))

    @property
    def may_pass(self) -> bool:
        """Whether it is so young that it is worth ringing again, and not only by the schedule."""
        return self.failures < QUICK_TRIES or timedelta() < self.delay < LONGEST_DELAY


class Backoff:
    """How the runs of each bell went lately, in this execution environment."""

    def __init__(self) -> None:
        self._troubles: dict[Bell, _Trouble] = {}

    def delays(self, bell: Bell, now: datetime) -> bool:
        """Whether the bell is not answered now, because a run would fail as the last ones did."""
        trouble = self._troubles.get(bell)
        # A clock that was set back must not delay for longer.
        return trouble is not None and timedelta() <= now - trouble.begun < trouble.delay

    def may_pass(self, bell: Bell) -> bool:
        """Whether a bell that is not answered is worth ringing again."""
        trouble = self._troubles.get(bell)
        return trouble is not None and trouble.may_pass

    def failed(self, bell: Bell, begun: datetime, error: Exception) -> bool:
        """Take note of a failure. Returns whether it is worth ringing again at once."""
        before = self._troubles.get(bell)
        failures = 1 + (before.failures if before else 0)
        # A mistake of ours would be made alike for whoever rings.
        did_nothing = error.did_nothing if isinstance(error, JoineryError) else True
        self._troubles[bell] = _Trouble(failures, begun, did_nothing)
        return self._troubles[bell].may_pass

    def passed(self, bell: Bell) -> None:
        """Take note of a run that did not fail."""
        self._troubles.pop(bell, None)


@contextmanager
def reading() -> Iterator[None]:
    """Around the first read of a run: what fails there has done nothing."""
    try:
        yield
    except JoineryError as error:
        error.did_nothing = True
        raise
