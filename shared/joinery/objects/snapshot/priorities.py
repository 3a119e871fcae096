"""The priority of pods. The API server writes it into a pod; in a file a pod may only name its PriorityClass."""

from collections.abc import Mapping, Sequence

from joinery.objects.kubernetes.core import PodSpec, PriorityClass

#: The classes that every cluster has (Kubernetes `scheduling.SystemPriorityClasses`).
_SYSTEM_PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def priorities_of(classes: Sequence[PriorityClass]) -> dict[str, int]:
    """The values by name, with those of every cluster; by the empty name, that of the class for pods that name none."""
    values = _SYSTEM_PRIORITIES | {priority.metadata.name: priority.value for priority in classes}
    defaults = sorted(priority.metadata.name for priority in classes if priority.global_default)
    return values | {"": values[defaults[0]]} if defaults else values


def priority_of(spec: PodSpec, priorities: Mapping[str, int]) -> int:
    """The pod's priority; larger ones are placed first. ``priorities``: see ``priorities_of``."""
    if spec.priority is not None:
        return spec.priority
    return priorities.get(spec.priority_class_name, priorities.get("", 0))
