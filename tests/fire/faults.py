"""What goes wrong with one call of a gateway: it fails before or after its effect, meets a conflict, or is the last."""

from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

from joinery.objects.errors import ConflictError, UnavailableError
from simulator.latency import Killed
from tests.functional.fuse import WRITES

#: ``Recorder.emit`` never raises (its Protocol); the process can be killed there all the same.
NEVER_RAISES = "recorder.emit"


class Fault(Enum):
    """What happens to a call."""

    FAILED = "failed before its effect"
    UNANSWERED = "failed after its effect"
    CONFLICT = "met a conflict"
    KILLED = "was the last of its process"


def faults_of(name: str) -> Iterator[Fault]:
    """The faults that a call of ``gateway.method`` can meet, and that differ in what they lead to.

    A read has no effect. So one that fails after it is one that fails before it, and to be killed after a read is to be
    killed after the write before it.
    """
    gateway, _, method = name.partition(".")
    if name != NEVER_RAISES:
        yield Fault.FAILED
    if method not in WRITES:
        return
    yield Fault.KILLED
    if name != NEVER_RAISES:
        yield Fault.UNANSWERED
    if gateway == "cluster":
        yield Fault.CONFLICT


def strike(fault: Fault, go: Callable[[], Any]) -> Any:
    """Make the call ``go`` with that fault. Always raises."""
    if fault in (Fault.UNANSWERED, Fault.KILLED):
        go()
    match fault:
        case Fault.FAILED | Fault.UNANSWERED:
            raise UnavailableError("no answer")
        case Fault.CONFLICT:
            raise ConflictError("somebody wrote first")
        case Fault.KILLED:
            raise Killed


class Wires:
    """The wires between the doors and the gateways of a simulation.

    ``calls`` are all that were made, as ``gateway.method``. The ``number``-th of them, from 0, meets ``fault``.
    """

    def __init__(self, number: int | None = None, fault: Fault | None = None) -> None:
        self.calls: list[str] = []
        self._number = number
        self._fault = fault
        self._is_dead = False

    def start_process(self) -> None:
        """A new process, which is connected again."""
        self._is_dead = False

    def through(self, name: str, go: Callable[[], Any], about: Any = None) -> Any:
        """One call. ``about``: its first argument."""
        if self._is_dead:
            # What still runs in a killed process cannot reach anything.
            raise Killed
        self.calls.append(name)
        fault = self._fault_of(len(self.calls) - 1, name)
        if fault is None:
            return go()
        self._is_dead = fault is Fault.KILLED
        return strike(fault, go)

    def _fault_of(self, number: int, name: str) -> Fault | None:
        return self._fault if number == self._number else None
