"""Kubelets: an instance boots, registers its Node and becomes Ready;
its pods start, run, and end within their grace.
"""

from datetime import datetime, timedelta
from functools import partial

from joinery.gateways.ec2.catalog.document import Catalog
from joinery.gateways.ec2.gateway import Instance, LaunchRequest
from joinery.gateways.ec2.instancetypes.remembered import types_of
from joinery.objects.karpenter import labels as keys
from joinery.objects.karpenter.ec2nodeclass import of_ec2
from joinery.objects.kubernetes.core import Condition, Node, NodeSpec, NodeStatus, ObjectMeta, Pod, Taint
from joinery.objects.kubernetes.quantity import Resources, texts
from joinery.objects.snapshot.offerings import EFA, InstanceType
from simulator.actors.base import Stage
from simulator.engine import Turn
from simulator.kubernetes.apiserver import Change
from simulator.kubernetes.resources import with_fields
from simulator.kubernetes.shapes import allocatable, spelt

NOT_READY = Taint(key="node.kubernetes.io/not-ready", effect=keys.NO_SCHEDULE)
UNREGISTERED = Taint(key=keys.UNREGISTERED_TAINT, effect=keys.NO_EXECUTE)
BOOTS_IN = (18.0, 28.0)  # seconds from running to registered
READY_IN = (4.0, 8.0)  # seconds from registered to Ready
STARTS_IN = (1.5, 4.0)  # seconds from bound to running
STOPS_IN = (1.0, 5.0)  # seconds a container takes to stop when asked; its grace is the most
#: How long a pod takes to stop, for one that is slow: seconds, on the pod.
STOPS_SLOWLY = "simulator.joinery.dev/stops-in"
#: Anywhere in its node class's user data: a node that never registers, and one that does and is never Ready.
NEVER_REGISTERS, NEVER_READY = "simulator.joinery.dev/never-registers", "simulator.joinery.dev/never-ready"


class Kubelets:
    """All kubelets of the cluster. ``boot`` is called when an instance runs.

    ``lateness``: how much longer than usual the next instances take to register.
    """

    def __init__(self, stage: Stage, catalog: Catalog) -> None:
        self._stage = stage
        self._cluster = stage.cluster
        self._catalog = catalog
        self._rng = stage.engine.rng("kubelet")
        self._addresses = 0
        self.lateness = timedelta(0)
        self._cluster.api.watch(self._notice)

    def boot(self, instance_id: str) -> None:
        late = self.lateness.total_seconds()
        self._later((BOOTS_IN[0] + late, BOOTS_IN[1] + late), partial(self._register, instance_id))

    def register(self, instance_id: str) -> Node:
        """Create the Node of an instance at once, as its kubelet does after booting."""
        instance = self._stage.cloud.look(instance_id)[0]
        node = self._node(instance, self._stage.cloud.request_of(instance_id))
        return self._cluster.api.create(node)

    def become_ready(self, name: str) -> None:
        """Mark the node Ready, because its network is up, and start its pods."""
        node = self._cluster.nodes.get(name)
        if node is None or not self._is_running(node):
            return
        ready = Condition(
            type="Ready", status="True", reason="KubeletReady", last_transition_time=self._stage.clock.now()
        )
        taints = [taint for taint in node.spec.taints if taint != NOT_READY]
        spec, status = with_fields(node.spec, taints=taints), with_fields(node.status, conditions=[ready])
        self._cluster.api.update(with_fields(node, spec=spec, status=status))
        for pod in list(self._cluster.pods.values()):
            if pod.spec.node_name == name and pod.status.phase == "Pending":
                self._later(STARTS_IN, partial(self._start, pod))

    def _register(self, instance_id: str) -> None:
        user_data = self._user_data(instance_id)
        if self._stage.cloud.look(instance_id)[0].state != "running" or NEVER_REGISTERS in user_data:
            return
        node = self.register(instance_id)
        if NEVER_READY not in user_data:
            self._later(READY_IN, partial(self.become_ready, node.metadata.name))

    def _user_data(self, instance_id: str) -> str:
        """As the node class had it when the instance was launched."""
        return of_ec2(self._stage.cloud.request_of(instance_id).node_class).spec.user_data or ""

    def _notice(self, change: Change) -> None:
        if change.kind != "Pod" or change.after is None or not change.after.spec.node_name:
            return
        pod, before = change.after, change.before
        if before is None or not before.spec.node_name:
            self._later(STARTS_IN, partial(self._start, pod))
        marked = pod.metadata.deletion_timestamp
        if marked is not None and (before is None or before.metadata.deletion_timestamp != marked):
            self._stage.engine.at(self._end_of(pod), Turn.KUBELET, partial(self._stop, pod))

    def _end_of(self, pod: Pod) -> datetime:
        """When a pod that was asked to stop has stopped: by itself, or at the end of its grace."""
        now, due = self._stage.clock.now(), pod.metadata.deletion_timestamp
        slow = pod.metadata.annotations.get(STOPS_SLOWLY)
        takes = float(slow) if slow else self._rng.uniform(*STOPS_IN)
        return min(now + timedelta(seconds=takes), due or now)

    def _start(self, pod: Pod) -> None:
        current = self._same(pod)
        node = self._cluster.nodes.get(pod.spec.node_name)
        if current is None or node is None or not _is_ready(node) or current.status.phase != "Pending":
            return
        now = self._stage.clock.now()
        ready = Condition(type="Ready", status="True", last_transition_time=now)
        kept = [condition for condition in current.status.conditions if condition.type != "Ready"]
        status = with_fields(current.status, phase="Running", start_time=now, conditions=[*kept, ready])
        self._cluster.api.update(with_fields(current, status=status))

    def _stop(self, pod: Pod) -> None:
        current = self._same(pod)
        if current is not None and current.metadata.deletion_timestamp is not None:
            self._cluster.remove(current)

    def _same(self, pod: Pod) -> Pod | None:
        current = self._cluster.pods.get(pod.key)
        return current if current is not None and current.metadata.uid == pod.metadata.uid else None

    def _is_running(self, node: Node) -> bool:
        return self._stage.cloud.look(node.spec.provider_id.rpartition("/")[2])[0].state == "running"

    def _later(self, between: tuple[float, float], action: object) -> None:
        delay = timedelta(seconds=round(self._rng.uniform(*between), 1))
        self._stage.engine.after(delay, Turn.KUBELET, action)  # type: ignore[arg-type]

    def _node(self, instance: Instance, request: LaunchRequest) -> Node:
        kind = self._type(request, instance.instance_type)
        self._addresses += 1
        name = f"ip-10-0-{self._addresses // 250}-{self._addresses % 250 + 4}.ec2.internal"
        taints = [taint for taint in map(_taint, request.taints) if taint != UNREGISTERED]
        return Node(
            metadata=ObjectMeta(name=name, labels=_labels(name, kind, instance, request)),
            spec=NodeSpec(provider_id=instance.provider_id, taints=[NOT_READY, UNREGISTERED, *taints]),
            status=NodeStatus(
                capacity=spelt(texts(_attached(kind.capacity, request))),
                allocatable=allocatable(texts(_attached(kind.allocatable, request))),
                conditions=[Condition(type="Ready", status="False", reason="KubeletNotReady")],
            ),
        )

    def _type(self, request: LaunchRequest, name: str) -> InstanceType:
        types = types_of(self._catalog, of_ec2(request.node_class))
        return next(kind for kind in types if kind.name == name)


def _attached(room: Resources, request: LaunchRequest) -> Resources:
    """The resources of an instance. Elastic Fabric Adapters are there only if the launch asked EC2 for them."""
    asked = any(override.efa for override in request.overrides) or request.node_class.declares_interfaces
    return room if asked else {name: value for name, value in room.items() if name != EFA}


def _labels(name: str, kind: InstanceType, instance: Instance, request: LaunchRequest) -> dict[str, str]:
    """What kubelet and the cloud provider set, and what the user data asked for."""
    offered = next((offering for offering in kind.offerings if offering.zone == instance.zone), None)
    zone_id = {keys.ZONE_ID: offered.zone_id} if offered and offered.zone_id else {}
    return {
        keys.HOSTNAME: name,
        keys.ARCH: kind.labels[keys.ARCH][0],
        keys.OS: "linux",
        keys.INSTANCE_TYPE: instance.instance_type,
        keys.ZONE: instance.zone,
        keys.REGION: instance.zone[:-1],
        **zone_id,
        **request.labels,
    }


def _taint(taint: object) -> Taint:
    return Taint(key=taint.key, value=taint.value, effect=taint.effect)  # type: ignore[attr-defined]


def _is_ready(node: Node) -> bool:
    return any(condition.type == "Ready" and condition.status == "True" for condition in node.status.conditions)
