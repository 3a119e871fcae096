"""Which lines are new to the log: what has not changed is not logged again in the next run.

Karpenter has a ``ChangeMonitor`` for that, too. This one is kept in memory and decides nothing: a cold start logs
all of it again.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

from joinery.controllers.acting.announcements import in_turns

T = TypeVar("T")
#: At most so many lines of a sort a run: whoever may make pods has a part in how many there are.
MOST_LINES = 10
#: After how long a line that has not changed is logged again.
REPEATED_AFTER = timedelta(hours=1)
#: How many lines are remembered.
_MOST_REMEMBERED = 10_000


class News(NamedTuple, Generic[T]):
    """``lines``: to be logged now. ``left``: how many more are new."""

    lines: Sequence[T]
    left: int


class ChangeMonitor:
    """Remembers which lines this function has logged within the hour, by their hashes."""

    def __init__(self) -> None:
        self._at: dict[int, datetime] = {}

    def news(
        self, lines: Iterable[T], key: Callable[[T], Hashable], whose: Callable[[T], str], now: datetime
    ) -> "News[T]":
        """The lines that were not logged within the hour, as many as a run may log, in turns of their owners. They
        count as logged from now on. ``key``: equal for lines that say the same. ``whose``: a line's owner.
        """
        last = {key: at for key, at in self._at.items() if timedelta() <= now - at < REPEATED_AFTER}
        self._at = last if len(last) < _MOST_REMEMBERED else {}
        fresh = [line for line in lines if hash(key(line)) not in self._at]
        chosen = list(islice(in_turns(fresh, whose), MOST_LINES))
        self._at |= {hash(key(line)): now for line in chosen}
        return News(chosen, len(fresh) - len(chosen))
