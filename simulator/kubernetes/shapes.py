"""Objects as real systems print them: a kubelet's amounts, and the fields that an API server adds to ours.

The simulator keeps only the fields that decisions look at. A real cluster has more, and the product's readers must cope
with them. So whatever is served, built for a test or written in a golden case first gets the other fields too, and the
nulls that Go prints for fields without ``omitempty``. Then the product's own readers read it.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec
from pydantic import BaseModel

from joinery.objects.kubernetes.decoding import decode, decode_model
from joinery.objects.kubernetes.quantity import amount

Document = dict[str, Any]
T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)
Quantities = Mapping[str, str | int | float]

#: What AL2023's kubelet keeps for itself and the system on a small node, at least; and what every one reports.
_KEPT = {"memory": 600 << 20, "ephemeral-storage": 3 << 30}
_HUGE_PAGES = ("hugepages-1Gi", "hugepages-2Mi")
_MOMENT = "2026-08-24T08:00:00Z"
_MANAGED = [{
    "manager": "kubelet", "operation": "Update", "apiVersion": "v1", "time": _MOMENT, "fieldsType": "FieldsV1",
    "fieldsV1": {"f:spec": {}},
}]  # fmt: skip


def allocatable(room: Quantities) -> dict[str, str | int | float]:
    """What is allocatable on a node, as its kubelet writes it.

    Memory is in Ki and storage in bytes, and huge pages are there even if there are none.
    """
    spelt = {**dict.fromkeys(_HUGE_PAGES, "0"), **room}
    if "memory" in room:
        spelt["memory"] = _kibibytes("memory", room["memory"])
    if "ephemeral-storage" in room:
        spelt["ephemeral-storage"] = str(amount("ephemeral-storage", room["ephemeral-storage"]))
    return dict(spelt)


def capacity(room: Quantities) -> dict[str, str | int | float]:
    """What such a node has in all: what is allocatable, and what its kubelet keeps for itself."""
    whole = dict(allocatable(room))
    for name, kept in _KEPT.items():
        if name in room:
            whole[name] = _kibibytes(name, amount(name, room[name]) + kept)
    if "cpu" in room:
        whole["cpu"] = str(-(-amount("cpu", room["cpu"]) // 1000))
    return whole


def spelt(resources: Quantities) -> dict[str, str | int | float]:
    """A capacity that is given to the byte, as a kubelet writes it."""
    return {
        **allocatable(resources),
        **{name: _kibibytes(name, resources[name]) for name in _KEPT if name in resources},
    }


def _kibibytes(resource: str, quantity: str | int | float) -> str:
    return f"{amount(resource, quantity) >> 10}Ki"


def read(document: Document, struct: type[T]) -> T:
    """The struct that our reader makes of the object when an API server has printed it.

    Raises ``msgspec.ValidationError``.
    """
    return decode(msgspec.json.encode(printed(struct.__name__, document)), struct)


def read_again(item: T) -> T:
    """The same of a struct."""
    return read(msgspec.to_builtins(item), type(item))


def read_model(document: Document, model: type[M]) -> M:
    """The same of a custom resource. Raises pydantic's ``ValidationError``."""
    return decode_model(msgspec.json.encode(printed(model.__name__, document)), model)


def printed(kind: str, document: Document) -> Document:
    """The object as the API server prints it."""
    metadata = {**document.get("metadata", {}), "managedFields": _MANAGED}
    return _PRINTED.get(kind, _as_it_is)({**document, "metadata": metadata})


def _as_it_is(document: Document) -> Document:
    return document


def _node(document: Document) -> Document:
    status, name = document.get("status", {}), document["metadata"]["name"]
    heard = [{**condition, "lastHeartbeatTime": _MOMENT} for condition in status.get("conditions", [])]
    images = [{"names": ["registry.k8s.io/pause@sha256:7031", "registry.k8s.io/pause:3.10"], "sizeBytes": 320368}]
    added = {
        "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": name}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "images": images,
        "nodeInfo": {"kubeletVersion": "v1.33.5-eks-113cf36", "kubeProxyVersion": "", "operatingSystem": "linux"},
        "runtimeHandlers": [{"name": "", "features": {"recursiveReadOnlyMounts": True, "userNamespaces": True}}],
    }
    return {**document, "status": {**added, **status, "conditions": heard}}


def _pod(document: Document) -> Document:
    status = document.get("status", {})
    probed = [
        {"lastProbeTime": None, "lastTransitionTime": None, **condition} for condition in status.get("conditions", [])
    ]
    defaults = {
        "dnsPolicy": "ClusterFirst",
        "enableServiceLinks": True,
        "restartPolicy": "Always",
        "securityContext": {},
    }
    return {
        **document,
        "spec": {**defaults, **_spec(document.get("spec", {}))},
        "status": {"qosClass": "Burstable", **_running(document), **status, "conditions": probed},
    }


def _spec(spec: Document) -> Document:
    lists = [name for name in ("containers", "initContainers") if name in spec]
    return spec | {name: [_container(container) for container in spec[name]] for name in lists}


def _container(container: Document) -> Document:
    path, mounts = (
        "/dev/termination-log",
        [{"mountPath": "/var/run/secrets", "name": "kube-api-access", "readOnly": True}],
    )
    defaults = {"image": "none", "imagePullPolicy": "Always", "terminationMessagePath": path, "volumeMounts": mounts}
    return {**defaults, "resources": {}, **container}


def _running(document: Document) -> Document:
    """What its kubelet says of each container, since Kubernetes 1.33 with the resources that it has."""
    if document.get("status", {}).get("phase") != "Running":
        return {}
    containers = document.get("spec", {}).get("containers", [])
    return {
        "containerStatuses": [
            {
                "name": container.get("name", ""),
                "ready": True,
                "restartCount": 0,
                "lastState": {},
                "resources": container.get("resources", {}),
                "image": "none",
                "imageID": "",
            }
            for container in containers
        ]
    }


def _csi_node(document: Document) -> Document:
    """Without drivers, Go prints null: Fargate's, Windows', and every node's until its first driver registers."""
    drivers = [{"topologyKeys": None, **driver} for driver in document.get("spec", {}).get("drivers", [])]
    return {**document, "spec": {"drivers": drivers or None}}


def _daemon_set(document: Document) -> Document:
    template = document.get("spec", {}).get("template", {})
    metadata = {"creationTimestamp": None, **template.get("metadata", {})}
    spec = {**document.get("spec", {}), "template": {"metadata": metadata, "spec": _spec(template.get("spec", {}))}}
    return {
        **document,
        "spec": spec,
        "status": {"currentNumberScheduled": 0, "numberMisscheduled": 0, "numberReady": 0},
    }


_PRINTED: Mapping[str, Callable[[Document], Document]] = {
    "Node": _node,
    "Pod": _pod,
    "CSINode": _csi_node,
    "DaemonSet": _daemon_set,
}
