"""What a pod takes of a ResourceQuota of its namespace, and which quotas count it.

As kube-apiserver does (admission plugin ResourceQuota; ``pkg/quota/v1/evaluator/core/pods.go``). How much is left of a
quota is another question: buffers ask what the API server says is used, files are counted.
"""

from msgspec.structs import replace

from joinery.decisions.scheduling.constraints.resources import PODS, requests_of
from joinery.decisions.scheduling.constraints.selectors import terms_of
from joinery.objects.kubernetes.core import Container, Pod, PodSpec
from joinery.objects.kubernetes.quantity import Resources, amount, amounts
from joinery.objects.kubernetes.workloads import QuotaScope, ResourceQuota

#: What is bounded as ``requests.cpu`` or ``cpu``, and as ``limits.cpu``.
REQUESTS, LIMITS = "requests.", "limits."
#: Of all phases: a pod that has ended counts as an object, and as nothing else.
COUNT_PODS = "count/pods"
#: Without these a pod is of the class BestEffort.
COMPUTE = ("cpu", "memory")


def resource_of(name: str) -> str:
    """The resource that a bound is about."""
    return name.removeprefix(REQUESTS).removeprefix(LIMITS)


def bound_of(name: str, most: str | int | float) -> int:
    """A quota's figure as an amount. Raises ``ValueError`` for a quantity that is none."""
    return amount(resource_of(name), most)


def asked_of(pod: Pod) -> Resources:
    """What the pod takes of each bound, by the names that quotas have for it."""
    asked = {COUNT_PODS: 1}
    for name, value in requests_of(pod).items():
        asked |= {name: value} if name == PODS else {f"{REQUESTS}{name}": value, name: value}
    return asked | {f"{LIMITS}{name}": value for name, value in _limits_of(pod).items() if name != PODS}


def _limits_of(pod: Pod) -> Resources:
    """The effective limits, which are reckoned as requests are; overhead counts where something is limited
    (component-helpers ``resource.PodLimits``).
    """
    spec, own = pod.spec, pod.spec.resources
    limited = replace(
        spec,
        containers=[_limited(one) for one in spec.containers],
        init_containers=[_limited(one) for one in spec.init_containers],
        resources=replace(own, requests=own.limits) if own else None,
        overhead={},
    )
    overhead = amounts(spec.overhead)
    return {name: most + overhead.get(name, 0) for name, most in requests_of(replace(pod, spec=limited)).items()}


def _limited(container: Container) -> Container:
    return replace(container, resources=replace(container.resources, requests=container.resources.limits))


def is_counted(spec: PodSpec, quota: ResourceQuota) -> bool:
    """Whether the quota is about such pods (Kubernetes, "Resource Quotas", quota scopes)."""
    selector = quota.spec.scope_selector
    scopes = [*map(QuotaScope, quota.spec.scopes), *(selector.match_expressions if selector else ())]
    return all(_matches(spec, scope) for scope in scopes)


def _matches(spec: PodSpec, scope: QuotaScope) -> bool:
    match scope.scope_name:
        case "Terminating":
            return spec.active_deadline_seconds is not None
        case "NotTerminating":
            return spec.active_deadline_seconds is None
        case "BestEffort":
            return _is_best_effort(spec)
        case "NotBestEffort":
            return not _is_best_effort(spec)
        case "PriorityClass":
            return _has_class(spec.priority_class_name, scope)
        case "CrossNamespacePodAffinity":
            return _looks_abroad(spec)
    return False


def _has_class(name: str, scope: QuotaScope) -> bool:
    match scope.operator:
        case "In":
            return name in scope.values
        case "NotIn":
            return name not in scope.values
        case "DoesNotExist":
            return not name
        case _:
            return bool(name)


def _is_best_effort(spec: PodSpec) -> bool:
    """Whether nothing is asked for and nothing bounded (Kubernetes, "Quality of Service classes")."""
    containers = (*spec.containers, *spec.init_containers)
    said = (*(one.resources for one in containers), *([spec.resources] if spec.resources else []))
    return not any(name in COMPUTE for one in said for name in (*one.requests, *one.limits))


def _looks_abroad(spec: PodSpec) -> bool:
    """Whether its affinity to pods names other namespaces."""
    sides = (spec.affinity.pod_affinity, spec.affinity.pod_anti_affinity) if spec.affinity else ()
    return any(term.namespaces or term.namespace_selector for side in sides for term in terms_of(side))
