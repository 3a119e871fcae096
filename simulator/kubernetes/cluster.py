"""A Kubernetes cluster in memory: the ``Cluster`` gateway over the simulated API server.

What a controller may do goes through the Protocol's methods and meets the same refusals as in a real cluster. Tests and
the simulated actors (scheduler, kubelets, workload controllers) also put, look at and remove objects directly.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec
from pydantic import ValidationError

from joinery.controllers.acting.lease import LEASE
from joinery.gateways.kubernetes.gateway import Event, Eviction, Lease
from joinery.gateways.kubernetes.patches import may_still_be_sent
from joinery.objects.annotations.marks import believable
from joinery.objects.autoscaling.capacitybuffer import CapacityBuffer
from joinery.objects.autoscaling.provisioningrequest import ProvisioningRequest
from joinery.objects.errors import ConfigurationError, ConflictError, NotFoundError
from joinery.objects.karpenter.conditions import Observation, rejected
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from joinery.objects.karpenter.meta import CustomResource
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodeclass import NodeClass
from joinery.objects.karpenter.nodeoverlay import NodeOverlay
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.kubernetes.core import Namespace, Node, ObjectMeta, Pod, PodDisruptionBudget, Toleration
from joinery.objects.kubernetes.rollouts import Deployment, ReplicaSet
from joinery.objects.kubernetes.shapes import BufferSources, Shape, shape_of_template, shape_of_workload
from joinery.objects.kubernetes.workloads import Workload
from joinery.objects.snapshot.default_spreads import SpreadFiller
from joinery.objects.snapshot.gangs import FIELDS
from joinery.objects.snapshot.known import Known
from joinery.objects.snapshot.snapshot import ClaimsSnapshot, Snapshot
from simulator.clock import Clock
from simulator.kubernetes import budgets
from simulator.kubernetes.apiserver import ApiServer
from simulator.kubernetes.legacy import LegacyObjects, is_kept
from simulator.kubernetes.resources import (
    LeaseObject,
    LeaseSpec,
    StoredEvent,
    from_document,
    key_of,
    kind_of,
    taken,
    to_document,
    with_fields,
    with_metadata,
)
from simulator.kubernetes.validation import invalid, metadata_problem, validated

T = TypeVar("T")
R = TypeVar("R", bound=CustomResource)
_SCALABLE = ("Deployment", "StatefulSet", "ReplicaSet")
#: PodGroups of which the simulated API server keeps none.
_UNSERVED = frozenset(FIELDS) - {"scheduling_groups"}
GRACE = 30  # seconds, Kubernetes' default terminationGracePeriodSeconds


class InMemoryCluster:
    """Implements ``joinery.gateways.kubernetes.gateway.Cluster``.

    ``api``: the API server below it. ``node_class``: the cloud's model of its node classes. ``spreads``: what the
    scheduler spreads by itself.
    """

    def __init__(self, clock: Clock, *objects: Any, seed: int = 0, node_class: type[NodeClass] = EC2NodeClass) -> None:
        self.clock = clock
        self._node_class = node_class
        self.api = ApiServer(clock, seed)
        self.events: list[StoredEvent] = []
        self._listeners: list[Callable[[StoredEvent], None]] = []
        self._replicas: dict[str, int] = {}
        self._unparsed: dict[tuple[str, str], dict[str, Any]] = {}
        self.legacy = LegacyObjects(self.api, node_class)
        self._known = Known()
        self.spreads = SpreadFiller(())
        self.add(*map(_namespace, ("default", "kube-system")), *objects, _lease(LEASE))

    # --- for tests and actors -------------------------------------------------------------------------------------

    def add(self, *objects: Any) -> None:
        """Put objects there as they are; one of the same name is replaced."""
        for item in objects:
            self.api.add(item)

    def add_document(self, document: dict[str, Any]) -> None:
        """Put a document there. A custom resource that does not fit our models is stored too, and reported invalid."""
        kind, name = str(document["kind"]), str(document["metadata"]["name"])
        if is_kept(document):
            self.legacy.put(document)
            return
        try:
            self.add(from_document(kind, document))
        except (ValidationError, msgspec.ValidationError):
            self._unparsed[kind, name] = document

    def remove(self, item: Any) -> None:
        """Take an object away at once, finalizers or not. ``NotFoundError``."""
        self.api.remove(item)

    def delete(self, item: Any) -> None:
        """Delete an object as ``kubectl delete`` does: a pod that runs has the grace period of its own."""
        self.api.delete(item, grace_seconds=_grace(item) if isinstance(item, Pod) and _is_running(item) else 0)

    def scale(self, owner_uid: str, replicas: int) -> None:
        """How many pods an owner wants, for the disruption budgets that cover them."""
        self._replicas[owner_uid] = replicas

    def end_grace(self) -> None:
        """Remove every pod whose grace period has passed, as its kubelet would."""
        for pod in list(self.pods.values()):
            due = pod.metadata.deletion_timestamp
            if due is not None and due <= self.clock.now():
                self.remove(pod)

    def emit(self, event: Event, *, reporter: str) -> None:
        """Store an Event, and call the listeners."""
        stored = StoredEvent(event, reporter, self.clock.now())
        self.events.append(stored)
        for listener in self._listeners:
            listener(stored)

    def listen(self, listener: Callable[[StoredEvent], None]) -> None:
        """Call the listener for every Event from here on."""
        self._listeners.append(listener)

    def document(self, kind: str, name: str) -> dict[str, Any]:
        """An object as JSON values, also one that does not fit our models. ``NotFoundError``."""
        raw = self._unparsed.get((kind, name))
        return raw if raw is not None else to_document(self.api.get(kind, name))

    @property
    def pods(self) -> Mapping[str, Pod]:
        return self.api.objects("Pod")

    @property
    def nodes(self) -> Mapping[str, Node]:
        return self.api.objects("Node")

    @property
    def node_claims(self) -> Mapping[str, NodeClaim]:
        return self.api.objects("NodeClaim")

    @property
    def node_pools(self) -> Mapping[str, NodePool]:
        return self.api.objects("NodePool")

    @property
    def node_classes(self) -> Mapping[str, NodeClass]:
        return self.api.objects(self._node_class.kind)

    @property
    def disruption_budgets(self) -> Mapping[str, PodDisruptionBudget]:
        """With the status that kube-controller-manager would have written by now."""
        stored = self.api.objects("PodDisruptionBudget")
        return MappingProxyType({key: self._observed(budget) for key, budget in stored.items()})

    @property
    def leases(self) -> Mapping[str, LeaseObject]:
        return self.api.objects("Lease")

    # --- the Protocol ---------------------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        whole = self.spreads.filled(self._snapshot_of_v1())
        snapshot = replace(believable(self.legacy.adopted(whole)), known=self._known)
        self._known.pods = snapshot.pods
        return snapshot

    def _snapshot_of_v1(self) -> Snapshot:
        return Snapshot(
            now=self.clock.now(),
            nodes=self._all("Node"),
            pods=self._all("Pod"),
            node_claims=self._all("NodeClaim"),
            node_pools=self._all("NodePool"),
            node_overlays=self._all("NodeOverlay"),
            capacity_buffers=self._all("CapacityBuffer"),
            provisioning_requests=self._all("ProvisioningRequest"),
            node_classes=self._all(self._node_class.kind),
            node_class_kind=self._node_class.identity(),
            daemon_sets=self._all("DaemonSet"),
            namespaces=self._all("Namespace"),
            priority_classes=self._all("PriorityClass"),
            volume_claims=self._all("PersistentVolumeClaim"),
            volumes=self._all("PersistentVolume"),
            storage_classes=self._all("StorageClass"),
            csi_nodes=self._all("CSINode"),
            csi_drivers=self._all("CSIDriver"),
            storage_capacities=self._all("CSIStorageCapacity"),
            volume_attachments=self._all("VolumeAttachment"),
            disruption_budgets=tuple(budget for _, budget in sorted(self.disruption_budgets.items())),
            replica_sets=tuple(msgspec.convert(to_document(one), Workload) for one in self._all("ReplicaSet")),
            services=self._all("Service"),
            vertical_autoscalers=self._all("VerticalPodAutoscaler"),
            scheduling_groups=self._all("PodGroup"),
            unserved=_UNSERVED,
            resource_claims=self._all("ResourceClaim"),
            resource_claim_templates=self._all("ResourceClaimTemplate"),
            device_classes=self._all("DeviceClass"),
            resource_slices=self._all("ResourceSlice"),
            invalid=tuple(invalid(kind, name, raw) for (kind, name), raw in sorted(self._unparsed.items())),
        )

    def claims_snapshot(self) -> ClaimsSnapshot:
        whole = self.snapshot()
        return ClaimsSnapshot(
            now=whole.now,
            node_claims=whole.node_claims,
            node_classes=whole.node_classes,
            invalid=tuple(
                problem for problem in whole.invalid if problem.kind in (NodeClaim.kind, self._node_class.kind)
            ),
            node_class_kind=whole.node_class_kind,
        )

    def node(self, name: str) -> Node:
        found: Node = self.api.get("Node", name)
        return found

    def buffer_sources(self, buffers: Sequence[CapacityBuffer]) -> BufferSources:
        shapes = self.spreads.of_shapes({one.key: self._shape(one) for one in buffers}, lambda: self._all("Service"))
        return BufferSources(shapes=shapes, quotas=self._all("ResourceQuota"))

    def _shape(self, buffer: CapacityBuffer) -> Shape:
        template, scalable = buffer.spec.pod_template_ref, buffer.spec.scalable_ref
        try:
            if template is not None:
                return shape_of_template(self.api.get("PodTemplate", f"{buffer.namespace}/{template.name}"))
            if scalable is None:
                return Shape()
            if (scalable.api_group or "apps") != "apps" or scalable.kind not in _SCALABLE:
                return Shape(missing=f"unsupported kind {scalable.kind!r}", is_unread=True)
            owner = self.api.get(scalable.kind, f"{buffer.namespace}/{scalable.name}")
        except NotFoundError as error:
            return Shape(missing=str(error))
        return shape_of_workload(msgspec.convert(to_document(owner), Workload))

    def replica_set(self, namespace: str, name: str) -> ReplicaSet:
        return msgspec.convert(to_document(self.api.get("ReplicaSet", f"{namespace}/{name}")), ReplicaSet)

    def deployment(self, namespace: str, name: str) -> Deployment:
        return msgspec.convert(to_document(self.api.get("Deployment", f"{namespace}/{name}")), Deployment)

    def restart(self, before: Deployment, after: Deployment) -> None:
        stored = self.api.get("Deployment", f"{before.metadata.namespace}/{before.metadata.name}")
        annotations = after.spec.template.metadata.annotations
        template = with_metadata(stored.spec.template, annotations=annotations)
        changed = with_fields(stored, spec=with_fields(stored.spec, template=template))
        self.api.update(changed, version=before.metadata.resource_version)

    def node_claim(self, name: str) -> NodeClaim:
        claim: NodeClaim = self.api.get("NodeClaim", name)
        return claim

    def node_pool(self, name: str) -> NodePool:
        if (document := self._unparsed.get((NodePool.kind, name))) is not None:
            raise ConfigurationError(f"NodePool {name}: {invalid(NodePool.kind, name, document).reason}")
        found: NodePool | None = self.snapshot().pools_by_name.get(name)
        if found is None:
            raise NotFoundError(f"NodePool {name} not found")
        return found

    def create_node_claim(self, claim: NodeClaim, *, dry_run: bool = False) -> NodeClaim:
        wanted = with_fields(validated(claim), status=type(claim.status)())
        if problem := metadata_problem(claim):
            raise ConfigurationError(f"NodeClaim {claim.metadata.name}: {problem}")
        return wanted if dry_run else self.api.create(wanted)

    def update_node_claim(self, before: NodeClaim, after: NodeClaim) -> NodeClaim:
        return self._write(before, after, "labels", "annotations", "finalizers")

    def delete_node_claim(self, claim: NodeClaim) -> None:
        if claim.origin:
            self.legacy.delete(claim.origin.kind, claim.origin.name)
        else:
            self.api.delete(claim)

    def update_node(self, before: Node, after: Node) -> Node:
        current = self.api.current(before)
        if not may_still_be_sent(before, after, current):
            raise ConflictError(f"Node {before.metadata.name} was modified since it was read")
        spec = taken(current.spec, before.spec, after.spec, "taints", "unschedulable")
        meta = taken(
            current.metadata, before.metadata, after.metadata, "labels", "annotations", "finalizers", "owner_references"
        )
        return self.api.update(with_fields(current, metadata=meta, spec=spec))

    def delete_node(self, node: Node) -> None:
        self.api.delete(node)

    def update_node_pool(self, before: NodePool, after: NodePool) -> NodePool:
        return self._write(before, after, "annotations")

    def update_node_overlay(self, before: NodeOverlay, after: NodeOverlay) -> NodeOverlay:
        return self._write(before, after)

    def pod_templates(self, names: Sequence[str]) -> Mapping[str, Shape]:
        stored = self.api.objects("PodTemplate")
        shapes = {
            name: Shape(template=stored[name].template) if name in stored else Shape(missing=f"podtemplates {name!r}")
            for name in names
        }
        return self.spreads.of_shapes(shapes, lambda: self._all("Service"))

    def update_provisioning_request(
        self, before: ProvisioningRequest, after: ProvisioningRequest
    ) -> ProvisioningRequest:
        return self._write(before, after)

    def update_capacity_buffer(self, before: CapacityBuffer, after: CapacityBuffer) -> CapacityBuffer:
        return self._write(before, after)

    def update_node_class(self, before: NodeClass, after: NodeClass) -> NodeClass:
        return self._write(before, after, "annotations", "finalizers")

    def reject(self, kind: str, name: str, reason: str) -> None:
        def judged(before: list[Any], generation: int) -> list[Any]:
            conditions = rejected(before, kind, reason, Observation(now=self.clock.now(), generation=generation))
            return [condition.model_dump(mode="json", by_alias=True) for condition in conditions]

        raw = self._unparsed.get((kind, name))
        if raw is not None:
            conditions = judged(raw.get("status", {}).get("conditions", []), raw["metadata"].get("generation", 0))
            raw["status"] = {**raw.get("status", {}), "conditions": conditions}
            return
        if name not in self.api.objects(kind):
            self.legacy.reject(kind, name, judged)
            return
        stored = self.api.get(kind, name)
        at = Observation(now=self.clock.now(), generation=stored.metadata.generation)
        conditions = rejected(stored.status.conditions, kind, reason, at)
        if conditions != stored.status.conditions:
            self.api.update(with_fields(stored, status=with_fields(stored.status, conditions=conditions)))

    def update_pod(self, before: Pod, after: Pod) -> None:
        current = self._pod(before)
        if not may_still_be_sent(before, after, current):
            raise ConflictError(f"pod {before.key} was modified since it was read")
        metadata = taken(current.metadata, before.metadata, after.metadata, "annotations")
        # Affinity may change while the pod waits at a gate, and gates may only go.
        fields = ("affinity", "scheduling_gates") if current.spec.scheduling_gates else ()
        spec = taken(current.spec, before.spec, after.spec, *fields)
        self.api.update(with_fields(current, metadata=metadata, spec=spec))

    def tolerate(self, pod: Pod, toleration: Toleration) -> None:
        stored = self._pod(pod)
        tolerations = [*stored.spec.tolerations, toleration]
        self.api.update(with_fields(stored, spec=with_fields(stored.spec, tolerations=tolerations)))

    def evict(self, pod: Pod) -> Eviction:
        try:
            stored = self._pod(pod)
        except NotFoundError:
            return Eviction.GONE
        asked = self._asked(stored)
        # A pod about which several are asked is never evicted.
        if len(asked) > 1 or not all(map(budgets.is_spare, asked)):
            return Eviction.BLOCKED
        for budget in asked:
            self._use_up(budget)
        self.delete(stored)
        return Eviction.EVICTED

    def delete_pod(self, pod: Pod, *, grace_seconds: int) -> None:
        stored = self._pod(pod)
        self.api.delete(stored, grace_seconds=max(1, grace_seconds) if _is_running(stored) else 0)

    def acquire_lease(self, name: str, *, holder: str, seconds: int) -> Lease:
        now, stored = self.clock.now(), self.leases.get(f"kube-system/{name}")
        spec = LeaseSpec(holder_identity=holder, lease_duration_seconds=seconds, acquire_time=now, renew_time=now)
        if stored is None:
            raise ConfigurationError(f"Lease kube-system/{name} does not exist")
        if _is_held(stored.spec, now, seconds) and stored.spec.holder_identity != holder:
            raise ConflictError(f"Lease {name} is held by {stored.spec.holder_identity}")
        taken = self.api.update(with_fields(stored, spec=spec), version=stored.metadata.resource_version)
        return Lease(name=name, holder=holder, resource_version=taken.metadata.resource_version)

    def release_lease(self, lease: Lease) -> None:
        stored = self.leases.get(f"kube-system/{lease.name}")
        if stored is not None and stored.metadata.resource_version == lease.resource_version:
            self.api.update(with_fields(stored, spec=with_fields(stored.spec, holder_identity=None, renew_time=None)))

    # --- inside ---------------------------------------------------------------------------------------------------

    def _all(self, kind: str) -> tuple[Any, ...]:
        stored = self.api.objects(kind)
        return tuple(stored[key] for key in sorted(stored))

    def _at_version(self, before: T) -> T:
        """The stored object, if it is still the one that was read."""
        current = self.api.current(before)
        version = before.metadata.resource_version  # type: ignore[attr-defined]
        if version and version != current.metadata.resource_version:  # type: ignore[attr-defined]
            raise ConflictError(f"{kind_of(before)} {key_of(before)} was modified since it was read")
        return current

    def _write(self, before: R, after: R, *fields: str) -> R:
        if before.origin:
            return self.legacy.update(before.origin, before, after)
        current = self._at_version(before)
        meta = taken(current.metadata, before.metadata, after.metadata, *fields)
        return self.api.update(with_fields(current, metadata=meta, status=after.status))  # type: ignore[attr-defined]

    def _pod(self, pod: Pod) -> Pod:
        """The stored pod. Raises ``NotFoundError`` if it is gone, or another pod has its name."""
        try:
            return self.api.current(pod)
        except ConflictError as error:
            raise NotFoundError(str(error)) from error

    def _asked(self, pod: Pod) -> list[PodDisruptionBudget]:
        """The budgets that the eviction API asks about the pod (policy/v1)."""
        if pod.status.phase in (*budgets.FINISHED, "Pending") or pod.metadata.deletion_timestamp is not None:
            return []
        covering = [budget for budget in self.disruption_budgets.values() if budgets.covers(budget, pod)]
        is_let_go = len(covering) == 1 and not budgets.is_ready(pod) and budgets.lets_unready_go(covering[0])
        return [] if is_let_go else covering

    def _use_up(self, budget: PodDisruptionBudget) -> None:
        """One disruption less on a budget whose status was stated instead of computed."""
        if budget.spec.min_available is None and budget.spec.max_unavailable is None:
            left = (budget.status.disruptions_allowed or 0) - 1
            self.api.update(with_fields(budget, status=with_fields(budget.status, disruptions_allowed=left)))

    def _observed(self, budget: PodDisruptionBudget) -> PodDisruptionBudget:
        covered = [pod for pod in self.pods.values() if budgets.covers(budget, pod)]
        # The scale of a Deployment counts once, however many ReplicaSets it has in a rollout.
        parents = {
            item.metadata.uid: owner.uid
            for item in self.api.objects("ReplicaSet").values()
            for owner in item.metadata.owner_references
        }
        uids = {owner.uid for pod in covered for owner in pod.metadata.owner_references}
        owners = {parents.get(uid, uid) for uid in uids}
        replicas = [self._replicas[uid] for uid in owners if uid in self._replicas]
        return budgets.observed(budget, covered, sum(replicas) if replicas else None)


def _is_running(pod: Pod) -> bool:
    return bool(pod.spec.node_name) and pod.status.phase not in budgets.FINISHED


def _grace(pod: Pod) -> int:
    seconds = pod.spec.termination_grace_period_seconds
    return GRACE if seconds is None else seconds


def _namespace(name: str) -> Namespace:
    return Namespace(metadata=ObjectMeta(name=name, labels={"kubernetes.io/metadata.name": name}))


def _lease(name: str) -> LeaseObject:
    return LeaseObject(metadata=ObjectMeta(name=name, namespace="kube-system"))


def _is_held(spec: LeaseSpec, now: datetime, most: int) -> bool:
    if not spec.holder_identity or spec.renew_time is None:
        return False
    age = (now - spec.renew_time).total_seconds()
    return -most <= age < min(spec.lease_duration_seconds or 0, most)
