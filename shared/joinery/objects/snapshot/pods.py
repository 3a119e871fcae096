"""What can be said of a pod by itself: whether it is alive, whose it is, whether it waits for a node."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from joinery.objects.karpenter import duration
from joinery.objects.karpenter.labels import (
    BUFFER_NAME,
    BUFFER_NAMESPACE,
    DO_NOT_DISRUPT,
    FAKE_POD,
    PLANNED_TAINT,
    PROVISIONING_REQUEST,
)
from joinery.objects.kubernetes.core import OwnerReference, Pod, PodSpec, PriorityClass, Toleration

#: The scheduler of pods that a Fargate profile selects; EKS writes its name into them.
FARGATE_SCHEDULER = "fargate-scheduler"
_TERMINAL = ("Succeeded", "Failed")
_DAEMON_SET = "DaemonSet"
#: What the kubelet writes into the pod that mirrors a static one.
_MIRROR = "kubernetes.io/config.mirror"
_NODE_NAME = "metadata.name"
#: Controllers that make all of their pods alike.
_OF_A_TEMPLATE = ("ReplicaSet", "StatefulSet", "Job", "ReplicationController")
#: Characters. A UID has 36. Where nobody has defined its kind, a pod's owner may have one of any length, and what
#: remembers it could not be written.
LONGEST_UID = 64
#: Longer than any pod takes to end.
_CENTURY = timedelta(days=36500)


def is_terminal(pod: Pod) -> bool:
    """Whether all of its containers have ended and none will be started again."""
    return pod.status.phase in _TERMINAL


def is_terminating(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None


def is_active(pod: Pod) -> bool:
    """Neither finished nor on its way out."""
    # Not by the two above: every run asks this of every pod, and the calls would take twice as long as the answer.
    return pod.metadata.deletion_timestamp is None and pod.status.phase not in _TERMINAL


def is_owned_by(pod: Pod, api_version: str, kind: str) -> bool:
    """Whether any owner is of that kind."""
    # A loop, because every run asks this of every pod, and it takes half the time of ``any``.
    for owner in pod.metadata.owner_references:  # noqa: SIM110
        if owner.kind == kind and owner.api_version == api_version:
            return True
    return False


def is_virtual(pod: Pod) -> bool:
    """Whether it stands for room that a CapacityBuffer or a ProvisioningRequest keeps free: it is in plans
    alone, and nobody creates it.
    """
    return pod.metadata.annotations.get(FAKE_POD) == "true"


def buffer_of(pod: Pod) -> str:
    """namespace/name of the buffer that a virtual pod stands for; empty for any other pod."""
    annotations = pod.metadata.annotations
    namespace, name = annotations.get(BUFFER_NAMESPACE, ""), annotations.get(BUFFER_NAME, "")
    return f"{namespace}/{name}" if namespace and name else ""


def wanted_by(pod: Pod) -> str:
    """namespace/name of the buffer or ProvisioningRequest that a virtual pod stands for; empty for any other pod."""
    return pod.metadata.annotations.get(PROVISIONING_REQUEST, "") or buffer_of(pod)


def controller_of(pod: Pod) -> OwnerReference | None:
    """Who keeps the pod, and makes another one in its place; None for a pod that nobody recreates."""
    return next((owner for owner in pod.metadata.owner_references if owner.controller), None)


def owner_uid(pod: Pod) -> str:
    """The UID of its controller; empty for a pod that nobody recreates."""
    owner = controller_of(pod)
    return owner.uid if owner and len(owner.uid) <= LONGEST_UID else ""


def owner_uids(pods: Iterable[Pod]) -> tuple[str, ...]:
    """The UIDs of those who recreate the pods, sorted."""
    return tuple(sorted({owner_uid(pod) for pod in pods} - {""}))


def bound_to(pod: Pod, node: str) -> Pod:
    """The pod on that node, nominated for none; with an empty name it waits."""
    return msgspec.structs.replace(
        pod,
        spec=msgspec.structs.replace(pod.spec, node_name=node),
        status=msgspec.structs.replace(pod.status, nominated_node_name=""),
    )


def birth(pod: Pod) -> tuple[tuple[datetime, ...], str]:
    """Pods in this order are the oldest first, before them those without a moment; of one moment by name."""
    # Without the zone, which is UTC for all: with it, comparing takes ten times as long.
    created = pod.metadata.creation_timestamp
    return (created.replace(tzinfo=None),) if created else (), pod.metadata.name


def is_daemon(pod: Pod) -> bool:
    """Whether it is a DaemonSet's: such a pod is made for a node that is there, so no node is bought for it.

    There are DaemonSets of other groups than apps (OpenKruise's), whose pods are made alike.
    """
    # A loop, because every run asks this of every pod.
    for owner in pod.metadata.owner_references:  # noqa: SIM110
        if owner.kind == _DAEMON_SET:
            return True
    return False


def is_mirror(pod: Pod) -> bool:
    """Whether it mirrors a static pod of one kubelet, which no other node can run."""
    return is_owned_by(pod, "v1", "Node") or _MIRROR in pod.metadata.annotations


def is_pinned(pod: Pod) -> bool:
    """Whether it is bound to the one node that it may ever run on, by the node's name.

    So controllers that make one pod for each node write it (kube-controller-manager
    ``ReplaceDaemonSetPodNodeNameNodeAffinity``). A workload whose template names the node makes its pods anew, and no
    other node is a place for them.
    """
    if any(owner.controller and owner.kind in _OF_A_TEMPLATE for owner in pod.metadata.owner_references):
        return False
    required = pod.spec.required_node_affinity
    if not required or not pod.spec.node_name:
        return False
    terms = [term for term in required.node_selector_terms if term.match_fields or term.match_expressions]
    return bool(terms) and all(
        any(
            (field.key, field.operator, field.values) == (_NODE_NAME, "In", [pod.spec.node_name])
            for field in term.match_fields
        )
        for term in terms
    )


def comes_with_node(pod: Pod) -> bool:
    """Whether it comes and goes with its node, and asks for none: it is a DaemonSet's, mirrors a static pod, or is
    pinned to its node by name.
    """
    # Each asks little of a pod that is none of these, because every run asks this of every pod.
    return is_daemon(pod) or is_mirror(pod) or (pod.spec.affinity is not None and is_pinned(pod))


def is_for_fargate(pod: Pod) -> bool:
    """Whether it runs on Fargate, which brings its own node for it (EKS User Guide, "Fargate profiles")."""
    return pod.spec.scheduler_name == FARGATE_SCHEDULER


def waits_for_fargate(pod: Pod) -> bool:
    """Whether it is for Fargate and has no node yet."""
    return is_for_fargate(pod) and not pod.spec.node_name and is_active(pod)


def is_pending(pod: Pod, *, only_marked: bool) -> bool:
    """Whether it waits for a node; never for Fargate's pods. Who was nominated for one is in ``nodes.pending_pods``.

    Against a live cluster (``only_marked``) the scheduler must have said Unschedulable (Karpenter
    `pod.IsProvisionable`). In a file every unbound, live, ungated pod waits.
    """
    if pod.spec.node_name or comes_with_node(pod) or is_terminal(pod) or is_for_fargate(pod):
        return False
    if not only_marked:
        return not pod.spec.scheduling_gates and not is_terminating(pod)
    conditions = pod.status.conditions
    is_marked = any(
        condition.type == "PodScheduled" and condition.reason == "Unschedulable" for condition in conditions
    )
    return is_marked and not is_terminating(pod)


def lasting(tolerations: Sequence[Toleration]) -> Sequence[Toleration]:
    """The tolerations without those that steering has added.

    Plans do not look at these: they would tell pods apart that are alike.
    """
    if any(toleration.key == PLANNED_TAINT for toleration in tolerations):
        return [toleration for toleration in tolerations if toleration.key != PLANNED_TAINT]
    return tolerations


def is_reschedulable(pod: Pod) -> bool:
    """Whether it will need another node of ours once its own goes (Karpenter `pod.IsReschedulable`)."""
    alive = is_active(pod) or (
        not is_terminal(pod) and is_terminating(pod) and is_owned_by(pod, "apps/v1", "StatefulSet")
    )
    return alive and not comes_with_node(pod) and not is_for_fargate(pod)


def is_protected(pod: Pod, now: datetime) -> bool:
    """Whether ``karpenter.sh/do-not-disrupt`` is in force: ``true``, or a Go duration since the pod's start."""
    value = pod.metadata.annotations.get(DO_NOT_DISRUPT, "")
    if value in ("", "true"):
        return value == "true"
    lasts = go_duration(value)
    if lasts is None or lasts <= timedelta(0):
        return False
    return pod.status.start_time is None or now - pod.status.start_time < lasts


def bound_at(pod: Pod) -> datetime | None:
    """When the pod got its node, at the earliest; None where nobody says."""
    bound = (c.last_transition_time for c in pod.status.conditions if (c.type, c.status) == ("PodScheduled", "True"))
    known = (*bound, pod.status.start_time, pod.metadata.creation_timestamp)
    return next((at for at in known if at is not None), None)


def deletion_requested_at(pod: Pod) -> datetime | None:
    """When the deletion of a pod that is on its way out began: its timestamp is the end of the grace that it got."""
    ends, grace = pod.metadata.deletion_timestamp, pod.metadata.deletion_grace_period_seconds
    return None if ends is None else ends - timedelta(seconds=min(max(grace or 0, 0), _CENTURY.total_seconds()))


def go_duration(text: str) -> timedelta | None:
    """A Go duration such as ``1h30m`` or ``1.5s``; None for anything else, and for more than Go can hold (292 years).

    Every user may annotate pods, so no text may raise.
    """
    try:
        return duration.parse(text)
    except ValueError:
        return None


def own_grace(pod: Pod) -> timedelta | None:
    """The time that the pod's author gives it to end; None if he does not say.

    The API server takes any number. A century stands for what is longer, because moments can be computed from it.
    """
    seconds = pod.spec.termination_grace_period_seconds
    return None if seconds is None else timedelta(seconds=min(seconds, _CENTURY.total_seconds()))


def is_pod_ready(pod: Pod) -> bool:
    """Whether its kubelet says that it is ready to serve (Kubernetes ``podutil.IsPodReady``)."""
    return any(condition.type == "Ready" and condition.status == "True" for condition in pod.status.conditions)


def ignores_budgets(pod: Pod) -> bool:
    """Whether the eviction API lets the pod go past all PodDisruptionBudgets, as it disrupts nobody: it has not begun,
    has ended, or is on its way out (kube-apiserver ``canIgnorePDB``).
    """
    return pod.status.phase == "Pending" or not is_active(pod)


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
