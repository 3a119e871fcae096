"""Patience: whether a request of AWS's may be begun that is one of several in a gateway's call.

Whoever makes such a call (a launch, a look at a node class) knows how much time its run has left; who makes the
requests knows how many there are. Each may wait until it is given up, or behind another thread that waits. So the one
says ``within`` which limits it calls, and the other asks before each request.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from joinery.objects.errors import TimeIsOverError

_has_time_for: ContextVar[Callable[[float], bool] | None] = ContextVar("has_time_for", default=None)


@contextmanager
def within(has_time_for: Callable[[float], bool]) -> Iterator[None]:
    """Begin no request in this block, and in calls that workers make for it, for whose seconds there is no time."""
    token = _has_time_for.set(has_time_for)
    try:
        yield
    finally:
        _has_time_for.reset(token)


def in_time(doing: str, seconds: float) -> None:
    """Raise ``TimeIsOverError`` where there is no time for a request that takes so long at most. Without limits there
    is.
    """
    has_time_for = _has_time_for.get()
    if has_time_for is not None and not has_time_for(seconds):
        raise TimeIsOverError(f"no time is left for {doing}")
