"""A large cluster at rest, as documents for etcd: nodes with their claims, pods, volumes and what the kubelet reports.

The objects are as large as real ones: a pod has managed fields, an environment and statuses (5 KB), a node the fifty
images that a kubelet lists (10 KB), a claim its requirements and managed fields (5 KB).
"""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from joinery.decisions.lifecycle.decision import decide
from joinery.decisions.lifecycle.state.cluster import state_of
from joinery.objects.actions import UpdateClaim, UpdateClass, UpdateNode, UpdatePool
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes import core
from joinery.objects.snapshot.snapshot import Snapshot
from simulator import builders
from simulator.kubernetes.resources import KINDS, kind_of, to_document, with_metadata
from simulator.kubernetes.shapes import printed

Document = dict[str, Any]
MOMENT = "2026-11-21T12:00:00Z"
_NOW = datetime.fromisoformat(MOMENT)
#: How many steps lifecycle takes at most, until an object is at rest.
_ROUNDS = 5
_UPDATES = (UpdateClaim, UpdateNode, UpdatePool, UpdateClass)
_FIELDS = {
    "NodePool": "node_pools",
    "EC2NodeClass": "node_classes",
    "NodeClaim": "node_claims",
    "Node": "nodes",
}
#: Seconds between two reports of a kubelet that has nothing to say (``nodeStatusReportFrequency``).
_HEARTBEAT_SECONDS = 300
#: One pod in so many has a volume.
_PODS_PER_VOLUME = 10
_ETCD = {
    "Node": "minions", "Pod": "pods/default", "NodeClaim": "karpenter.sh/nodeclaims",
    "NodePool": "karpenter.sh/nodepools", "EC2NodeClass": "karpenter.k8s.aws/ec2nodeclasses", "CSINode": "csinodes",
    "PersistentVolume": "persistentvolumes", "PersistentVolumeClaim": "persistentvolumeclaims/default",
}  # fmt: skip


@dataclass(frozen=True)
class LargeCluster:
    """``nodes`` nodes with a claim each, and ``pods`` pods on them."""

    nodes: int
    pods: int

    def documents(self) -> Iterator[tuple[str, Document]]:
        """Every object, with its key in etcd."""
        shared = _at_rest((_as_created(builders.node_pool()), _as_created(builders.node_class())))
        for item in shared:
            yield _stored(item)
        for number in range(self.nodes):
            *_, claim, node = _at_rest((*shared, *self._machine(number)))
            yield _stored(claim)
            yield self._node(node)
            yield _stored(_csi_node(node.metadata.name))
        for number in range(0, self.pods, _PODS_PER_VOLUME):
            volume = f"pvc-{number:06}"
            yield _stored(builders.volume(volume))
            yield _stored(builders.volume_claim(f"data-{number:06}", volume=volume))
        for number in range(self.pods):
            yield self.pod(number)

    def changes(self, tick: int, seconds: int) -> Iterator[tuple[str, Document]]:
        """What changes in so many seconds of rest: heartbeats of kubelets, and as many pods report something."""
        count = max(1, self.nodes * seconds // _HEARTBEAT_SECONDS)
        for number in range(tick * count, (tick + 1) * count):
            key, document = self.node(number % self.nodes)
            document["status"]["conditions"][0]["lastHeartbeatTime"] = f"2026-11-21T12:{tick % 60:02}:00Z"
            yield key, document
            key, document = self.pod(number % self.pods)
            document["status"]["conditions"][0]["lastProbeTime"] = f"2026-11-21T12:{tick % 60:02}:00Z"
            yield key, document

    def node(self, number: int) -> tuple[str, Document]:
        """One node, with its key."""
        return self._node(self._machine(number)[1])

    def _machine(self, number: int) -> tuple[NodeClaim, core.Node]:
        claim = builders.node_claim(f"default-{number:05}", node=_node_name(number))
        uid = _uid("NodeClaim", claim.metadata.name)
        owner = core.OwnerReference(
            api_version="karpenter.sh/v1",
            kind="NodeClaim",
            name=claim.metadata.name,
            uid=uid,
            block_owner_deletion=True,
        )
        node = builders.node(_node_name(number))
        return with_metadata(_as_created(claim), uid=uid), with_metadata(node, owner_references=[owner])

    def _node(self, node: core.Node) -> tuple[str, Document]:
        key, document = _stored(node)
        document["status"]["images"] = [
            {"names": [f"registry.example.com/{image}@sha256:{image:064}", f"registry.example.com/{image}:1"]}
            for image in range(50)
        ]
        return key, document

    def pod(self, number: int) -> tuple[str, Document]:
        """One pod, with its key."""
        document = pod(number, _node_name(number % self.nodes))
        if number % _PODS_PER_VOLUME == 0:
            claim = {"claimName": f"data-{number:06}"}
            document["spec"]["volumes"].append({"name": "data", "persistentVolumeClaim": claim})
        return f"/registry/pods/default/{document['metadata']['name']}", document


def _as_created(resource: Any) -> Any:
    """As the API server has numbered it; conditions of another generation would say nothing."""
    return with_metadata(resource, generation=1)


def _at_rest(objects: tuple[Any, ...]) -> tuple[Any, ...]:
    """The objects when lifecycle has nothing more to do about them."""
    for _ in range(_ROUNDS):
        given = {kind: tuple(item for item in objects if kind_of(item) == kind) for kind in _FIELDS}
        fields: dict[str, Any] = {_FIELDS[kind]: items for kind, items in given.items()}
        snapshot = Snapshot(now=_NOW, node_class_kind=EC2NodeClass.identity(), **fields)
        statuses = {item.metadata.name: item.status for item in snapshot.node_classes}
        decision = decide(state_of(snapshot, None), statuses)
        commands = [command for chain in decision.readiness for command in chain]
        commands += [command for step in decision.steps for command in step.commands]
        after = {id(command.before): command.after for command in commands if isinstance(command, _UPDATES)}
        if not after:
            break
        objects = tuple(after.get(id(item), item) for item in objects)
    return objects


def pod(number: int, node: str) -> Document:
    """A running pod of a Deployment."""
    name, labels = f"web-7d4b9c6f5-{number:06}", {"app": "web", "pod-template-hash": "7d4b9c6f5", "tier": "front"}
    owned: Document = {f"f:field-{index}": {".": {}, "f:value": {}} for index in range(60)}
    requests = {"cpu": "100m", "memory": "256Mi"}
    container = {
        "name": "main",
        "image": "registry.example.com/team/web:1.2.3",
        "env": [{"name": f"VARIABLE_{index}", "value": "some value " * 3} for index in range(15)],
        "resources": {"requests": requests, "limits": requests},
        "volumeMounts": [{"name": "token", "mountPath": "/var/run/secrets", "readOnly": True}],
    }
    spread = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}
    conditions = ("Ready", "PodScheduled", "Initialized", "ContainersReady")
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"00000000-0000-4000-8000-{number:012}",
            "creationTimestamp": MOMENT,
            "labels": labels,
            "ownerReferences": [owner],
            "managedFields": [_managed({"f:metadata": owned})],
        },
        "spec": {
            "nodeName": node,
            "containers": [container],
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}],
            "topologySpreadConstraints": [{**spread, "labelSelector": {"matchLabels": {"app": "web"}}}],
            "volumes": [{"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}],
        },
        "status": {
            "phase": "Running",
            "startTime": MOMENT,
            "conditions": [{"type": kind, "status": "True", "lastTransitionTime": MOMENT} for kind in conditions],
            "containerStatuses": [{"name": "main", "ready": True, "restartCount": 0, "image": "i", "imageID": "i"}],
        },
    }


def _node_name(number: int) -> str:
    return f"ip-10-{number // 65536}-{number // 256 % 256}-{number % 256}.ec2.internal"


def _csi_node(name: str) -> core.CSINode:
    driver = core.CSINodeDriver(name="ebs.csi.aws.com", allocatable=core.VolumeNodeResources(count=25))
    return core.CSINode(metadata=core.ObjectMeta(name=name), spec=core.CSINodeSpec(drivers=[driver]))


def _stored(item: Any) -> tuple[str, Document]:
    kind = KINDS[kind_of(item)]
    document = {"apiVersion": kind.api_version, "kind": kind.name, **printed(kind.name, to_document(item))}
    name = document["metadata"]["name"]
    owned: Document = {f"f:field-{index}": {".": {}, "f:value": {}} for index in range(40)}
    uid, managed = item.metadata.uid or _uid(kind.name, name), [_managed({"f:spec": owned})]
    namespace = {"namespace": "default"} if kind.namespaced else {}
    metadata = {"uid": uid, "creationTimestamp": MOMENT, "managedFields": managed, **namespace}
    return f"/registry/{_ETCD[kind.name]}/{name}", _with(document, **metadata)


def _with(document: Document, **metadata: Any) -> Document:
    given = {key: value for key, value in document["metadata"].items() if key != "resourceVersion"}
    return {**document, "metadata": {**given, **metadata}}


def _managed(fields: Document) -> Document:
    about = {"manager": "kubelet", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "time": MOMENT}
    return {**about, "fieldsV1": fields}


def _uid(*parts: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, "/".join(parts)))
