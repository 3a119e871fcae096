"""Which kinds of objects a plan reads, in which versions of their API, and where they are kept.

Kinds of others (an ArgoCD Application, a SealedSecret) are nobody's mistake. ``kind: Pdo`` is one, and so is
``karpenter.sh/v2``: such an object would take no part in the plan, and whoever wrote it means it to.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from joinery.gateways.ec2.offline import NODE_CLASS
from joinery.objects.autoscaling.capacitybuffer import CapacityBuffer
from joinery.objects.autoscaling.provisioningrequest import ProvisioningRequest
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodeoverlay import NodeOverlay
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.kubernetes import core, dynamic_resources, shapes, workloads
from joinery.objects.kubernetes.podgroups import PodGroup
from joinery.objects.kubernetes.verticalautoscaler import VerticalPodAutoscaler
from joinery.objects.spelling import meant_by
from joinery_cli.reading.documents import Document
from joinery_cli.reading.schema import real_kinds


class ReadKind(NamedTuple):
    """``field``: of the snapshot, or of what is turned into pods; ``versions``: of the group, all read as the first."""

    field: str
    model: Any
    namespaced: bool = False
    versions: tuple[str, ...] = ("v1",)


_OLD_BATCH = ("v1", "v1beta1", "v2alpha1")
_OLD_APPS = ("v1", "v1beta2", "v1beta1")
_OLD_BETA = ("v1", "v1beta1")
#: The first beta has requests of another shape.
_RESOURCE = ("v1", "v1beta2")
_WORKLOAD = ReadKind("workloads", workloads.Workload, True)

#: The objects a plan looks at, by API group and kind.
KINDS: Mapping[tuple[str, str], ReadKind] = {
    ("", "Pod"): ReadKind("pods", core.Pod, True),
    ("", "Node"): ReadKind("nodes", core.Node),
    ("", "Namespace"): ReadKind("namespaces", core.Namespace),
    ("", "PersistentVolumeClaim"): ReadKind("volume_claims", core.PersistentVolumeClaim, True),
    ("", "PersistentVolume"): ReadKind("volumes", core.PersistentVolume),
    ("", "Service"): ReadKind("services", core.Service, True),
    ("", "ReplicationController"): _WORKLOAD,
    ("", "PodTemplate"): ReadKind("pod_templates", shapes.PodTemplate, True),
    ("", "LimitRange"): ReadKind("limit_ranges", workloads.LimitRange, True),
    ("", "ResourceQuota"): ReadKind("resource_quotas", workloads.ResourceQuota, True),
    ("apps", "DaemonSet"): ReadKind("daemon_sets", core.DaemonSet, True, _OLD_APPS),
    ("apps", "Deployment"): _WORKLOAD._replace(versions=_OLD_APPS),
    ("apps", "ReplicaSet"): _WORKLOAD._replace(versions=_OLD_APPS),
    ("apps", "StatefulSet"): _WORKLOAD._replace(versions=_OLD_APPS),
    ("batch", "Job"): _WORKLOAD,
    ("batch", "CronJob"): _WORKLOAD._replace(versions=_OLD_BATCH),
    ("autoscaling", "HorizontalPodAutoscaler"): ReadKind(
        "autoscalers", workloads.HorizontalPodAutoscaler, True, ("v2", "v1", "v2beta2", "v2beta1")
    ),
    ("node.k8s.io", "RuntimeClass"): ReadKind("runtime_classes", workloads.RuntimeClass, False, _OLD_BETA),
    ("policy", "PodDisruptionBudget"): ReadKind("disruption_budgets", core.PodDisruptionBudget, True, _OLD_BETA),
    ("scheduling.k8s.io", "PriorityClass"): ReadKind(
        "priority_classes", core.PriorityClass, False, ("v1", "v1beta1", "v1alpha1")
    ),
    ("scheduling.k8s.io", "PodGroup"): ReadKind(
        "scheduling_groups", PodGroup, True, ("v1beta1", "v1alpha3", "v1alpha2")
    ),
    ("resource.k8s.io", "ResourceClaim"): ReadKind("resource_claims", dynamic_resources.ResourceClaim, True, _RESOURCE),
    ("resource.k8s.io", "ResourceClaimTemplate"): ReadKind(
        "resource_claim_templates", dynamic_resources.ResourceClaimTemplate, True, _RESOURCE
    ),
    ("resource.k8s.io", "DeviceClass"): ReadKind("device_classes", dynamic_resources.DeviceClass, False, _RESOURCE),
    ("resource.k8s.io", "ResourceSlice"): ReadKind(
        "resource_slices", dynamic_resources.ResourceSlice, False, _RESOURCE
    ),
    ("storage.k8s.io", "StorageClass"): ReadKind("storage_classes", core.StorageClass, False, _OLD_BETA),
    ("storage.k8s.io", "CSINode"): ReadKind("csi_nodes", core.CSINode, False, _OLD_BETA),
    ("storage.k8s.io", "CSIDriver"): ReadKind("csi_drivers", core.CSIDriver, False, _OLD_BETA),
    ("storage.k8s.io", "CSIStorageCapacity"): ReadKind(
        "storage_capacities", core.CSIStorageCapacity, True, ("v1", "v1beta1", "v1alpha1")
    ),
    ("storage.k8s.io", "VolumeAttachment"): ReadKind("volume_attachments", core.VolumeAttachment, False, _OLD_BETA),
    ("karpenter.sh", "NodePool"): ReadKind("node_pools", NodePool),
    ("karpenter.sh", "NodeClaim"): ReadKind("node_claims", NodeClaim),
    ("karpenter.sh", "NodeOverlay"): ReadKind("node_overlays", NodeOverlay, False, ("v1alpha1",)),
    ("autoscaling.x-k8s.io", "CapacityBuffer"): ReadKind(
        "capacity_buffers", CapacityBuffer, True, ("v1beta1", "v1alpha1")
    ),
    (NODE_CLASS.identity().group, NODE_CLASS.kind): ReadKind("node_classes", NODE_CLASS),
}
#: What is read beside the snapshot: it becomes pods, or a word.
ASIDE = frozenset(
    {
        "workloads", "limit_ranges", "resource_quotas", "autoscalers", "scaled_objects", "runtime_classes",
        "pod_templates",
    }
)  # fmt: skip
#: Objects of others that say how many pods there are, or how many are placed together. Of their many other fields there
#: is no table.
_OF_OTHERS: Mapping[tuple[str, str], ReadKind] = {
    ("keda.sh", "ScaledObject"): ReadKind("scaled_objects", workloads.ScaledObject, True, ("v1alpha1",)),
    ("autoscaling.x-k8s.io", "ProvisioningRequest"): ReadKind(
        "provisioning_requests", ProvisioningRequest, True, ("v1", "v1beta1")
    ),
    ("autoscaling.k8s.io", "VerticalPodAutoscaler"): ReadKind(
        "vertical_autoscalers", VerticalPodAutoscaler, True, ("v1", "v1beta2")
    ),
    ("scheduling.x-k8s.io", "PodGroup"): ReadKind("coscheduling_groups", PodGroup, True, ("v1alpha1",)),
    ("scheduling.volcano.sh", "PodGroup"): ReadKind("volcano_groups", PodGroup, True, ("v1beta1",)),
}
#: What makes pods without a pod's template in it: a container, or as many cores and gibibytes as are asked for. A
#: Rollout may take its template from a Deployment (``workloadRef``).
_WITHOUT_TEMPLATE = frozenset(
    {
        ("argoproj.io", "Workflow"), ("argoproj.io", "CronWorkflow"), ("argoproj.io", "Rollout"),
        ("sparkoperator.k8s.io", "SparkApplication"), ("sparkoperator.k8s.io", "ScheduledSparkApplication"),
    }
)  # fmt: skip
#: Where policies (Kyverno) say what templates of others must look like.
_PATTERNS = frozenset({"rules"})
_LEGACY: Mapping[tuple[str, str], str] = {
    ("karpenter.sh", "Provisioner"): "v1alpha5",
    ("karpenter.sh", "Machine"): "v1alpha5",
    ("karpenter.k8s.aws", "AWSNodeTemplate"): "v1alpha1",
}
_KUSTOMIZE = "kustomize.config.k8s.io"
_MOVED = {"extensions": ("apps", frozenset({"Deployment", "DaemonSet", "ReplicaSet"}))}
_BY_KIND = {kind: (group, kind) for group, kind in KINDS}
_GROUPS = frozenset(group for group, _ in KINDS) | {"extensions"}
_NAMES = frozenset(kind for _, kind in (*KINDS, *_LEGACY))
#: Where kinds are at home that are not read as they stand.
_ELSEWHERE = {kind: f"{group}/{version}" for (group, kind), version in _LEGACY.items()}


def kind_of(document: Document) -> ReadKind | None:
    """What the object is read as; ``None`` where a plan has no use for it."""
    return KINDS.get(_identity(document)) or _OF_OTHERS.get((document.group, document.kind))


def makes_pods(one: Document) -> bool:
    """Whether an object of another's kind stands for pods (a Workflow), or has a pod's template somewhere (an Argo
    Rollout, a JobSet, a RayCluster), and comes from a person: a cluster has the pods too.
    """
    is_known = (one.group, one.kind) in _WITHOUT_TEMPLATE
    if not is_known and b'"containers"' not in bytes(one.raw):
        return False
    document = msgspec.json.decode(one.raw)
    metadata = document.get("metadata")
    if isinstance(metadata, dict) and metadata.get("uid"):
        return False
    return is_known or _has_template(document)


def in_place_of(one: Document) -> str:
    """What stands for the same pods and is read: a kind of Kubernetes' own may have the same name (Volcano's Job,
    OpenKruise's DaemonSet).
    """
    group, _ = _BY_KIND.get(one.kind, ("", ""))
    return f"one of {group}/{KINDS[group, one.kind].versions[0]}" if group else "a Deployment or a Job"


def _has_template(document: Mapping[str, Any]) -> bool:
    # Not by recursion: an object may be nested deeper than Python's stack.
    parts: list[tuple[str, Any]] = [("spec", document.get("spec"))]
    while parts:
        name, value = parts.pop()
        if isinstance(value, list):
            parts += [(name, member) for member in value]
        elif isinstance(value, dict):
            if name.lower().endswith("template") and _has_containers(value.get("spec")):
                return True
            parts += [(key, member) for key, member in value.items() if key not in _PATTERNS]
    return False


def _has_containers(spec: Any) -> bool:
    return isinstance(spec, dict) and isinstance(spec.get("containers"), list) and bool(spec["containers"])


def problem_of(document: Document) -> str:
    """Why kind and ``apiVersion`` name nothing that there is,
    although something near to them would be read; or empty.
    """
    group, name = _identity(document)
    if group == _KUSTOMIZE:
        return "kind: is kustomize's, and stands for what it makes: run kubectl kustomize first"
    kind = kind_of(document)
    if kind is not None:
        is_read = not document.version or document.version in kind.versions or document.group == "extensions"
        return "" if is_read else _no_such(document, _version(group, kind))
    if (group, name) in _LEGACY:
        return _no_such(document, f"{group}/{_LEGACY[group, name]}")
    if name in _BY_KIND and (group in _GROUPS or meant_by(group, _GROUPS - {""})):
        right = _BY_KIND[name]
        return _no_such(document, _version(right[0], KINDS[right]))
    if group not in _GROUPS or name in real_kinds() or not (meant := _near(name)):
        return ""
    if meant == name:
        return _no_such(document, _ELSEWHERE[name])
    return f"kind: no such kind as {name}; is it {meant}?"


def _identity(document: Document) -> tuple[str, str]:
    if not document.version:
        return _BY_KIND.get(document.kind, (document.group, document.kind))
    group, moved = _MOVED.get(document.group, (document.group, frozenset()))
    return (group if document.kind in moved else document.group, document.kind)


def _version(group: str, kind: ReadKind) -> str:
    return f"{group}/{kind.versions[0]}" if group else kind.versions[0]


def _no_such(document: Document, wanted: str) -> str:
    given = f"{document.group}/{document.version}" if document.group else document.version
    return f"apiVersion: there is no {document.kind} in {given}; is it {wanted}?"


def _near(name: str) -> str:
    """Short names are alike by their letters: ``Pdo``."""
    jumbled = (one for one in sorted(_NAMES) if sorted(one.lower()) == sorted(name.lower()))
    return meant_by(name, _NAMES) or next(jumbled, "")
