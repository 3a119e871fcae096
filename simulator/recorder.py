"""Where decisions explain themselves, in memory: the ``Recorder`` gateway."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from joinery.apis.labels import REPORTER
from joinery.cluster.gateway import Event
from simulator.clock import Clock
from simulator.kubernetes.cluster import InMemoryCluster

QUIET = timedelta(minutes=2)


class InMemoryRecorder:
    """Keeps what was emitted in ``events``, and in the cluster if there is one.

    Repeats within two minutes are dropped.
    """

    def __init__(self, clock: Clock, cluster: InMemoryCluster | None = None) -> None:
        self.events: list[Event] = []
        self._clock = clock
        self._cluster = cluster
        self._last: dict[tuple[str, str, str], datetime] = {}

    def emit(self, events: Iterable[Event]) -> None:
        for event in events:
            if not self._is_repeat(event):
                self._keep(event)

    def _is_repeat(self, event: Event) -> bool:
        last = self._last.get(_identity(event))
        return last is not None and self._clock.now() - last < QUIET

    def _keep(self, event: Event) -> None:
        self._last[_identity(event)] = self._clock.now()
        self.events.append(event)
        if self._cluster is not None:
            self._cluster.emit(event, reporter=REPORTER)


def _identity(event: Event) -> tuple[str, str, str]:
    return (event.uid or f"{event.kind}/{event.namespace}/{event.name}", event.reason, event.kind)
