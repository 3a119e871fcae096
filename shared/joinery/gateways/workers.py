"""Workers: calls that do not depend on each other, several at a time.

Only calls of gateways run side by side. What is decided, logged and noted about their answers is done one after the
other, in the order of the calls, so that a run reads the same whichever answer came first.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any, Protocol, TypeVar

from joinery.objects.errors import JoineryError

#: How many calls of a function run side by side, and how many connections a client keeps. A surge's fifty CreateFleet
#: calls, of seconds each, take three rounds: EC2 takes that many at once (EC2 API, "Request throttling").
MOST_WORKERS = 20

T = TypeVar("T")
First = TypeVar("First")
Second = TypeVar("Second")


class Workers(Protocol):
    def run(self, calls: Sequence[Callable[[], T]]) -> list[T | JoineryError]:
        """The answer of each call, or the error that it raised, in the order of the calls.

        One that fails does not keep the others from being made. Raises what is no ``JoineryError``.
        """
        ...


class OneByOne:
    """Implements ``Workers`` without threads: for gateways in memory, whose world must not depend on a scheduler."""

    def run(self, calls: Sequence[Callable[[], T]]) -> list[T | JoineryError]:
        return [_answer(as_here(call)) for call in calls]


class Threads:
    """Implements ``Workers``. At most ``most`` calls run at a time. They must be safe to make from several threads."""

    def __init__(self, most: int) -> None:
        self._most = most

    def run(self, calls: Sequence[Callable[[], T]]) -> list[T | JoineryError]:
        if len(calls) < 2:
            return OneByOne().run(calls)
        with ThreadPoolExecutor(min(self._most, len(calls))) as threads:
            return list(threads.map(_answer, map(as_here, calls)))


def as_here(call: Callable[[], T]) -> Callable[[], T]:
    """The call with the context variables of this thread, whichever thread makes it: a line of the log names the
    cluster and mode of the run that it belongs to. What the call sets itself is set for it alone.
    """
    return partial(copy_context().run, call)


def both(
    workers: Workers, first: Callable[[], First], second: Callable[[], Second]
) -> tuple[First | JoineryError, Second | JoineryError]:
    """The answers of two calls that are about different things, or the errors that they raised."""
    answers: list[Any] = workers.run([first, second])
    return answers[0], answers[1]


def _answer(call: Callable[[], T]) -> T | JoineryError:
    try:
        return call()
    except JoineryError as error:
        return error
