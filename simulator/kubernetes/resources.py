"""The kinds of object that the simulated API server knows, and what the two families of structs have in common.

Kubernetes' own objects are msgspec structs and the custom resources are pydantic models (see ``joinery.objects``). Both
are frozen and have ``metadata``; the simulator touches them only through the functions here.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

import msgspec
from pydantic import BaseModel

from joinery.gateways.kubernetes.gateway import Event
from joinery.objects.autoscaling.capacitybuffer import CapacityBuffer
from joinery.objects.autoscaling.provisioningrequest import ProvisioningRequest
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodeclass import NodeClass
from joinery.objects.karpenter.nodeoverlay import NodeOverlay
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.kubernetes import core, dynamic_resources, rollouts, shapes, workloads
from joinery.objects.kubernetes.podgroups import PodGroup
from joinery.objects.kubernetes.verticalautoscaler import VerticalPodAutoscaler

T = TypeVar("T")


class LeaseSpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: datetime | None = None
    renew_time: datetime | None = None
    lease_transitions: int | None = None


class LeaseObject(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """coordination.k8s.io/v1 Lease, as the API server keeps it."""

    metadata: core.ObjectMeta = core.ObjectMeta()
    spec: LeaseSpec = LeaseSpec()


class StoredDeploymentSpec(rollouts.DeploymentSpec, frozen=True, kw_only=True):
    template: core.PodTemplateSpec = core.PodTemplateSpec()  # type: ignore[assignment]


class StoredDeployment(rollouts.Deployment, frozen=True, kw_only=True):
    """apps/v1 Deployment with its whole pod template, as the API server keeps it."""

    spec: StoredDeploymentSpec = StoredDeploymentSpec()


class StoredStatefulSet(workloads.Workload, frozen=True, kw_only=True):
    """apps/v1 StatefulSet."""


class StoredReplicaSetSpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    replicas: int = 0
    selector: core.LabelSelector | None = None
    template: core.PodTemplateSpec = core.PodTemplateSpec()


class StoredReplicaSet(rollouts.ReplicaSet, frozen=True, kw_only=True):
    """apps/v1 ReplicaSet with what it makes pods from."""

    spec: StoredReplicaSetSpec = StoredReplicaSetSpec()


@dataclass(frozen=True, slots=True)
class Kind:
    """One row of the API: what ``kubectl api-resources`` would print, and the struct that holds the object."""

    name: str
    struct: Any
    api_version: str
    plural: str
    namespaced: bool = False


KINDS = {
    kind.name: kind
    for kind in (
        Kind("Pod", core.Pod, "v1", "pods", True),
        Kind("Node", core.Node, "v1", "nodes"),
        Kind("Namespace", core.Namespace, "v1", "namespaces"),
        Kind("PersistentVolumeClaim", core.PersistentVolumeClaim, "v1", "persistentvolumeclaims", True),
        Kind("PersistentVolume", core.PersistentVolume, "v1", "persistentvolumes"),
        Kind("DaemonSet", core.DaemonSet, "apps/v1", "daemonsets", True),
        Kind("Deployment", StoredDeployment, "apps/v1", "deployments", True),
        Kind("ReplicaSet", StoredReplicaSet, "apps/v1", "replicasets", True),
        Kind("StatefulSet", StoredStatefulSet, "apps/v1", "statefulsets", True),
        Kind("Service", core.Service, "v1", "services", True),
        Kind(
            "VerticalPodAutoscaler",
            VerticalPodAutoscaler,
            "autoscaling.k8s.io/v1",
            "verticalpodautoscalers",
            True,
        ),
        Kind("PodTemplate", shapes.PodTemplate, "v1", "podtemplates", True),
        Kind("ResourceQuota", workloads.ResourceQuota, "v1", "resourcequotas", True),
        Kind("StorageClass", core.StorageClass, "storage.k8s.io/v1", "storageclasses"),
        Kind("CSINode", core.CSINode, "storage.k8s.io/v1", "csinodes"),
        Kind("CSIDriver", core.CSIDriver, "storage.k8s.io/v1", "csidrivers"),
        Kind("CSIStorageCapacity", core.CSIStorageCapacity, "storage.k8s.io/v1", "csistoragecapacities", True),
        Kind("VolumeAttachment", core.VolumeAttachment, "storage.k8s.io/v1", "volumeattachments"),
        Kind("PodDisruptionBudget", core.PodDisruptionBudget, "policy/v1", "poddisruptionbudgets", True),
        Kind("PodGroup", PodGroup, "scheduling.k8s.io/v1alpha2", "podgroups", True),
        Kind("PriorityClass", core.PriorityClass, "scheduling.k8s.io/v1", "priorityclasses"),
        Kind("ResourceClaim", dynamic_resources.ResourceClaim, "resource.k8s.io/v1", "resourceclaims", True),
        Kind(
            "ResourceClaimTemplate",
            dynamic_resources.ResourceClaimTemplate,
            "resource.k8s.io/v1",
            "resourceclaimtemplates",
            True,
        ),
        Kind("DeviceClass", dynamic_resources.DeviceClass, "resource.k8s.io/v1", "deviceclasses"),
        Kind("ResourceSlice", dynamic_resources.ResourceSlice, "resource.k8s.io/v1", "resourceslices"),
        Kind("Lease", LeaseObject, "coordination.k8s.io/v1", "leases", True),
        Kind("NodePool", NodePool, "karpenter.sh/v1", "nodepools"),
        Kind("NodeOverlay", NodeOverlay, "karpenter.sh/v1alpha1", "nodeoverlays"),
        Kind("ProvisioningRequest", ProvisioningRequest, "autoscaling.x-k8s.io/v1", "provisioningrequests", True),
        Kind("CapacityBuffer", CapacityBuffer, "autoscaling.x-k8s.io/v1beta1", "capacitybuffers", True),
        Kind("NodeClaim", NodeClaim, "karpenter.sh/v1", "nodeclaims"),
        Kind("EC2NodeClass", EC2NodeClass, "karpenter.k8s.aws/v1", "ec2nodeclasses"),
    )
}
_NAMES = {kind.struct: name for name, kind in KINDS.items()}


def kind_of(item: Any) -> str:
    """The kind of an object; every cloud's node classes are kept.

    Raises ``TypeError`` for what the API server does not keep.
    """
    name = item.kind if isinstance(item, NodeClass) else _NAMES.get(type(item))
    if name is None:
        raise TypeError(f"the simulated API server does not keep a {type(item).__name__}")
    return name


def key_of(item: Any) -> str:
    """``namespace/name`` of a namespaced object, ``name`` of any other."""
    return key(kind_of(item), item.metadata.namespace, item.metadata.name)


def key(kind: str, namespace: str, name: str) -> str:
    return f"{namespace or 'default'}/{name}" if is_namespaced(kind) else name


def is_namespaced(kind: str) -> bool:
    """Whether objects of the kind are in namespaces.

    Node classes of other clouds, which are not listed here, are not.
    """
    return kind in KINDS and KINDS[kind].namespaced


def with_fields(item: T, **changes: Any) -> T:
    """A copy with other values in some fields, for both families of structs."""
    if isinstance(item, BaseModel):
        return item.model_copy(update=changes)
    changed: T = msgspec.structs.replace(item, **changes)  # type: ignore[type-var]
    return changed


def with_metadata(item: T, **changes: Any) -> T:
    """A copy with other metadata."""
    return with_fields(item, metadata=with_fields(item.metadata, **changes))  # type: ignore[attr-defined]


def encode(item: Any) -> bytes:
    """The object as the API server would send it, with kind and apiVersion."""
    return msgspec.json.encode(document(item))


def document(item: Any) -> dict[str, Any]:
    """The object as JSON values, with kind and apiVersion."""
    kind = KINDS[kind_of(item)]
    return {"apiVersion": kind.api_version, "kind": kind.name, **to_document(item)}


def to_document(item: Any) -> dict[str, Any]:
    """The object as JSON values, without kind and apiVersion."""
    if isinstance(item, BaseModel):
        return item.model_dump(mode="json", by_alias=True, exclude_none=True)
    document: dict[str, Any] = msgspec.to_builtins(item)
    return document


def from_document(kind: str, document: dict[str, Any]) -> Any:
    """The struct of a document. Raises ``ValueError`` (pydantic's or msgspec's) for one that does not fit."""
    struct = KINDS[kind].struct
    if issubclass(struct, BaseModel):
        return struct.model_validate(document)
    return msgspec.convert(document, struct)


def taken(current: Any, before: Any, after: Any, *fields: str) -> Any:
    """The current part of an object with the fields that a write may change, where it did change them."""
    changed = {
        name: _merged(getattr(current, name), getattr(before, name), getattr(after, name))
        for name in fields
        if getattr(after, name) != getattr(before, name)
    }
    return with_fields(current, **changed)


def _merged(current: Any, before: Any, after: Any) -> Any:
    """A changed value as a merge patch leaves it: a mapping key by key, anything else as a whole."""
    if not isinstance(after, dict):
        return after
    kept = {key: value for key, value in current.items() if key in after or key not in before}
    return kept | {key: value for key, value in after.items() if before.get(key) != value}


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An Event in the cluster, who reported it, and when."""

    event: Event
    reporter: str
    at: datetime

    @property
    def reason(self) -> str:
        return self.event.reason

    @property
    def message(self) -> str:
        return self.event.message

    @property
    def kind(self) -> str:
        return self.event.kind

    @property
    def name(self) -> str:
        return self.event.name
