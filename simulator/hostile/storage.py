"""Volumes, rooms for them, and claims that choose among them. A tenant makes the claims and the pods alone."""

from collections.abc import Callable, Iterator
from typing import Any

from simulator.hostile.pods import HOST, TENANT, ZONE, Document, pod

_NOBODY, _ROOMY = "kubernetes.io/no-provisioner", "room.csi.example.com"
_SEGMENT = "topology.example.com/segment"
_ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
#: For how many volumes there is one pod, where volumes are many.
_VOLUMES_PER_POD = 10
_CLAIMS_PER_POD = 20


def _gibibytes(number: int) -> str:
    return f"{number}Gi"


def _class(provisioner: str, binding: str = "WaitForFirstConsumer") -> Document:
    meta = {"name": "disks"}
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": meta}
    return {**kind, "provisioner": provisioner, "volumeBindingMode": binding}


def _volume(number: int, key: str, value: str, gibibytes: int = 10) -> Document:
    expression = {"key": key, "operator": "In", "values": [value]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"disk-{number:05}", "labels": {"number": f"n{number}"}},
        "spec": {
            "storageClassName": "disks",
            "capacity": {"storage": _gibibytes(gibibytes)},
            "accessModes": ["ReadWriteOnce"],
            "local": {"path": "/disk"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
        },
        "status": {"phase": "Available"},
    }


def _claim(number: int, gibibytes: int = 10, **spec: Any) -> Document:
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": _gibibytes(gibibytes)}}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": f"claim-{number:05}", "namespace": TENANT, "uid": f"uid-{number:05}"},
        "spec": {"storageClassName": "disks", **asked, **spec},
        "status": {"phase": "Pending"},
    }


def _using(number: int, *claims: int) -> Document:
    names = [f"claim-{claim:05}" for claim in claims or (number,)]
    return pod(
        f"hostile-{number:05}", volumes=[{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
    )


def _with_volumes(size: int, volume: Callable[[int], Document], claim: Callable[[int], Document]) -> Iterator[Document]:
    """So many free volumes, and a pod with a claim for each ten of them."""
    yield _class(_NOBODY)
    yield from map(volume, range(size))
    for number in range(max(1, size // _VOLUMES_PER_POD)):
        yield claim(number)
        yield _using(number)


def volumes_of_hosts(size: int) -> Iterator[Document]:
    """They are on hosts that are not there: no pod can be placed."""
    return _with_volumes(size, lambda number: _volume(number, HOST, f"host-{number:05}"), _claim)


def volumes_of_zones(size: int) -> Iterator[Document]:
    """They can be placed. Volumes and claims are of many sizes."""
    return _with_volumes(
        size,
        lambda number: _volume(number, ZONE, _ZONES[number % 3], 1 + number),
        lambda number: _claim(number, 1 + number * 7 % size),
    )


def volumes_of_segments(size: int) -> Iterator[Document]:
    """Each volume is in a place of its own, which no node is in: no pod can be placed."""
    return _with_volumes(size, lambda number: _volume(number, _SEGMENT, f"s-{number:05}"), _claim)


def volumes_for_one(size: int) -> Iterator[Document]:
    """One pod with 20 claims of other sizes each; it can be placed."""
    yield _class(_NOBODY)
    for number in range(size):
        yield _volume(number, ZONE, _ZONES[number % 3], 1 + number)
    for number in range(_CLAIMS_PER_POD):
        yield _claim(number, 1 + number)
    yield _using(0, *range(_CLAIMS_PER_POD))


def selected_volumes(size: int) -> Iterator[Document]:
    """Each claim selects all volumes but one of its own, so no two choose from the same."""

    def claim(number: int) -> Document:
        expression = {"key": "number", "operator": "NotIn", "values": [f"n{number}"]}
        return _claim(number, selector={"matchExpressions": [expression]})

    return _with_volumes(size, lambda number: _volume(number, ZONE, _ZONES[number % 3]), claim)


def immediate_claims(size: int) -> Iterator[Document]:
    """As many volumes as claims, which bind them before there is a pod: they can be placed."""
    yield _class(_NOBODY, "Immediate")
    for number in range(size):
        yield _volume(number, ZONE, _ZONES[number % 3], 1 + number * 7 % size)
        yield _claim(number, 1 + number * 11 % size)
    for number in range(max(1, size // _VOLUMES_PER_POD)):
        yield _using(number)


def rooms(size: int) -> Iterator[Document]:
    """A driver with room in a segment for each node that is not there: no pod can be placed."""
    return _with_rooms(size, lambda number: {_SEGMENT: f"s-{number:05}"})


def rooms_of_two_labels(size: int) -> Iterator[Document]:
    """As ``rooms``; each says its zone, too."""
    return _with_rooms(size, lambda number: {_SEGMENT: f"s-{number:05}", ZONE: _ZONES[number % 3]})


def _with_rooms(size: int, labels: Callable[[int], Document]) -> Iterator[Document]:
    """Each segment has another amount of room, and each claim another size."""
    yield _class(_ROOMY)
    driver = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": _ROOMY}}
    yield {**driver, "spec": {"storageCapacity": True}}
    for number in range(size):
        yield {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSIStorageCapacity",
            "metadata": {"name": f"room-{number:05}", "namespace": "kube-system"},
            "storageClassName": "disks",
            "nodeTopology": {"matchLabels": labels(number)},
            "capacity": _gibibytes(10 + number),
        }
    for number in range(max(1, size // _VOLUMES_PER_POD)):
        yield _claim(number, 10 + number * 7 % size)
        yield _using(number)


def ephemeral_and_free(size: int) -> Iterator[Document]:
    """One pod with so many ephemeral volumes, for each of which a free one would do."""
    yield _class(_NOBODY)
    for number in range(size):
        yield _volume(number, ZONE, _ZONES[number % 3], 1 + number)
    spec = {"storageClassName": "disks", "accessModes": ["ReadWriteOnce"]}
    asked = ({**spec, "resources": {"requests": {"storage": _gibibytes(1 + number)}}} for number in range(size))
    templates = ({"volumeClaimTemplate": {"spec": one}} for one in asked)
    yield pod("hostile", volumes=[{"name": f"v-{n:05}", "ephemeral": one} for n, one in enumerate(templates)])
