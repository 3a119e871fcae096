"""Pods, the workloads that own them, their disruption budgets and namespaces."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from joinery.objects.karpenter.labels import REVISION
from joinery.objects.kubernetes import core
from joinery.objects.kubernetes.podgroups import PodGroup
from joinery.objects.kubernetes.shapes import PodTemplate
from simulator.builders.defaults import as_fields, as_struct, as_structs
from simulator.kubernetes import shapes
from simulator.kubernetes.resources import (
    StoredDeployment,
    StoredDeploymentSpec,
    StoredReplicaSet,
    StoredReplicaSetSpec,
)


def pod(
    name: str = "pod-1",
    *,
    cpu: str = "500m",
    memory: str = "512Mi",
    namespace: str = "default",
    labels: Mapping[str, str] | None = None,
    node: str = "",
    node_selector: Mapping[str, str] | None = None,
    tolerations: Iterable[Any] = (),
    affinity: Any = None,
    spread: Iterable[Any] = (),
    volumes: Iterable[Any] = (),
    owner: Any = None,
    unschedulable: bool = True,
    phase: str = "",
    requests: Mapping[str, str] | None = None,
    uid: str = "",
    annotations: Mapping[str, str] | None = None,
    created: datetime | None = None,
    deleted: datetime | None = None,
    **spec: Any,
) -> core.Pod:
    """A pod with one container.

    With a ``node`` it is running and ready there. Without one it is pending, and marked Unschedulable unless
    ``unschedulable`` is False.

    ``requests``: added to ``cpu`` and ``memory``; an empty string leaves the resource out.
    ``volumes``: names of PersistentVolumeClaims, or volume documents.
    ``owner``: an OwnerReference, its document, or the name of a ReplicaSet.
    ``spec``: further fields of PodSpec by their Python names.
    """
    quantities = {"cpu": cpu, "memory": memory, **(requests or {})}
    requested: dict[str, str | int | float] = {name: value for name, value in quantities.items() if value != ""}
    return shapes.read_again(core.Pod(
        metadata=core.ObjectMeta(
            name=name, namespace=namespace, uid=uid, labels=dict(labels or {}), annotations=dict(annotations or {}),
            creation_timestamp=created, deletion_timestamp=deleted, owner_references=_owners(owner),
        ),
        spec=core.PodSpec(
            node_name=node,
            node_selector=dict(node_selector or {}),
            tolerations=as_structs(tolerations, core.Toleration),
            affinity=as_struct(affinity, core.Affinity) if affinity else None,
            topology_spread_constraints=as_structs(spread, core.TopologySpreadConstraint),
            containers=[core.Container(name="main", resources=core.ResourceRequirements(requests=requested))],
            volumes=[_volume(volume) for volume in volumes],
            **as_fields(spec, core.PodSpec),
        ),
        status=core.PodStatus(
            phase=phase or ("Running" if node else "Pending"), conditions=_pod_conditions(node, unschedulable)
        ),
    ))  # fmt: skip


def _pod_conditions(node: str, unschedulable: bool) -> list[core.Condition]:
    if node:
        return [core.Condition(type="PodScheduled", status="True"), core.Condition(type="Ready", status="True")]
    return [core.Condition(type="PodScheduled", status="False", reason="Unschedulable")] if unschedulable else []


def _volume(volume: Any) -> core.Volume:
    if isinstance(volume, str):
        source = core.PersistentVolumeClaimVolumeSource(claim_name=volume)
        return core.Volume(name=volume, persistent_volume_claim=source)
    return as_struct(volume, core.Volume)


def owner(kind: str, name: str, *, uid: str = "", api_version: str = "apps/v1") -> core.OwnerReference:
    """The reference to a controlling owner. Its UID derives from kind and name unless ``uid`` is given."""
    return core.OwnerReference(
        api_version=api_version, kind=kind, name=name, uid=uid or f"uid-{kind.lower()}-{name}", controller=True
    )


def _owners(reference: Any) -> list[core.OwnerReference]:
    if reference is None:
        return []
    is_name = isinstance(reference, str)
    return [owner("ReplicaSet", reference) if is_name else as_struct(reference, core.OwnerReference)]


def pod_group(
    name: str = "train", *, minimum: int = 4, namespace: str = "default", topology: str = "", **spec: Any
) -> PodGroup:
    """A PodGroup of Kubernetes' own, whose pods are placed so many at a time. ``topology``: the node label that has one
    value for all of them.

    ``spec``: further fields of its spec, in camel case.
    """
    constraints = {"schedulingConstraints": {"topology": [{"key": topology}]}} if topology else {}
    document = {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"schedulingPolicy": {"gang": {"minCount": minimum}}, **constraints, **spec},
    }
    return msgspec.convert(document, PodGroup)


def daemon_set(
    name: str = "agent", *, cpu: str = "100m", memory: str = "128Mi", namespace: str = "kube-system", **spec: Any
) -> core.DaemonSet:
    """A DaemonSet whose pods tolerate every taint, unless ``spec`` gives ``tolerations``. ``spec`` goes to ``pod``."""
    spec.setdefault("tolerations", [{"operator": "Exists"}])
    template = pod(name, cpu=cpu, memory=memory, labels={"app": name}, **spec)
    return shapes.read_again(core.DaemonSet(
        metadata=core.ObjectMeta(name=name, namespace=namespace, uid=f"uid-daemonset-{name}"),
        spec=core.DaemonSetSpec(
            selector=core.LabelSelector(match_labels={"app": name}),
            template=core.PodTemplateSpec(metadata=core.ObjectMeta(labels={"app": name}), spec=template.spec),
        ),
    ))  # fmt: skip


def deployment(name: str = "web", *, namespace: str = "default", replicas: int = 1, **spec: Any) -> StoredDeployment:
    """A Deployment. ``spec``: further fields of DeploymentSpec by their Python names."""
    meta = core.ObjectMeta(name=name, namespace=namespace, uid=f"uid-deployment-{name}")
    fields = as_fields(spec, StoredDeploymentSpec)
    return StoredDeployment(
        metadata=meta, spec=StoredDeploymentSpec(replicas=replicas, template=_template(name), **fields)
    )


def replica_set(
    name: str = "web-1", *, namespace: str = "default", revision: str = "1", **spec: Any
) -> StoredReplicaSet:
    """A ReplicaSet, of the Deployment with whose name its own begins. ``spec`` of its pods goes to ``pod``."""
    parent = name.rpartition("-")[0]
    return StoredReplicaSet(
        metadata=core.ObjectMeta(
            name=name, namespace=namespace, uid=f"uid-replicaset-{name}", annotations={REVISION: revision},
            owner_references=[owner("Deployment", parent)],
        ),
        spec=StoredReplicaSetSpec(replicas=1, template=_template(name, **spec)),
    )  # fmt: skip


def _template(name: str, **spec: Any) -> core.PodTemplateSpec:
    return core.PodTemplateSpec(metadata=core.ObjectMeta(labels={"app": name}), spec=pod(name, **spec).spec)


def pod_template(name: str = "chunk", *, generation: int = 1, **spec: Any) -> PodTemplate:
    """A PodTemplate. ``spec`` of its pods goes to ``pod``."""
    made = pod(name, **spec)
    return PodTemplate(
        metadata=core.ObjectMeta(name=name, namespace=made.metadata.namespace, generation=generation),
        template=core.PodTemplateSpec(metadata=core.ObjectMeta(labels=made.metadata.labels), spec=made.spec),
    )


def pdb(
    name: str = "budget",
    *,
    labels: Mapping[str, str] | None = None,
    allowed: int = 0,
    min_available: str | int | None = None,
    max_unavailable: str | int | None = None,
    namespace: str = "default",
    unhealthy: str = "",
    **status: Any,
) -> core.PodDisruptionBudget:
    """A PodDisruptionBudget over the pods with ``labels``.

    With ``min_available`` or ``max_unavailable`` the simulated controller computes how many disruptions are allowed.
    Without either, ``allowed`` stays as stated. ``unhealthy``: the unhealthyPodEvictionPolicy. ``status``: further
    fields of PodDisruptionBudgetStatus.
    """
    is_stated = min_available is None and max_unavailable is None
    fields = {"observed_generation": int(is_stated), **status}
    return core.PodDisruptionBudget(
        metadata=core.ObjectMeta(name=name, namespace=namespace),
        spec=core.PodDisruptionBudgetSpec(
            selector=core.LabelSelector(match_labels=dict(labels or {})), min_available=min_available,
            max_unavailable=max_unavailable, unhealthy_pod_eviction_policy=unhealthy,
        ),
        status=core.PodDisruptionBudgetStatus(disruptions_allowed=allowed, **fields),
    )  # fmt: skip


def namespace(name: str, *, labels: Mapping[str, str] | None = None) -> core.Namespace:
    return core.Namespace(
        metadata=core.ObjectMeta(name=name, labels={"kubernetes.io/metadata.name": name, **(labels or {})})
    )
