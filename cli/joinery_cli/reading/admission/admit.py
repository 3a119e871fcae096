"""What happens to objects of files on their way into a cluster: controllers make pods, admission fills in what is left
out.

``joinery plan`` for a file is the plan for what ``kubectl apply`` makes of it. Pods and claims that an API server has
had (they carry a ``uid``) have been through all this, and are left as they are. The template of a DaemonSet has not,
whoever has had it: admission fills in its pods.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from msgspec.structs import replace

from joinery.decisions.scheduling.constraints.selectors import read, unreadable
from joinery.objects.kubernetes.core import Container, DaemonSet, Pod, PodSpec, ResourceRequirements
from joinery.objects.kubernetes.quantity import LARGEST, Resources, amount, amounts, total
from joinery.objects.kubernetes.workloads import (
    HorizontalPodAutoscaler,
    LimitRange,
    LimitRangeItem,
    RuntimeClass,
    ScaledObject,
    ScaleTarget,
    Workload,
    label_selector,
)
from joinery.objects.snapshot.vertical_autoscalers import by_target, recommended
from joinery_cli.notices import UserNotice, note, warning
from joinery_cli.reading.admission.defaults import pod_defaults
from joinery_cli.reading.admission.quotas import within_quotas
from joinery_cli.reading.admission.volume_claims import classified, made_at_once, owned
from joinery_cli.reading.admission.workloads import API_VERSIONS, Expansion, Owner, Workloads, expand, of_no_pods

_SYSTEM_CLASSES = ("system-cluster-critical", "system-node-critical")
_OF_JOBS = ("Job", "CronJob")
_NAMED = 4

#: Objects by field of the snapshot and key.
Objects = dict[str, dict[Any, Any]]


def admit(objects: Objects) -> list[UserNotice]:
    """Add the pods and claims that the workloads will have, and apply a cluster's defaults. Returns what a person
    should hear.

    Raises ``ConfigurationError`` for a workload larger than any cluster.
    """
    pods, claims = objects.setdefault("pods", {}), objects.setdefault("volume_claims", {})
    scalers = _scalers(objects)
    workloads = _scaled(objects.get("workloads", {}), scalers)
    expansion = expand(workloads, pods, claims)
    autoscalers = by_target(objects.get("vertical_autoscalers", {}).values())
    pods.update((pod.key, recommended(pod_defaults(pod), autoscalers)) for pod in expansion.pods)
    claims.update((f"{claim.metadata.namespace}/{claim.metadata.name}", claim) for claim in expansion.claims)
    daemon_sets, sandboxes = objects.setdefault("daemon_sets", {}), objects.get("runtime_classes", {})
    _limit(pods, daemon_sets, objects.get("limit_ranges", {}).values())
    _sandbox(pods, daemon_sets, sandboxes)
    beyond = list(within_quotas(pods, objects.get("resource_quotas", {}).values()))
    expansion.keep(pods)
    notes = [*_expanded(expansion), *_autoscaled(scalers, workloads, expansion)]
    decided = {scaler.owner for scaler in scalers}
    notes += _recommending_nothing(objects)
    notes += of_no_pods({owner: one for owner, one in workloads.items() if owner not in decided})
    notes += owned(claims, pods.values())
    volumes = objects.get("volumes", {}).values()
    notes += classified(claims, objects.setdefault("storage_classes", {}), volumes, pods.values())
    lacking = [
        *_mismatched({**workloads, **{Owner("DaemonSet", key): one for key, one in daemon_sets.items()}}),
        *made_at_once(objects["storage_classes"], claims, pods.values()),
        *_unranked(pods.values(), objects.get("priority_classes", {})),
        *_unsandboxed(pods.values(), sandboxes),
        *beyond,
        *_out_of_bounds([pods[pod.key] for pod in expansion.pods], objects.get("limit_ranges", {}).values()),
    ]
    return [*map(note, notes), *map(warning, expansion.warnings), *map(warning, lacking)]


# --- workloads ---


def _expanded(expansion: Expansion) -> Iterator[str]:
    counts = expansion.pod_counts
    if counts:
        workloads = [f"{owner} ({counts[owner]})" for owner in sorted(counts)]
        more = f" and {len(workloads) - _NAMED} more" if len(workloads) > _NAMED else ""
        yield (
            f"planned as well: {_count(counts.total(), 'pod')} of {_count(len(workloads), 'workload')}: "
            f"{', '.join(workloads[:_NAMED])}{more}"
        )
    yield from expansion.notes


def _mismatched(workloads: Mapping[Owner, Workload | DaemonSet]) -> Iterator[str]:
    """Selectors that do not match the labels of their own template. Jobs have theirs from their controller."""
    for owner, one in sorted(workloads.items()):
        selector = one.spec.selector if isinstance(one, DaemonSet) else label_selector(one.spec)
        is_judged = selector and not unreadable(selector) and not one.metadata.uid and owner.kind not in _OF_JOBS
        if is_judged and not read(selector).matches(one.spec.template.metadata.labels):
            yield f"{owner}: its selector matches none of its own pods, so that an API server refuses it"


class _Scaler(NamedTuple):
    """Who decides on the replicas of ``owner`` once it runs: ``name``, as in a message. ``floor``: the field, and
    ``fewest`` its number; the range is ``least`` to ``most``. ``wakes``: it raises a workload of none, too.
    """

    name: str
    owner: Owner
    floor: str
    fewest: int
    least: int
    most: int
    wakes: bool = False


def _scalers(objects: Objects) -> list[_Scaler]:
    """All autoscalers of the files: Kubernetes' own, and KEDA's."""
    scalers: list[_Scaler] = []
    for scaler in objects.get("autoscalers", {}).values():
        owner, name = _target(scaler, scaler.spec.scale_target_ref), f"HorizontalPodAutoscaler {_key(scaler)}"
        least = scaler.spec.min_replicas
        scalers.append(_Scaler(name, owner, "minReplicas", least, least, scaler.spec.max_replicas))
    for scaled in objects.get("scaled_objects", {}).values():
        owner, name = _target(scaled, scaled.spec.scale_target_ref), f"ScaledObject {_key(scaled)}"
        fewest, idle = scaled.spec.min_replica_count, scaled.spec.idle_replica_count
        least = fewest if idle is None else idle
        # Only with nothing to idle at is the fewest kept whatever happens (KEDA, "ScaledObject specification").
        wakes = idle is None
        scalers.append(_Scaler(name, owner, "minReplicaCount", fewest, least, scaled.spec.max_replica_count, wakes))
    return scalers


def _recommending_nothing(objects: Objects) -> Iterator[str]:
    """Vertical autoscalers of files from before they have seen any pod."""
    for key, one in sorted(objects.get("vertical_autoscalers", {}).items()):
        if one.acts and not one.status.recommendation.container_recommendations:
            yield (
                f"VerticalPodAutoscaler {key} recommends nothing yet: its pods may be made with other requests than "
                "are planned"
            )


def _key(scaler: HorizontalPodAutoscaler | ScaledObject) -> str:
    return f"{scaler.metadata.namespace}/{scaler.metadata.name}"


def _target(scaler: HorizontalPodAutoscaler | ScaledObject, target: ScaleTarget) -> Owner:
    return Owner(target.kind, f"{scaler.metadata.namespace}/{target.name}")


def _scaled(workloads: Workloads, scalers: Iterable[_Scaler]) -> Workloads:
    """No workload has fewer pods than its autoscaler's minimum; one of none is switched off
    (HorizontalPodAutoscaler), unless KEDA switches it on.
    """
    scaled = dict(workloads)
    for scaler in scalers:
        workload = scaled.get(scaler.owner)
        if workload is None or scaler.owner.kind in _OF_JOBS:
            continue
        if workload.spec.replicas == 0 and not scaler.wakes:
            continue
        replicas = 1 if workload.spec.replicas is None else workload.spec.replicas
        scaled[scaler.owner] = replace(workload, spec=replace(workload.spec, replicas=max(replicas, scaler.fewest)))
    return scaled


def _autoscaled(scalers: Iterable[_Scaler], workloads: Workloads, expansion: Expansion) -> Iterator[str]:
    """Who counts on an autoscaler gets a word, where pods were made without asking it, or none were: KEDA's targets
    often begin with no replicas.
    """
    for scaler in scalers:
        owner = scaler.owner
        if owner.kind not in API_VERSIONS or owner not in workloads:
            continue
        replicas = workloads[owner].spec.replicas
        if expansion.pod_counts[owner] or (scaler.wakes and replicas == 0):
            yield (
                f"{scaler.name}: {owner} is planned with {_count(1 if replicas is None else replicas, 'replica')}, the "
                f"larger of its replicas and {scaler.floor}; the autoscaler may make it {scaler.least} to {scaler.most}"
            )


def _missing(named: Iterable[str], there: Collection[str]) -> list[tuple[str, int]]:
    """The names that are not there, and how often each is given, by name."""
    return sorted(Counter(name for name in named if name and name not in there).items())


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


# --- the LimitRanger ---


def _limit(pods: dict[str, Pod], daemon_sets: dict[str, DaemonSet], ranges: Iterable[LimitRange]) -> None:
    """Defaults of a namespace for containers that ask for nothing
    (k8s.io/kubernetes ``plugin/pkg/admission/limitranger``).
    """
    by_namespace: dict[str, list[LimitRangeItem]] = {}
    for limit_range in ranges:
        items = (item for item in limit_range.spec.limits if item.type == "Container")
        by_namespace.setdefault(limit_range.metadata.namespace, []).extend(items)
    for key, pod in pods.items():
        if not pod.metadata.uid and (items_of_pod := by_namespace.get(pod.metadata.namespace)):
            pods[key] = replace(pod, spec=_limited(pod.spec, items_of_pod))
    for key, daemon_set in daemon_sets.items():
        if items_of_template := by_namespace.get(daemon_set.metadata.namespace):
            template = daemon_set.spec.template
            limited = replace(template, spec=_limited(template.spec, items_of_template))
            daemon_sets[key] = replace(daemon_set, spec=replace(daemon_set.spec, template=limited))


def _limited(spec: PodSpec, items: Iterable[LimitRangeItem]) -> PodSpec:
    for item in items:
        containers = [_container(container, item) for container in spec.containers]
        init_containers = [_container(container, item) for container in spec.init_containers]
        spec = replace(spec, containers=containers, init_containers=init_containers)
    return spec


def _container(container: Container, item: LimitRangeItem) -> Container:
    """The container with what it leaves out. An item without defaults has its bounds for defaults
    (k8s.io/kubernetes ``SetDefaults_LimitRangeItem``).
    """
    asked = container.resources
    default_limits = {**item.max, **item.default}
    requests = {**item.min, **default_limits, **item.default_request, **asked.requests}
    return replace(container, resources=replace(asked, requests=requests, limits={**default_limits, **asked.limits}))


def _out_of_bounds(pods: Collection[Pod], ranges: Iterable[LimitRange]) -> Iterator[str]:
    """Bounds that pods of workloads break, once they have their defaults: a cluster takes the workload, and never its
    pods. A pod that is written as such is refused at once.
    """
    for limit_range in ranges:
        namespace = limit_range.metadata.namespace
        broken: Counter[str] = Counter()
        for pod in pods:
            if pod.metadata.namespace == namespace:
                broken.update({bound for item in limit_range.spec.limits for bound in _broken(pod.spec, item)})
        for bound, number in sorted(broken.items()):
            refused = f"{_count(number, 'pod')} that {'is' if number == 1 else 'are'} planned"
            yield f"LimitRange {namespace}/{limit_range.metadata.name}: {bound}: the API server will refuse {refused}"


def _broken(spec: PodSpec, item: LimitRangeItem) -> Iterator[str]:
    """What is bounded must be said: containers have it from the bound itself, pods have not."""
    asked: list[tuple[Resources, Resources]] = []
    if item.type == "Container":
        containers = (*spec.init_containers, *spec.containers)
        asked = [(amounts(one.resources.requests), amounts(one.resources.limits)) for one in containers]
    elif item.type == "Pod":
        own = spec.resources or ResourceRequirements()
        requests = total(amounts(one.resources.requests) for one in spec.containers)
        limits = total(amounts(one.resources.limits) for one in spec.containers)
        asked = [({**requests, **amounts(own.requests)}, {**limits, **amounts(own.limits)})]
    for requested, limited in asked:
        for name, least in item.min.items():
            if requested.get(name, -1) < amount(name, least):
                yield f"at least {least} of {name} for a {item.type.lower()}"
        for name, most in item.max.items():
            if max(requested.get(name, 0), limited.get(name, LARGEST)) > amount(name, most):
                yield f"at most {most} of {name} for a {item.type.lower()}"


# --- runtime classes ---


def _sandbox(pods: dict[str, Pod], daemon_sets: dict[str, DaemonSet], classes: Mapping[str, RuntimeClass]) -> None:
    """What pods of files get from the RuntimeClass that they name
    (k8s.io/kubernetes ``plugin/pkg/admission/runtimeclass``).
    """
    for key, pod in pods.items():
        if not pod.metadata.uid and (sandbox := classes.get(pod.spec.runtime_class_name)):
            pods[key] = replace(pod, spec=_sandboxed(pod.spec, sandbox))
    for key, daemon_set in daemon_sets.items():
        template = daemon_set.spec.template
        if sandbox := classes.get(template.spec.runtime_class_name):
            sandboxed = replace(template, spec=_sandboxed(template.spec, sandbox))
            daemon_sets[key] = replace(daemon_set, spec=replace(daemon_set.spec, template=sandboxed))


def _sandboxed(spec: PodSpec, sandbox: RuntimeClass) -> PodSpec:
    scheduling = sandbox.scheduling
    return replace(
        spec,
        overhead=sandbox.overhead.pod_fixed or spec.overhead,
        node_selector={**spec.node_selector, **scheduling.node_selector},
        tolerations=[*spec.tolerations, *(added for added in scheduling.tolerations if added not in spec.tolerations)],
    )


def _unsandboxed(pods: Iterable[Pod], classes: Mapping[str, RuntimeClass]) -> Iterator[str]:
    """RuntimeClasses that pods of files name and the files lack."""
    bare = (pod.spec for pod in pods if not pod.metadata.uid and not pod.spec.overhead)
    for name, number in _missing((spec.runtime_class_name for spec in bare), classes):
        yield (
            f"RuntimeClass {name} is not in the files: {_count(number, 'pod')} planned without its overhead and "
            "node selector"
        )


# --- priorities ---


def _unranked(pods: Iterable[Pod], classes: Mapping[str, Any]) -> Iterator[str]:
    """Classes of priority that pods name and the files lack."""
    named = (pod.spec.priority_class_name for pod in pods if pod.spec.priority is None)
    for name, number in _missing(named, (*classes, *_SYSTEM_CLASSES)):
        yield f"PriorityClass {name} is not in the files: {_count(number, 'pod')} planned with the default priority"
