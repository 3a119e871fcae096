"""Where decisions explain themselves, in memory: the ``Recorder`` gateway."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from joinery.gateways.kubernetes.gateway import Event
from joinery.objects.karpenter.labels import REPORTER
from simulator.clock import Clock
from simulator.kubernetes.cluster import InMemoryCluster

QUIET, UNCHANGED = timedelta(minutes=2), timedelta(minutes=30)


class InMemoryRecorder:
    """Keeps what was emitted in ``events``, and in the cluster if there is one.

    What is no news is dropped.
    """

    def __init__(self, clock: Clock, cluster: InMemoryCluster | None = None) -> None:
        self.events: list[Event] = []
        self._clock = clock
        self._cluster = cluster
        self._last: dict[tuple[str, str, str], tuple[datetime, str]] = {}

    def is_news(self, event: Event) -> bool:
        at, message = self._last.get(_identity(event), (None, ""))
        if at is None:
            return True
        return self._clock.now() - at >= (UNCHANGED if message == event.message else QUIET)

    def emit(self, events: Iterable[Event]) -> None:
        for event in events:
            if self.is_news(event):
                self._keep(event)

    def _keep(self, event: Event) -> None:
        self._last[_identity(event)] = (self._clock.now(), event.message)
        self.events.append(event)
        if self._cluster is not None:
            self._cluster.emit(event, reporter=REPORTER)


def _identity(event: Event) -> tuple[str, str, str]:
    return (event.uid or f"{event.kind}/{event.namespace}/{event.name}", event.reason, event.kind)
