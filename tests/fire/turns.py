"""Two doors at work at the same time, call by call in an order that the test chooses.

Each runs in a thread of its own, and only one of the threads runs at any moment: who is to wait does so before its next
call of a gateway. So every telling is the same again, and what a race needs is written in the test.
"""

from collections.abc import Callable
from threading import Semaphore, Thread
from typing import Any

from joinery.gateways.bundles import Gateways
from tests.functional.fuse import wired

Door = Callable[[Gateways], object]
#: No run takes so long. Without it a mistake in here would hang the tests.
_PATIENCE_SECONDS = 60


class Run:
    """One run of a door. ``calls`` are those that it has made; before the ``stop``-th, from 0, it lets others go on."""

    def __init__(self, door: Door, gateways: Gateways, stop: int | None = None) -> None:
        self.calls: list[str] = []
        self.is_over = False
        self._stop = stop
        self._problem: BaseException | None = None
        self._may_go, self._has_stopped = Semaphore(0), Semaphore(0)
        self._thread = Thread(target=self._run, args=(door, wired(gateways, self._through)), daemon=True)

    def go(self) -> None:
        """Let it run to its stop, or from there to its end. Raises what it raised."""
        if self.is_over:
            return
        if self._thread.ident is None:
            self._thread.start()
        else:
            self._may_go.release()
        assert self._has_stopped.acquire(timeout=_PATIENCE_SECONDS), f"it hangs after {self.calls}"
        if self._problem is not None:
            raise self._problem

    def _run(self, door: Door, gateways: Gateways) -> None:
        try:
            door(gateways)
        except BaseException as problem:  # whatever it is, the test's own thread has to raise it
            self._problem = problem
        self.is_over = True
        self._has_stopped.release()

    def _through(self, name: str, go: Callable[[], Any], about: Any = None) -> Any:
        if len(self.calls) == self._stop:
            self._has_stopped.release()
            self._may_go.acquire(timeout=_PATIENCE_SECONDS)
        self.calls.append(name)
        return go()


def interleave(first: Run, second: Run) -> None:
    """``first`` to its stop, ``second`` to its own, and then each to its end."""
    for run in (first, second, first, second):
        run.go()
