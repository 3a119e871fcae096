"""The functions at work in this process, on a real cluster whose nodes are Node objects.

The functions are the real ones (``simulator.doors``), and so is the cluster; queues, bucket and table are in memory.
The webhook's part is played by looking: a pod that fits nowhere, or a node or NodePool that has changed, rings its
bell.
"""

from collections.abc import Callable, Hashable
from dataclasses import replace
from datetime import UTC, datetime

from joinery.gateways.bundles import Gateways
from joinery.gateways.doorbell.gateway import Bell
from joinery.gateways.kubernetes.adapter import KubernetesCluster
from joinery.gateways.kubernetes.events import KubernetesRecorder
from joinery.gateways.kubernetes.transport import Transport
from joinery.objects.kubernetes.core import Node
from joinery.objects.snapshot.nodes import pending_pods
from joinery.objects.snapshot.snapshot import Snapshot
from simulator.doors.doors import Doors
from simulator.doors.queues import BellQueues
from simulator.engine import Engine
from simulator.kwok.cloud import PLAYED, KwokCloud
from simulator.kwok.kubelets import Kubelets
from simulator.kwok.nodeclass import KWOKNodeClass
from simulator.world import World


class KwokWorld(World):
    """A world whose cluster is an API server and whose instances are its Nodes. ``now``: the real time."""

    def __init__(self, transport: Transport, now: Callable[[], datetime]) -> None:
        super().__init__(start=now())
        self.real = KubernetesCluster(transport, now=self.clock.now, node_class=KWOKNodeClass)
        self.told = KubernetesRecorder(transport, now=self.clock.now)
        self.kwok = KwokCloud(transport, self.clock)
        self.store.put_catalog(self.kwok.catalog())

    @property
    def gateways(self) -> Gateways:
        return replace(super().gateways, cluster=self.real, recorder=self.told, cloud=self.kwok)


class Live:
    """``step`` lets everybody do what is due by now. ``doors``: open them around it."""

    def __init__(self, transport: Transport, now: Callable[[], datetime], settings: str = "") -> None:
        self._now = now
        self.world = KwokWorld(transport, now)
        self.doors = Doors(self.world, settings=settings)
        self.engine = Engine(self.world.clock)
        self._kubelets = Kubelets(transport, self.world.clock.now, _is_played)
        self._seen: dict[Bell, Hashable] = {}
        BellQueues(self.engine, self.world.doorbell, self.doors).start()

    def step(self) -> Snapshot:
        """One turn of all. Returns the cluster before it."""
        self.engine.run_until(max(self._now(), self.world.clock.now()))
        self.world.kwok.boot()
        self._kubelets.tick()
        seen = self.world.real.snapshot()
        self._look(Bell.PROVISIONING, tuple(pod.key for pod in pending_pods(seen, only_marked=True)))
        configured = (*seen.node_pools, *seen.node_classes, *seen.node_claims)
        facts = (
            *((one.metadata.uid, one.metadata.generation, one.metadata.deletion_timestamp) for one in configured),
            *((node.metadata.uid, *(taint.key for taint in node.spec.taints)) for node in seen.nodes),
        )
        self._look(Bell.LIFECYCLE, facts)
        return seen

    def _look(self, bell: Bell, fact: Hashable) -> None:
        """Ring if the fact has changed."""
        if self._seen.get(bell) != fact:
            self._seen[bell] = fact
            self.world.doorbell.ring(bell)


def real_time() -> datetime:
    """Now."""
    return datetime.now(UTC)  # noqa: TID251 - the cluster's own clock is real


def _is_played(node: Node) -> bool:
    return PLAYED in node.metadata.annotations
