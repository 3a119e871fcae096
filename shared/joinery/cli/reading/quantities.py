"""Quantities of pods and nodes, checked: structs take any text, and a plan must not stumble over ``4 GB`` later."""

from collections.abc import Iterator, Mapping

from joinery.apis.core import Container, NodeStatus, PodSpec, ResourceRequirements
from joinery.apis.quantity import amount, parse
from joinery.apis.slips import meant_by
from joinery.apis.wording import A_QUANTITY
from joinery.apis.workloads import LimitRange

_Quantities = Mapping[str, str | int | float]
#: What a container may ask for without a domain (k8s.io/kubernetes ``pkg/apis/core/helper``,
#: ``IsStandardContainerResourceName``).
_OF_CONTAINERS = ("cpu", "memory", "ephemeral-storage")


def containers_of(spec: PodSpec) -> Iterator[tuple[str, Container]]:
    """Each container with its path inside the spec; those that run before the others come last."""
    yield from ((f"containers[{index}]", one) for index, one in enumerate(spec.containers))
    yield from ((f"initContainers[{index}]", one) for index, one in enumerate(spec.init_containers))


def wrong_quantities(part: PodSpec | NodeStatus, at: str) -> Iterator[str]:
    """``field: what is wrong`` for every quantity that is none. ``at`` is the part's path."""
    for path, quantities in _listed(part):
        for name, text in quantities.items():
            problem = _problem(name, text)
            if problem:
                yield f"{at}.{path}.{name}: {problem}"


def wrong_bounds(limit_range: LimitRange) -> Iterator[str]:
    """The same for what a LimitRange gives containers, and for what it keeps out."""
    for index, item in enumerate(limit_range.spec.limits):
        listed = {"default": item.default, "defaultRequest": item.default_request, "min": item.min, "max": item.max}
        for part, quantities in listed.items():
            for name, text in quantities.items():
                if problem := _problem(name, text):
                    yield f"spec.limits[{index}].{part}.{name}: {problem}"


def wrong_resources(spec: PodSpec, at: str) -> Iterator[str]:
    """The same for what containers ask for by a name that is no resource's: ``memroy``, ``gpu``."""
    for path, quantities in _of_containers(spec):
        for name in quantities:
            if "/" not in name and name not in _OF_CONTAINERS and not name.startswith("hugepages-"):
                meant = meant_by(name, _OF_CONTAINERS)
                hint = f"; is it {meant}?" if meant else ", and others have a domain such as nvidia.com/gpu"
                yield f"{at}.{path}.{name}: no such resource: there are {', '.join(_OF_CONTAINERS)}{hint}"


def wrong_devices(spec: PodSpec, at: str) -> Iterator[str]:
    """The same for devices that are asked for by halves, or allowed beyond what is asked for.

    Extended resources are whole numbers and never overcommitted (k8s.io/kubernetes ``pkg/apis/core/validation``,
    ``ValidateResourceRequirements``).
    """
    for path, container in containers_of(spec):
        yield from _wrong_devices(container.resources, f"{at}.{path}.resources")


def _wrong_devices(resources: ResourceRequirements, at: str) -> Iterator[str]:
    for path, quantities in _of_resources(resources, at):
        for name, text in quantities.items():
            if _is_device(name) and not _problem(name, text) and parse(text) != amount(name, text):
                yield f"{path}.{name}: {text} must be a whole number"
    for name, asked in resources.requests.items():
        allowed = resources.limits.get(name, asked)
        if _is_device(name) and not _problem(name, allowed) and amount(name, asked) < amount(name, allowed):
            yield f"{at}.requests.{name}: {asked} must be the same as the limit of {allowed}"


def _is_device(name: str) -> bool:
    """An extended resource, as a device plugin offers it."""
    return "/" in name and "kubernetes.io/" not in name


def is_overcommitted(name: str) -> bool:
    """Whether containers may have less of it than their limits allow, so that a request needs no limit
    (k8s.io/kubernetes ``IsOvercommitAllowed``).
    """
    return not _is_device(name) and not name.startswith("hugepages-")


def _problem(name: str, text: str | int | float) -> str:
    try:
        return "must not be negative" if amount(name, text) < 0 else ""
    except ValueError as error:
        return f"{error}: write {A_QUANTITY}"


def _listed(part: PodSpec | NodeStatus) -> Iterator[tuple[str, _Quantities]]:
    if isinstance(part, NodeStatus):
        yield from (("capacity", part.capacity), ("allocatable", part.allocatable))
        return
    yield from _of_containers(part)
    yield "overhead", part.overhead
    if part.resources:
        yield from _of_resources(part.resources, "resources")


def _of_containers(spec: PodSpec) -> Iterator[tuple[str, _Quantities]]:
    for path, container in containers_of(spec):
        if container.resources.requests or container.resources.limits:
            yield from _of_resources(container.resources, f"{path}.resources")


def _of_resources(resources: ResourceRequirements, at: str) -> Iterator[tuple[str, _Quantities]]:
    yield f"{at}.requests", resources.requests
    yield f"{at}.limits", resources.limits
