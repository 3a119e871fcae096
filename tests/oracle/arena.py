"""The control plane on which worlds meet the real scheduler: everything that is written to it, and how long to wait.

Nodes are what an instance of the planned offering would register. Steering is the product's own: what lifecycle does at
registration is done here by the same functions, in the same order.
"""

import contextlib
import itertools
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypeVar
from uuid import UUID

from msgspec.structs import replace as changed

from joinery.decisions.lifecycle.joining.registration import register
from joinery.decisions.lifecycle.joining.steering import is_steered, released, tolerating
from joinery.decisions.lifecycle.launching.fleet_groups import FleetGroup, FleetOutcome, after_launch
from joinery.decisions.lifecycle.state.cluster import ClusterState, state_of
from joinery.gateways.kubernetes import lists
from joinery.gateways.kubernetes.adapter import KubernetesCluster
from joinery.objects.actions import UpdateClaim
from joinery.objects.errors import ConflictError
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from joinery.objects.karpenter.labels import INITIALIZED, UNREGISTERED_TAINT
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Node, Pod
from joinery.objects.snapshot.instances import Instance
from joinery.objects.snapshot.offerings import InstanceType
from joinery.objects.snapshot.snapshot import Snapshot
from simulator import builders
from tests.controlplane import objects
from tests.controlplane.kubelet import node_of
from tests.oracle.worlds import PRIORITIES, WORLD, World, types
from tools.controlplane.plane import JOINERY, ControlPlane

T = TypeVar("T")
#: The scheduler tries a pod again after a second at most (the plane is started so), so three without a change are the
#: end.
QUIET_SECONDS = 3.0
#: For pods that are expected to bind: the machine may be busy with something else for a while.
PATIENT_SECONDS = 15.0
LONGEST_SECONDS = 120.0
POLL_SECONDS = 0.2
HANDS = 6


class Arena:
    """One control plane, emptied between batches of worlds. ``steers``: as in ``ClusterState``."""

    def __init__(self, plane: ControlPlane, *, steers: bool = True) -> None:
        self._steers = steers
        self.now = datetime.now(UTC).replace(microsecond=0)  # noqa: TID251 - the API server's timestamps are real
        self._admin = objects.connect(plane)
        self._cluster = KubernetesCluster(
            objects.connect(plane, JOINERY), now=lambda: self.now, node_class=EC2NodeClass
        )
        self._kubelets = KubernetesCluster(self._admin, now=lambda: self.now, node_class=EC2NodeClass)
        self._numbers = itertools.count(1)
        for name, value in PRIORITIES.items():
            self._create_priority(name, value)

    def put(self, worlds: Sequence[World]) -> None:
        """Everything that exists before a plan, pods last."""
        spaces = [builders.namespace(world.namespace) for world in worlds]
        self._put(spaces)
        self._put([node for world in worlds for node in world.nodes])
        self._ready()
        self._put([item for world in worlds for item in (*world.volumes, *world.volume_claims, *world.daemon_sets)])
        self._put([pod for world in worlds for pod in (*world.bound, *world.pods)])

    def wait_for_verdicts(self) -> Snapshot:
        """What there is once the scheduler has tried every pod: it is bound, or marked as one that fits nowhere."""
        while any(not pod.spec.node_name and not pod.status.conditions for pod in self._pods()):
            time.sleep(POLL_SECONDS)
        return self.look()

    def look(self) -> Snapshot:
        """Everything on the control plane."""
        return self._cluster.snapshot()

    def buy(self, claim: NodeClaim, offering: tuple[str, str, str]) -> NodeClaim:
        """The claim as its launch leaves it, with an instance of that type, zone and capacity type.

        A claim's name is unique in its own world only, and worlds that share a control plane plan at the same moment.
        """
        kind, zone, capacity_type = offering
        number = next(self._numbers)
        unique = claim.metadata.model_copy(update={"name": f"{claim.metadata.name}-{number}"})
        claim = claim.model_copy(update={"metadata": unique})
        name = f"i-{number:017x}"
        instance = Instance(name, kind, zone, capacity_type, "running", self.now)
        by_name: dict[str, InstanceType] = {kind.name: kind for kind in types()}
        (chain,), _ = after_launch(
            FleetGroup((claim,)), FleetOutcome(instances=(instance,)), builders.node_class(), by_name, self.now
        )
        (update,) = (command for command in chain if isinstance(command, UpdateClaim))
        stored = update.after.metadata.model_copy(update={"uid": str(UUID(int=next(self._numbers)))})
        return update.after.model_copy(update={"metadata": stored})

    def add(self, nodes: Sequence[Node]) -> None:
        """Nodes that are ready at once."""
        self._put(nodes)
        self._ready()

    def restart(self, pods: Sequence[Pod]) -> None:
        """Delete the pods and create them again."""
        for pod in pods:
            options = {"gracePeriodSeconds": 0}
            place = f"/api/v1/namespaces/{pod.metadata.namespace}/pods/{pod.metadata.name}"
            self._admin.request("DELETE", place, options)
        self._put(pods)

    def boot(self, claims: Iterable[NodeClaim]) -> None:
        """Their nodes join, ready and still tainted as unregistered."""
        self.add([node_of(claim) for claim in claims])

    def register(self, claims: Sequence[NodeClaim]) -> None:
        """What lifecycle does until registration: let the planned pods onto the nodes that are kept for them."""
        left = list(claims)
        while left:
            world = state_of(replace(self.look(), node_claims=tuple(left)), (), steers=self._steers)
            left = [claim for claim in left if not self._register(world, claim)]

    def _register(self, world: ClusterState, claim: NodeClaim) -> bool:
        (before,) = world.nodes_of(claim)
        pods = tolerating(world, claim) if world.steers else None
        if pods is not None:
            for pod in pods.pods:
                self._cluster.tolerate(pod, pods.toleration)
        _, node, _ = register(world, claim)
        return node is not None and self._update(before, node)

    def release(self) -> None:
        """Nodes are kept no longer: what lifecycle does when their pods are there, or had their time."""
        while kept := [node for node in self.look().nodes if is_steered(node)]:
            self._each(lambda node: self._update(node, released(node)), kept)

    def settle(self, is_done: Callable[[frozenset[str]], bool], quiet_seconds: float = QUIET_SECONDS) -> frozenset[str]:
        """Wait until that may be said of the pods that are bound, or no more are bound for so long. Those pods."""
        before: frozenset[str] = frozenset()
        changed_at = started = time.monotonic()
        while True:
            bound, now = frozenset(pod.key for pod in self._pods() if pod.spec.node_name), time.monotonic()
            changed_at = changed_at if bound == before else now
            if is_done(bound) or now - changed_at > quiet_seconds or now - started > LONGEST_SECONDS:
                return bound
            before = bound
            time.sleep(POLL_SECONDS)

    def initialize(self, seen: Snapshot) -> None:
        """Nodes are complete: what lifecycle says of them later."""
        nodes = [
            node for node in seen.nodes if INITIALIZED not in node.metadata.labels and WORLD in node.metadata.labels
        ]
        self._each(self._complete, nodes)

    def clear(self) -> None:
        """Remove all of it."""
        seen = self.look()
        for daemons in seen.daemon_sets:
            objects.remove(self._admin, daemons)
        for namespace in {pod.metadata.namespace for pod in seen.pods}:
            options = {"gracePeriodSeconds": 0}
            self._admin.request("DELETE", f"/api/v1/namespaces/{namespace}/pods", options)
        self._each(lambda item: objects.remove(self._admin, item), [*seen.nodes, *seen.volume_claims, *seen.volumes])
        while self.look().pods or self.look().nodes:
            objects.sweep(self._admin)

    def _pods(self) -> tuple[Pod, ...]:
        return lists.read(self._cluster.transport, "/api/v1/pods", Pod).objects

    def _create_priority(self, name: str, value: int) -> None:
        document = {"metadata": {"name": name}, "value": value, "preemptionPolicy": "Never"}
        self._admin.request("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", document)

    def _put(self, items: Sequence[object]) -> None:
        self._each(lambda item: objects.put(self._admin, item), items)

    def _ready(self) -> None:
        """Take off the taints that admission puts on every new node; a controller may be writing to it too."""
        while fresh := [node for node in self.look().nodes if any(_is_boots(taint.key) for taint in node.spec.taints)]:
            self._each(self._set_ready, fresh)

    def _set_ready(self, node: Node) -> None:
        kept = [taint for taint in node.spec.taints if not _is_boots(taint.key)]
        with contextlib.suppress(ConflictError):
            self._kubelets.update_node(node, changed(node, spec=changed(node.spec, taints=kept)))

    def _complete(self, node: Node) -> None:
        labels = {**node.metadata.labels, INITIALIZED: "true"}
        self._update(node, changed(node, metadata=changed(node.metadata, labels=labels)))

    def _update(self, before: Node, after: Node) -> bool:
        try:
            self._cluster.update_node(before, after)
        except ConflictError:
            return False
        return True

    def _each(self, action: Callable[[T], object], items: Sequence[T]) -> None:
        with ThreadPoolExecutor(HANDS) as hands:
            list(hands.map(action, items))


def _is_boots(key: str) -> bool:
    return key.startswith("node.kubernetes.io/") and key != UNREGISTERED_TAINT
