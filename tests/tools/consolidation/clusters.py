"""A small cluster and a DisruptionPlan about it, made by hand."""

from typing import Any

from tools.consolidation.catalogue import Catalogue, of

Document = dict[str, Any]
NOW = "2026-01-01T12:00:00Z"
_BEGAN = "2025-12-01T00:00:00Z"


def _type(name: str, price: float) -> Document:
    sizes = {"cpu": "3920m", "memory": "6584Mi", "pods": "58"}
    zones = ("us-east-1a", "us-east-1b")
    labels = {
        "node.kubernetes.io/instance-type": name,
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/zone": [*zones],
        "karpenter.sh/capacity-type": ["on-demand", "spot"],
        "karpenter.k8s.aws/instance-tenancy": ["dedicated", "default"],
        "topology.k8s.aws/zone-id": ["use1-az6", "use1-az1"],
    }
    offerings = [
        {"zone": zone, "capacityType": kind, "price": price * share, "available": True}
        for zone in zones
        for kind, share in (("on-demand", 1.0), ("spot", 0.4))
    ]
    return {"name": name, "labels": labels, "capacity": sizes, "allocatable": sizes, "offerings": offerings}


def catalogue() -> Catalogue:
    """Two instance types of one size, at 0.2 and 0.1 $/h."""
    zones = [{"name": "us-east-1a", "id": "use1-az6"}, {"name": "us-east-1b", "id": "use1-az1"}]
    return of([_type("c5.xlarge", 0.2), _type("c8a.xlarge", 0.1)], zones)


def pool(name: str = "default", **disruption: Any) -> Document:
    """A NodePool whose nodes may be disrupted at any time, unless its ``disruption`` says otherwise."""
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    free = {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]}
    template = {"spec": {"requirements": [], "nodeClassRef": reference, "expireAfter": "720h"}}
    return {
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name, "uid": f"pool-{name}"},
        "spec": {"template": template, "disruption": free | disruption},
    }  # fmt: skip


def machine(number: int, node_pool: str = "default") -> list[Document]:
    """The Node ``n<number>`` and its NodeClaim ``c<number>``: a c5.xlarge in us-east-1a, on demand."""
    labels = {
        "karpenter.sh/nodepool": node_pool,
        "node.kubernetes.io/instance-type": "c5.xlarge",
        "topology.kubernetes.io/zone": "us-east-1a",
        "karpenter.sh/capacity-type": "on-demand",
    }
    provider = f"aws:///us-east-1a/i-{number:017x}"
    began = ("Launched", "Registered", "Initialized")
    done = [{"type": kind, "status": "True", "lastTransitionTime": _BEGAN} for kind in began]
    ready = {"type": "Ready", "status": "True"}
    joined = {"karpenter.sh/registered": "true", "karpenter.sh/initialized": "true"}
    return [
        {
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{number}", "labels": labels | joined},
            "spec": {"providerID": provider}, "status": {"conditions": [ready]},
        },
        {
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": {"name": f"c{number}", "labels": labels, "creationTimestamp": _BEGAN},
            "spec": {}, "status": {"nodeName": f"n{number}", "providerID": provider, "conditions": [*done, ready]},
        },
    ]  # fmt: skip


def pod(name: str, node: str, owner: str = "ReplicaSet", **annotations: str) -> Document:
    """A running pod of the application ``app``."""
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "default", "labels": {"app": "app"}, "annotations": annotations,
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": owner, "name": "app", "uid": "app"}],
        },
        "spec": {"nodeName": node, "containers": [{"name": "main", "image": "app"}]},
        "status": {"phase": "Running", "startTime": _BEGAN},
    }  # fmt: skip


def launch(name: str, *pods: str) -> Document:
    """A c8a.xlarge in us-east-1b, on demand."""
    offering = {"instanceType": "c8a.xlarge", "zone": "us-east-1b", "capacityType": "on-demand", "price": 0.1}
    return {
        "name": name, "nodePool": "default", "requirements": [], "labels": {"team": "a"}, "taints": [],
        "startupTaints": [], "requests": {}, "instanceTypes": ["c8a.xlarge"], "offering": offering, "pods": [*pods],
    }  # fmt: skip


def cluster() -> list[Document]:
    """Three nodes of the default pool: n1 runs a and b and a daemon, n2 runs c, n3 nothing."""
    daemon = pod("daemon", "n1", "DaemonSet")
    placed = [pod("a", "n1"), pod("b", "n1"), daemon, pod("c", "n2")]
    return [pool(), *machine(1), *machine(2), *machine(3), *placed]


def plan() -> Document:
    """First n3 goes, then n1: a moves to n2 and b to a new node."""
    empty = {
        "reason": "Empty", "message": "", "retire": ["c3"], "launch": [], "existing": [], "pods": [],
        "savings": 0.2, "movePrice": 0.0,
    }  # fmt: skip
    underutilized = {
        "reason": "Underutilized", "message": "", "retire": ["c1"], "launch": [launch("default-1", "default/b")],
        "existing": [{"node": "n2", "nodeClaim": "c2", "pods": ["default/a"]}], "pods": ["default/a", "default/b"],
        "savings": 0.1, "movePrice": 0.02,
    }  # fmt: skip
    return {
        "apiVersion": "joinery.dev/v1", "kind": "DisruptionPlan", "now": NOW, "commands": [empty, underutilized],
        "held": [{"nodeClaim": "c2", "reason": "its price is not worth the moves"}],
        "cost": {"before": 0.6, "after": 0.3, "lowerBound": 0.3, "gap": round(0.02 / 0.3, 4)},
        "moves": {"pods": 2, "price": 0.02},
        "curve": [{"pods": 0, "hourly": 0.4}, {"pods": 2, "hourly": 0.3}],
        "solver": {"method": "by hand", "seconds": 0.0},
    }  # fmt: skip
