"""A made cluster's objects."""

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from joinery.decisions.scheduling.packing import PlacedOffering
from joinery.objects.karpenter.labels import ARCH, AWS_GROUP, CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.kubernetes.core import DaemonSet, PodDisruptionBudget
from joinery.objects.snapshot.offerings import InstanceType
from simulator import builders
from simulator.disrupted import joined, launched
from tools.consolidation.making.first_fit import PackedNode, Replica
from tools.consolidation.making.workloads import ZONES

#: When a made cluster is decided about, and how long ago its oldest node came.
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
_OLDEST = timedelta(days=20)
#: Nodes and pods of the last hours would be within every consolidateAfter.
_YOUNGEST = timedelta(hours=6)
_DAEMONS = (("aws-node", 50, 64), ("kube-proxy", 100, 64), ("ebs-csi-node", 30, 120), ("log-agent", 100, 200))
_OF_TYPES = f"{AWS_GROUP}/instance"


def node_pool(name: str, capacity_types: Sequence[str], most_cpus: int, team: str = "", **disruption: Any) -> NodePool:
    """A NodePool of general-purpose types up to so many CPUs; with ``team`` for that team's pods alone."""
    requirements: list[Any] = [
        f"{ARCH}=amd64",
        f"{_OF_TYPES}-category=c,m,r",
        {"key": f"{_OF_TYPES}-generation", "operator": "Gt", "values": ["4"]},
        f"{CAPACITY_TYPE}={','.join(capacity_types)}",
        f"{ZONE}={','.join(ZONES)}",
        {"key": f"{_OF_TYPES}-cpu", "operator": "Lt", "values": [str(most_cpus + 1)]},
        {"key": f"{_OF_TYPES}-cpu", "operator": "Gt", "values": ["1"]},
    ]
    free = {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]}
    taints = [{"key": "team", "value": team, "effect": "NoSchedule"}] if team else []
    labels = {"team": team} if team else {}
    return builders.node_pool(name, requirements=requirements, taints=taints, labels=labels, **(free | disruption))


def daemon_sets() -> list[DaemonSet]:
    """What runs on every node; the pods themselves are not among a made cluster's objects."""
    return [builders.daemon_set(name, cpu=f"{cpu}m", memory=f"{memory}Mi") for name, cpu, memory in _DAEMONS]


@dataclass
class Builder:
    """Makes nodes and what runs on them; names and times come from the order of the calls.

    ``types``: what nodes may be of, by name.
    """

    types: Mapping[str, InstanceType]
    chance: random.Random
    number: int = 0

    def machine(self, node: PackedNode, bought: PlacedOffering, pool: NodePool) -> Iterator[Any]:
        """A node with its claim, its pods, and their volumes."""
        self.number += 1
        name, created = f"{pool.metadata.name}-{self.number:04d}", self._moment(NOW - _OLDEST)
        rules = {INSTANCE_TYPE: bought.instance_type, ZONE: bought.zone, CAPACITY_TYPE: bought.capacity_type}
        claim = builders.node_claim(
            name,
            node_pool=pool.metadata.name,
            conditions=(),
            requirements=[f"{key}={value}" for key, value in rules.items()],
            labels=pool.spec.template.metadata.labels,
            taints=[taint.model_dump(mode="json") for taint in pool.spec.template.spec.taints],
        )
        yield from joined(launched(claim, pool, self.types[bought.instance_type], bought, created), created)
        for replica in node.replicas:
            yield from self._pod(replica, name, bought.zone, created)

    def _pod(self, replica: Replica, node: str, zone: str, not_before: datetime) -> Iterator[Any]:
        workload, began = replica.workload, self._moment(not_before)
        name = f"{workload.app}-{replica.index:05d}"
        if workload.has_volumes:
            yield builders.volume_claim(f"data-{name}", volume=f"pv-{name}")
            yield builders.volume(f"pv-{name}", zone=zone)
        yield builders.pod(
            name,
            cpu=f"{workload.cpu}m",
            memory=f"{workload.memory}Mi",
            labels={"app": workload.app},
            annotations=workload.annotations,
            node=node,
            owner=workload.app,
            created=began,
            volumes=[f"data-{name}"] if workload.has_volumes else (),
            **workload.spec,
        )

    def _moment(self, not_before: datetime) -> datetime:
        minutes = (NOW - _YOUNGEST - not_before) // timedelta(minutes=1)
        return not_before + timedelta(minutes=self.chance.randint(0, max(0, minutes)))


def disruption_budgets(nodes: Sequence[PackedNode], chance: random.Random) -> Iterator[PodDisruptionBudget]:
    """PodDisruptionBudgets for some of the workloads, a few of which allow nothing at the moment."""
    running = Counter(replica.workload.app for node in nodes for replica in node.replicas)
    for app, count in sorted(running.items()):
        if count < 2 or chance.random() > 0.4:
            continue
        allowed = 0 if chance.random() < 0.1 else 1
        yield builders.pdb(
            app,
            labels={"app": app},
            max_unavailable=1,
            allowed=allowed,
            current_healthy=count - 1 + allowed,
            desired_healthy=count - 1,
        )
