"""What the scheduler sees in one pass: nodes with the pods on them, and what pods refer to."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from joinery.objects.karpenter import labels as keys
from joinery.objects.kubernetes.core import (
    Container,
    ContainerPort,
    CSINode,
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
    Taint,
    Toleration,
)
from joinery.objects.kubernetes.quantity import amounts, total
from simulator.kubernetes.budgets import FINISHED
from simulator.kubernetes.cluster import InMemoryCluster
from simulator.kubernetes.resources import with_fields


@dataclass
class NodeInfo:
    """A node, the pods bound to it, and how much they ask for (millicores, bytes, pods)."""

    node: Node
    pods: list[Pod] = field(default_factory=list)
    requested: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.name = self.node.metadata.name
        self.labels = self.node.metadata.labels
        self.allocatable = amounts(self.node.status.allocatable)

    def take(self, pod: Pod) -> None:
        """Count a pod that was bound, or is assumed to be."""
        self.pods.append(pod)
        self.requested = total((self.requested, requests(pod)))

    def with_pods(self, pods: Iterable[Pod]) -> "NodeInfo":
        copy = NodeInfo(self.node, list(self.pods), dict(self.requested))
        for pod in pods:
            copy.take(pod)
        return copy


@dataclass(frozen=True)
class View:
    """The cluster during one pass. ``nodes`` are updated as pods are bound."""

    nodes: Mapping[str, NodeInfo]
    namespaces: Mapping[str, Namespace]
    volume_claims: Mapping[str, PersistentVolumeClaim]
    volumes: Mapping[str, PersistentVolume]
    storage_classes: Mapping[str, StorageClass]
    csi_nodes: Mapping[str, CSINode]

    def placed(self) -> Iterator[tuple[NodeInfo, Pod]]:
        return ((info, pod) for info in self.nodes.values() for pod in info.pods)

    def with_pods(self, name: str, pods: Iterable[Pod]) -> "View":
        """The same, with more pods on one node."""
        return replace(self, nodes={**self.nodes, name: self.nodes[name].with_pods(pods)})


def view(cluster: InMemoryCluster) -> View:
    """Read the cluster."""
    nodes = {name: NodeInfo(node) for name, node in sorted(cluster.nodes.items())}
    for _, pod in sorted(cluster.pods.items()):
        if pod.spec.node_name in nodes and pod.status.phase not in FINISHED:
            nodes[pod.spec.node_name].take(pod)
    objects = cluster.api.objects
    return View(
        nodes=nodes,
        namespaces=objects("Namespace"),
        volume_claims=objects("PersistentVolumeClaim"),
        volumes=objects("PersistentVolume"),
        storage_classes=objects("StorageClass"),
        csi_nodes=objects("CSINode"),
    )


def requests(pod: Pod) -> dict[str, int]:
    """What the scheduler counts for a pod: containers and sidecars,
    or the largest init step, plus overhead, and one pod.
    """
    running = total(_asked(container) for container in pod.spec.containers)
    peak: dict[str, int] = {}
    sidecars: dict[str, int] = {}
    for container in pod.spec.init_containers:
        if container.restart_policy == "Always":
            sidecars = total((sidecars, _asked(container)))
            step = sidecars
        else:
            step = total((sidecars, _asked(container)))
        peak = _larger(peak, step)
    asked = _larger(total((running, sidecars)), peak)
    if pod.spec.resources is not None:
        asked = {**amounts(pod.spec.resources.limits), **asked, **amounts(pod.spec.resources.requests)}
    return total((asked, amounts(pod.spec.overhead), {"pods": 1}))


def _asked(container: Container) -> dict[str, int]:
    """A limit without a request is the request, as the API server defaults it."""
    return amounts({**container.resources.limits, **container.resources.requests})


def _larger(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in {**one, **other}}


def host_ports(pod: Pod) -> list[ContainerPort]:
    """Of containers and sidecars; the API server makes every port one of the host for a pod on the host's network."""
    sidecars = [container for container in pod.spec.init_containers if container.restart_policy == "Always"]
    ports = [port for container in (*pod.spec.containers, *sidecars) for port in container.ports]
    if pod.spec.host_network:
        ports = [port if port.host_port else with_fields(port, host_port=port.container_port) for port in ports]
    return [port for port in ports if port.host_port > 0]


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    return any(_covers(toleration, taint) for toleration in tolerations)


def _covers(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect not in ("", taint.effect):
        return False
    if toleration.operator == "Exists":
        return toleration.key in ("", taint.key)
    return toleration.key == taint.key and toleration.value == taint.value


def repelling_taints(node: Node) -> list[Taint]:
    """The taints that keep pods away, with the one that stands for a cordon."""
    cordon = [Taint(key="node.kubernetes.io/unschedulable", effect=keys.NO_SCHEDULE)] if node.spec.unschedulable else []
    return [taint for taint in (*node.spec.taints, *cordon) if taint.effect in (keys.NO_SCHEDULE, keys.NO_EXECUTE)]
