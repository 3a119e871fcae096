"""Containers that the bounds of their namespace's LimitRange keep out: the API server refuses their pods."""

from collections.abc import Iterable, Iterator

from joinery.apis.core import Container, Pod
from joinery.apis.quantity import parse
from joinery.apis.workloads import LimitRange, LimitRangeItem


def out_of_bounds(pods: Iterable[Pod], ranges: Iterable[LimitRange]) -> Iterator[str]:
    """What to say of each bound that pods of files break, once they have their defaults
    (k8s.io/kubernetes ``plugin/pkg/admission/limitranger``).
    """
    given = [pod for pod in pods if not pod.metadata.uid]
    for limit_range in ranges:
        namespace = limit_range.metadata.namespace
        inside = [pod for pod in given if pod.metadata.namespace == namespace]
        broken: dict[str, list[str]] = {}
        for item in limit_range.spec.limits:
            for pod in inside if item.type == "Container" else ():
                for bound in dict.fromkeys(bound for one in _containers(pod) for bound in _broken(one, item)):
                    broken.setdefault(bound, []).append(pod.metadata.name)
        for bound, names in broken.items():
            number = f"{len(names)} pod{'s' if len(names) > 1 else ''}"
            yield (
                f"LimitRange {namespace}/{limit_range.metadata.name}: {bound} for a container: the API server will "
                f"refuse {number} that {'are' if len(names) > 1 else 'is'} planned, {namespace}/{names[0]} first"
            )


def _containers(pod: Pod) -> Iterator[Container]:
    yield from pod.spec.init_containers
    yield from pod.spec.containers


def _broken(container: Container, item: LimitRangeItem) -> Iterator[str]:
    asked = container.resources
    for name, least in item.min.items():
        if name in asked.requests and parse(asked.requests[name]) < parse(least):
            yield f"at least {least} of {name}"
    for name, most in item.max.items():
        if any(name in amounts and parse(amounts[name]) > parse(most) for amounts in (asked.requests, asked.limits)):
            yield f"at most {most} of {name}"
