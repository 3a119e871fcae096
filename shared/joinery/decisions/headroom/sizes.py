"""How many chunks a buffer has (cluster autoscaler, capacitybuffer; Karpenter `computeReplicas`).

The larger of ``replicas`` and ``percentage`` counts, though the field's description speaks of the smaller one: both
autoscalers do that. ``limits`` bind it, and are its size where neither is given. Then come the namespace's
ResourceQuotas, because nobody could create the pods that the room is for.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from joinery.decisions.scheduling.constraints.resources import PODS
from joinery.objects.autoscaling.capacitybuffer import CapacityBufferSpec
from joinery.objects.kubernetes.core import PodSpec
from joinery.objects.kubernetes.quantity import Resources, amount, amounts, total
from joinery.objects.kubernetes.workloads import ResourceQuota

#: Chunks of one buffer, and of all of a cluster. Whoever may create a buffer decides how large it is, and each chunk is
#: planned as a pod.
MOST_OF_BUFFER, MOST_OF_CLUSTER = 1_000, 10_000


def size_of(spec: CapacityBufferSpec, requests: Resources, replicas: int | None) -> int:
    """Chunks. ``requests``: of one; ``replicas``: of the workload, None where there is none."""
    sizes = [] if spec.replicas is None else [spec.replicas]
    if spec.percentage is not None and replicas is not None:
        sizes.append(-(-replicas * spec.percentage // 100))
    fitting = _fitting(amounts(spec.limits), requests)
    if fitting is None:
        return max(sizes, default=0)
    return min(max(sizes), fitting) if sizes else fitting


def _fitting(limits: Resources, requests: Resources) -> int | None:
    """How many fit within the limits; None where these name nothing that a chunk requests."""
    counts = [limit // requests[name] for name, limit in limits.items() if requests.get(name, 0) > 0]
    return max(0, min(counts)) if counts else None


@dataclass
class Quotas:
    """The ResourceQuotas of a cluster, of which one buffer after another takes its part."""

    quotas: tuple[ResourceQuota, ...]
    taken: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict)

    def take(self, namespace: str, spec: PodSpec, requests: Resources, wanted: int) -> tuple[int, tuple[str, ...]]:
        """How many of the chunks the quotas allow, and the names of those that stand in the way of more."""
        asked = _asked(spec, requests)
        own = [one for one in self.quotas if one.metadata.namespace == namespace and _covers(one, spec, requests)]
        rooms = {one.metadata.name: self._room(one, asked) for one in own}
        allowed = min(wanted, *rooms.values()) if rooms else wanted
        for quota in own:
            used = self.taken.setdefault((namespace, quota.metadata.name), {})
            for name, value in asked.items():
                used[name] = used.get(name, 0) + value * allowed
        return allowed, tuple(sorted(name for name, room in rooms.items() if room < wanted))

    def _room(self, quota: ResourceQuota, asked: Resources) -> int:
        """For how many more pods that ask for so much it has room."""
        hard, used = quota.spec.hard, quota.status.used
        taken = self.taken.get((quota.metadata.namespace, quota.metadata.name), {})
        rooms = [
            (_units(name, limit) - _units(name, used.get(name, 0)) - taken.get(name, 0)) // asked[name]
            for name, limit in hard.items()
            if asked.get(name, 0) > 0
        ]
        return max(0, min(rooms, default=MOST_OF_CLUSTER))


def _units(name: str, value: str | int | float) -> int:
    """A quota's figure: of CPU in millicores, as ``quantity`` counts it."""
    return amount(name.rpartition(".")[2], value)


def _asked(spec: PodSpec, requests: Resources) -> Resources:
    """What a pod takes of a quota, by the names that quotas have for it (Kubernetes, "Resource Quotas")."""
    asked = {PODS: 1, "count/pods": 1}
    for name, value in requests.items():
        if name != PODS:
            asked |= {f"requests.{name}": value, name: value}
    limits = total(amounts(container.resources.limits) for container in spec.containers)
    return asked | {f"limits.{name}": value for name, value in limits.items()}


def _covers(quota: ResourceQuota, spec: PodSpec, requests: Resources) -> bool:
    """Whether the quota counts such pods (Kubernetes, "Quota scopes")."""
    selector = quota.spec.scope_selector
    expressions = [(one.scope_name, one.operator, one.values) for one in selector.match_expressions] if selector else []
    scopes = [*((name, "Exists", list[str]()) for name in quota.spec.scopes), *expressions]
    return all(_is_of(scope, operator, values, spec, requests) for scope, operator, values in scopes)


def _is_of(scope: str, operator: str, values: Iterable[str], spec: PodSpec, requests: Resources) -> bool:
    is_best_effort = not any(value for name, value in requests.items() if name != PODS)
    has_deadline = spec.active_deadline_seconds is not None
    answers: Mapping[str, bool] = {
        "BestEffort": is_best_effort,
        "NotBestEffort": not is_best_effort,
        "Terminating": has_deadline,
        "NotTerminating": not has_deadline,
        "PriorityClass": _has_class(spec.priority_class_name, operator, values),
        "CrossNamespacePodAffinity": False,
    }
    return answers.get(scope, False)


def _has_class(name: str, operator: str, values: Iterable[str]) -> bool:
    match operator:
        case "In":
            return name in values
        case "NotIn":
            return name not in values
        case "DoesNotExist":
            return not name
        case _:
            return bool(name)
