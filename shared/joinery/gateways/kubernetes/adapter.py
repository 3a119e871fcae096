"""The Kubernetes API behind the ``Cluster`` Protocol: every method is one or two requests, and no decision.

Writes are JSON merge patches guarded by the resource version that was read. Status lives in a subresource of its own,
so an object whose metadata and status both changed takes two requests.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

import msgspec
from pydantic import ValidationError

from joinery.gateways.kubernetes import leases, lists
from joinery.gateways.kubernetes.api_errors import refusal
from joinery.gateways.kubernetes.buffers import buffer_sources, pod_templates
from joinery.gateways.kubernetes.gateway import Eviction, Lease
from joinery.gateways.kubernetes.legacy import LegacyApis, path_of
from joinery.gateways.kubernetes.lists import (
    CAPACITY_BUFFERS,
    NODE_CLAIMS,
    NODE_OVERLAYS,
    NODE_POOLS,
    PROVISIONING_REQUESTS,
)
from joinery.gateways.kubernetes.mirrors import SHORT, CoreKind, VersionedKind
from joinery.gateways.kubernetes.patches import Document, changes, document, guarded, may_still_be_sent
from joinery.gateways.kubernetes.reads import Reads
from joinery.gateways.kubernetes.transport import JSON_PATCH, MERGE_PATCH, Transport
from joinery.objects.annotations.marks import MOST_AHEAD, believable, believable_claim
from joinery.objects.autoscaling.capacitybuffer import CapacityBuffer
from joinery.objects.autoscaling.provisioningrequest import ProvisioningRequest
from joinery.objects.default_spread import DefaultSpreads
from joinery.objects.errors import ConfigurationError, ConflictError, NotFoundError
from joinery.objects.karpenter.conditions import Observation, rejected
from joinery.objects.karpenter.meta import CustomResource
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodeclass import NodeClass
from joinery.objects.karpenter.nodeoverlay import NodeOverlay
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.karpenter.stored import part
from joinery.objects.karpenter.validation import explain
from joinery.objects.kubernetes.core import Node, Pod, Service, Toleration
from joinery.objects.kubernetes.decoding import decode, decode_model
from joinery.objects.kubernetes.podgroups import PodGroup
from joinery.objects.kubernetes.rollouts import Deployment, ReplicaSet
from joinery.objects.kubernetes.shapes import BufferSources, Shape
from joinery.objects.snapshot import vertical_autoscalers
from joinery.objects.snapshot.claims import INITIALIZED, drivers_wanted
from joinery.objects.snapshot.default_spreads import SpreadFiller
from joinery.objects.snapshot.extended_resources import asks_for_extended, read_as_claims
from joinery.objects.snapshot.gangs import fields_named
from joinery.objects.snapshot.known import Known
from joinery.objects.snapshot.pod_groups import claims_devices
from joinery.objects.snapshot.snapshot import ClaimsSnapshot, Snapshot
from joinery.objects.snapshot.successors import fields_wanted

M = TypeVar("M", bound=CustomResource)
Shared = TypeVar("Shared", Node, Pod)
S = TypeVar("S", bound=ClaimsSnapshot)
#: How often a write to a Node is sent again after a conflict that does not concern it.
CONFLICTS = 3
_OTHERS = (lists.SERVICES, lists.VERTICAL_AUTOSCALERS)
_MANY_BUDGETS = "more than one PodDisruptionBudget"


class KubernetesCluster:
    """Implements ``joinery.gateways.kubernetes.gateway.Cluster``. ``now`` gives the moment of a snapshot and of a
    Lease, in UTC.

    ``node_class``: the model of our cloud's node classes. ``legacy``: the older APIs, where their objects count too.
    ``default_spreads``: what schedulers give to pods that ask for no topology spread. ``short`` and ``log``: of
    ``joinery.gateways.kubernetes.mirrors``.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        now: Callable[[], datetime],
        node_class: type[NodeClass],
        legacy: LegacyApis | None = None,
        default_spreads: DefaultSpreads = (),
        short: int = SHORT,
        log: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.transport = transport
        self._spreads = SpreadFiller(default_spreads)
        self._now = now
        self._node_class = node_class.identity()
        self._node_classes = lists.node_classes(node_class)
        self._customs: Mapping[str, lists.Custom[Any]] = {
            custom.kind: custom
            for custom in (
                NODE_CLAIMS,
                NODE_POOLS,
                NODE_OVERLAYS,
                CAPACITY_BUFFERS,
                PROVISIONING_REQUESTS,
                self._node_classes,
            )
        }
        self._legacy = legacy
        self._known = Known()
        owners = [CoreKind(field, path, struct, lists.with_pods) for field, path, struct in lists.OWNERS]
        owners += [CoreKind(field, path, struct) for field, path, struct in (*lists.DEVICES, *_OTHERS)]
        groups = [VersionedKind(field, paths, PodGroup) for field, paths in lists.POD_GROUPS]
        others = (*owners, *groups, *(legacy.kinds.values() if legacy else ()))
        self._reads = Reads(
            transport, self._customs.values(), self._node_class.group, others=others, short=short, log=log
        )

    @property
    def bytes_read(self) -> int:
        """What all snapshots took on the wire so far."""
        return self._reads.bytes_read

    def snapshot(self) -> Snapshot:
        snapshot = replace(self._read(Snapshot, self._reads.fields), known=self._known)
        of_spreads = self._spreads.fields_wanted(snapshot.pods)
        snapshot = self._spreads.filled(self._with(snapshot, of_spreads))
        self._known.pods = snapshot.pods
        of_groups = fields_named(snapshot.pod_groups)
        wanted = (
            *fields_wanted(snapshot.pods),
            *of_groups,
            *_of_devices(snapshot),
            *([vertical_autoscalers.FIELD] if vertical_autoscalers.is_wanted(snapshot.pod_groups) else ()),
        )
        snapshot = self._with(snapshot, [field for field in wanted if field not in of_spreads])
        if of_groups:
            snapshot = replace(snapshot, unserved=self._reads.unserved(of_groups))
        # What serves extended resources is in clusters of GPUs alone, and in few of them.
        if not snapshot.device_classes and any(group.derived(asks_for_extended) for group in snapshot.pod_groups):
            snapshot = self._with(snapshot, ["device_classes"])
            others = [field for field, _, _ in lists.DEVICES if field != "device_classes"]
            snapshot = self._with(snapshot, others if read_as_claims(snapshot) is not snapshot else [])
        return read_as_claims(snapshot)

    def _with(self, snapshot: Snapshot, fields: Sequence[str]) -> Snapshot:
        """The snapshot with these kinds too, as they are now."""
        if not fields:
            return snapshot
        read = self._reads.read(fields)
        return replace(snapshot, **{**read, "invalid": (*snapshot.invalid, *read["invalid"])})

    def claims_snapshot(self) -> ClaimsSnapshot:
        return self._read(ClaimsSnapshot, (NODE_CLAIMS.field, self._node_classes.field))

    def _read(self, kind: type[S], fields: Iterable[str]) -> S:
        now, legacy = self._now(), self._legacy
        if legacy is None:
            return believable(kind(now=now, node_class_kind=self._node_class, **self._reads.read(fields)))
        served = legacy.served()
        left_out = () if served.serves_v1 else [custom.field for custom in self._customs.values()]
        read = self._reads.read([*(field for field in fields if field not in left_out), *served.fields])
        listed = {field: read.pop(field) for field in served.fields}
        return believable(legacy.adopted(kind(now=now, node_class_kind=self._node_class, **read), listed))

    def buffer_sources(self, buffers: Sequence[CapacityBuffer]) -> BufferSources:
        sources = buffer_sources(self.transport, buffers)
        return replace(sources, shapes=self._spreads.of_shapes(sources.shapes, self._services))

    def pod_templates(self, names: Sequence[str]) -> Mapping[str, Shape]:
        return self._spreads.of_shapes(pod_templates(self.transport, names), self._services)

    def _services(self) -> Sequence[Service]:
        services: Sequence[Service] = self._reads.read(["services"])["services"]
        return services

    def node(self, name: str) -> Node:
        return decode(self.transport.get(f"/api/v1/nodes/{name}"), Node)

    def replica_set(self, namespace: str, name: str) -> ReplicaSet:
        return decode(self.transport.get(_apps_path(namespace, "replicasets", name)), ReplicaSet)

    def deployment(self, namespace: str, name: str) -> Deployment:
        return decode(self.transport.get(_apps_path(namespace, "deployments", name)), Deployment)

    def restart(self, before: Deployment, after: Deployment) -> None:
        path = _apps_path(before.metadata.namespace, "deployments", before.metadata.name)
        self._send(path, changes(before, after)[0], before.metadata.resource_version)

    def node_claim(self, name: str) -> NodeClaim:
        read = lists.as_stored(self.transport.get(f"{NODE_CLAIMS.path}/{name}"), NODE_CLAIMS, self._node_class.group)
        if not isinstance(read, NodeClaim):
            raise ConfigurationError(f"NodeClaim {name}: {read.reason if read else 'it is of another provider'}")
        return believable_claim(read, self._now() + MOST_AHEAD)

    def node_pool(self, name: str) -> NodePool:
        try:
            raw = self.transport.get(f"{NODE_POOLS.path}/{name}")
        except NotFoundError:
            if self._legacy is None:
                raise
            return self._legacy.node_pool(name)
        try:
            return decode_model(raw, NodePool)
        except ValidationError as error:
            raise ConfigurationError(f"NodePool {name}: {explain(error)}") from error

    def create_node_claim(self, claim: NodeClaim, *, dry_run: bool = False) -> NodeClaim:
        body = {"apiVersion": NODE_CLAIMS.api_version, "kind": NODE_CLAIMS.kind, **_creation(claim)}
        if self._legacy is not None and self._legacy.served().is_beta:
            return self._legacy.create(claim, body, dry_run=dry_run)
        path = f"{NODE_CLAIMS.path}?dryRun=All" if dry_run else NODE_CLAIMS.path
        return decode_model(self.transport.request("POST", path, body), NodeClaim)

    def update_node_claim(self, before: NodeClaim, after: NodeClaim) -> NodeClaim:
        return self._update_custom(NODE_CLAIMS, before, after)

    def delete_node_claim(self, claim: NodeClaim) -> None:
        path = path_of(claim.origin) if claim.origin else f"{NODE_CLAIMS.path}/{claim.metadata.name}"
        self._delete(path, claim.metadata.uid)

    def update_node(self, before: Node, after: Node) -> Node:
        body = self._update_shared(f"/api/v1/nodes/{before.metadata.name}", before, after)
        return decode(body, Node) if body else after

    def delete_node(self, node: Node) -> None:
        self._delete(f"/api/v1/nodes/{node.metadata.name}", node.metadata.uid)

    def update_node_pool(self, before: NodePool, after: NodePool) -> NodePool:
        return self._update_custom(NODE_POOLS, before, after)

    def update_node_overlay(self, before: NodeOverlay, after: NodeOverlay) -> NodeOverlay:
        return self._update_custom(NODE_OVERLAYS, before, after)

    def update_capacity_buffer(self, before: CapacityBuffer, after: CapacityBuffer) -> CapacityBuffer:
        return self._update_custom(CAPACITY_BUFFERS, before, after)

    def update_provisioning_request(
        self, before: ProvisioningRequest, after: ProvisioningRequest
    ) -> ProvisioningRequest:
        return self._update_custom(PROVISIONING_REQUESTS, before, after)

    def update_node_class(self, before: NodeClass, after: NodeClass) -> NodeClass:
        return self._update_custom(self._node_classes, before, after)

    def reject(self, kind: str, name: str, reason: str) -> None:
        def judged(before: list[Any], generation: int) -> list[Any]:
            conditions = rejected(before, kind, reason, Observation(now=self._now(), generation=generation))
            return [condition.model_dump(mode="json", by_alias=True) for condition in conditions]

        path = f"{self._customs[kind].path}/{name}"
        try:
            stored: Document = msgspec.json.decode(self.transport.get(path))
        except NotFoundError:
            if self._legacy is None:
                raise
            self._legacy.reject(kind, name, judged)
            return
        before = part(stored, "status").get("conditions") or []
        after = judged(before, stored["metadata"].get("generation", 0))
        if after != before:
            self._send(f"{path}/status", {"status": {"conditions": after}}, stored["metadata"]["resourceVersion"])

    def tolerate(self, pod: Pod, toleration: Toleration) -> None:
        # Appended to the list as it is now: the one that was read may be out of date, and the API server lets none be
        # removed.
        added = msgspec.to_builtins(toleration)
        path, value = ("/spec/tolerations/-", added) if pod.spec.tolerations else ("/spec/tolerations", [added])
        patch = [
            # Refused if another pod has the name now: a UID cannot be changed.
            {"op": "replace", "path": "/metadata/uid", "value": pod.metadata.uid},
            {"op": "add", "path": path, "value": value},
        ]
        with _no_longer_there(pod, "metadata.uid"):
            self.transport.request("PATCH", _path(pod), patch, content_type=JSON_PATCH)

    def update_pod(self, before: Pod, after: Pod) -> None:
        self._update_shared(_path(before), before, after)

    def evict(self, pod: Pod) -> Eviction:
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.metadata.name, "namespace": pod.metadata.namespace or "default"},
            "deleteOptions": _of_uid(pod.metadata.uid),
        }
        # One attempt: "not now" is an answer here, and the next tick asks again.
        answer = self.transport.ask("POST", f"{_path(pod)}/eviction", body, attempts=1)
        if answer.code < 300 and answer.is_object:
            return Eviction.EVICTED
        if answer.code in (404, 409):
            return Eviction.GONE
        if answer.status.is_budget or (answer.code == 500 and _MANY_BUDGETS in answer.status.message):
            return Eviction.BLOCKED
        raise refusal(f"evict {pod.key}", answer)

    def delete_pod(self, pod: Pod, *, grace_seconds: int) -> None:
        # Zero would remove the object while its containers run on: two of a StatefulSet's pods at once.
        options = {"gracePeriodSeconds": max(1, grace_seconds), **_of_uid(pod.metadata.uid)}
        with _no_longer_there(pod):
            self.transport.request("DELETE", _path(pod), options)

    def acquire_lease(self, name: str, *, holder: str, seconds: int) -> Lease:
        wanted = Lease(name=name, holder=holder, resource_version="")
        return leases.acquire(self.transport, wanted, seconds=seconds, now=self._now())

    def release_lease(self, lease: Lease) -> None:
        leases.release(self.transport, lease)

    def _update_shared(self, path: str, before: Shared, after: Shared) -> bytes:
        """The object after a write, which is sent again while others write other parts of it; nothing if none was
        needed.
        """
        patch, status = changes(before, after)
        current = before
        for _ in range(CONFLICTS):
            try:
                return self._patch(path, patch, status, current.metadata.resource_version)
            except ConflictError:
                current = decode(self.transport.get(path), type(before))
                if not may_still_be_sent(before, after, current):
                    raise
        return self._patch(path, patch, status, current.metadata.resource_version)

    def _update_custom(self, custom: lists.Custom[M], before: M, after: M) -> M:
        if self._legacy is not None and before.origin:
            return self._legacy.update(before.origin, before, after)
        patch, status = changes(before, after)
        path = custom.path_of(before.metadata.namespace, before.metadata.name)
        body = self._patch(path, patch, status, before.metadata.resource_version)
        answered = lists.as_stored(body, custom, self._node_class.group) if body else after
        return answered if isinstance(answered, custom.model) else after

    def _patch(self, path: str, patch: Document, status: Document, version: str) -> bytes:
        """The object after both requests, or nothing where neither was needed.

        The status tells how far an object has come, so it is written last: labels that a crash kept from being written
        would be missing for good. Finalizers go after it, because the object may be gone with them.
        """
        parts = [(path, patch), (f"{path}/status", status)]
        if "finalizers" in patch.get("metadata", {}):
            parts.reverse()
        body = b""
        for path_of_part, change in parts:
            if change:
                body = self._send(path_of_part, change, version)
                version = msgspec.json.decode(body)["metadata"]["resourceVersion"]
        return body

    def _send(self, path: str, patch: Document, version: str) -> bytes:
        return self.transport.request("PATCH", path, guarded(patch, version), content_type=MERGE_PATCH)

    def _delete(self, path: str, uid: str) -> None:
        self.transport.request("DELETE", path, _of_uid(uid))


def _of_devices(snapshot: Snapshot) -> list[str]:
    """What has to be read of devices: nothing where no pod claims some, and no node that is awaited was bought for
    such a pod.
    """
    is_used = any(group.derived(claims_devices) for group in snapshot.pod_groups) or any(
        drivers_wanted(claim) and not claim.is_true(INITIALIZED) for claim in snapshot.node_claims
    )
    return [field for field, _, _ in lists.DEVICES] if is_used else []


def _path(pod: Pod) -> str:
    return f"/api/v1/namespaces/{pod.metadata.namespace or 'default'}/pods/{pod.metadata.name}"


def _apps_path(namespace: str, plural: str, name: str) -> str:
    return f"/apis/apps/v1/namespaces/{namespace or 'default'}/{plural}/{name}"


def _of_uid(uid: str) -> Document:
    return {"preconditions": {"uid": uid}} if uid else {}


@contextlib.contextmanager
def _no_longer_there(pod: Pod, *forbidden: str) -> Iterator[None]:
    """Raise ``NotFoundError`` where the refusal means that the pod is gone and another has its name.

    A precondition on the UID fails as a conflict; in a patch it fails as an attempt to change a ``forbidden`` field.
    """
    try:
        yield
    except (ConflictError, ConfigurationError) as error:
        if isinstance(error, ConfigurationError) and not any(field in str(error) for field in forbidden):
            raise
        raise NotFoundError(f"pod {pod.key} is gone: {error}") from error


def _creation(claim: NodeClaim) -> Document:
    """The claim without what the API server gives it."""
    whole = document(claim)
    metadata = {key: value for key, value in whole["metadata"].items() if value and key != "resourceVersion"}
    return {"metadata": metadata, "spec": whole["spec"]}
