"""PodDisruptionBudgets: what kube-controller-manager computes from them and what the eviction API makes of that.

``disruptionsAllowed`` follows the pods: healthy pods minus the ones that must stay. A budget without ``minAvailable``
and ``maxUnavailable`` in its spec keeps the status it was given, so that a test may simply state it.
"""

import math
from collections.abc import Iterable

from joinery.objects.kubernetes.core import Pod, PodDisruptionBudget, PodDisruptionBudgetStatus
from simulator.kubernetes.resources import with_fields
from simulator.kubernetes.selectors import selects

FINISHED = ("Succeeded", "Failed")
#: How many evictions may be under way that the controller has not seen yet.
_MOST_DISRUPTED = 2000


def covers(budget: PodDisruptionBudget, pod: Pod) -> bool:
    same = (budget.metadata.namespace or "default") == (pod.metadata.namespace or "default")
    return same and selects(budget.spec.selector, pod.metadata.labels)


def is_ready(pod: Pod) -> bool:
    return any(condition.type == "Ready" and condition.status == "True" for condition in pod.status.conditions)


def is_healthy(pod: Pod) -> bool:
    return is_ready(pod) and pod.metadata.deletion_timestamp is None


def observed(budget: PodDisruptionBudget, pods: Iterable[Pod], replicas: int | None = None) -> PodDisruptionBudget:
    """The budget with the status its controller would write. ``replicas``: how many pods its owners want."""
    if budget.spec.min_available is None and budget.spec.max_unavailable is None:
        return budget
    covered = [pod for pod in pods if covers(budget, pod) and pod.status.phase not in FINISHED]
    healthy = sum(is_healthy(pod) for pod in covered)
    expected = len(covered) if replicas is None else replicas
    wanted = desired(budget, expected)
    status = PodDisruptionBudgetStatus(
        disruptions_allowed=max(0, healthy - wanted),
        current_healthy=healthy,
        desired_healthy=wanted,
        observed_generation=budget.metadata.generation,
    )
    return with_fields(budget, status=status)


def is_spare(budget: PodDisruptionBudget) -> bool:
    """Whether the budget lets one more pod go, and its controller has seen it as it is."""
    return (
        (budget.status.disruptions_allowed or 0) > 0 and budget.status.observed_generation >= budget.metadata.generation
    ) and len(budget.status.disrupted_pods) <= _MOST_DISRUPTED


def lets_unready_go(budget: PodDisruptionBudget) -> bool:
    """Whether the budget does not count for a pod that is not ready."""
    status = budget.status
    is_healthy = status.current_healthy >= status.desired_healthy > 0
    return is_healthy or budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow"


def desired(budget: PodDisruptionBudget, expected: int) -> int:
    """How many pods must stay healthy. Percentages are rounded up, as the disruption controller does."""
    if budget.spec.max_unavailable is not None:
        return max(0, expected - _scaled(budget.spec.max_unavailable, expected))
    return _scaled(budget.spec.min_available or 0, expected)


def _scaled(value: str | int, expected: int) -> int:
    text = str(value)
    return math.ceil(int(text[:-1]) * expected / 100) if text.endswith("%") else int(text)
