"""The cluster at one moment, frozen. One is read per decision; everything decided follows from it."""

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from joinery.apis.core import (
    CSINode,
    DaemonSet,
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    PriorityClass,
    StorageClass,
    VolumeAttachment,
)
from joinery.apis.nodeclaim import NodeClaim
from joinery.apis.nodeclass import DEFAULT_KIND, NodeClass, NodeClassKind
from joinery.apis.nodepool import NodePool


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """Every object a decision may look at, and the moment (UTC) at which it was read.

    ``node_class_kind`` is the kind of node class that our cloud brings, and of all ``node_classes``. Pools and claims that refer to
    another kind are another provider's business.

    ``invalid`` names the NodePools (and other objects) that cannot be read, with the reason: they take no part in a
    decision, and the others go on.
    """

    now: datetime
    pods: tuple[Pod, ...] = ()
    nodes: tuple[Node, ...] = ()
    node_claims: tuple[NodeClaim, ...] = ()
    node_pools: tuple[NodePool, ...] = ()
    node_classes: tuple[NodeClass, ...] = ()
    daemon_sets: tuple[DaemonSet, ...] = ()
    namespaces: tuple[Namespace, ...] = ()
    priority_classes: tuple[PriorityClass, ...] = ()
    volume_claims: tuple[PersistentVolumeClaim, ...] = ()
    volumes: tuple[PersistentVolume, ...] = ()
    storage_classes: tuple[StorageClass, ...] = ()
    csi_nodes: tuple[CSINode, ...] = ()
    volume_attachments: tuple[VolumeAttachment, ...] = ()
    disruption_budgets: tuple[PodDisruptionBudget, ...] = ()
    invalid: tuple["Invalid", ...] = ()
    node_class_kind: NodeClassKind = DEFAULT_KIND

    @cached_property
    def managed_claims(self) -> tuple[NodeClaim, ...]:
        """The claims for nodes of our cloud."""
        return tuple(claim for claim in self.node_claims if claim.spec.node_class_ref.of_kind == self.node_class_kind)

    def serves(self, pool: NodePool) -> bool:
        """Whether the pool is for nodes of our cloud."""
        return pool.spec.template.spec.node_class_ref.of_kind == self.node_class_kind


@dataclass(frozen=True, slots=True)
class Invalid:
    """An object that the API server stored and that cannot be read as one of its kind.

    What follows the reason is as much of it as could be read all the same, so that whoever must be careful about the object
    need not be careful about all others: whose node it is (``node_pool``, ``node_class``), which instance is its own, and
    since when it is there.
    """

    kind: str
    name: str
    reason: str
    provider_id: str = ""
    node_pool: str = ""
    node_class: str = ""
    created: datetime | None = None
