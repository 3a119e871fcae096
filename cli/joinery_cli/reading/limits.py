"""Containers and pods that the bounds of their namespace's LimitRange keep out: the API server refuses the pods."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal

from joinery.objects.kubernetes.core import Container, Pod
from joinery.objects.kubernetes.quantity import parse
from joinery.objects.kubernetes.workloads import LimitRange, LimitRangeItem


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
            for pod in inside:
                for bound in _broken_by(pod, item):
                    broken.setdefault(bound, []).append(pod.metadata.name)
        for bound, names in broken.items():
            number = f"{len(names)} pod{'s' if len(names) > 1 else ''}"
            yield (
                f"LimitRange {namespace}/{limit_range.metadata.name}: {bound}: the API server will "
                f"refuse {number} that {'are' if len(names) > 1 else 'is'} planned, {namespace}/{names[0]} first"
            )


def _broken_by(pod: Pod, item: LimitRangeItem) -> Iterable[str]:
    if item.type == "Container":
        return dict.fromkeys(f"{bound} for a container" for one in _containers(pod) for bound in _broken(one, item))
    return _broken_together(pod, item) if item.type == "Pod" else ()


def _broken_together(pod: Pod, item: LimitRangeItem) -> Iterator[str]:
    """What containers have in all; what those that begin before them ask for is mostly less.

    A pod with a bound must say something of the resource (``minConstraint``, ``maxConstraint``). Containers get that
    from the bound itself, pods do not.
    """
    requests = _sum(container.resources.requests for container in pod.spec.containers)
    limits = _sum(container.resources.limits for container in pod.spec.containers)
    said = (pod.spec.resources, *(container.resources for container in _containers(pod)))
    requested = {name for resources in said if resources for name in resources.requests}
    limited = {name for resources in said if resources for name in resources.limits}
    for name, least in item.min.items():
        if name not in requested or (name in requests and requests[name] < parse(least)):
            yield f"at least {least} of {name} for a pod"
    for name, most in item.max.items():
        if any(name in asked and asked[name] > parse(most) for asked in (requests, limits)):
            yield f"at most {most} of {name} for a pod"
        elif name not in limited:
            yield f"at most {most} of {name} for a pod, which must have a limit"


def _sum(lists: Iterable[Mapping[str, str | int | float]]) -> Mapping[str, Decimal]:
    together: defaultdict[str, Decimal] = defaultdict(Decimal)
    for one in lists:
        for name, given in one.items():
            together[name] += parse(given)
    return together


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
