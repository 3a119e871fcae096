"""Quantities, checked: structs take any text, and a plan must not stumble over ``4 GB`` later."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, get_args, get_type_hints

from msgspec import Struct
from msgspec.structs import fields

from joinery.objects.kubernetes.core import Container, PodSpec, ResourceRequirements
from joinery.objects.kubernetes.quantity import amount, parse
from joinery.objects.slips import meant_by
from joinery.objects.wording import A_QUANTITY

#: As which the structs have quantities, and nothing else.
_Quantity = str | int | float
_Quantities = Mapping[str, _Quantity]
#: What a container may ask for without a domain (k8s.io/kubernetes ``pkg/apis/core/helper``,
#: ``IsStandardContainerResourceName``).
_OF_CONTAINERS = ("cpu", "memory", "ephemeral-storage")


def containers_of(spec: PodSpec) -> Iterator[tuple[str, Container]]:
    """Each container with its path inside the spec; those that run before the others come last."""
    yield from ((f"containers[{index}]", one) for index, one in enumerate(spec.containers))
    yield from ((f"initContainers[{index}]", one) for index, one in enumerate(spec.init_containers))


def wrong_quantities(one: Struct) -> Iterator[str]:
    """``field: what is wrong`` for every quantity of an object that is none."""
    for path, text in _quantities(one, ""):
        if problem := _problem(text):
            yield f"{path}: {problem}"


def _quantities(value: Any, at: str) -> Iterator[tuple[str, _Quantity]]:
    """Each with its path."""
    if isinstance(value, Struct):
        for name, spelt in _with_quantities(type(value)):
            if (inside := getattr(value, name)) or inside == "":
                yield from _quantities(inside, f"{at}.{spelt}" if at else spelt)
    elif isinstance(value, dict):
        for key, member in value.items():
            yield from _quantities(member, f"{at}.{key}")
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield from _quantities(member, f"{at}[{index}]")
    else:
        yield at, value


@cache
def _with_quantities(kind: type[Struct]) -> Sequence[tuple[str, str]]:
    """The fields of a struct that are quantities or have some inside, by their names here and in the API."""
    hints = get_type_hints(kind)
    return tuple((field.name, field.encode_name) for field in fields(kind) if _has_quantities(hints[field.name]))


def _has_quantities(hint: Any, around: frozenset[Any] = frozenset()) -> bool:
    """``around``: the types whose fields led here, as a Job's template is inside of a CronJob's like one of its own."""
    if hint in around:
        return False
    is_struct, parts = isinstance(hint, type) and issubclass(hint, Struct), get_args(hint)
    if set(get_args(_Quantity)) <= set(parts):
        return True
    inside = get_type_hints(hint).values() if is_struct else parts
    return any(_has_quantities(one, around | {hint}) for one in inside)


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
            if _is_device(name) and not _problem(text) and parse(text) != amount(name, text):
                yield f"{path}.{name}: {text} must be a whole number"
    for name, asked in resources.requests.items():
        allowed = resources.limits.get(name, asked)
        is_clear = _is_device(name) and not (_problem(asked) or _problem(allowed))
        if is_clear and amount(name, asked) < amount(name, allowed):
            yield f"{at}.requests.{name}: {asked} must be the same as the limit of {allowed}"


def _is_device(name: str) -> bool:
    """An extended resource, as a device plugin offers it."""
    return "/" in name and "kubernetes.io/" not in name


def is_overcommitted(name: str) -> bool:
    """Whether containers may have less of it than their limits allow, so that a request needs no limit
    (k8s.io/kubernetes ``IsOvercommitAllowed``).
    """
    return not _is_device(name) and not name.startswith("hugepages-")


def _problem(text: _Quantity) -> str:
    try:
        return "must not be negative" if parse(text) < 0 else ""
    except ValueError as error:
        return f"{error}: write {A_QUANTITY}"


def _of_containers(spec: PodSpec) -> Iterator[tuple[str, _Quantities]]:
    for path, container in containers_of(spec):
        if container.resources.requests or container.resources.limits:
            yield from _of_resources(container.resources, f"{path}.resources")


def _of_resources(resources: ResourceRequirements, at: str) -> Iterator[tuple[str, _Quantities]]:
    yield f"{at}.requests", resources.requests
    yield f"{at}.limits", resources.limits
