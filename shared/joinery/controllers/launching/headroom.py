"""Buffers and ProvisioningRequests of a snapshot, with what they refer to. Only doors that plan ask for them."""

from joinery.decisions.headroom import requests, resolve
from joinery.decisions.headroom.requests import ResolvedRequest
from joinery.decisions.headroom.resolve import ResolvedBuffer
from joinery.gateways.kubernetes.gateway import Cluster
from joinery.objects.snapshot.snapshot import Snapshot


def with_headroom(cluster: Cluster, snapshot: Snapshot) -> tuple[Snapshot, tuple[ResolvedBuffer, ...]]:
    """The snapshot with the pods that stand for its CapacityBuffers, and these buffers. Where there are none, nothing
    is asked. Raises ``UnavailableError``.
    """
    buffers = [buffer for buffer in snapshot.capacity_buffers if buffer.is_ours]
    if not buffers:
        return snapshot, ()
    resolved = resolve.resolve(snapshot, cluster.buffer_sources(buffers))
    return resolve.with_headroom(snapshot, resolved), resolved


def requested(cluster: Cluster, snapshot: Snapshot) -> tuple[ResolvedRequest, ...]:
    """The open ProvisioningRequests of the snapshot. Where there are none, nothing is asked. Raises
    ``UnavailableError``.
    """
    names = requests.templates_named(snapshot)
    return requests.resolve(snapshot, cluster.pod_templates(names) if names else {})
