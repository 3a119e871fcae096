"""What a function has said in its log of late: what has not changed is not said again in the next run.

It is kept in memory, and decides nothing: a cold start says all of it again.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

from joinery.controllers.acting.announcements import in_turns

T = TypeVar("T")
#: At most so many lines of a sort a run: whoever may make pods has a part in how many there are.
MOST_LINES = 10
#: After how long the log says again what has not changed.
SAID_AGAIN = timedelta(hours=1)
#: Of how many lines it is remembered that they were said.
_MOST_REMEMBERED = 10_000


class News(NamedTuple, Generic[T]):
    """``lines``: to be said now. ``left``: how many more are new."""

    lines: Sequence[T]
    left: int


class Said:
    """What this function has said in the log of late."""

    def __init__(self) -> None:
        self._at: dict[int, datetime] = {}

    def news(
        self, lines: Iterable[T], of: Callable[[T], Hashable], whose: Callable[[T], str], now: datetime
    ) -> "News[T]":
        """The lines that were not said within the hour, as many as a run may say, in turns of their owners; they count
        as said. ``of``: what makes two lines the same.
        """
        last = {key: at for key, at in self._at.items() if timedelta() <= now - at < SAID_AGAIN}
        self._at = last if len(last) < _MOST_REMEMBERED else {}
        unsaid = [line for line in lines if hash(of(line)) not in self._at]
        chosen = list(islice(in_turns(unsaid, whose), MOST_LINES))
        self._at |= {hash(of(line)): now for line in chosen}
        return News(chosen, len(unsaid) - len(chosen))
