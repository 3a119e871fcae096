"""The pods that come in the place of others: made anew from their owner's template, not as these are by now.

A pod may have been resized in place, and a StatefulSet may have another template by now. What moves is the pod that
will come. So plans ask the template of its owner what it requests.

The template says it for the containers, and the resources, that it names; containers that only it has come too.
Everything else stays as the living pod has it, because admission will add it again: sidecars of webhooks, defaults of
LimitRanges, the overhead of a RuntimeClass. What a VerticalPodAutoscaler recommends by then counts last
(``objects.snapshot.vertical_autoscalers``); of a pod that one has set, what it is now says what it will be.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from msgspec.structs import replace

from joinery.objects.karpenter.labels import PLANNED_TAINT
from joinery.objects.kubernetes.core import Container, Pod, ResourceRequirements
from joinery.objects.kubernetes.workloads import Workload
from joinery.objects.snapshot.pods import controller_of
from joinery.objects.snapshot.vertical_autoscalers import Autoscalers, recommended, was_set

#: By kind, the field of the snapshot for owners that make pods from a template.
FIELDS: Mapping[str, str] = {
    "ReplicaSet": "replica_sets",
    "StatefulSet": "stateful_sets",
    "Job": "jobs",
    "ReplicationController": "replication_controllers",
}
_REVISION = "controller-revision-hash"

#: Kind, namespace and name of an owner.
OwnerKey = tuple[str, str, str]


def owner_key(pod: Pod) -> OwnerKey | None:
    """Who makes the pod from a template; None if nobody that is read does."""
    owner = controller_of(pod)
    if owner is None or owner.kind not in FIELDS:
        return None
    return owner.kind, pod.metadata.namespace or "default", owner.name


def fields_wanted(pods: Iterable[Pod]) -> tuple[str, ...]:
    """Which owners a cluster has to be asked for, to know the successors of these pods: fields of the snapshot, sorted.

    An API server that does not number the states of pods resizes none.
    """
    updated = (pod for pod in pods if pod.metadata.generation > 1 or _REVISION in pod.metadata.labels)
    kinds = {key[0] for pod in updated if _may_come_back_different(pod) and (key := owner_key(pod)) is not None}
    return tuple(sorted(FIELDS[kind] for kind in kinds))


def successor(pod: Pod, owners: Mapping[OwnerKey, Workload], autoscalers: Autoscalers = MappingProxyType({})) -> Pod:
    """What comes in the place of a pod that leaves its node."""
    workload = owners.get(owner_key(pod) or ("", "", "")) if _may_come_back_different(pod) else None
    made = made_anew(_made(pod, workload) if workload is not None else pod)
    return recommended(made, autoscalers) if autoscalers else made


def made_anew(pod: Pod) -> Pod:
    """The pod as it is made again elsewhere: what its node has given it while it was resized is not given there."""
    status = pod.status
    containers = (*status.container_statuses, *status.init_container_statuses)
    is_resized = any(reported.resources or reported.allocated_resources for reported in containers)
    if not (is_resized or status.resources or status.allocated_resources):
        return pod
    nothing = replace(status, container_statuses=[], init_container_statuses=[], resources=None, allocated_resources={})
    return replace(pod, status=nothing)


def _may_come_back_different(pod: Pod) -> bool:
    return bool(pod.spec.node_name) and (_REVISION in pod.metadata.labels or _has_changed(pod))


def _has_changed(pod: Pod) -> bool:
    """Whether somebody may have changed the pod's spec since admission let it in.

    An API server numbers the states of a pod's spec since 1.33, from 1 on, and its deletion is one. A file may hold a
    pod without a number.
    """
    meta = pod.metadata
    if meta.generation == 1:
        return False  # asked first, as it is so of nearly all pods
    if was_set(pod):
        return False
    ours = sum(toleration.key == PLANNED_TAINT for toleration in pod.spec.tolerations)
    return not meta.generation or meta.generation > 1 + ours + (meta.deletion_timestamp is not None)


def _made(pod: Pod, owner: Workload) -> Pod:
    """The pod that its owner makes in its place."""
    controller = controller_of(pod)
    is_other = controller and owner.metadata.uid and controller.uid and controller.uid != owner.metadata.uid
    if is_other or not _is_of_the_template(pod, owner):
        return pod
    spec, template = pod.spec, owner.spec.template.spec
    resources = spec.resources
    if template.resources is not None:
        resources = _requested(spec.resources or ResourceRequirements(), template.resources)
    made = replace(
        spec,
        containers=_containers(spec.containers, template.containers),
        init_containers=_containers(spec.init_containers, template.init_containers),
        resources=resources,
    )
    return replace(pod, spec=made)


def _is_of_the_template(pod: Pod, owner: Workload) -> bool:
    """Whether the successor is made from the owner's template, and may not be as the pod is.

    A StatefulSet makes pods below its partition from its older revision (kube-controller-manager
    ``newVersionedStatefulSetPod``).
    """
    strategy, current, updated = owner.spec.update_strategy, owner.status.current_revision, owner.status.update_revision
    ordinal = pod.metadata.name.rpartition("-")[2]
    kept = owner.spec.ordinals.start + strategy.rolling_update.partition if strategy.type == "RollingUpdate" else 0
    if ordinal.isdecimal() and int(ordinal) < kept and (not updated or current != updated):
        return False
    revision = pod.metadata.labels.get(_REVISION, updated)
    return _has_changed(pod) or (bool(updated) and revision != updated)


def _containers(own: Sequence[Container], template: Sequence[Container]) -> list[Container]:
    """The pod's containers, and those that only the template has: a newer revision has added them."""
    named = {container.name: container.resources for container in template}
    there = [
        replace(container, resources=_requested(container.resources, named[container.name]))
        if container.name in named
        else container
        for container in own
    ]
    names = {container.name for container in own}
    return [*there, *(container for container in template if container.name not in names)]


def _requested(own: ResourceRequirements, template: ResourceRequirements) -> ResourceRequirements:
    """What the template asks for, and of other resources what the pod does. A limit alone is a request as well."""
    kept = {name: amount for name, amount in own.requests.items() if name not in template.limits}
    return replace(own, requests={**kept, **template.requests}, limits={**own.limits, **template.limits})
