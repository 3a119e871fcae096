"""The recorder: decisions as Kubernetes Events (events.k8s.io/v1), where people look for them.

An Event's name derives from what it is about, its reason and a slot of two minutes, so the same Event within a slot
is the same object: the API server answers a second writer, in whatever function, with 409. A function sends none twice
in a slot: a drain that stalls has the same Event at every tick. Nor does it repeat a message for half an hour: a
thousand pods that fit nowhere need no thousand Events every two minutes, and the API server keeps an Event for an hour
(kube-apiserver ``--event-ttl``).
"""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from joinery.gateways.kubernetes.gateway import Event
from joinery.gateways.kubernetes.leases import micro_time
from joinery.gateways.kubernetes.patches import Document
from joinery.gateways.kubernetes.transport import Transport
from joinery.objects.errors import ConflictError, JoineryError
from joinery.objects.karpenter.labels import REPORTER
from joinery.objects.wording import shortened

SLOT_SECONDS = 120
_NAME_CHARS = 200
#: Which part of the reporter speaks: all functions are one to whoever reads Events.
_INSTANCE = "joinery"


#: How long an Event that has not changed is not published again.
UNCHANGED = timedelta(minutes=30)
#: How many published Events a function remembers at most.
_MOST_REMEMBERED = 20_000


@dataclass(frozen=True, slots=True)
class _Published:
    """When an Event was published, in which slot, and the hash of its message."""

    at: datetime
    slot: int
    message: int


class KubernetesRecorder:
    """Implements ``joinery.gateways.kubernetes.gateway.Recorder``. ``failures`` counts the Events that could not be
    written."""

    def __init__(self, transport: Transport, *, now: Callable[[], datetime]) -> None:
        self.failures = 0
        self._transport = transport
        self._now = now
        self._published: dict[tuple[str, str], _Published] = {}

    def is_news(self, event: Event) -> bool:
        now, last = self._now(), self._published.get((_about(event), event.reason))
        if last is None:
            return True
        is_unchanged = last.message == hash(event.message) and timedelta() <= now - last.at < UNCHANGED
        return not is_unchanged and last.slot != _slot(now)

    def emit(self, events: Iterable[Event]) -> None:
        for event in events:
            if not self.is_news(event):
                continue
            try:
                self._publish(event)
            except ConflictError:
                pass  # another function has published it
            except JoineryError:
                self.failures += 1
                continue
            self._remember(event)

    def _remember(self, event: Event) -> None:
        now = self._now()
        if len(self._published) >= _MOST_REMEMBERED:
            self._published = {key: last for key, last in self._published.items() if now - last.at < UNCHANGED / 2}
        self._published[_about(event), event.reason] = _Published(now, _slot(now), hash(event.message))

    def _publish(self, event: Event) -> None:
        namespace = event.namespace or "default"
        path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
        # One attempt: an Event is worth less than the time a retry takes.
        self._transport.request("POST", path, self._body(event, namespace), attempts=1)

    def _body(self, event: Event, namespace: str) -> Document:
        now = self._now()
        regarding = {"apiVersion": event.api_version, "kind": event.kind, "name": event.name, "uid": event.uid}
        return {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": name(event, now), "namespace": namespace},
            "eventTime": micro_time(now),
            "reportingController": REPORTER,
            "reportingInstance": _INSTANCE,
            "action": event.reason,
            "reason": event.reason,
            "regarding": {**regarding, **({"namespace": event.namespace} if event.namespace else {})},
            "note": shortened(event.message),
            "type": "Warning" if event.warning else "Normal",
        }


def name(event: Event, now: datetime) -> str:
    """The Event's name: the same for the same object and reason within one slot of two minutes."""
    digest = hashlib.sha256(f"{_about(event)}/{event.kind}/{event.reason}/{_slot(now)}".encode()).hexdigest()[:16]
    # What is cut off may leave a name that ends in the middle of a part, which the API server refuses.
    return f"{event.name[:_NAME_CHARS].rstrip('-.')}.{digest}"


def _about(event: Event) -> str:
    return event.uid or f"{event.kind}/{event.namespace}/{event.name}"


def _slot(now: datetime) -> int:
    return int(now.timestamp()) // SLOT_SECONDS
