"""Objects with a secret in every place that Kubernetes has for a text: of these a record keeps names, and no values.

Labels, names and taints are kept, because decisions read them: a secret there is told to everybody who may list pods.
"""

from typing import Any

import msgspec
import pytest

from joinery.controllers.reporting.record import decision_document
from joinery.decisions.scheduling.packing import Packing
from joinery.decisions.scheduling.problem import Problem
from joinery_cli.reading.inputs import load
from simulator import builders
from tests.cli.conftest import Write

SECRET = "hunter2-do-not-tell"
TOLD = {
    "kubectl.kubernetes.io/last-applied-configuration": SECRET,
    "vault.example.com/token": SECRET,
    "joinery.dev/x": SECRET,
}
PROBE = {
    "exec": {"command": [SECRET]},
    "httpGet": {"port": 80, "path": SECRET, "httpHeaders": [{"name": "a", "value": SECRET}]},
}
CONTAINER = {
    "name": "main", "image": f"registry.example.com/{SECRET}:1", "command": ["run", SECRET], "args": [SECRET],
    "workingDir": SECRET, "env": [{"name": "PASSWORD", "value": SECRET}], "terminationMessagePath": SECRET,
    "envFrom": [{"prefix": SECRET}], "livenessProbe": PROBE, "readinessProbe": PROBE, "startupProbe": PROBE,
    "lifecycle": {"preStop": {"exec": {"command": [SECRET]}}, "postStart": {"exec": {"command": [SECRET]}}},
    "volumeMounts": [{"name": "data", "mountPath": SECRET, "subPathExpr": SECRET}],
    "securityContext": {"seLinuxOptions": {"user": SECRET}, "seccompProfile": {"localhostProfile": SECRET}},
    "resources": {"requests": {"cpu": "1"}},
}  # fmt: skip
VOLUMES = [
    {"name": "data", "csi": {"driver": "d", "volumeAttributes": {"password": SECRET}}},
    {"name": "flex", "flexVolume": {"driver": "d", "options": {"password": SECRET}}},
    {"name": "iscsi", "iscsi": {"targetPortal": SECRET, "iqn": SECRET, "initiatorName": SECRET}},
    {"name": "down", "downwardAPI": {"items": [{"path": SECRET}]}},
    {"name": "host", "hostPath": {"path": f"/{SECRET}"}},
    {"name": "nfs", "nfs": {"server": SECRET, "path": SECRET}},
    {"name": "git", "gitRepo": {"repository": f"https://user:{SECRET}@example.com/r"}},
    {"name": "map", "configMap": {"name": "m", "items": [{"key": SECRET, "path": SECRET}]}},
]
POD_SPEC = {
    "containers": [CONTAINER], "initContainers": [{**CONTAINER, "name": "init"}], "volumes": VOLUMES,
    "ephemeralContainers": [{**CONTAINER, "name": "debug"}], "hostAliases": [{"ip": "1.1.1.1", "hostnames": [SECRET]}],
    "dnsConfig": {"searches": [SECRET], "options": [{"name": "o", "value": SECRET}]},
    "securityContext": {"sysctls": [{"name": "kernel.x", "value": SECRET}]}, "subdomain": SECRET, "hostname": SECRET,
}  # fmt: skip
STATUS = {
    "phase": "Pending", "message": SECRET, "reason": SECRET,
    "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": SECRET}],
    "containerStatuses": [{"name": "main", "state": {"terminated": {"message": SECRET}}}],
}  # fmt: skip


def metadata(name: str, **more: Any) -> dict[str, Any]:
    """With annotations and managed fields as people and tools leave them."""
    managed = [{"manager": SECRET, "fieldsV1": {f"f:{SECRET}": {}}}]
    return {"name": name, "uid": name, "annotations": TOLD, "managedFields": managed, "selfLink": SECRET, **more}


POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": metadata("bare", namespace="default"),
    "spec": POD_SPEC,
    "status": STATUS,
}
TEMPLATE = {"metadata": metadata("t"), "spec": POD_SPEC}
HOSTILE: dict[str, dict[str, Any]] = {
    "a bare pod": POD,
    "a DaemonSet": {
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata("agents", namespace="default"),
        "spec": {"selector": {"matchLabels": {"app": "x"}}, "template": TEMPLATE},
    },
    "a Node": {
        "apiVersion": "v1", "kind": "Node", "metadata": metadata("node-1"),
        "spec": {"podCIDR": SECRET},
        "status": {
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": SECRET}],
            "images": [{"names": [SECRET]}], "nodeInfo": {"kernelVersion": SECRET, "bootID": SECRET},
            "allocatable": {"cpu": "4"}, "capacity": {"cpu": "4"},
        },
    },
    "a PersistentVolume": {
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata("pv-1"),
        "spec": {"csi": {"driver": "d", "volumeHandle": "v", "volumeAttributes": {"key": SECRET},
                         "nodeStageSecretRef": {"name": SECRET, "namespace": SECRET}}, "mountOptions": [SECRET]},
    },
    "a StorageClass": {
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": metadata("fast"),
        "provisioner": "d", "parameters": {"adminSecret": SECRET}, "mountOptions": [SECRET],
    },
    "a Namespace": {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata("default")},
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_record_keeps_no_value_of_a_hostile_object(name: str, write: Write) -> None:
    """Environments, command lines, probes, hooks, volumes, annotations, managed fields, messages."""
    path = write("objects.json", {"apiVersion": "v1", "kind": "List", "items": [HOSTILE[name]]})
    snapshot = load([path]).snapshot(builders.EPOCH)
    record = msgspec.json.encode(
        decision_document(Problem(snapshot=snapshot, instance_types={}), Packing(), ())
    ).decode()
    assert HOSTILE[name]["metadata"]["name"] in record
    assert SECRET not in record, [line for line in record.split(",") if SECRET in line][:5]
