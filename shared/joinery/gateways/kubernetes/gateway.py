"""The cluster as a controller sees it: read all of it once, write one object at a time.

Writes take the object as it was read and as it should be; the difference is sent, guarded by the resource version that
was read. Every method may raise ``UnavailableError`` (throttled, timed out, server error).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from joinery.objects.autoscaling.capacitybuffer import CapacityBuffer
from joinery.objects.autoscaling.provisioningrequest import ProvisioningRequest
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodeclass import NodeClass
from joinery.objects.karpenter.nodeoverlay import NodeOverlay
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.kubernetes.core import Node, Pod, Toleration
from joinery.objects.kubernetes.references import Document, FieldConflict, Reference
from joinery.objects.kubernetes.rollouts import Deployment, ReplicaSet
from joinery.objects.kubernetes.shapes import BufferSources, Shape
from joinery.objects.snapshot.snapshot import ClaimsSnapshot, Snapshot

#: Seconds after which a request to the API server has ended, with an answer or without. A run begins none that might
#: take longer than it has left.
LONGEST_CALL = 10.0


class Eviction(Enum):
    """What the eviction API answered."""

    EVICTED = "evicted"
    BLOCKED = "blocked"  # a PodDisruptionBudget is in the way; or more than one selects the pod
    GONE = "gone"  # 404, or 409 for another pod of the same name
    NOT_ASKED = "not asked"  # observe mode


@dataclass(frozen=True, slots=True)
class Lease:
    """A Lease that is held. ``resource_version``: as we wrote it, so that ``release_lease`` gives back no other's."""

    name: str
    holder: str
    resource_version: str


@dataclass(frozen=True, slots=True)
class Event:
    """A Kubernetes Event to be sent.

    ``reason``: in CamelCase. ``kind``, ``name``, ``uid``, ``namespace``, ``api_version``: of the object that it is
    about. The same ``uid`` and ``reason`` within two minutes are one Event.
    """

    reason: str
    message: str
    kind: str
    name: str
    uid: str = ""
    namespace: str = ""
    api_version: str = "v1"
    warning: bool = False


class Cluster(Protocol):
    """The Kubernetes API, in our words."""

    def snapshot(self) -> Snapshot:
        """Everything that decisions look at, as it is now: what was written before is seen. Nodes are read before pods.

        What has not changed since the last snapshot is the same object as in that. No moment of ours is still to come
        (``objects.annotations.marks``); nor is any in what the other methods read.
        """
        ...

    def claims_snapshot(self) -> ClaimsSnapshot:
        """The NodeClaims and node classes alone: some kilobytes a claim, where a snapshot reads every pod."""
        ...

    def buffer_sources(self, buffers: Sequence[CapacityBuffer]) -> BufferSources:
        """What these buffers refer to, as it is now. What is not there, or may not be read, says so."""
        ...

    def pod_templates(self, names: Sequence[str]) -> Mapping[str, Shape]:
        """By namespace/name, what the pods of these PodTemplates look like; what is not there says so."""
        ...

    def node(self, name: str) -> Node:
        """One Node as it is now. ``NotFoundError``."""
        ...

    def replica_set(self, namespace: str, name: str) -> ReplicaSet:
        """One ReplicaSet as it is now. ``NotFoundError``."""
        ...

    def deployment(self, namespace: str, name: str) -> Deployment:
        """One Deployment as it is now. ``NotFoundError``."""
        ...

    def restart(self, before: Deployment, after: Deployment) -> None:
        """Send the changed annotations of the pod template. ``ConflictError`` if somebody has written to it since it
        was read, ``NotFoundError``.
        """
        ...

    def node_claim(self, name: str) -> NodeClaim:
        """One NodeClaim of v1 as it is now. ``NotFoundError``; ``ConfigurationError`` if it cannot be read."""
        ...

    def node_pool(self, name: str) -> NodePool:
        """One NodePool as it is now. ``NotFoundError``; ``ConfigurationError`` if it cannot be read."""
        ...

    def create_node_claim(self, claim: NodeClaim, *, dry_run: bool = False) -> NodeClaim:
        """The claim as stored, with its UID; as given, without one, where nothing is written
        (``joinery.gateways.observing``).
        ``dry_run``: as it would be stored. Raises ``ConflictError`` if the name is taken, ``ConfigurationError`` if it
        is refused itself (validation, admission), ``UnavailableError`` for what is about us or the server.
        """
        ...

    def update_node_claim(self, before: NodeClaim, after: NodeClaim) -> NodeClaim:
        """Send changed metadata (labels, annotations, finalizers) and status. ``ConflictError``, ``NotFoundError``."""
        ...

    def delete_node_claim(self, claim: NodeClaim) -> None:
        """Ask for the deletion of exactly this claim.

        ``NotFoundError`` if it is gone, ``ConflictError`` if another claim has its name now.
        """
        ...

    def update_node(self, before: Node, after: Node) -> Node:
        """Send changed metadata and taints. ``NotFoundError``; ``ConflictError`` only if somebody has changed the same,
        or deleted the Node, since it was read: a Node's kubelet and controllers write to it all the time.
        """
        ...

    def delete_node(self, node: Node) -> None:
        """Ask for deletion. ``NotFoundError`` if it is gone, ``ConflictError`` if another has its name now."""
        ...

    def update_node_pool(self, before: NodePool, after: NodePool) -> NodePool:
        """Send changed annotations and status. ``ConflictError``, ``NotFoundError``."""
        ...

    def update_node_overlay(self, before: NodeOverlay, after: NodeOverlay) -> NodeOverlay:
        """Send changed status. ``ConflictError``, ``NotFoundError``."""
        ...

    def update_capacity_buffer(self, before: CapacityBuffer, after: CapacityBuffer) -> CapacityBuffer:
        """Send changed status. ``ConflictError``, ``NotFoundError``."""
        ...

    def update_provisioning_request(
        self, before: ProvisioningRequest, after: ProvisioningRequest
    ) -> ProvisioningRequest:
        """Send changed status. ``ConflictError``, ``NotFoundError``."""
        ...

    def update_node_class(self, before: NodeClass, after: NodeClass) -> NodeClass:
        """Send changed annotations, finalizers and status. ``ConflictError``, ``NotFoundError``."""
        ...

    def reject(self, kind: str, name: str, reason: str) -> None:
        """Write ``ValidationSucceeded=False`` on a custom resource that does not even parse."""
        ...

    def update_pod(self, before: Pod, after: Pod) -> None:
        """Send changed annotations. ``NotFoundError``; ``ConflictError`` only if somebody has changed the same, or
        deleted the pod, since it was read.
        """
        ...

    def tolerate(self, pod: Pod, toleration: Toleration) -> None:
        """Add a toleration, which is all that Kubernetes lets a pod gain. ``NotFoundError`` if the pod is gone."""
        ...

    def evict(self, pod: Pod) -> Eviction:
        """Ask the eviction API, for this pod's UID only. Asked once: a refusal is not tried again."""
        ...

    def delete_pod(self, pod: Pod, *, grace_seconds: int) -> None:
        """Delete past every budget, for a deadline (at least one second of grace). ``NotFoundError`` if it is gone."""
        ...

    def acquire_lease(self, name: str, *, holder: str, seconds: int) -> Lease:
        """Take the Lease in kube-system, for at most so long. ``ConflictError`` while another holds it;
        ``ConfigurationError`` where there is none, because it comes with the rights.

        A holder may take it again, which renews it. So ``holder`` names one run, and not the door.
        """
        ...

    def release_lease(self, lease: Lease) -> None:
        """Give it back; harmless if it was lost meanwhile."""
        ...


class Recorder(Protocol):
    """Where a decision explains itself to ``kubectl describe``."""

    def is_news(self, event: Event) -> bool:
        """Whether this function would publish it: it has sent no Event of that reason about the object for two minutes,
        nor this very message for half an hour.
        """
        ...

    def emit(self, events: Iterable[Event]) -> None:
        """Publish what is news. Never raises: an Event that could not be written is counted, the decision stands."""
        ...


class Objects(Protocol):
    """Objects of the cluster as documents, for whoever installs: definitions, rights, policies, configurations.

    Kinds are those of ``objects.kubernetes.references``. Every method raises ``DeniedError`` without the right, and
    ``UnavailableError`` if the API server does not answer.
    """

    def server_version(self) -> tuple[int, int]:
        """Kubernetes' version: (1, 33)."""
        ...

    def is_administrator(self) -> bool:
        """Whether we may do everything. False, too, while the cluster does not know us (yet)."""
        ...

    def read(self, reference: Reference) -> Document | None:
        """The object; None if there is none, or if the cluster does not know its kind."""
        ...

    def labelled(self, kind: str, label: str = "", value: str = "") -> Sequence[Document]:
        """Every object of the kind with that label, or of the kind alone, in all namespaces; none if the cluster does
        not know the kind.
        """
        ...

    def apply(self, document: Document, *, force: bool = False, dry_run: bool = False) -> Sequence[FieldConflict]:
        """Server-side apply. Returns the fields that others have set otherwise: then nothing was written.

        ``force``: take these fields from them. ``dry_run``: only say what would be in the way. Raises
        ``ConfigurationError`` for an object that the API server does not accept.
        """
        ...

    def create(self, document: Document) -> bool:
        """Whether it was made; False if there is one already, which is left as it is."""
        ...

    def patch(self, reference: Reference, document: Document) -> bool:
        """Merge this into the object (RFC 7386). False where there is none."""
        ...

    def remove(self, reference: Reference) -> bool:
        """Ask for deletion. Returns whether there was one."""
        ...
