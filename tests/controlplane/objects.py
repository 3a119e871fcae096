"""The simulator's objects on a real API server: complete enough to be accepted, in a cluster that can be emptied again.

``simulator.builders`` say only what a decision looks at. A real API server also wants images, selectors and capacities,
keeps status in a subresource, and gives out UIDs of its own.
"""

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import yaml

from joinery.gateways.kubernetes.auth import from_kubeconfig
from joinery.gateways.kubernetes.connection import connection
from joinery.gateways.kubernetes.patches import Document
from joinery.gateways.kubernetes.transport import MERGE_PATCH, Transport
from joinery.objects.errors import NotFoundError
from simulator.kubernetes.resources import KINDS, Kind, from_document, kind_of, to_document
from tools.controlplane.plane import ADMIN, ControlPlane, User

MANIFESTS = Path(__file__).parents[2] / "manifests"
#: What a user applies, in that order: no right comes before the fence that leaves of it what is needed.
MANIFEST_FILES = tuple(MANIFESTS / name for name in ("crds", "fences.yaml", "rbac.yaml", "pods.yaml"))
WAIT_SECONDS = 20
#: What a test may leave behind, in the order in which it goes.
_SWEPT = (
    "Deployment", "ReplicaSet", "Pod", "PodGroup", "PodDisruptionBudget", "DaemonSet", "NodeClaim", "NodePool",
    "EC2NodeClass", "Node", "CSINode", "CSIDriver", "CSIStorageCapacity",
    "CapacityBuffer", "PodTemplate", "VolumeAttachment", "PersistentVolumeClaim", "PersistentVolume", "StorageClass",
    "ResourceClaim", "ResourceClaimTemplate", "DeviceClass", "ResourceSlice",
)  # fmt: skip
_LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/joinery-decisions"
_SERVERS_OWN = ("uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "generation", "ownerReferences")


def connect(plane: ControlPlane, user: User = ADMIN) -> Transport:
    """Requests to the control plane as that user."""
    return Transport(from_kubeconfig(plane.kubeconfig(user)))


def connect_as(plane: ControlPlane, who: Callable[[], User]) -> Transport:
    """Requests to the control plane, each as the user that ``who`` names then."""
    authority = plane.certificate.read_text()
    return Transport(connection(plane.server, authority=authority, authorization=lambda: f"Bearer {who().token}"))


def path(kind: Kind, namespace: str = "") -> str:
    """Where objects of a kind live; without ``namespace`` in all of them."""
    root = "/api/" if "/" not in kind.api_version else "/apis/"
    inside = f"namespaces/{namespace or 'default'}/" if kind.namespaced and namespace else ""
    return f"{root}{kind.api_version}/{inside}{kind.plural}"


def put(transport: Transport, *objects: Any) -> None:
    """Create the objects, with the status they have."""
    for item in objects:
        kind, document = KINDS[kind_of(item)], complete(item)
        place = path(kind, document["metadata"].get("namespace", "") or "default")
        status = document.pop("status", {})
        stored = msgspec.json.decode(transport.request("POST", place, document))
        if status and stored.get("status") != status:
            name = f"{place}/{stored['metadata']['name']}"
            transport.request("PATCH", f"{name}/status", {"status": status}, content_type=MERGE_PATCH)


def get(transport: Transport, item: Any) -> Any:
    """The object as it is stored now. ``NotFoundError``."""
    kind = KINDS[kind_of(item)]
    place = f"{path(kind, item.metadata.namespace or 'default')}/{item.metadata.name}"
    return from_document(kind.name, msgspec.json.decode(transport.get(place)))


def remove(transport: Transport, item: Any) -> None:
    """Take an object away at once, finalizers or not."""
    kind = KINDS[kind_of(item)]
    _remove(transport, f"{path(kind, item.metadata.namespace or 'default')}/{item.metadata.name}")


def sweep(transport: Transport) -> None:
    """Remove everything that tests create, finalizers or not."""
    for name in _SWEPT:
        kind = KINDS[name]
        with contextlib.suppress(NotFoundError):  # the custom resources are not installed
            for item in _items(transport, path(kind)):
                meta = item["metadata"]
                _remove(transport, f"{path(kind, meta.get('namespace', ''))}/{meta['name']}")
    # A collection of all namespaces cannot be deleted at once; the API server refuses that.
    for namespace in {event["metadata"]["namespace"] for event in _items(transport, "/apis/events.k8s.io/v1/events")}:
        transport.request("DELETE", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")
    with contextlib.suppress(NotFoundError):  # the rights are not installed, and the Lease comes with them
        transport.request("PATCH", _LEASE, {"spec": None}, content_type=MERGE_PATCH)


def install(plane: ControlPlane, *folders: Path) -> None:
    """Apply manifests and wait until the API server serves the custom resources among them."""
    plane.kubectl("apply", "--server-side", *(f"--filename={folder}" for folder in folders))
    plane.kubectl("wait", "--for=condition=Established", "crd", "--all", f"--timeout={WAIT_SECONDS}s")


def uninstall(transport: Transport, *definitions: Document) -> None:
    """Take definitions away at once, with all objects of theirs.

    The API server's own way looks for objects in a storage that it has just closed, again and again: that takes up to
    half a minute ("storage is (re)initializing", crd_finalizer of apiextensions-apiserver).
    """
    for definition in definitions:
        spec, name = definition["spec"], definition["metadata"]["name"]
        stored = next(version["name"] for version in spec["versions"] if version["storage"])
        collection = f"/apis/{spec['group']}/{stored}/{spec['names']['plural']}"
        with contextlib.suppress(NotFoundError):
            for item in _items(transport, collection):
                _remove(transport, f"{collection}/{item['metadata']['name']}")
        place = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"
        # Its finalizer comes with the deletion.
        for method, body in (("DELETE", None), ("PATCH", {"metadata": {"finalizers": None}})):
            with contextlib.suppress(NotFoundError):
                transport.request(method, place, body, content_type=MERGE_PATCH)


def documents(file: Path) -> list[Document]:
    """The objects in a file of manifests."""
    return [document for document in yaml.safe_load_all(file.read_text(encoding="utf-8")) if document]


def complete(item: Any) -> Document:
    """The object's document with what an API server demands and without what it gives."""
    kind, document = KINDS[kind_of(item)], to_document(item)
    meta = {key: value for key, value in document["metadata"].items() if value and key not in _SERVERS_OWN}
    if kind.namespaced:
        meta.setdefault("namespace", "default")
    document |= {"apiVersion": kind.api_version, "kind": kind.name, "metadata": meta}
    finish = _FINISH.get(kind.name)
    if finish:
        finish(document)
    return document


def _pod(document: Document) -> None:
    for container in document["spec"].get("containers", []) + document["spec"].get("initContainers", []):
        container.setdefault("image", "none")
    # Our structs leave out what is as they default it; the API server has no default for these.
    for rule in document["spec"].get("topologySpreadConstraints", []):
        rule |= {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **rule}


def _daemon_set(document: Document) -> None:
    spec, labels = document["spec"], {"app": document["metadata"]["name"]}
    spec.setdefault("selector", {"matchLabels": labels})
    spec["template"].setdefault("metadata", {"labels": labels})
    _pod(spec["template"])


def _owner_of_pods(document: Document) -> None:
    labels = {"app": document["metadata"]["name"]}
    document["spec"] |= {"selector": {"matchLabels": labels}}
    template = document["spec"].setdefault("template", {})
    template["metadata"] = {"labels": labels, **template.get("metadata", {})}
    _pod(template)


def _volume_claim(document: Document) -> None:
    document["spec"].setdefault("resources", {"requests": {"storage": "1Gi"}})


def _volume(document: Document) -> None:
    document["spec"] |= {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}


def _budget(document: Document) -> None:
    demanded = {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}
    document["status"] = {**demanded, **document.get("status", {})}


def _pod_template(document: Document) -> None:
    _pod(document["template"])


_FINISH = {
    "Pod": _pod,
    "DaemonSet": _daemon_set,
    "Deployment": _owner_of_pods,
    "ReplicaSet": _owner_of_pods,
    "PodTemplate": _pod_template,
    "PersistentVolumeClaim": _volume_claim,
    "PersistentVolume": _volume,
    "PodDisruptionBudget": _budget,
}


def _items(transport: Transport, place: str) -> list[Document]:
    items: list[Document] = msgspec.json.decode(transport.get(place)).get("items") or []
    return items


def _remove(transport: Transport, place: str) -> None:
    with contextlib.suppress(NotFoundError):
        transport.request("PATCH", place, {"metadata": {"finalizers": None}}, content_type=MERGE_PATCH)
        transport.request("DELETE", place, {"gracePeriodSeconds": 0})
