"""How long pods wait: those that have no node yet, and those that got one since the last look.

When a container started is not asked: a pod runs from the moment at which it is Ready, or at which it was first seen
running. A pod that becomes Ready again later does not count again, because it was not waiting.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from joinery.decisions.metrics.definitions import Duration, Gauge, Measurement
from joinery.decisions.scheduling.packing import Packing
from joinery.objects.kubernetes.core import Pod
from joinery.objects.snapshot.nodes import pending_pods
from joinery.objects.snapshot.pods import bound_at
from joinery.objects.snapshot.snapshot import Snapshot


def waiting(snapshot: Snapshot, packing: Packing) -> Iterator[Measurement]:
    """What waits at this moment, and what of it the plan has no node for."""
    pending, now = pending_pods(snapshot, only_marked=True), snapshot.now
    created = [pod.metadata.creation_timestamp for pod in pending if pod.metadata.creation_timestamp]
    yield Measurement(Gauge.QUEUE_DEPTH, len(pending))
    yield Measurement(Gauge.UNSCHEDULABLE, len(packing.unplaced))
    yield Measurement(Gauge.UNBOUND, max((now - at).total_seconds() for at in created) if created else 0.0)
    if packing.launches:
        yield Measurement(Gauge.PLAN_GAP, 100.0 * packing.gap)


class Arrivals:
    """Which pods waited at the last look. It is only remembered: what a cold function missed is not measured."""

    def __init__(self) -> None:
        self._looked: datetime | None = None
        self._unbound: frozenset[str] = frozenset()
        self._unstarted: frozenset[str] = frozenset()

    def look(self, pods: Iterable[Pod], now: datetime) -> Iterator[Measurement]:
        """How long those took that have got a node, or have begun to run, since the last look."""
        # One pass over all pods, which are many: what has been running for long is let go at once.
        recent = {pod.metadata.uid: pod for pod in pods if self._is_recent(pod)}
        if self._looked is not None:
            yield from self._durations(recent, self._looked, now)
        self._looked = now
        self._unbound = frozenset(uid for uid, pod in recent.items() if not pod.spec.node_name)
        self._unstarted = frozenset(uid for uid, pod in recent.items() if pod.status.phase == "Pending")

    def _is_recent(self, pod: Pod) -> bool:
        if pod.status.phase == "Pending":
            return True
        created = pod.metadata.creation_timestamp
        is_new = self._looked is not None and created is not None and created > self._looked
        return is_new or pod.metadata.uid in self._unstarted

    def _durations(self, recent: Mapping[str, Pod], looked: datetime, now: datetime) -> Iterator[Measurement]:
        for uid, pod in recent.items():
            created = pod.metadata.creation_timestamp
            if created is None:
                continue
            is_new = created > looked
            if pod.spec.node_name and (is_new or uid in self._unbound):
                yield _lasting(Duration.BOUND, created, bound_at(pod) or now)
            if pod.status.phase == "Running" and (is_new or uid in self._unstarted):
                yield _lasting(Duration.STARTUP, created, _ready_at(pod) or now)


def _ready_at(pod: Pod) -> datetime | None:
    ready = (c.last_transition_time for c in pod.status.conditions if (c.type, c.status) == ("Ready", "True"))
    return next((at for at in ready if at is not None), None)


def _lasting(duration: Duration, since: datetime, until: datetime) -> Measurement:
    return Measurement(duration, max(0.0, (until - since).total_seconds()))
