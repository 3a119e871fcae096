"""ResourceQuotas: which pods of files an API server would not let in, so that no plan is made for them.

kube-apiserver counts what the pods of a namespace ask for together, pending ones too, and refuses the one that exceeds
a quota (admission plugin ResourceQuota; ``pkg/quota/v1/evaluator/core/pods.go``). Its controller tries again and again,
so a Deployment stays smaller than its replicas say. Pods that a cluster has had count first; then those of the files,
in the order of their names, because nobody knows in which order they would be made.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from joinery.decisions.scheduling.constraints.resources import requests_of
from joinery.objects.kubernetes.core import Container, Pod
from joinery.objects.kubernetes.quantity import Resources, amount
from joinery.objects.kubernetes.workloads import QuotaScope, ResourceQuota
from joinery.objects.snapshot.pods import controller_of, is_terminal

_REQUESTS, _LIMITS = "requests.", "limits."
_PODS, _PODS_OF_ALL_PHASES = "pods", "count/pods"
#: What a container must say where a quota bounds it (``Constraints`` of the evaluator).
_COMPUTE = ("cpu", "memory")


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


class _Count:
    """What the pods that are let in use of one quota."""

    def __init__(self, quota: ResourceQuota) -> None:
        self._quota = quota
        self._most = {name: amount(_resource(name), most) for name, most in quota.spec.hard.items() if _bounds(name)}
        used = quota.status.used
        self._others = {name: amount(_resource(name), used[name]) for name in self._most if name in used}
        self._used: Counter[str] = Counter()

    def objection(self, pod: Pod) -> tuple[str, str] | None:
        """The quota's name and the bound that the pod exceeds; None if it may be made."""
        if not self._is_about(pod):
            return None
        asked = _usage(pod, self._most)
        for name, most in self._most.items():
            if missing := _unsaid(pod, name):
                return self._quota.metadata.name, f"{name} is bounded, and container {missing} says none"
            # The files may hold some of the pods that the cluster has counted.
            used = max(self._used[name], self._others.get(name, 0))
            if asked[name] and used + asked[name] > most:
                return self._quota.metadata.name, f"{name} {self._quota.spec.hard[name]}"
        return None

    def add(self, pod: Pod) -> None:
        """Count a pod that is there."""
        if self._is_about(pod):
            asked = _usage(pod, self._most)
            self._used.update(asked)
            if not pod.metadata.uid:
                for name in self._others:
                    self._others[name] += asked[name]

    def _is_about(self, pod: Pod) -> bool:
        spec = self._quota.spec
        expressions = spec.scope_selector.match_expressions if spec.scope_selector else []
        scopes = (*(QuotaScope(scope_name=name, operator="Exists") for name in spec.scopes), *expressions)
        return all(_matches(scope, pod) for scope in scopes)


def _matches(scope: QuotaScope, pod: Pod) -> bool:
    """Whether the pod is of that scope (Kubernetes, "Resource Quotas", quota scopes)."""
    match scope.scope_name:
        case "Terminating":
            return pod.spec.active_deadline_seconds is not None
        case "NotTerminating":
            return pod.spec.active_deadline_seconds is None
        case "BestEffort":
            return _is_best_effort(pod)
        case "NotBestEffort":
            return not _is_best_effort(pod)
        case "PriorityClass":
            name = pod.spec.priority_class_name
            return {
                "Exists": bool(name),
                "DoesNotExist": not name,
                "In": name in scope.values,
                "NotIn": name not in scope.values,
            }.get(scope.operator, False)
        case "CrossNamespacePodAffinity":
            return _looks_abroad(pod)
    return False


def _is_best_effort(pod: Pod) -> bool:
    """Whether nothing is asked for and nothing bounded (Kubernetes, "Quality of Service classes")."""
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    said = (*(one.resources for one in containers), *([pod.spec.resources] if pod.spec.resources else []))
    return not any(name in _COMPUTE for one in said for name in (*one.requests, *one.limits))


def _looks_abroad(pod: Pod) -> bool:
    """Whether its affinity to pods names other namespaces."""
    affinity = pod.spec.affinity
    for side in (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ():
        if side is None:
            continue
        preferred = (one.pod_affinity_term for one in side.preferred_during_scheduling_ignored_during_execution)
        terms = (*side.required_during_scheduling_ignored_during_execution, *preferred)
        if any(term.namespaces or term.namespace_selector for term in terms):
            return True
    return False


def _bounds(name: str) -> bool:
    """Whether the bound is one on pods: others count Services, claims and storage."""
    resource = _resource(name)
    if name in (_PODS, _PODS_OF_ALL_PHASES):
        return True
    is_other = resource.startswith(("count/", "services", "persistentvolumeclaims", "configmaps", "secrets"))
    return (
        not is_other
        and resource not in ("storage", "replicationcontrollers", "resourcequotas")
        and ("storageclass.storage.k8s.io" not in resource)
    )


def _resource(name: str) -> str:
    return name.removeprefix(_REQUESTS).removeprefix(_LIMITS)


def _usage(pod: Pod, names: Iterable[str]) -> Mapping[str, int]:
    """What the pod uses of each bound. A pod that has ended is only an object."""
    if is_terminal(pod):
        return {name: int(name == _PODS_OF_ALL_PHASES) for name in names}
    requests, limits = requests_of(pod), _limits_of(pod)
    return {
        name: 1
        if name in (_PODS, _PODS_OF_ALL_PHASES)
        else (limits if name.startswith(_LIMITS) else requests).get(_resource(name), 0)
        for name in names
    }


def _limits_of(pod: Pod) -> Resources:
    """The effective limits, which are counted as requests are."""
    spec, own = pod.spec, pod.spec.resources
    return requests_of(
        replace(
            pod,
            spec=replace(
                spec,
                containers=[_bounded(one) for one in spec.containers],
                init_containers=[_bounded(one) for one in spec.init_containers],
                resources=replace(own, requests=own.limits) if own else None,
            ),
        )
    )


def _bounded(container: Container) -> Container:
    return replace(container, resources=replace(container.resources, requests=container.resources.limits))


def _unsaid(pod: Pod, name: str) -> str:
    """The first container that does not say what the quota bounds; empty if all do."""
    resource = _resource(name)
    if resource not in _COMPUTE or is_terminal(pod):
        return ""
    own = pod.spec.resources
    if own and resource in (own.limits if name.startswith(_LIMITS) else {**own.limits, **own.requests}):
        return ""
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        said = container.resources
        # A limit alone is a request as well (``SetDefaults_Pod``).
        if resource not in (said.limits if name.startswith(_LIMITS) else {**said.limits, **said.requests}):
            return container.name
    return ""


def _order(pod: Pod) -> tuple[bool, str]:
    """Pods that are there come first."""
    return not pod.metadata.uid, pod.key


def _whose(pod: Pod) -> str:
    owner = controller_of(pod)
    return f"{owner.kind} {owner.name}" if owner else f"Pod {pod.metadata.name}"
