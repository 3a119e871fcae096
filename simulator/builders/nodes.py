"""Nodes, as kubelets write them."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from joinery.objects.karpenter import labels as keys
from joinery.objects.kubernetes import core
from simulator.builders.defaults import ZONES, as_structs
from simulator.kubernetes import shapes


def node(
    name: str = "node-1",
    *,
    cpu: str = "4",
    memory: str = "16Gi",
    pods: int = 110,
    zone: str = ZONES[0],
    instance_type: str = "m7a.xlarge",
    capacity_type: str = keys.ON_DEMAND,
    node_pool: str = "default",
    labels: Mapping[str, str] | None = None,
    taints: Iterable[Any] = (),
    ready: bool = True,
    initialized: bool = True,
    provider_id: str | None = None,
    resources: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    finalizers: Sequence[str] | None = None,
    created: datetime | None = None,
    deleted: datetime | None = None,
    unschedulable: bool = False,
) -> core.Node:
    """A node that Joinery launched for ``node_pool``: registered, initialized and Ready.

    ``node_pool=""`` makes a node that belongs to nobody's NodePool. ``cpu``, ``memory``, ``pods`` and ``resources`` are
    what is allocatable; capacity is that and what the kubelet keeps for itself. ``provider_id`` derives from zone and
    name.
    """
    pool_labels = _pool_labels(node_pool, capacity_type, initialized) if node_pool else {}
    room = {"cpu": cpu, "memory": memory, "pods": str(pods), "ephemeral-storage": "17Gi", **(resources or {})}
    machine_labels = {
        keys.HOSTNAME: name,
        keys.ZONE: zone,
        keys.REGION: zone[:-1],
        keys.INSTANCE_TYPE: instance_type,
        keys.ARCH: "amd64",
        keys.OS: "linux",
    }
    default_finalizers = [keys.TERMINATION_FINALIZER] if node_pool else []
    return shapes.read_again(core.Node(
        metadata=core.ObjectMeta(
            name=name, labels=machine_labels | pool_labels | dict(labels or {}), annotations=dict(annotations or {}),
            finalizers=default_finalizers if finalizers is None else list(finalizers),
            creation_timestamp=created, deletion_timestamp=deleted,
        ),
        spec=core.NodeSpec(
            provider_id=f"aws:///{zone}/i-{name}" if provider_id is None else provider_id,
            taints=as_structs(taints, core.Taint), unschedulable=unschedulable,
        ),
        status=core.NodeStatus(
            capacity=shapes.capacity(room), allocatable=shapes.allocatable(room),
            conditions=[core.Condition(type="Ready", status="True" if ready else "False")],
        ),
    ))  # fmt: skip


def _pool_labels(node_pool: str, capacity_type: str, initialized: bool) -> dict[str, str]:
    labels = {
        keys.NODE_POOL: node_pool,
        keys.NODE_CLASS: "default",
        keys.CAPACITY_TYPE: capacity_type,
        keys.REGISTERED: "true",
    }
    return labels | {keys.INITIALIZED: "true"} if initialized else labels
