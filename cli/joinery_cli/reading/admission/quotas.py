"""ResourceQuotas: which pods of files an API server would not let in, so that no plan is made for them.

kube-apiserver counts what the pods of a namespace ask for together, pending ones too, and refuses the one that exceeds
a quota (admission plugin ResourceQuota; ``pkg/quota/v1/evaluator/core/pods.go``). Its controller tries again and again,
so a Deployment stays smaller than its replicas say. Pods that a cluster has had count first; then those of the files,
in the order of their names, because nobody knows in which order they would be made.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from joinery.decisions.scheduling.constraints.resource_quotas import (
    COMPUTE,
    COUNT_PODS,
    LIMITS,
    asked_of,
    bound_of,
    is_counted,
    resource_of,
)
from joinery.objects.kubernetes.core import Pod
from joinery.objects.kubernetes.quantity import Resources, texts
from joinery.objects.kubernetes.workloads import ResourceQuota
from joinery.objects.snapshot.pods import controller_of, is_terminal


def within_quotas(pods: dict[str, Pod], quotas: Iterable[ResourceQuota]) -> Iterator[str]:
    """Take the pods away that a quota keeps out, and say for each quota which they are."""
    by_namespace: dict[str, list[ResourceQuota]] = defaultdict(list)
    for quota in quotas:
        by_namespace[quota.metadata.namespace or "default"].append(quota)
    for namespace, bounds in sorted(by_namespace.items()):
        listed = sorted((pod for pod in pods.values() if pod.metadata.namespace == namespace), key=_order)
        refused: Counter[tuple[str, str, str]] = Counter()
        counted = [_Count(quota) for quota in sorted(bounds, key=lambda quota: quota.metadata.name)]
        for pod in listed:
            why = next((reason for count in counted if (reason := count.objection(pod))), None)
            if why and not pod.metadata.uid:
                refused[(*why, _whose(pod))] += 1
                del pods[pod.key]
            else:
                for count in counted:
                    count.add(pod)
        for (name, bound, whose), number in sorted(refused.items()):
            these, are = ("1 pod", "it is") if number == 1 else (f"{number} pods", "they are")
            what = f"ResourceQuota {namespace}/{name}: {bound}"
            yield f"{what}: an API server refuses {these} of {whose}; {are} not planned"


def as_used(pods: Iterable[Pod], quotas: Iterable[ResourceQuota]) -> tuple[ResourceQuota, ...]:
    """The quotas with what the pods of the files use of them, or a cluster has counted, whichever is more."""
    listed = list(pods)
    found = []
    for quota in quotas:
        count = _Count(quota)
        for pod in listed:
            if pod.metadata.namespace == (quota.metadata.namespace or "default"):
                count.add(pod)
        found.append(replace(quota, status=replace(quota.status, used=count.used)))
    return tuple(found)


class _Count:
    """What the pods that are let in use of one quota."""

    def __init__(self, quota: ResourceQuota) -> None:
        self._quota = quota
        self._most = {name: bound_of(name, most) for name, most in quota.spec.hard.items()}
        used = quota.status.used
        self._others = {name: bound_of(name, used[name]) for name in self._most if name in used}
        self._used: Counter[str] = Counter()

    def objection(self, pod: Pod) -> tuple[str, str] | None:
        """The quota's name and the bound that the pod exceeds; None if it may be made."""
        if not is_counted(pod.spec, self._quota):
            return None
        asked = _usage(pod)
        for name, most in self._most.items():
            if missing := _unsaid(pod, name):
                return self._quota.metadata.name, f"{name} is bounded, and container {missing} says none"
            if asked.get(name, 0) and self._taken(name) + asked[name] > most:
                return self._quota.metadata.name, f"{name} {self._quota.spec.hard[name]}"
        return None

    @property
    def used(self) -> dict[str, str | int | float]:
        """What is used of each bound, as quantities."""
        return {name: texts({resource_of(name): self._taken(name)})[resource_of(name)] for name in self._most}

    def _taken(self, name: str) -> int:
        """The files may have some of the pods that the cluster has counted."""
        return max(self._used[name], self._others.get(name, 0))

    def add(self, pod: Pod) -> None:
        """Count a pod that is there."""
        if is_counted(pod.spec, self._quota):
            asked = _usage(pod)
            self._used.update(asked)
            if not pod.metadata.uid:
                for name in self._others:
                    self._others[name] += asked.get(name, 0)


def _usage(pod: Pod) -> Resources:
    """What the pod uses of each bound. One that has ended is an object, and no more."""
    return {COUNT_PODS: 1} if is_terminal(pod) else asked_of(pod)


def _unsaid(pod: Pod, name: str) -> str:
    """The first container that does not say what the quota bounds; empty if all do."""
    resource = resource_of(name)
    if resource not in COMPUTE or is_terminal(pod):
        return ""
    own = pod.spec.resources
    if own and resource in (own.limits if name.startswith(LIMITS) else {**own.limits, **own.requests}):
        return ""
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        said = container.resources
        # A limit alone is a request as well (``SetDefaults_Pod``).
        if resource not in (said.limits if name.startswith(LIMITS) else {**said.limits, **said.requests}):
            return container.name
    return ""


def _order(pod: Pod) -> tuple[bool, str]:
    """Pods that are there come first."""
    return not pod.metadata.uid, pod.key


def _whose(pod: Pod) -> str:
    owner = controller_of(pod)
    return f"{owner.kind} {owner.name}" if owner else f"Pod {pod.metadata.name}"
