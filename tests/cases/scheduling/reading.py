"""A golden case, from its YAML to the problem that ``solve`` is asked.

Pods, nodes and pools have a compact form (see ``notation``); whatever else a document says is Kubernetes' own. A
``count`` makes so many pods of one description, called ``web-1``, ``web-2`` and so on.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import yaml

from joinery.apis import core
from joinery.apis import labels as keys
from joinery.apis.nodeclaim import NodeClaim
from joinery.apis.nodepool import NodePool
from joinery.apis.quantity import amounts, text
from joinery.scheduling.problem import Options, Problem
from joinery.state.offerings import InstanceType, Offering, Reservation
from joinery.state.snapshot import Invalid, Snapshot
from simulator import builders
from simulator.kubernetes import shapes
from tests.cases.scheduling import notation
from tests.cases.scheduling.notation import Document

HERE = Path(__file__).parent
ZONES = ("z1", "z2", "z3")
T = TypeVar("T")


@dataclass(frozen=True)
class Case:
    """``bases`` maps a pod's key to the description it was made from, where that made several."""

    file: str
    name: str
    problem: Problem
    expect: Document
    notes: str = ""
    bases: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.file}: {self.name}"


@cache
def cases() -> tuple[Case, ...]:
    """Every case of every file, in order."""
    return tuple(case for path in sorted(HERE.glob("*.yaml")) for case in read_file(path))


def read_file(path: Path) -> list[Case]:
    """The cases of one file; what it says under ``given`` holds for all that do not say otherwise."""
    document = yaml.load(path.read_text(), Loader=yaml.CSafeLoader)
    shared = document.get("given", {})
    return [_case(path.stem, shared, listed) for listed in document["cases"]]


@cache
def standard_types() -> list[Document]:
    """The types of cases that bring none of their own."""
    found: list[Document] = yaml.safe_load((HERE / "catalogue" / "standard.yaml").read_text())
    return found


def _case(file: str, shared: Document, listed: Document) -> Case:
    given = {**shared, **listed.get("given", {})}
    pods: list[core.Pod] = []
    bases: dict[str, str] = {}
    for document in given.get("pods", []):
        made = _pods(document)
        pods += made
        if "count" in document:
            bases |= {pod.key: document["name"] for pod in made}
    problem = _problem(given, pods)
    return Case(file, listed["name"], problem, listed.get("expect", {}), listed.get("notes", ""), bases)


def _problem(given: Document, pods: list[core.Pod]) -> Problem:
    pairs = [_node(n) for n in given.get("nodes", [])]
    known = Snapshot(
        now=builders.EPOCH,
        pods=tuple(pods),
        nodes=tuple(node for node, _ in pairs if node is not None),
        node_claims=tuple(claim for _, claim in pairs if claim is not None),
        node_pools=tuple(node_pool(p) for p in given.get("pools", [{"name": "default"}])),
        node_classes=tuple(builders.node_class(**c) for c in given.get("nodeClasses", [{"zones": ZONES}])),
        daemon_sets=tuple(_daemon_set(d) for d in given.get("daemons", [])),
        namespaces=tuple(builders.namespace(**n) for n in given.get("namespaces", [])),
        priority_classes=tuple(_struct(core.PriorityClass, p) for p in given.get("priorityClasses", [])),
        volume_claims=tuple(_volume_claim(c) for c in given.get("volumeClaims", [])),
        volumes=tuple(_volume(v) for v in given.get("volumes", [])),
        storage_classes=tuple(_storage_class(s) for s in given.get("storageClasses", [])),
        csi_nodes=tuple(_csi_node(n) for n in given.get("csiNodes", [])),
        disruption_budgets=tuple(_struct(core.PodDisruptionBudget, b) for b in given.get("budgets", [])),
        invalid=tuple(Invalid(**i) for i in given.get("invalid", [])),
    )
    types = tuple(instance_type(t) for t in given.get("types", standard_types()))
    by_class = {
        c.metadata.name: tuple(with_reserved(t, c.metadata.name, given) for t in types) for c in known.node_classes
    }
    options = Options(**{"only_marked_unschedulable": False, **given.get("options", {})})
    return Problem(snapshot=known, instance_types=by_class, options=options)


def instance_type(given: Document) -> InstanceType:
    """``{name, cpu, memory, price, arch, zones, capacity: {on-demand: 1, spot: 0.4}, sold: [z1/spot], labels,
    resources}``.

    ``sold`` lists the offerings that are available, where not all are; ``overhead`` is what the kubelet keeps.
    """
    name, zones = given["name"], given.get("zones", ZONES)
    shares = given.get("capacity", {keys.ON_DEMAND: 1.0, keys.SPOT: 0.4})
    has = amounts({
        "cpu": given["cpu"], "memory": given["memory"], "pods": given.get("pods", 110), "ephemeral-storage": "20Gi",
        **given.get("resources", {}),
    })  # fmt: skip
    kept = amounts(given.get("overhead", {}))
    return InstanceType(
        name=name,
        labels=_type_labels(given, has, zones, tuple(shares)),
        capacity=has,
        allocatable={resource: value - kept.get(resource, 0) for resource, value in has.items()},
        offerings=tuple(
            Offering(
                zone,
                kind,
                round(_price(given, zone) * share, 5),
                f"{zone}/{kind}" in given.get("sold", [f"{zone}/{kind}"]),
                f"id-{zone}",
            )
            for zone in zones
            for kind, share in shares.items()
        ),
    )


def with_reserved(kind: InstanceType, node_class: str, given: Document) -> InstanceType:
    """The type with what is reserved of it: ``reservations: [{id, type, zone, count, kind, interruptible, ending,
    class}]``.

    ``ending``: nothing more may be launched in it; ``class``: the one EC2NodeClass that selects it.
    """
    listed = [r for r in given.get("reservations", []) if r["type"] == kind.name]
    found = [_reserved(kind, r) for r in listed if r.get("class", node_class) == node_class]
    if not found:
        return kind
    ways = (*kind.labels[keys.CAPACITY_TYPE], keys.RESERVED)
    labels = {**kind.labels, keys.CAPACITY_TYPE: ways, keys.RESERVATION_ID: tuple(o.reservation_id for o in found)}
    return replace(kind, labels=labels, offerings=(*kind.offerings, *found))


def _reserved(kind: InstanceType, given: Document) -> Offering:
    zone, count = given.get("zone", "z1"), given.get("count", 1)
    about = Reservation(given["id"], given.get("kind", "default"), given.get("interruptible", False), count)
    price = (kind.price(zone, keys.ON_DEMAND) or 0) / 10_000_000
    return Offering(zone, keys.RESERVED, price, count > 0 and not given.get("ending"), f"id-{zone}", about)


def _price(given: Document, zone: str) -> float:
    price = given["price"]
    return float(price[zone] if isinstance(price, dict) else price)


def _type_labels(
    given: Document, has: Mapping[str, int], zones: Iterable[str], capacity: tuple[str, ...]
) -> dict[str, tuple[str, ...]]:
    family, _, size = given["name"].partition(".")
    found = {
        "type": given["name"], "arch": given.get("arch", "amd64"), "os": given.get("os", "linux"), "region": "z",
        "instance-family": family, "instance-size": size or "any", "instance-category": family[0],
        "instance-cpu": str(has["cpu"] // 1000), "instance-memory": str(has["memory"] >> 20),
        **{name: str(value) for name, value in given.get("labels", {}).items()},
    }  # fmt: skip
    named = {notation.key(name): (value,) for name, value in found.items()}
    ids = tuple(f"id-{zone}" for zone in zones)
    return {**named, keys.ZONE: tuple(zones), keys.ZONE_ID: ids, keys.CAPACITY_TYPE: capacity}


_POD_KEYS = frozenset(
    ("name", "count", "namespace", "labels", "annotations", "cpu", "memory", "requests", "limits", "node", "nominated")
    + ("selector", "require", "requireAny", "prefer", "near", "apart", "spread", "tolerate", "claims", "hostPorts")
    + ("owner", "phase", "deleting", "created", "marked", "allocated")
)


def _pods(given: Document) -> list[core.Pod]:
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
    return _struct(core.Pod, {"metadata": meta, "spec": pod_spec(given), "status": _pod_status(given)})


def pod_spec(given: Document) -> Document:
    """The pod's spec as Kubernetes has it."""
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
    found: Document = {"phase": given.get("phase", "Running" if given.get("node") else "Pending")}
    if given.get("marked", True) and not given.get("node"):
        found["conditions"] = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
    if "nominated" in given:
        found["nominatedNodeName"] = given["nominated"]
    if "allocated" in given:
        found["containerStatuses"] = [{"name": "main", "allocatedResources": given["allocated"]}]
    return found


def node_pool(given: Document) -> NodePool:
    """``requirements`` as in notation, ``unready`` with a message,
    ``deleting``; the rest is ``builders.node_pool``'s.
    """
    fields = {name: value for name, value in given.items() if name in ("name", "weight", "replicas", "limits")}
    fields = {**fields, "node_class": given.get("nodeClass", "default")}
    pool = builders.node_pool(
        **fields,
        requirements=notation.expressions(given.get("requirements", [])),
        taints=[notation.taint(t) for t in given.get("taints", [])],
        startup_taints=[notation.taint(t) for t in given.get("startupTaints", [])],
        labels=notation.label_map(given.get("labels", {})),
        ready=given.get("ready", True),
    )
    if given.get("unready"):
        failed = [{"type": "Ready", "status": "False", "reason": "UnhealthyDependents", "message": given["unready"]}]
        pool = NodePool.model_validate({**pool.to_wire(), "status": {"nodes": 0, "conditions": failed}})
    if given.get("deleting"):
        meta = pool.metadata.model_copy(update={"deletion_timestamp": builders.EPOCH})
        pool = pool.model_copy(update={"metadata": meta})
    return pool


def _daemon_set(given: Document) -> core.DaemonSet:
    meta = {"name": given["name"], "namespace": given.get("namespace", "kube-system")}
    template = {"metadata": {"labels": {"app": given["name"]}}, "spec": pod_spec({"tolerate": ["*"], **given})}
    return _struct(core.DaemonSet, {"metadata": meta, "spec": {"template": template}})


# --- nodes and claims, by how far they are ---

_REACHED = {
    "reserved": (), "launched": ("Launched",), "booting": ("Launched",), "registered": ("Launched", "Registered"),
    "initialized": ("Launched", "Registered", "Initialized"),
}  # fmt: skip


def _node(given: Document) -> tuple[core.Node | None, NodeClaim | None]:
    """A node and its claim. ``state``: reserved and launched have no node yet, a booting one is not registered."""
    state, pool = given.get("state", "initialized"), given.get("pool", "default")
    has_node = state not in ("reserved", "launched")
    return (
        _bare_node(given, state, pool) if has_node else None,
        _claim(given, state, pool) if pool else None,
    )


def _room(given: Document) -> dict[str, str]:
    found = {
        "cpu": str(given.get("cpu", 4)),
        "memory": given.get("memory", "16Gi"),
        "pods": str(given.get("pods", 110)),
    }
    return {**found, "ephemeral-storage": "20Gi", **{k: str(v) for k, v in given.get("resources", {}).items()}}


def _bare_node(given: Document, state: str, pool: str) -> core.Node:
    name, room = given["name"], _room(given)
    reported = {**room, **{k: str(v) for k, v in given.get("reports", {}).items()}}
    labels = {
        keys.HOSTNAME: name,
        keys.ZONE: given.get("zone", "z1"),
        keys.REGION: "z",
        keys.ARCH: given.get("arch", "amd64"),
        keys.OS: "linux",
        keys.INSTANCE_TYPE: given.get("type", "m5.xlarge"),
        **notation.label_map(given.get("labels", {})),
    }
    if pool and state != "booting":
        labels |= {keys.NODE_POOL: pool, keys.NODE_CLASS: "default", keys.REGISTERED: "true"}
        labels[keys.CAPACITY_TYPE] = given.get("capacity", keys.ON_DEMAND)
    if pool and state == "initialized":
        labels[keys.INITIALIZED] = "true"
    for short in given.get("without", []):
        del labels[notation.key(short)]
    deleting = {"deletionTimestamp": builders.EPOCH.isoformat()} if given.get("deleting") and not pool else {}
    return _struct(
        core.Node,
        {
            "metadata": {"name": name, "labels": labels, **deleting},
            "spec": {
                "providerID": f"aws:///{given.get('zone', 'z1')}/i-{name}",
                "taints": [notation.taint(t) for t in given.get("taints", [])],
                "unschedulable": given.get("unschedulable", False),
            },
            "status": {"capacity": shapes.capacity(room), "allocatable": shapes.allocatable(reported)},
        },
    )


def _claim(given: Any, state: str, pool: str) -> NodeClaim:
    planned = {keys.PLANNED_PODS: json.dumps(given["planned"])} if "planned" in given else {}
    warned = {keys.INTERRUPTED_AT: builders.EPOCH.isoformat()} if given.get("interrupted") else {}
    return builders.node_claim(
        given.get("claim", given["name"]),
        node=given["name"] if state not in ("reserved", "launched") else "",
        node_pool=pool,
        instance_type=given.get("type", "m5.xlarge"),
        zone=given.get("zone", "z1"),
        capacity_type=given.get("capacity", keys.ON_DEMAND),
        conditions=_REACHED[state],
        labels=notation.label_map(given.get("labels", {})),
        annotations={**planned, **warned},
        requirements=notation.expressions(given.get("requirements", [])),
        resources=_room(given),
        requests=_room(given),
        deleted=builders.EPOCH if given.get("deleting") else None,
        taints=[notation.taint(t) for t in given.get("claimTaints", given.get("taints", []))],
        startupTaints=[notation.taint(t) for t in given.get("startupTaints", [])],
    )


# --- volumes ---


def _volume_claim(given: Document) -> core.PersistentVolumeClaim:
    """``{name, class, volume, phase, deleting}``; a bound one carries the annotation that says so,
    unless ``binding: true``.
    """
    volume = given.get("volume", "")
    bound = {} if given.get("binding") or not volume else {"pv.kubernetes.io/bind-completed": "yes"}
    return _struct(core.PersistentVolumeClaim, {
        "metadata": _volume_meta(given) | {"namespace": given.get("namespace", "default"), "annotations": bound},
        "spec": {"storageClassName": given.get("class"), "volumeName": volume, "accessModes": given.get("modes", [])},
        "status": {"phase": given.get("phase", "Bound" if volume else "Pending")},
    })  # fmt: skip


def _volume_meta(given: Document) -> Document:
    return {
        "name": given["name"],
        **({"deletionTimestamp": builders.EPOCH.isoformat()} if given.get("deleting") else {}),
    }


def _volume(given: Document) -> core.PersistentVolume:
    """``{name, zones: [z1], terms: [[...]], driver, local: true, labels}``: each of ``terms`` is one alternative."""
    terms = given.get("terms", [[f"zone In {','.join(given['zones'])}"]] if "zones" in given else [])
    spec: Document = {"csi": {"driver": given.get("driver", "ebs.csi.aws.com")}}
    if given.get("local"):
        spec = {"local": {"path": "/data"}}
    if "source" in given:
        spec = {given["source"]: {}}
    if terms:
        spec["nodeAffinity"] = {
            "required": {"nodeSelectorTerms": [{"matchExpressions": notation.expressions(term)} for term in terms]}
        }
    meta = _volume_meta(given) | {"labels": notation.label_map(given.get("labels", {}))}
    return _struct(core.PersistentVolume, {"metadata": meta, "spec": spec})


def _storage_class(given: Document) -> core.StorageClass:
    """``{name, provisioner, binding, zones: [z1], default: true, created: seconds}``."""
    expression = {"key": given.get("key", "topology.ebs.csi.aws.com/zone"), "values": given.get("zones", [])}
    meta: Document = {"name": given["name"]}
    if given.get("default"):
        meta["annotations"] = {"storageclass.kubernetes.io/is-default-class": "true"}
    if "created" in given:
        meta["creationTimestamp"] = (builders.EPOCH + timedelta(seconds=given["created"])).isoformat()
    return _struct(core.StorageClass, {
        "metadata": meta,
        "provisioner": given.get("provisioner", "ebs.csi.aws.com"),
        "volumeBindingMode": given.get("binding", "WaitForFirstConsumer"),
        "allowedTopologies": [{"matchLabelExpressions": [expression]}] if given.get("zones") else [],
    })  # fmt: skip


def _csi_node(given: Document) -> core.CSINode:
    """``{name, drivers: {ebs.csi.aws.com: 2}}``."""
    drivers = [{"name": name, "allocatable": {"count": count}} for name, count in given["drivers"].items()]
    return _struct(core.CSINode, {"metadata": {"name": given["name"]}, "spec": {"drivers": drivers}})


def _struct(kind: type[T], given: Document) -> T:
    """As our reader makes it of what an API server prints: every case proves reading too."""
    return shapes.read(given, kind)


def shown_amount(resource: str, value: int) -> str:
    """An amount as quantities are written."""
    return text(resource, value)
