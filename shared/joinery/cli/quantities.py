"""Quantities of pods and nodes, checked: structs take any text, and a plan must not stumble over ``4 GB`` later."""

from collections.abc import Iterator, Mapping

from joinery.apis.core import Container, NodeStatus, PodSpec, ResourceRequirements
from joinery.apis.quantity import amount
from joinery.apis.wording import A_QUANTITY

_Quantities = Mapping[str, str | int | float]


def wrong_quantities(part: PodSpec | NodeStatus, at: str) -> Iterator[str]:
    """``field: what is wrong`` for every quantity that is none. ``at`` is the part's path."""
    for path, quantities in _listed(part):
        for name, text in quantities.items():
            problem = _problem(name, text)
            if problem:
                yield f"{at}.{path}.{name}: {problem}"


def _problem(name: str, text: str | int | float) -> str:
    try:
        return "must not be negative" if amount(name, text) < 0 else ""
    except ValueError as error:
        return f"{error}: write {A_QUANTITY}"


def _listed(part: PodSpec | NodeStatus) -> Iterator[tuple[str, _Quantities]]:
    if isinstance(part, NodeStatus):
        yield from (("capacity", part.capacity), ("allocatable", part.allocatable))
        return
    yield from _of_containers(part.containers, "containers")
    yield from _of_containers(part.init_containers, "initContainers")
    yield "overhead", part.overhead
    if part.resources:
        yield from _of_resources(part.resources, "resources")


def _of_containers(containers: list[Container], at: str) -> Iterator[tuple[str, _Quantities]]:
    for index, container in enumerate(containers):
        if container.resources.requests or container.resources.limits:
            yield from _of_resources(container.resources, f"{at}[{index}].resources")


def _of_resources(resources: ResourceRequirements, at: str) -> Iterator[tuple[str, _Quantities]]:
    yield f"{at}.requests", resources.requests
    yield f"{at}.limits", resources.limits
