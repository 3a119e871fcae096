"""The cluster at one moment, frozen. A run reads one, and everything that it decides follows from that."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property

from joinery.objects.autoscaling.capacitybuffer import CapacityBuffer
from joinery.objects.autoscaling.provisioningrequest import ProvisioningRequest
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodeclass import DEFAULT_KIND, NodeClass, NodeClassKind
from joinery.objects.karpenter.nodeoverlay import NodeOverlay
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.karpenter.pause import Pause, pauses
from joinery.objects.kubernetes.core import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    DaemonSet,
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    PriorityClass,
    Service,
    StorageClass,
    VolumeAttachment,
)
from joinery.objects.kubernetes.dynamic_resources import (
    DeviceClass,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from joinery.objects.kubernetes.podgroups import PodGroup
from joinery.objects.kubernetes.verticalautoscaler import VerticalPodAutoscaler
from joinery.objects.kubernetes.workloads import Workload
from joinery.objects.snapshot.daemons import inferred_from_pods
from joinery.objects.snapshot.derived import Derives
from joinery.objects.snapshot.gangs import Gang, GangKey, gangs_of
from joinery.objects.snapshot.known import Known
from joinery.objects.snapshot.nodes import NodeView, views
from joinery.objects.snapshot.pod_groups import PodGroups, by_key, merged, of_daemon_sets, virtual
from joinery.objects.snapshot.pods import birth
from joinery.objects.snapshot.pool_shares import PoolShare, pool_shares
from joinery.objects.snapshot.successors import FIELDS, OwnerKey, successor
from joinery.objects.snapshot.vertical_autoscalers import Autoscalers, by_target

#: The name of an ``Invalid`` that stands for all objects of its kind.
ALL = "(all)"


@dataclass(frozen=True, kw_only=True)
class ClaimsSnapshot:
    """The NodeClaims and their node classes: all that is needed to tell whose an instance is, and how old.

    ``now``: the moment at which they were read, in UTC; decisions know no other clock. ``node_class_kind``: the kind of
    node class that our cloud brings; claims that refer to another kind are left to another provider. ``invalid``:
    objects that cannot be read, and why. They take no part in a decision, and the others go on. All ``node_classes``
    are of ``node_class_kind``.
    """

    now: datetime
    node_claims: tuple[NodeClaim, ...] = ()
    node_classes: tuple[NodeClass, ...] = ()
    invalid: tuple["Invalid", ...] = ()
    node_class_kind: NodeClassKind = DEFAULT_KIND

    @cached_property
    def managed_claims(self) -> tuple[NodeClaim, ...]:
        """The claims for nodes of our cloud."""
        return tuple(claim for claim in self.node_claims if claim.spec.node_class_ref.of_kind == self.node_class_kind)


@dataclass(frozen=True, kw_only=True)
class Snapshot(ClaimsSnapshot, Derives):
    """Every object that a decision may look at. Owners of pods are there as far as some of their pods may come back
    different, PodGroups (``objects.snapshot.gangs``) as far as pods name some, Services where a scheduler spreads pods
    by itself (``objects.snapshot.default_spreads``), and VerticalPodAutoscalers where some pod was set by one.

    ``unserved``: the fields of PodGroups that pods name and that the cluster does not serve. Of files
    only the record of a decision says so.
    ``known``: what was worked out of the snapshot before (``joinery.objects.snapshot.known``).
    """

    pods: tuple[Pod, ...] = ()
    nodes: tuple[Node, ...] = ()
    node_pools: tuple[NodePool, ...] = ()
    node_overlays: tuple[NodeOverlay, ...] = ()
    capacity_buffers: tuple[CapacityBuffer, ...] = ()
    provisioning_requests: tuple[ProvisioningRequest, ...] = ()
    daemon_sets: tuple[DaemonSet, ...] = ()
    namespaces: tuple[Namespace, ...] = ()
    priority_classes: tuple[PriorityClass, ...] = ()
    volume_claims: tuple[PersistentVolumeClaim, ...] = ()
    volumes: tuple[PersistentVolume, ...] = ()
    storage_classes: tuple[StorageClass, ...] = ()
    csi_nodes: tuple[CSINode, ...] = ()
    csi_drivers: tuple[CSIDriver, ...] = ()
    storage_capacities: tuple[CSIStorageCapacity, ...] = ()
    volume_attachments: tuple[VolumeAttachment, ...] = ()
    disruption_budgets: tuple[PodDisruptionBudget, ...] = ()
    resource_claims: tuple[ResourceClaim, ...] = ()
    resource_claim_templates: tuple[ResourceClaimTemplate, ...] = ()
    device_classes: tuple[DeviceClass, ...] = ()
    resource_slices: tuple[ResourceSlice, ...] = ()
    replica_sets: tuple[Workload, ...] = ()
    stateful_sets: tuple[Workload, ...] = ()
    jobs: tuple[Workload, ...] = ()
    replication_controllers: tuple[Workload, ...] = ()
    services: tuple[Service, ...] = ()
    vertical_autoscalers: tuple[VerticalPodAutoscaler, ...] = ()
    scheduling_groups: tuple[PodGroup, ...] = ()
    coscheduling_groups: tuple[PodGroup, ...] = ()
    volcano_groups: tuple[PodGroup, ...] = ()
    unserved: frozenset[str] = frozenset()
    known: Known = field(default_factory=Known, compare=False, repr=False)

    @cached_property
    def pools_by_name(self) -> Mapping[str, NodePool]:
        """The NodePools by name. A run looks up that of every claim."""
        return {pool.metadata.name: pool for pool in self.node_pools}

    @cached_property
    def pauses(self) -> Mapping[str, Pause]:
        """The pauses that are in force, by NodePool."""
        return pauses(self.node_pools, self.now)

    @cached_property
    def pool_shares(self) -> Mapping[str, PoolShare]:
        """How many nodes of a NodePool are on demand, of those that say how many should be."""
        return pool_shares(self)

    @cached_property
    def classes_by_name(self) -> Mapping[str, NodeClass]:
        """The node classes by name."""
        return {node_class.metadata.name: node_class for node_class in self.node_classes}

    @cached_property
    def pod_groups(self) -> PodGroups:
        """The pods by node. To ask the groups for what they derive takes less than to ask all pods."""
        return self.known.groups_of(self.pods)

    @cached_property
    def gangs(self) -> Mapping[GangKey, Gang]:
        """The pods that are placed together or not at all (``objects.snapshot.gangs``)."""
        return gangs_of(self)

    @cached_property
    def pods_by_key(self) -> Mapping[str, Pod]:
        """The pods by namespace/name."""
        return merged(group.derived(by_key) for group in self.pod_groups)

    @cached_property
    def views(self) -> tuple[NodeView, ...]:
        """Nodes as the scheduler will meet them (``objects.snapshot.nodes``)."""
        return views(self)

    @cached_property
    def daemons(self) -> tuple[DaemonSet, ...]:
        """The DaemonSets of every group: those that are read, and those that are inferred from their pods."""
        return (*self.daemon_sets, *inferred_from_pods(self.daemon_pods, self.nodes))

    @cached_property
    def daemon_pods(self) -> tuple[Pod, ...]:
        """The pods of DaemonSets, the oldest first."""
        pods = (pod for group in self.pod_groups for pod in group.derived(of_daemon_sets))
        return tuple(sorted(pods, key=birth))

    @cached_property
    def virtual_pods(self) -> tuple[Pod, ...]:
        """The pods that stand for room (``with_virtual``), by name."""
        found = (pod for group in self.pod_groups for pod in group.derived(virtual))
        return tuple(sorted(found, key=lambda pod: pod.key))

    def successor(self, pod: Pod) -> Pod:
        """The pod that will come in the place of one that leaves its node (``objects.snapshot.successors``)."""
        return successor(pod, self.owners, self._autoscalers)

    @cached_property
    def owners(self) -> Mapping[OwnerKey, Workload]:
        """What makes pods, as far as it was read."""
        return {
            (kind, owner.metadata.namespace or "default", owner.metadata.name): owner
            for kind, field in FIELDS.items()
            for owner in getattr(self, field)
        }

    @cached_property
    def _autoscalers(self) -> Autoscalers:
        return by_target(self.vertical_autoscalers)

    def with_virtual(self, pods: Iterable[Pod]) -> "Snapshot":
        """The snapshot with these pods beside those that there are (``decisions.headroom``). What is remembered of it
        is that of the whole.
        """
        asked = tuple(pods)
        there = self.pods_by_key if asked else {}
        more = tuple(pod for pod in asked if pod.key not in there)
        if not more:
            return self
        is_remembered = self.pods is self.known.pods
        whole = replace(self, pods=(*self.pods, *more))
        if is_remembered:
            self.known.pods = whole.pods
        return whole

    def serves(self, pool: NodePool) -> bool:
        """Whether the pool is for nodes of our cloud."""
        return pool.spec.template.spec.node_class_ref.of_kind == self.node_class_kind


@dataclass(frozen=True, slots=True)
class Invalid:
    """An object that the API server has stored and that cannot be read as one of its kind.

    ``kind``, ``name``: which it is (namespace/name where it has a namespace). ``reason``: why it cannot be read. The
    rest is what could be read of a NodeClaim all the same, empty where it could not: its instance (``provider_id``),
    the names of its Node, NodePool and node class, and when it was ``created``. With it lifecycle neither takes the
    claim's instance for garbage nor its class for unused.
    """

    kind: str
    name: str
    reason: str
    provider_id: str = ""
    node_name: str = ""
    node_pool: str = ""
    node_class: str = ""
    created: datetime | None = None
