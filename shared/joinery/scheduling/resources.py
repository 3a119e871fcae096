"""What a pod asks of a node: the effective request that kube-scheduler counts (scheduling.md 3.15)."""

from collections.abc import Iterable

from joinery.apis.core import Container, Pod
from joinery.apis.quantity import amounts, total

PODS = "pods"


def requests_of(pod: Pod) -> dict[str, int]:
    """The pod's effective request, with ``pods: 1``.

    The larger of all app containers with the sidecars, and of each init container with the sidecars started before it;
    pod-level resources replace what they name; the runtime class's overhead comes on top. A resize in progress counts
    with the larger of what is asked and what is allocated.
    """
    spec = pod.spec
    allocated = {status.name: amounts(status.allocated_resources) for status in pod.status.container_statuses}
    apps = total(_larger(_requests(c), allocated.get(c.name, {})) for c in spec.containers)
    if spec.init_containers:
        apps = _with_init(apps, spec.init_containers)
    if spec.resources is not None:
        # A limit of the pod is a request only where no container asks: the API server's order of defaults.
        apps = {**amounts(spec.resources.limits), **apps, **amounts(spec.resources.requests)}
    result = total((apps, amounts(spec.overhead))) if spec.overhead else apps
    result[PODS] = 1
    return result


def negative_in(pod: Pod) -> str:
    """The first resource, in name order, of which some part of the pod asks for less than nothing; empty if none does."""
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


def _with_init(apps: dict[str, int], init_containers: Iterable[Container]) -> dict[str, int]:
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in init_containers:
        if container.restart_policy == "Always":
            sidecars = total((sidecars, _requests(container)))
            peak = _larger(peak, sidecars)
        else:
            peak = _larger(peak, total((sidecars, _requests(container))))
    return _larger(total((apps, sidecars)), peak)


def _larger(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in {**one, **other}}


def host_ports_of(pod: Pod) -> frozenset[tuple[str, str, int]]:
    """(protocol, host IP, port) of every host port; an empty IP is every address (scheduling.md 3.16).

    Sidecars' count as kube-scheduler counts them. On the host's network every port of a container is one of the host: the
    API server writes that into pods, but neither into a DaemonSet's template nor into a file.
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
