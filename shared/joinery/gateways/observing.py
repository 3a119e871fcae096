"""Observe mode: gateways that read as usual and write nothing.

``bootstrap`` wraps the gateways once, where the setting ``mode`` is ``observe``. Controllers do not know about it: they
read, decide and act as always, and their writes end here. Events and decision records are what observe mode is for, so
they are sent and kept.

One thing is not even decided: what becomes of claims that wait for their instances. Nobody writes any in observe mode,
so they are another controller's, beside which Joinery is tried, and an Event about them would mislead its users.

Where a write has an answer, the answer says that nothing was written: a claim without a UID, a launch that was not
asked for.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from joinery.gateways.bundles import Gateways
from joinery.gateways.doorbell.gateway import Bell
from joinery.gateways.ec2.catalog.document import Catalog
from joinery.gateways.ec2.gateway import Cloud, Instance, LaunchRequest, LaunchResult, Likely, nobody_knows
from joinery.gateways.kubernetes.gateway import Cluster, Eviction, Lease
from joinery.gateways.memory.unavailable import UnavailableOfferings
from joinery.objects.autoscaling.capacitybuffer import CapacityBuffer
from joinery.objects.autoscaling.provisioningrequest import ProvisioningRequest
from joinery.objects.commitments import Bought
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodeclass import NodeClass, NodeClassStatus
from joinery.objects.karpenter.nodeoverlay import NodeOverlay
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.kubernetes.core import Node, Pod, Toleration
from joinery.objects.kubernetes.rollouts import Deployment, ReplicaSet
from joinery.objects.kubernetes.shapes import BufferSources, Shape
from joinery.objects.snapshot.instances import InstanceStatus
from joinery.objects.snapshot.learned_memory import LearnedMemory
from joinery.objects.snapshot.offerings import InstanceType, OfferingKey
from joinery.objects.snapshot.snapshot import ClaimsSnapshot, Snapshot


def read_only(gateways: Gateways) -> Gateways:
    """The same gateways without their writes. The recorder and the store are kept: see the module."""
    return ReadOnlyGateways(
        cluster=ReadOnlyCluster(gateways.cluster),
        recorder=gateways.recorder,
        cloud=ReadOnlyCloud(gateways.cloud),
        doorbell=SilentDoorbell(),
        store=gateways.store,
        unavailable=ReadOnlyUnavailableOfferings(gateways.unavailable),
        workers=gateways.workers,
    )


@dataclass(frozen=True)
class ReadOnlyGateways(Gateways):
    """The bundle of an observing process."""

    @property
    def may_launch(self) -> bool:
        """Never."""
        return False


class ReadOnlyCluster:
    """Implements ``Cluster``. Updates return the object as it should be, as if they had succeeded."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def snapshot(self) -> Snapshot:
        return self._cluster.snapshot()

    def claims_snapshot(self) -> ClaimsSnapshot:
        return self._cluster.claims_snapshot()

    def buffer_sources(self, buffers: Sequence[CapacityBuffer]) -> BufferSources:
        return self._cluster.buffer_sources(buffers)

    def node(self, name: str) -> Node:
        return self._cluster.node(name)

    def replica_set(self, namespace: str, name: str) -> ReplicaSet:
        return self._cluster.replica_set(namespace, name)

    def deployment(self, namespace: str, name: str) -> Deployment:
        return self._cluster.deployment(namespace, name)

    def restart(self, before: Deployment, after: Deployment) -> None:
        pass

    def node_claim(self, name: str) -> NodeClaim:
        return self._cluster.node_claim(name)

    def node_pool(self, name: str) -> NodePool:
        return self._cluster.node_pool(name)

    def create_node_claim(self, claim: NodeClaim, *, dry_run: bool = False) -> NodeClaim:
        return claim

    def update_node_claim(self, before: NodeClaim, after: NodeClaim) -> NodeClaim:
        return after

    def delete_node_claim(self, claim: NodeClaim) -> None:
        pass

    def update_node(self, before: Node, after: Node) -> Node:
        return after

    def delete_node(self, node: Node) -> None:
        pass

    def update_node_pool(self, before: NodePool, after: NodePool) -> NodePool:
        return after

    def update_node_overlay(self, before: NodeOverlay, after: NodeOverlay) -> NodeOverlay:
        return after

    def pod_templates(self, names: Sequence[str]) -> Mapping[str, Shape]:
        return self._cluster.pod_templates(names)

    def update_provisioning_request(
        self, before: ProvisioningRequest, after: ProvisioningRequest
    ) -> ProvisioningRequest:
        return after

    def update_capacity_buffer(self, before: CapacityBuffer, after: CapacityBuffer) -> CapacityBuffer:
        return after

    def update_node_class(self, before: NodeClass, after: NodeClass) -> NodeClass:
        return after

    def reject(self, kind: str, name: str, reason: str) -> None:
        pass

    def update_pod(self, before: Pod, after: Pod) -> None:
        pass

    def tolerate(self, pod: Pod, toleration: Toleration) -> None:
        pass

    def evict(self, pod: Pod) -> Eviction:
        return Eviction.NOT_ASKED

    def delete_pod(self, pod: Pod, *, grace_seconds: int) -> None:
        pass

    def acquire_lease(self, name: str, *, holder: str, seconds: int) -> Lease:
        """Always succeeds: who writes nothing needs no lock, and must not keep anybody else from writing."""
        return Lease(name=name, holder=holder, resource_version="")

    def release_lease(self, lease: Lease) -> None:
        pass


class ReadOnlyCloud:
    """Implements ``Cloud``."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def catalog(self, earlier: Catalog | None = None, *, in_full: bool = False) -> Catalog:
        return self._cloud.catalog(earlier, in_full=in_full)

    def bought(self) -> Bought:
        return self._cloud.bought()

    def status_of(self, node_class: NodeClass) -> NodeClassStatus:
        return self._cloud.status_of(node_class)

    def prepare(self, node_class: NodeClass, likely: Likely = nobody_knows) -> NodeClassStatus:
        return self._cloud.status_of(node_class)

    def instance_types(
        self, node_classes: Sequence[NodeClass], catalog: Catalog, now: datetime, memory: LearnedMemory | None = None
    ) -> Mapping[str, tuple[InstanceType, ...]]:
        return self._cloud.instance_types(node_classes, catalog, now, memory)

    def launch(self, request: LaunchRequest) -> LaunchResult:
        return LaunchResult(instances=(), was_asked=False)

    def shifted_zones(self) -> frozenset[str]:
        return self._cloud.shifted_zones()

    def instances(self) -> tuple[Instance, ...]:
        return self._cloud.instances()

    def look_up(self, instance_ids: Sequence[str]) -> tuple[Instance, ...]:
        return self._cloud.look_up(instance_ids)

    def impaired(self) -> tuple[InstanceStatus, ...]:
        return self._cloud.impaired()

    def terminate(self, instance_ids: Sequence[str]) -> None:
        pass

    def reboot(self, instance_id: str) -> None:
        pass

    def tag(self, instance_id: str, tags: Mapping[str, str]) -> None:
        pass

    def remove_unused(
        self, node_classes: Sequence[NodeClass], claims: Sequence[NodeClaim], instances: Sequence[Instance]
    ) -> None:
        pass


class SilentDoorbell:
    """Implements ``Doorbell``: no door needs to look at what did not change."""

    def ring(self, bell: Bell, not_before: datetime | None = None) -> None:
        pass


class ReadOnlyUnavailableOfferings:
    """Implements ``UnavailableOfferings``."""

    def __init__(self, unavailable: UnavailableOfferings) -> None:
        self._unavailable = unavailable

    def at(self, now: datetime) -> frozenset[OfferingKey]:
        return self._unavailable.at(now)

    def mark(self, pools: Iterable[OfferingKey], *, now: datetime, reason: str) -> None:
        pass

    def forget(self, pools: Iterable[OfferingKey]) -> None:
        pass
