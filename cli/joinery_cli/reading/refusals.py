"""What an API server refuses of an object, and a plan can go on without: a warning each.

The pods are what they would be once it is mended (k8s.io/kubernetes ``pkg/apis``: the packages ``validation`` of apps,
batch, policy, autoscaling and core). What cannot be planned at all is refused by a plan, too (``validity``).
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from joinery.objects.karpenter import cron
from joinery.objects.karpenter.labels import EFFECTS, NO_EXECUTE
from joinery.objects.kubernetes.core import DaemonSet, PersistentVolumeClaim, Pod, PodDisruptionBudget, PodSpec
from joinery.objects.kubernetes.workloads import HorizontalPodAutoscaler, Workload
from joinery.objects.slips import meant_by
from joinery_cli.reading.quantities import containers_of, is_overcommitted

_BY_SELECTOR = ("Deployment", "StatefulSet", "ReplicaSet", "DaemonSet")
_OF_JOBS = ("OnFailure", "Never")
_PERCENTAGE = re.compile(r"(100|[0-9]{1,2})%")


def refused_by_a_cluster(kind: str, value: Any) -> Iterator[str]:
    """``field: why`` for each. An object that a cluster has had was not refused."""
    if not value.metadata.uid:
        yield from _REFUSALS.get(kind, _nothing)(kind, value)


def _nothing(kind: str, value: Any) -> Iterator[str]:
    yield from ()


def _of_workload(kind: str, workload: Workload | DaemonSet) -> Iterator[str]:
    spec, at = workload.spec, "spec"
    if isinstance(workload, Workload) and workload.spec.job_template is not None:
        if wrong := _wrong_schedule(workload.spec.schedule):
            yield f"spec.schedule: {wrong}"
        spec, at = workload.spec.job_template.spec, "spec.jobTemplate.spec"
    pod = spec.template.spec
    if kind in _BY_SELECTOR and not spec.selector:
        yield "spec.selector: is missing"
    policy, where = pod.restart_policy, f"{at}.template.spec.restartPolicy"
    if kind in ("Job", "CronJob") and policy not in _OF_JOBS:
        yield f"{where}: {f'must be OnFailure or Never, is {policy}' if policy else 'is missing: OnFailure or Never'}"
    if kind in _BY_SELECTOR and policy not in ("", "Always"):
        yield f"{where}: must be Always, is {policy}"
    yield from _of_pod_spec(pod, f"{at}.template.spec")


def _wrong_schedule(schedule: str) -> str:
    """CronJobs are scheduled by the library that reads the schedules of budgets, which also knows ``@every 1h``."""
    if not schedule or schedule.startswith("@every "):
        return "" if schedule else "is missing"
    try:
        cron.parse(schedule)
    except ValueError as error:
        return str(error)
    return ""


def _of_containers(pod: PodSpec, at: str) -> Iterator[str]:
    """Devices and huge pages are never overcommitted, so they have limits; these alone are enough."""
    for path, container in containers_of(pod):
        asked, allowed = container.resources.requests, container.resources.limits
        for name in asked:
            if name not in allowed and not is_overcommitted(name):
                yield f"{at}.{path}.resources.limits.{name}: is missing, and requests have it"


def _of_spreads(pod: PodSpec, at: str) -> Iterator[str]:
    seen: set[tuple[str, str]] = set()
    for index, spread in enumerate(pod.topology_spread_constraints):
        path, what = f"{at}.topologySpreadConstraints[{index}]", (spread.topology_key, spread.when_unsatisfiable)
        if spread.min_domains is not None and spread.when_unsatisfiable == "ScheduleAnyway":
            yield f"{path}.minDomains: goes with whenUnsatisfiable: DoNotSchedule only"
        if what in seen:
            yield f"{path}: is the second one over {what[0]} with whenUnsatisfiable: {what[1]}"
        seen.add(what)


def _of_tolerations(pod: PodSpec, at: str) -> Iterator[str]:
    for index, toleration in enumerate(pod.tolerations):
        effect, path = toleration.effect, f"{at}.tolerations[{index}]"
        if effect and effect not in EFFECTS:
            meant = meant_by(effect, EFFECTS)
            yield f"{path}.effect: there is no {effect}; is it {meant or ', '.join(EFFECTS)}?"
        if toleration.toleration_seconds is not None and toleration.effect != NO_EXECUTE:
            yield f"{path}.tolerationSeconds: goes with effect: NoExecute only"


def _of_ports(pod: PodSpec, at: str) -> Iterator[str]:
    """Containers of a pod share its host. Those that end before others begin may have the same port."""
    seen: set[tuple[int, str, str]] = set()
    for number, container in enumerate(pod.containers):
        for index, port in enumerate(container.ports):
            path, what = f"{at}.containers[{number}].ports[{index}]", (port.host_port, port.protocol, port.host_ip)
            if pod.host_network and port.host_port not in (0, port.container_port):
                yield f"{path}.hostPort: must be containerPort, {port.container_port}, on the host's network"
            if port.host_port and what in seen:
                yield f"{path}.hostPort: {port.host_port} is used twice"
            seen.add(what)


def _of_pod_spec(pod: PodSpec, at: str) -> Iterator[str]:
    yield from _of_containers(pod, at)
    yield from _of_spreads(pod, at)
    yield from _of_tolerations(pod, at)
    yield from _of_ports(pod, at)


def _of_pod(kind: str, pod: Pod) -> Iterator[str]:
    if pod.spec.restart_policy not in ("", "Always", *_OF_JOBS):
        yield f"spec.restartPolicy: must be Always, OnFailure or Never, is {pod.spec.restart_policy}"
    yield from _of_pod_spec(pod.spec, "spec")


def _of_claim(kind: str, claim: PersistentVolumeClaim) -> Iterator[str]:
    if not claim.spec.access_modes:
        yield "spec.accessModes: is missing"
    if "storage" not in claim.spec.resources.requests:
        yield "spec.resources.requests.storage: is missing"


def _of_budget(kind: str, budget: PodDisruptionBudget) -> Iterator[str]:
    spec = budget.spec
    for name, amount in (("minAvailable", spec.min_available), ("maxUnavailable", spec.max_unavailable)):
        if isinstance(amount, str) and not _PERCENTAGE.fullmatch(amount):
            yield f"spec.{name}: must be a whole number or a percentage such as 50%, is {amount!r}"
        elif isinstance(amount, int) and amount < 0:
            yield f"spec.{name}: must not be negative, is {amount}"
    if spec.min_available is not None and spec.max_unavailable is not None:
        yield "spec: has both minAvailable and maxUnavailable, and may have one of them"


def _of_autoscaler(kind: str, scaler: HorizontalPodAutoscaler) -> Iterator[str]:
    spec = scaler.spec
    if spec.max_replicas < 1:
        yield "spec.maxReplicas: must be one at least"
    elif spec.max_replicas < spec.min_replicas:
        yield f"spec.maxReplicas: {spec.max_replicas} is less than minReplicas, {spec.min_replicas}"


_REFUSALS: Mapping[str, Callable[[str, Any], Iterator[str]]] = {
    **dict.fromkeys((*_BY_SELECTOR, "ReplicationController", "Job", "CronJob"), _of_workload),
    "Pod": _of_pod,
    "PersistentVolumeClaim": _of_claim,
    "PodDisruptionBudget": _of_budget,
    "HorizontalPodAutoscaler": _of_autoscaler,
}
