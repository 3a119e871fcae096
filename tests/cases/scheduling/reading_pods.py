"""Pods and DaemonSets of golden cases."""

from datetime import timedelta
from typing import Any

from joinery.objects.kubernetes import core
from simulator import builders
from tests.cases.scheduling import notation
from tests.cases.scheduling.notation import Document, struct

_POD_KEYS = frozenset(
    ("name", "count", "namespace", "labels", "annotations", "cpu", "memory", "requests", "limits", "node", "nominated")
    + ("selector", "require", "requireAny", "prefer", "near", "apart", "spread", "tolerate", "claims", "hostPorts")
    + ("owner", "phase", "deleting", "created", "marked", "allocated")
)


def pods_of(given: Document) -> list[core.Pod]:
    """The pods of one description: one, or as many as its ``count``."""
    if "count" not in given:
        return [pod(given)]
    return [pod({**given, "name": f"{given['name']}-{i + 1}"}) for i in range(given["count"])]


def pod(given: Document) -> core.Pod:
    """A pod from its compact form; ``node`` is the node it runs on, ``marked:
    false`` one that the scheduler has not seen.
    """
    meta: Document = {
        "name": given["name"], "namespace": given.get("namespace", "default"),
        "labels": {name: str(value) for name, value in given.get("labels", {}).items()},
        "annotations": given.get("annotations", {}),
    }  # fmt: skip
    if "owner" in given:
        kind, _, name = given["owner"].partition("/")
        version = "v1" if kind == "Node" else "apps/v1"
        meta["ownerReferences"] = [{"apiVersion": version, "kind": kind, "name": name, "controller": True}]
    if given.get("deleting"):
        meta["deletionTimestamp"] = builders.EPOCH.isoformat()
    if "created" in given:
        meta["creationTimestamp"] = (builders.EPOCH + timedelta(seconds=given["created"])).isoformat()
    return struct(core.Pod, {"metadata": meta, "spec": pod_spec(given), "status": _pod_status(given)})


def pod_spec(given: Document) -> Document:
    """The pod's spec as Kubernetes has it."""
    notation.only(given, _POD_KEYS, core.PodSpec)
    requests = {name: given[name] for name in ("cpu", "memory") if given.get(name) not in (None, "")}
    container: Document = {
        "name": "main",
        "resources": {"requests": {**requests, **given.get("requests", {})}, "limits": given.get("limits", {})},
        "ports": [_port(port) for port in given.get("hostPorts", [])],
    }
    rest = {name: value for name, value in given.items() if name not in _POD_KEYS}
    return {
        "nodeName": given.get("node", ""),
        "nodeSelector": notation.label_map(given.get("selector", {})),
        "affinity": notation.affinity(given),
        "tolerations": [notation.toleration(t) for t in given.get("tolerate", [])],
        "topologySpreadConstraints": [notation.spread(s) for s in given.get("spread", [])],
        "volumes": [{"name": c, "persistentVolumeClaim": {"claimName": c}} for c in given.get("claims", [])],
        "containers": [container],
        **rest,
    }


def _port(given: Any) -> Document:
    return {"hostPort": given, "containerPort": given} if isinstance(given, int) else given


def _pod_status(given: Document) -> Document:
    status: Document = {"phase": given.get("phase", "Running" if given.get("node") else "Pending")}
    if given.get("marked", True) and not given.get("node"):
        status["conditions"] = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
    if "nominated" in given:
        status["nominatedNodeName"] = given["nominated"]
    if "allocated" in given:
        status["containerStatuses"] = [{"name": "main", "allocatedResources": given["allocated"]}]
    return status


def daemon_set(given: Document) -> core.DaemonSet:
    """A DaemonSet from the compact form of its pod, which tolerates everything unless it says otherwise."""
    meta = {"name": given["name"], "namespace": given.get("namespace", "kube-system")}
    template = {"metadata": {"labels": {"app": given["name"]}}, "spec": pod_spec({"tolerate": ["*"], **given})}
    return struct(core.DaemonSet, {"metadata": meta, "spec": {"template": template}})
