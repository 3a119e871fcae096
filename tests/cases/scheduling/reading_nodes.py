"""Nodes of golden cases, with their NodeClaims, by how far they have come."""

import json
from typing import Any

from joinery.objects.karpenter import labels as keys
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes import core
from simulator import builders
from simulator.kubernetes import shapes
from tests.cases.scheduling import notation
from tests.cases.scheduling.notation import Document, struct

_NODE_KEYS = (
    "name state pool cpu memory pods resources reports zone arch type labels capacity without deleting taints "
    "unschedulable planned interrupted claim requirements claimTaints startupTaints"
)
_REACHED = {
    "reserved": (), "launched": ("Launched",), "booting": ("Launched",), "registered": ("Launched", "Registered"),
    "initialized": ("Launched", "Registered", "Initialized"),
}  # fmt: skip


def node_and_claim(given: Document) -> tuple[core.Node | None, NodeClaim | None]:
    """A node and its claim. ``state``: reserved and launched have no node yet, a booting one is not registered."""
    notation.only(given, _NODE_KEYS)
    state, pool = given.get("state", "initialized"), given.get("pool", "default")
    has_node = state not in ("reserved", "launched")
    return (
        _node(given, state, pool) if has_node else None,
        _claim(given, state, pool) if pool else None,
    )


def _room(given: Document) -> dict[str, str]:
    room = {
        "cpu": str(given.get("cpu", 4)),
        "memory": given.get("memory", "16Gi"),
        "pods": str(given.get("pods", 110)),
    }
    return {**room, "ephemeral-storage": "20Gi", **{k: str(v) for k, v in given.get("resources", {}).items()}}


def _node(given: Document, state: str, pool: str) -> core.Node:
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
    return struct(
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
