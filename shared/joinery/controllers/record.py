"""A decision as a document: what was seen, under which policies, and what came of it.

The document is a Kubernetes ``List`` of every object of the snapshot, which is what ``joinery plan -f`` reads, so that a
recorded decision can be made again on anybody's desk. What is not an object (the moment, the policies, the offerings that
EC2 was out of, what was left of capacity reservations, the result) is beside it under ``joinery``.
"""

from collections.abc import Iterable
from typing import Any

import msgspec
from pydantic import BaseModel

from joinery.scheduling.packing import Packing
from joinery.scheduling.problem import Problem
from joinery.state.offerings import OfferingKey
from joinery.state.snapshot import Snapshot

#: Field of the snapshot to the API version and kind of the Kubernetes objects in it.
_KINDS = {
    "pods": ("v1", "Pod"),
    "nodes": ("v1", "Node"),
    "daemon_sets": ("apps/v1", "DaemonSet"),
    "namespaces": ("v1", "Namespace"),
    "priority_classes": ("scheduling.k8s.io/v1", "PriorityClass"),
    "volume_claims": ("v1", "PersistentVolumeClaim"),
    "volumes": ("v1", "PersistentVolume"),
    "storage_classes": ("storage.k8s.io/v1", "StorageClass"),
    "csi_nodes": ("storage.k8s.io/v1", "CSINode"),
    "volume_attachments": ("storage.k8s.io/v1", "VolumeAttachment"),
    "disruption_budgets": ("policy/v1", "PodDisruptionBudget"),
}


def decision(problem: Problem, packing: Packing, unavailable: Iterable[OfferingKey]) -> dict[str, Any]:
    """The document of one decision."""
    return {
        "apiVersion": "v1",
        "kind": "List",
        "items": list(_items(problem.snapshot)),
        "joinery": {
            "now": problem.snapshot.now.isoformat(),
            "options": _plain(problem.options),
            "unavailable": _plain(sorted(unavailable)),
            "reservations": dict(sorted(_reservations(problem))),
            "result": _plain(packing),
        },
    }


def _reservations(problem: Problem) -> Iterable[tuple[str, int]]:
    """By id, how much was left."""
    for kind in (kind for types in problem.instance_types.values() for kind in types):
        for offering in kind.offerings:
            if offering.reservation:
                yield offering.reservation.id, offering.reservation.remaining


def _items(snapshot: Snapshot) -> Iterable[dict[str, Any]]:
    for resource in (*snapshot.node_pools, *snapshot.node_classes, *snapshot.node_claims):
        yield resource.to_wire()
    for field, (api_version, kind) in _KINDS.items():
        for item in getattr(snapshot, field):
            yield {"apiVersion": api_version, "kind": kind, **_plain(item)}


def _plain(value: Any) -> Any:
    """As JSON values, with the API's own field names."""
    return msgspec.to_builtins(value, enc_hook=_model)


def _model(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True)
    raise NotImplementedError(f"{type(value).__name__} has no place in a record")
