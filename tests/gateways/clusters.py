"""The forms of the ``Cluster`` gateway that one contract suite is run against.

Each gives the suite the gateway, the recorder, and a back door through which a test arranges the cluster and looks at
it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

import msgspec

from joinery.gateways.kubernetes.adapter import KubernetesCluster
from joinery.gateways.kubernetes.connection import Connection, connection
from joinery.gateways.kubernetes.events import KubernetesRecorder
from joinery.gateways.kubernetes.gateway import Cluster, Recorder
from joinery.gateways.kubernetes.transport import Transport
from joinery.objects.errors import NotFoundError
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from joinery.objects.karpenter.labels import REPORTER
from simulator.clock import Clock
from simulator.kubernetes.cluster import InMemoryCluster
from simulator.kubernetes.kubeapi import KubernetesServer
from simulator.kubernetes.resources import key_of, kind_of
from simulator.world import InMemoryRecorder
from tests.controlplane import objects
from tools.controlplane.plane import JOINERY, ControlPlane

START = datetime.fromisoformat("2026-11-21T12:00:00+00:00")


@dataclass(frozen=True)
class PublishedEvent:
    """An Event as a person reads it."""

    reason: str
    message: str
    kind: str
    name: str
    reporter: str
    warning: bool


class Form(Protocol):
    """One form of the gateway, and the back door."""

    cluster: Cluster
    recorder: Recorder
    clock: Clock

    def put(self, *items: Any) -> None:
        """Arrange objects as they are."""

    def remove(self, item: Any) -> None:
        """Take one away, finalizers or not."""

    def stored(self, item: Any) -> Any:
        """The object of that kind and name now. ``NotFoundError``."""

    def events(self) -> list[PublishedEvent]:
        """The Events of Joinery."""


def exists(form: Form, item: Any) -> bool:
    """Whether an object of that kind and name is stored."""
    try:
        form.stored(item)
    except NotFoundError:
        return False
    return True


class InMemory:
    """The simulator's cluster, in the process."""

    def __init__(self) -> None:
        self.clock = Clock(START)
        self.memory = InMemoryCluster(self.clock)
        self.cluster: Cluster = self.memory
        self.recorder: Recorder = InMemoryRecorder(self.clock, self.memory)

    def put(self, *items: Any) -> None:
        self.memory.add(*items)

    def remove(self, item: Any) -> None:
        self.memory.remove(item)

    def stored(self, item: Any) -> Any:
        return self.memory.api.get(kind_of(item), key_of(item))

    def events(self) -> list[PublishedEvent]:
        return [
            PublishedEvent(e.reason, e.message, e.kind, e.name, stored.reporter, e.warning)
            for stored in self.memory.events
            for e in [stored.event]
        ]


class Served(InMemory):
    """The adapter over the simulator's HTTP server."""

    def __init__(self, url: str, behind: InMemory) -> None:
        self.clock, self.memory = behind.clock, behind.memory
        transport = Transport(connection(url))
        # Nothing is short, so that every kind that can be followed is.
        self.cluster = KubernetesCluster(transport, now=self.clock.now, node_class=EC2NodeClass, short=0)
        self.recorder = KubernetesRecorder(transport, now=self.clock.now)


def like_eks(plane: ControlPlane) -> Connection:
    """The connection that the functions make to EKS: with an authority and a bearer token, without a kubeconfig."""
    authority = plane.certificate.read_text()
    return connection(plane.server, authority=authority, authorization=lambda: f"Bearer {JOINERY.token}")


class Real:
    """The adapter, as the user joinery, over a real API server."""

    def __init__(self, plane: ControlPlane) -> None:
        self.clock = Clock(START)
        self._admin = objects.connect(plane)
        transport = Transport(like_eks(plane))
        self.cluster: Cluster = KubernetesCluster(transport, now=self.clock.now, node_class=EC2NodeClass)
        self.recorder: Recorder = KubernetesRecorder(transport, now=self.clock.now)

    def put(self, *items: Any) -> None:
        objects.put(self._admin, *items)

    def remove(self, item: Any) -> None:
        objects.remove(self._admin, item)

    def stored(self, item: Any) -> Any:
        return objects.get(self._admin, item)

    def events(self) -> list[PublishedEvent]:
        found = msgspec.json.decode(self._admin.get("/apis/events.k8s.io/v1/events"))["items"]
        return [
            PublishedEvent(
                each["reason"],
                each.get("note", ""),
                each["regarding"]["kind"],
                each["regarding"]["name"],
                each["reportingController"],
                each["type"] == "Warning",
            )
            for each in found
            if each.get("reportingController") == REPORTER
        ]

    def sweep(self) -> None:
        objects.sweep(self._admin)


@contextmanager
def served() -> Iterator[Served]:
    """The adapter over a server of its own."""
    behind = InMemory()
    with KubernetesServer(behind.memory) as server:
        yield Served(server.url, behind)


@contextmanager
def real(plane: ControlPlane) -> Iterator[Real]:
    """The adapter over the API server, emptied of what other tests left, and of what this one leaves."""
    form = Real(plane)
    form.sweep()
    try:
        yield form
    finally:
        form.sweep()
