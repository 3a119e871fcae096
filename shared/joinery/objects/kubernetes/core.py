"""Kubernetes' own objects, as far as a decision needs them.

Structs of msgspec, because a cluster has ten thousand pods: decoding them from the API server's bytes takes a tenth of
a second this way, and ten seconds and 860 MB with the official client's models. Unknown fields are skipped; nothing is
validated beyond types, because the API server already did. Field names are Kubernetes' own, in snake case.

``OwnerReference``, ``ObjectMeta``, ``Taint`` and ``Condition`` are models of pydantic in ``karpenter.meta`` once more:
those generate CRDs and check what people write, and take eight times as long (8.2 µs for a pod's metadata, here 1.0).

All structs are frozen. An object that has to change is replaced (``msgspec.structs.replace``) and handed to the cluster
gateway together with the object it was read as, which sends the difference.
"""

from datetime import datetime
from typing import Any

import msgspec


# Decoded trees have no cycles, and walking 10,000 pods for some would double the time they take to decode.
class _Object(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True, gc=False):
    pass


class OwnerReference(_Object, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(_Object, frozen=True):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: list[str] = []
    owner_references: list[OwnerReference] = []


class LabelSelectorRequirement(_Object, frozen=True):
    key: str = ""
    operator: str = ""
    values: list[str] = []


class LabelSelector(_Object, frozen=True):
    match_labels: dict[str, str] = {}
    match_expressions: list[LabelSelectorRequirement] = []


class NodeSelectorRequirement(_Object, frozen=True):
    key: str = ""
    operator: str = ""
    values: list[str] = []


class NodeSelectorTerm(_Object, frozen=True):
    match_expressions: list[NodeSelectorRequirement] = []
    match_fields: list[NodeSelectorRequirement] = []


class NodeSelector(_Object, frozen=True):
    node_selector_terms: list[NodeSelectorTerm] = []


class PreferredSchedulingTerm(_Object, frozen=True):
    weight: int = 1
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(_Object, frozen=True):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: list[PreferredSchedulingTerm] = []


class PodAffinityTerm(_Object, frozen=True):
    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: list[str] = []
    namespace_selector: LabelSelector | None = None
    match_label_keys: list[str] = []
    mismatch_label_keys: list[str] = []


class WeightedPodAffinityTerm(_Object, frozen=True):
    weight: int = 1
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(_Object, frozen=True):
    """Pod affinity and anti-affinity have the same shape."""

    required_during_scheduling_ignored_during_execution: list[PodAffinityTerm] = []
    preferred_during_scheduling_ignored_during_execution: list[WeightedPodAffinityTerm] = []


class Affinity(_Object, frozen=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(_Object, frozen=True):
    max_skew: int = 1
    topology_key: str = ""
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"
    match_label_keys: list[str] = []


class Taint(_Object, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: datetime | None = None


class Toleration(_Object, frozen=True):
    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class ResourceRequirements(_Object, frozen=True):
    """Quantities as the API writes them: strings, or bare numbers in hand-written files."""

    requests: dict[str, str | int | float] = {}
    limits: dict[str, str | int | float] = {}
    claims: list[dict[str, Any]] = []


class ContainerPort(_Object, frozen=True):
    container_port: int = 0
    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = "TCP"


class Container(_Object, frozen=True):
    name: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: list[ContainerPort] = []
    restart_policy: str = ""


class PersistentVolumeClaimVolumeSource(_Object, frozen=True):
    claim_name: str = ""


class PersistentVolumeClaimSpec(_Object, frozen=True):
    storage_class_name: str | None = None
    volume_name: str = ""
    access_modes: list[str] = []
    volume_mode: str = ""
    selector: LabelSelector | None = None
    resources: ResourceRequirements = ResourceRequirements()
    volume_attributes_class_name: str = ""


class PersistentVolumeClaimTemplate(_Object, frozen=True):
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()


class EphemeralVolumeSource(_Object, frozen=True):
    volume_claim_template: PersistentVolumeClaimTemplate | None = None


class Volume(_Object, frozen=True):
    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None


class PodSchedulingGate(_Object, frozen=True):
    name: str = ""


class PodSchedulingGroup(_Object, frozen=True):
    pod_group_name: str = ""


class PodResourceClaim(_Object, frozen=True):
    """A claim for devices by its name in the pod: one that is there, or one made for the pod from a template."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSpec(_Object, frozen=True):
    node_name: str = ""
    scheduler_name: str = ""
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: list[Toleration] = []
    topology_spread_constraints: list[TopologySpreadConstraint] = []
    containers: list[Container] = []
    init_containers: list[Container] = []
    overhead: dict[str, str | int | float] = {}
    resources: ResourceRequirements | None = None
    resource_claims: list[PodResourceClaim] = []
    volumes: list[Volume] = []
    host_network: bool = False
    priority: int | None = None
    priority_class_name: str = ""
    runtime_class_name: str = ""
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None
    restart_policy: str = ""
    scheduling_gates: list[PodSchedulingGate] = []
    scheduling_group: PodSchedulingGroup | None = None

    @property
    def required_node_affinity(self) -> NodeSelector | None:
        """The terms of which a node must match one; None where any node will do."""
        affinity = self.affinity and self.affinity.node_affinity
        return affinity.required_during_scheduling_ignored_during_execution if affinity else None


class Condition(_Object, frozen=True):
    type: str = ""
    status: str = "Unknown"
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None
    observed_generation: int | None = None


class ContainerStateWaiting(_Object, frozen=True):
    reason: str = ""


class ContainerState(_Object, frozen=True):
    waiting: ContainerStateWaiting | None = None


class ContainerStatus(_Object, frozen=True):
    """``resources``: what the running container has; absent before it runs, and without in-place resize."""

    name: str = ""
    restart_count: int = 0
    state: ContainerState | None = None
    allocated_resources: dict[str, str | int | float] = {}
    resources: ResourceRequirements | None = None


class PodResourceClaimStatus(_Object, frozen=True):
    """The claim that was made from a template; None where the pod needs none."""

    name: str = ""
    resource_claim_name: str | None = None


class PodStatus(_Object, frozen=True):
    phase: str = ""
    nominated_node_name: str = ""
    start_time: datetime | None = None
    conditions: list[Condition] = []
    container_statuses: list[ContainerStatus] = []
    init_container_statuses: list[ContainerStatus] = []
    resize: str = ""
    resources: ResourceRequirements | None = None
    allocated_resources: dict[str, str | int | float] = {}
    resource_claim_statuses: list[PodResourceClaimStatus] = []

    @property
    def pending_resize(self) -> str:
        """Why the node does not give the pod what it asks for by now: ``Deferred``, ``Infeasible``, or empty.

        Kubernetes says so in a condition since 1.33, and in the field ``resize`` before.
        """
        reasons = (condition.reason for condition in self.conditions if condition.type == "PodResizePending")
        return next(reasons, self.resize)


class Pod(_Object, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def key(self) -> str:
        """namespace/name: how a pod is called everywhere in Joinery."""
        return f"{self.metadata.namespace or 'default'}/{self.metadata.name}"


class NodeSpec(_Object, frozen=True):
    provider_id: str = msgspec.field(default="", name="providerID")
    taints: list[Taint] = []
    unschedulable: bool = False


class NodeStatus(_Object, frozen=True):
    capacity: dict[str, str | int | float] = {}
    allocatable: dict[str, str | int | float] = {}
    conditions: list[Condition] = []


class Node(_Object, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class PodTemplateSpec(_Object, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()


class DaemonSetSpec(_Object, frozen=True):
    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()


class DaemonSet(_Object, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: DaemonSetSpec = DaemonSetSpec()


class PersistentVolumeClaimStatus(_Object, frozen=True):
    phase: str = ""


class PersistentVolumeClaim(_Object, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class VolumeNodeAffinity(_Object, frozen=True):
    required: NodeSelector | None = None


class CSIPersistentVolumeSource(_Object, frozen=True):
    driver: str = ""
    volume_handle: str = ""


class ClaimReference(_Object, frozen=True):
    namespace: str = ""
    name: str = ""
    uid: str = ""


class PersistentVolumeSpec(_Object, frozen=True):
    capacity: dict[str, str | int | float] = {}
    access_modes: list[str] = []
    volume_mode: str = ""
    claim_ref: ClaimReference | None = None
    node_affinity: VolumeNodeAffinity | None = None
    csi: CSIPersistentVolumeSource | None = None
    local: dict[str, Any] | None = None
    host_path: dict[str, Any] | None = None
    aws_elastic_block_store: dict[str, Any] | None = msgspec.field(default=None, name="awsElasticBlockStore")
    storage_class_name: str = ""
    volume_attributes_class_name: str = ""


class PersistentVolumeStatus(_Object, frozen=True):
    phase: str = ""


class PersistentVolume(_Object, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class TopologySelectorLabelRequirement(_Object, frozen=True):
    key: str = ""
    values: list[str] = []


class TopologySelectorTerm(_Object, frozen=True):
    match_label_expressions: list[TopologySelectorLabelRequirement] = []


class StorageClass(_Object, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    provisioner: str = ""
    volume_binding_mode: str = "Immediate"
    allowed_topologies: list[TopologySelectorTerm] = []


class VolumeNodeResources(_Object, frozen=True):
    count: int | None = None


class CSINodeDriver(_Object, frozen=True):
    name: str = ""
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(_Object, frozen=True):
    drivers: list[CSINodeDriver] = []


class CSINode(_Object, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(_Object, frozen=True):
    storage_capacity: bool = False


class CSIDriver(_Object, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(_Object, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: str | int | float | None = None
    maximum_volume_size: str | int | float | None = None


class VolumeAttachmentSource(_Object, frozen=True):
    persistent_volume_name: str = ""


class VolumeAttachmentSpec(_Object, frozen=True):
    node_name: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeAttachment(_Object, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()


class PodDisruptionBudgetSpec(_Object, frozen=True):
    selector: LabelSelector | None = None
    min_available: str | int | None = None
    max_unavailable: str | int | None = None
    unhealthy_pod_eviction_policy: str = ""


class PodDisruptionBudgetStatus(_Object, frozen=True):
    """``disruptions_allowed``: None in a manifest, which has no status; a controller always writes a number.

    ``disrupted_pods``: when evictions were granted whose pods are still to go, by the pods' names.
    """

    disruptions_allowed: int | None = None
    current_healthy: int = 0
    desired_healthy: int = 0
    observed_generation: int = 0
    disrupted_pods: dict[str, str] = {}


class ServiceSpec(_Object, frozen=True):
    """``selector``: none for a Service whose endpoints somebody else keeps."""

    selector: dict[str, str] = {}


class Service(_Object, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ServiceSpec = ServiceSpec()


class PodDisruptionBudget(_Object, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class Namespace(_Object, frozen=True):
    metadata: ObjectMeta = ObjectMeta()


class PriorityClass(_Object, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    value: int = 0
    global_default: bool = False
