"""What a pod asks of a node: the effective request that kube-scheduler counts (component-helpers
`resource.PodRequests`).

**Attached volumes** are a resource of nodes to be bought: pods ask for some, instance types have so many. A node that
exists says in its CSINode how many volumes each driver attaches there. Of a node to be bought only its instance type is
known, and counting attachments like CPU keeps first-fit, the optimizer and the bound within them. Claims that several
pods use are left out: they take one attachment together, which a sum cannot say.

**Parts of GPUs**: a node of some types (g6f, gr6f) shows a part of a GPU as the resource that others show a GPU as. A
pod that asks for a GPU means a whole one. It gets a part only where it or the NodePool asks for the type by its name,
its family or ``instance-gpu-fractional``. Karpenter buys no such type for it at all: parts came up in production for
pods that asked for GPUs (karpenter-provider-aws issue 8324). kube-scheduler knows no such rule: a node that exists
takes any pod.
"""

from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import dataclass

from joinery.decisions.scheduling.constraints.requirements import Requirements
from joinery.objects.karpenter.labels import GPU_FRACTIONAL, GPU_RESOURCES, INSTANCE_FAMILY, INSTANCE_TYPE
from joinery.objects.kubernetes import core
from joinery.objects.kubernetes.core import Pod, PodSpec, ResourceRequirements
from joinery.objects.kubernetes.quantity import amounts, total

PODS = "pods"
#: (protocol, host IP, port).
HostPort = tuple[str, str, int]

#: How many attachments a node has where nobody says.
NO_LIMIT = 1 << 20
_ATTACHMENTS = "attachable-volumes-csi-"
_NAMING_TYPES = (INSTANCE_TYPE, INSTANCE_FAMILY, GPU_FRACTIONAL)


def requests_of(pod: Pod) -> dict[str, int]:
    """What the pod takes of a node: its effective request (component-helpers ``resource.PodRequests``), with "pods" as
    1.

    It is the larger of two amounts: all app containers and sidecars together; and each init container with the sidecars
    that started before it. Pod-level resources replace what they name. The runtime class's overhead comes on top. While
    a container or pod is resized, the larger of what it asks for and what it holds counts.

    Raises ``ValueError`` for a quantity that is none.
    """
    resize = resized(pod)
    return _effective(pod.spec, resize if resize is not None else _NOT_RESIZED)


def _effective(spec: PodSpec, resize: "Resize") -> dict[str, int]:
    apps = total(resize.of(container) for container in spec.containers)
    if spec.init_containers:
        apps = _with_init(apps, spec.init_containers, resize)
    if spec.resources is not None:
        # The API server makes a pod-level limit a request only where no container requests the resource.
        apps = {**amounts(spec.resources.limits), **apps, **resize.of_pod(spec.resources)}
    result = total((apps, amounts(spec.overhead))) if spec.overhead else apps
    result[PODS] = 1
    return result


@dataclass(frozen=True)
class Resize:
    """The amounts that a pod holds while it is resized, where they are not the ones it asks for.

    containers      by name of the container: what it holds
    pod             what the pod as a whole holds; None if it has no resize of its own
    is_infeasible   the node will never have what is asked for, so only what is held counts
    """

    containers: Mapping[str, Mapping[str, int]]
    pod: Mapping[str, int] | None = None
    is_infeasible: bool = False

    def of(self, container: core.Container) -> dict[str, int]:
        """The container's request as the scheduler counts it."""
        return self._counted(_requests(container), self.containers.get(container.name))

    def of_pod(self, resources: ResourceRequirements) -> dict[str, int]:
        """The pod-level request as the scheduler counts it, of what the pod names."""
        counted = self._counted(amounts(resources.requests), self.pod)
        return {name: counted.get(name, 0) for name in resources.requests}

    def _counted(self, asked: dict[str, int], held: Mapping[str, int] | None) -> dict[str, int]:
        if held is None:
            return asked
        return dict(held) if self.is_infeasible else _larger(asked, held)


_NOT_RESIZED = Resize({})


def resized(pod: Pod) -> Resize | None:
    """The resize in progress of a pod; None where its containers hold what they ask for, as nearly all do."""
    status, spec = pod.status, pod.spec
    statuses = {reported.name: reported for reported in (*status.container_statuses, *status.init_container_statuses)}
    sidecars = (container for container in spec.init_containers if container.restart_policy == "Always")
    containers = {
        container.name: held
        for container in (*spec.containers, *sidecars)
        if (reported := statuses.get(container.name)) is not None
        and (held := _held(container.resources, reported.resources, reported.allocated_resources)) is not None
    }
    whole = _held(spec.resources, status.resources, status.allocated_resources) if spec.resources else None
    return Resize(containers, whole, status.pending_resize == "Infeasible") if containers or whole is not None else None


def _held(
    asked: ResourceRequirements, running: ResourceRequirements | None, allocated: Mapping[str, str | int | float]
) -> dict[str, int] | None:
    """What is held; None if the kubelet says nothing of it, or that it is what is asked for."""
    if (running is None or running.requests == asked.requests) and allocated in ({}, asked.requests):
        return None
    return _larger(amounts(running.requests if running else {}), amounts(allocated))


def negative_in(pod: Pod) -> str | None:
    """The first resource, in name order, of which some part of the pod asks for a negative amount."""
    parts = [_requests(container) for container in (*pod.spec.containers, *pod.spec.init_containers)]
    parts.append(amounts(pod.spec.overhead))
    if pod.spec.resources is not None:
        parts.append(amounts(pod.spec.resources.requests))
    return min((name for part in parts for name, value in part.items() if value < 0), default=None)


def _requests(container: core.Container) -> dict[str, int]:
    """The container's requests. A limit without a request is one, as the API server defaults it."""
    if not container.resources.limits:
        return amounts(container.resources.requests)
    return {**amounts(container.resources.limits), **amounts(container.resources.requests)}


def _with_init(apps: dict[str, int], init_containers: Iterable[core.Container], resize: Resize) -> dict[str, int]:
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in init_containers:
        if container.restart_policy == "Always":
            sidecars = total((sidecars, resize.of(container)))
            peak = _larger(peak, sidecars)
        else:
            peak = _larger(peak, total((sidecars, _requests(container))))
    return _larger(total((apps, sidecars)), peak)


def _larger(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in {**one, **other}}


def host_ports_of(pod: Pod) -> frozenset[HostPort]:
    """(protocol, host IP, port) of every host port; an empty IP stands for every address (kube-scheduler NodePorts).

    Sidecars' ports count, those of other init containers do not. In a pod on the host's network every container port is
    a host port. The API server writes that into pods, but neither into a DaemonSet's template nor into a file.
    """
    spec = pod.spec
    sidecars = (container for container in spec.init_containers if container.restart_policy == "Always")
    return frozenset(
        (port.protocol, port.host_ip or "0.0.0.0", number)
        for container in (*spec.containers, *sidecars)
        for port in container.ports
        if (number := port.host_port or (port.container_port if spec.host_network else 0))
    )


WILDCARDS = ("0.0.0.0", "::")


def ports_clash(one: Collection[HostPort], other: Collection[HostPort]) -> bool:
    """Whether two pods cannot share a node: same protocol and port, and the same IP or a wildcard (`HostPortInfo`)."""
    if not one or not other:
        return False
    taken: dict[tuple[str, int], set[str]] = {}
    for protocol, ip, port in one:
        taken.setdefault((protocol, port), set()).add(ip)
    return any(
        (ips := taken.get((protocol, port))) is not None
        and (ip in ips or ip in WILDCARDS or not ips.isdisjoint(WILDCARDS))
        for protocol, ip, port in other
    )


def attachment(driver: str) -> str:
    """The resource that pods with volumes of this CSI driver ask for (Kubernetes' old name for it)."""
    return _ATTACHMENTS + driver


def driver_of(resource: str) -> str | None:
    """The CSI driver whose attachments the resource counts; None for any other resource."""
    return resource.removeprefix(_ATTACHMENTS) if resource.startswith(_ATTACHMENTS) else None


def wants_gpus(requests: Container[str]) -> bool:
    """Whether some resource that is asked for is a GPU."""
    return any(name in requests for name in GPU_RESOURCES)


def names_types(requirements: Requirements) -> bool:
    """Whether they list the types, their families, or whether parts will do: what they allow is then meant."""
    allowed = (requirements.sets.get(key) for key in _NAMING_TYPES)
    return any(values is not None and not values.complement and not values.is_empty for values in allowed)
