"""What a pod asks of a node: the effective request that kube-scheduler
counts (component-helpers `resource.PodRequests`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from joinery.apis.core import Container, Pod, PodSpec, PodStatus, ResourceRequirements
from joinery.apis.quantity import amounts, total

PODS = "pods"


def requests_of(pod: Pod) -> dict[str, int]:
    """The pod's effective request, with ``pods: 1``.

    The larger of all app containers with the sidecars, and of each init container with the sidecars started before it;
    pod-level resources replace what they name; the runtime class's overhead comes on top. A container or pod that is
    being resized counts with the larger of what is asked and what is held (component-helpers ``resource.PodRequests``).
    """
    held = resized(pod)
    return _effective(pod.spec, held if held is not None else _NOT_RESIZED)


def _effective(spec: PodSpec, resize: "Resize") -> dict[str, int]:
    apps = total(resize.of(c) for c in spec.containers)
    if spec.init_containers:
        apps = _with_init(apps, spec.init_containers, resize)
    if spec.resources is not None:
        # A limit of the pod is a request only where no container asks: the API server's order of defaults.
        apps = {**amounts(spec.resources.limits), **apps, **resize.of_pod(spec.resources)}
    result = total((apps, amounts(spec.overhead))) if spec.overhead else apps
    result[PODS] = 1
    return result


@dataclass(frozen=True)
class Resize:
    """What the containers of a pod hold, by name, and the pod as a whole, where that is another amount than they ask
    for.

    ``is_infeasible``: the node will never have what is asked for, so that only what is held counts.
    """

    containers: Mapping[str, Mapping[str, int]]
    pod: Mapping[str, int] | None = None
    is_infeasible: bool = False

    def of(self, container: Container) -> dict[str, int]:
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
    told = {each.name: each for each in (*status.container_statuses, *status.init_container_statuses)}
    sidecars = (each for each in spec.init_containers if each.restart_policy == "Always")
    containers = {
        each.name: held
        for each in (*spec.containers, *sidecars)
        if each.name in told
        and (held := _held(each.resources, told[each.name].resources, told[each.name].allocated_resources)) is not None
    }
    whole = _held(spec.resources, status.resources, status.allocated_resources) if spec.resources else None
    return Resize(containers, whole, _is_infeasible(status)) if containers or whole is not None else None


def _held(
    asked: ResourceRequirements, running: ResourceRequirements | None, allocated: Mapping[str, str | int | float]
) -> dict[str, int] | None:
    """What is held, as far as the kubelet says it and it is another amount than is asked for."""
    if (running is None or running.requests == asked.requests) and allocated in ({}, asked.requests):
        return None
    return _larger(amounts(running.requests if running else {}), amounts(allocated))


def _is_infeasible(status: PodStatus) -> bool:
    """Since Kubernetes 1.33 a condition says so, before that a field."""
    pending = next((found.reason for found in status.conditions if found.type == "PodResizePending"), status.resize)
    return pending == "Infeasible"


def negative_in(pod: Pod) -> str:
    """The first resource, in name order, of which some part of the pod asks for less than nothing;
    empty if none does.
    """
    parts = [_requests(c) for c in (*pod.spec.containers, *pod.spec.init_containers)]
    parts.append(amounts(pod.spec.overhead))
    if pod.spec.resources is not None:
        parts.append(amounts(pod.spec.resources.requests))
    return min((name for part in parts for name, value in part.items() if value < 0), default="")


def _requests(container: Container) -> dict[str, int]:
    """Requests; a limit without a request is one, as the API server defaults it."""
    if not container.resources.limits:
        return amounts(container.resources.requests)
    return {**amounts(container.resources.limits), **amounts(container.resources.requests)}


def _with_init(apps: dict[str, int], init_containers: Iterable[Container], resize: Resize) -> dict[str, int]:
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


def host_ports_of(pod: Pod) -> frozenset[tuple[str, str, int]]:
    """(protocol, host IP, port) of every host port; an empty IP is every address (kube-scheduler NodePorts).

    Sidecars' count as kube-scheduler counts them. On the host's network every port of a container is one of the host:
    the API server writes that into pods, but neither into a DaemonSet's template nor into a file.
    """
    spec = pod.spec
    sidecars = (container for container in spec.init_containers if container.restart_policy == "Always")
    return frozenset(
        (port.protocol, port.host_ip or "0.0.0.0", number)
        for container in (*spec.containers, *sidecars)
        for port in container.ports
        if (number := port.host_port or (port.container_port if spec.host_network else 0))
    )


def ports_clash(one: Iterable[tuple[str, str, int]], other: Iterable[tuple[str, str, int]]) -> bool:
    """Whether two pods cannot share a node: same protocol and port, and the same IP or a wildcard."""
    anywhere = ("0.0.0.0", "::")
    theirs = tuple(other)
    return any(
        protocol == p and port == n and (ip == i or ip in anywhere or i in anywhere)
        for protocol, ip, port in one
        for p, i, n in theirs
    )
