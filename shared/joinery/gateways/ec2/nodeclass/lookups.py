"""What AWS has just answered, for all node classes of a run together.

Classes of one cluster ask mostly the same: for the images of AL2023, for the subnets with the cluster's tag. A cold
function with ten classes made 91 calls, of which a dozen were different. So whoever asks what another class has asked a
moment ago gets its answer, and whoever asks the same at the same time waits for it. Safe to use from several threads.
"""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count
from threading import Lock
from typing import Any, TypeVar

from joinery.gateways.answers import Log, unlogged
from joinery.objects.errors import JoineryError

T = TypeVar("T")

#: How long classes share an answer: about as long as a run looks at them, and less than lifecycle's tick, so that the
#: next run asks anew for what is missing.
SHARED_FOR = timedelta(seconds=4)
#: How long nobody is asked again who has not answered, where the last answer does.
_PAUSE = timedelta(minutes=1)


@dataclass(frozen=True)
class _Answer:
    """``number``: which look had asked. ``at``: when."""

    number: int
    at: datetime
    future: "Future[Any]"

    def is_good(self, since: int, oldest: datetime) -> bool:
        """Whether it spares whoever asks now a call (``Lookups.answer``).

        One that has failed does not; those who waited for it while it was asked have got its error.
        """
        if self.future.done() and self.future.exception() is not None:
            return False
        return self.number >= since if since else self.at >= oldest


class Lookups:
    """The answers of one process."""

    def __init__(self, now: Callable[[], datetime], log: Log = unlogged) -> None:
        self._now, self._log = now, log
        self._lock = Lock()
        self._numbers = count(1)
        self._answers: dict[str, _Answer] = {}
        self._looks: dict[str, datetime] = {}
        self._last: dict[str, Any] = {}
        self._paused: dict[str, datetime] = {}

    def look(self, subject: str) -> "Look":
        """Begin to look at something.

        Who looks at the same again so soon waits for a change, and is answered anew.
        """
        now = self._now()
        with self._lock:
            before = self._looks.get(subject)
            self._looks[subject] = now
            is_new = before is None or now - before > SHARED_FOR
            return Look(self, 0 if is_new else next(self._numbers))

    def recent(self) -> "Look":
        """Begin a look that takes what is recent."""
        return Look(self, 0)

    def anew(self) -> "Look":
        """Begin a look that takes no answer from before."""
        with self._lock:
            return Look(self, next(self._numbers))

    def answer(self, question: str, ask: Callable[[], T], *, since: int, good_for: timedelta) -> T:
        """The answer to a question, from memory or from ``ask``, whose errors are raised and not kept.

        ``since``: the number of the look before which no answer counts. 0 takes one that is younger than ``good_for``.
        """
        now = self._now()
        with self._lock:
            kept = self._answers.get(question)
            is_ours = kept is None or not kept.is_good(since, now - good_for)
            if is_ours:
                kept = self._answers[question] = _Answer(next(self._numbers), now, Future())
        assert kept is not None
        if is_ours:
            try:
                kept.future.set_result(ask())
                self._last[question] = kept.future.result()
            except BaseException as error:
                kept.future.set_exception(error)
        answer: T = kept.future.result()
        return answer

    def last(self, question: str, ask: Callable[[], T], *, since: int, good_for: timedelta) -> T:
        """The same, but what was answered last where there is an error now. Nobody is asked again for a minute then.

        Raises that error where there was no answer yet, or where none from before counts.
        """
        now = self._now()
        if since or now >= self._paused.get(question, now):
            try:
                return self.answer(question, ask, since=since, good_for=good_for)
            except JoineryError as error:
                if since or question not in self._last:
                    raise
                self._log(f"{error}; what was said before is used")
                self._paused[question] = now + _PAUSE
        last: T = self._last[question]
        return last


@dataclass(frozen=True)
class Look:
    """One look at what AWS has, for which several things are asked. ``since``: see ``Lookups.answer``."""

    lookups: Lookups
    since: int

    def ask(self, question: str, ask: Callable[[], T], *, good_for: timedelta = SHARED_FOR) -> T:
        """The answer to a question, by whatever words all who ask it use."""
        return self.lookups.answer(question, ask, since=self.since, good_for=good_for)

    def ask_or_last(self, question: str, ask: Callable[[], T], *, good_for: timedelta) -> T:
        """The same, or what was answered last (``Lookups.last``)."""
        return self.lookups.last(question, ask, since=self.since, good_for=good_for)
