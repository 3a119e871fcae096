"""A made cluster's documents."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from tools.consolidation.catalogue import Catalogue
from tools.consolidation.documents import Document
from tools.consolidation.machines import Machine
from tools.consolidation.making.first_fit import PackedNode, Replica
from tools.consolidation.making.workloads import ZONE_KEY, ZONES

#: When a made cluster is decided about, and how long ago its oldest node came.
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
_OLDEST = timedelta(days=20)
#: Nodes and pods of the last hours would be within every consolidateAfter.
_YOUNGEST = timedelta(hours=6)
_DAEMONS = (("aws-node", 50, 64), ("kube-proxy", 100, 64), ("ebs-csi-node", 30, 120), ("log-agent", 100, 200))
_OWNER = "ReplicaSet"


def requirement(key: str, operator: str, *values: str) -> Document:
    return {"key": key, "operator": operator, "values": list(values)}


def node_class() -> Document:
    selector = [{"tags": {"karpenter.sh/discovery": "made"}}]
    return {
        "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "default"},
        "spec": {
            "amiSelectorTerms": [{"alias": "al2023@latest"}], "role": "nodes",
            "subnetSelectorTerms": selector, "securityGroupSelectorTerms": selector,
        },
    }  # fmt: skip


def node_pool(name: str, capacity_types: Sequence[str], most_cpus: int, team: str = "", **disruption: Any) -> Document:
    """A NodePool of general-purpose types up to so many CPUs; with ``team`` for that team's pods alone."""
    requirements = [
        requirement("kubernetes.io/arch", "In", "amd64"),
        requirement("karpenter.k8s.aws/instance-category", "In", "c", "m", "r"),
        requirement("karpenter.k8s.aws/instance-generation", "Gt", "4"),
        requirement("karpenter.sh/capacity-type", "In", *capacity_types),
        requirement(ZONE_KEY, "In", *ZONES),
        requirement("karpenter.k8s.aws/instance-cpu", "Lt", str(most_cpus + 1)),
        requirement("karpenter.k8s.aws/instance-cpu", "Gt", "1"),
    ]
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    spec = {"requirements": requirements, "expireAfter": "720h", "taints": taints(team), "nodeClassRef": reference}
    free = {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]}
    return {
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name, "uid": f"pool-{name}"},
        "spec": {
            "template": {"metadata": {"labels": {"team": team} if team else {}}, "spec": spec},
            "disruption": free | disruption,
        },
    }  # fmt: skip


def taints(team: str) -> list[Document]:
    return [{"key": "team", "value": team, "effect": "NoSchedule"}] if team else []


def daemon_sets() -> list[Document]:
    """What runs on every node; the pods themselves are not among a made cluster's objects."""
    return [
        {
            "apiVersion": "apps/v1", "kind": "DaemonSet",
            "metadata": {"name": name, "namespace": "kube-system", "uid": f"ds-{name}"},
            "spec": {
                "selector": {"matchLabels": {"app": name}},
                "template": {
                    "metadata": {"labels": {"app": name}},
                    "spec": {"tolerations": [{"operator": "Exists"}], "containers": [_container(name, cpu, memory)]},
                },
            },
        }
        for name, cpu, memory in _DAEMONS
    ]  # fmt: skip


def _container(image: str, cpu: int, memory: int) -> Document:
    return {"name": image, "image": image, "resources": {"requests": {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}}}


@dataclass
class Builder:
    """Makes the documents of nodes and of what runs on them; names and times come from the order of the calls."""

    catalogue: Catalogue
    chance: random.Random
    number: int = 0

    def machine(self, node: PackedNode, bought: dict[str, str], pool: Document) -> Iterator[Document]:
        """A node with its claim, its pods, and their volumes."""
        self.number += 1
        name, created = (
            f"ip-10-{self.number >> 16}-{self.number >> 8 & 255}-{self.number & 255}",
            self._moment(NOW - _OLDEST),
        )
        template = pool["spec"]["template"]
        chosen = {"instanceType": "node.kubernetes.io/instance-type", "zone": ZONE_KEY}
        chosen["capacityType"] = "karpenter.sh/capacity-type"
        yield from Machine(
            node=name,
            claim=f"{pool['metadata']['name']}-{self.number:04d}",
            offering=bought,
            labels=template["metadata"]["labels"],
            taints=template["spec"]["taints"],
            requirements=[requirement(key, "In", bought[part]) for part, key in chosen.items()],
            created=_text(created),
        ).documents(pool, self.catalogue)
        for replica in node.replicas:
            yield from self._pod(replica, name, bought["zone"], created)

    def _pod(self, replica: Replica, node: str, zone: str, not_before: datetime) -> Iterator[Document]:
        workload, began = replica.workload, _text(self._moment(not_before))
        app, name = workload.app, f"{workload.app}-{replica.index:05d}"
        if workload.has_volumes:
            yield from _volume(name, zone)
        owner = {"apiVersion": "apps/v1", "kind": _OWNER, "name": app, "uid": f"rs-{app}", "controller": True}
        volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": f"data-{name}"}}]
        conditions = [{"type": kind, "status": "True"} for kind in ("PodScheduled", "Ready")]
        yield {
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": name, "namespace": "default", "uid": f"default-{name}", "labels": {"app": app},
                "creationTimestamp": began, "ownerReferences": [owner],
                **({"annotations": workload.annotations} if workload.annotations else {}),
            },
            "spec": {
                "containers": [_container(app, workload.cpu, workload.memory)],
                "schedulerName": "default-scheduler", "priority": 0, **workload.spec,
                **({"volumes": volumes} if workload.has_volumes else {}), "nodeName": node,
            },
            "status": {"phase": "Running", "conditions": conditions},
        }  # fmt: skip

    def _moment(self, not_before: datetime) -> datetime:
        minutes = (NOW - _YOUNGEST - not_before) // timedelta(minutes=1)
        return not_before + timedelta(minutes=self.chance.randint(0, max(0, minutes)))


def _text(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def storage_class() -> Document:
    return {
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "gp3"},
        "provisioner": "ebs.csi.aws.com", "volumeBindingMode": "WaitForFirstConsumer",
    }  # fmt: skip


def _volume(pod: str, zone: str) -> Iterator[Document]:
    claim, volume = f"data-{pod}", f"pv-{pod}"
    common = {"accessModes": ["ReadWriteOnce"], "storageClassName": "gp3"}
    terms = [{"matchExpressions": [requirement(ZONE_KEY, "In", zone)]}]
    yield {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": claim, "namespace": "default", "uid": f"pvc-{pod}",
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
        },
        "spec": {**common, "volumeName": volume, "resources": {"requests": {"storage": "20Gi"}}},
        "status": {"phase": "Bound"},
    }  # fmt: skip
    yield {
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": volume},
        "spec": {
            **common, "capacity": {"storage": "20Gi"}, "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
            "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": f"vol-{pod}"},
            "claimRef": {"namespace": "default", "name": claim, "uid": f"pvc-{pod}"},
        },
        "status": {"phase": "Bound"},
    }  # fmt: skip


def disruption_budgets(nodes: Sequence[PackedNode], chance: random.Random) -> Iterator[Document]:
    """PodDisruptionBudgets for some of the workloads, a few of which allow nothing at the moment."""
    running = Counter(replica.workload.app for node in nodes for replica in node.replicas)
    for app, count in sorted(running.items()):
        if count < 2 or chance.random() > 0.4:
            continue
        allowed = 0 if chance.random() < 0.1 else 1
        yield {
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": app, "namespace": "default", "uid": f"pdb-{app}"},
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": app}}},
            "status": {
                "disruptionsAllowed": allowed, "currentHealthy": count - 1 + allowed, "desiredHealthy": count - 1,
                "expectedPods": count, "observedGeneration": 1,
            },
        }  # fmt: skip
