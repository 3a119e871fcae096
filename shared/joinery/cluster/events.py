"""The recorder: decisions as Kubernetes Events (events.k8s.io/v1), where people look for them.

An Event's name derives from what it is about, its reason and a slot of two minutes, so the same news within a slot is
the same object: the second writer, in whatever function, is told that it exists already. What this function has told
in the slot is not even sent: a drain that stalls has the same news with every tick.
"""

import hashlib
from collections.abc import Callable, Iterable
from datetime import datetime

from joinery.apis.labels import REPORTER
from joinery.cluster.gateway import Event
from joinery.cluster.leases import micro_time
from joinery.cluster.patches import Document
from joinery.cluster.transport import Transport
from joinery.errors import ConflictError, JoineryError

SLOT_SECONDS = 120
NOTE_BYTES = 1024
_NAME_CHARS = 200
#: Which part of the reporter speaks: all functions are one to whoever reads Events.
_INSTANCE = "joinery"


class KubernetesRecorder:
    """Implements ``joinery.cluster.gateway.Recorder``. ``failures`` counts the Events that could not be written."""

    def __init__(self, transport: Transport, *, now: Callable[[], datetime]) -> None:
        self.failures = 0
        self._transport = transport
        self._now = now
        self._slot, self._told = 0, set[str]()

    def emit(self, events: Iterable[Event]) -> None:
        for event in events:
            now = self._now()
            if name(event, now) in self._told_in(_slot(now)):
                continue
            try:
                self._publish(event)
            except ConflictError:
                pass  # another function has told it
            except JoineryError:
                self.failures += 1
                continue
            self._told.add(name(event, now))

    def _told_in(self, slot: int) -> set[str]:
        """The names of the Events that this function has told in the slot."""
        if slot != self._slot:
            self._slot, self._told = slot, set()
        return self._told

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
            "note": _shortened(event.message),
            "type": "Warning" if event.warning else "Normal",
        }


def name(event: Event, now: datetime) -> str:
    """The Event's name: the same for the same object and reason within one slot of two minutes."""
    about = event.uid or f"{event.kind}/{event.namespace}/{event.name}"
    digest = hashlib.sha256(f"{about}/{event.kind}/{event.reason}/{_slot(now)}".encode()).hexdigest()[:16]
    # What is cut off may leave a name that ends in the middle of a part, which the API server refuses.
    return f"{event.name[:_NAME_CHARS].rstrip('-.')}.{digest}"


def _slot(now: datetime) -> int:
    return int(now.timestamp()) // SLOT_SECONDS


def _shortened(message: str) -> str:
    return message.encode()[:NOTE_BYTES].decode(errors="ignore")
