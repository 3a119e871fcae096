"""Seeded clusters that have become too large: Deployments, how far each is scaled down, and what may be bought when.

One seed is one cluster, the same every time. Its nodes are bought by the product for all replicas; then most of these
go, and every third cluster may buy from cheaper families than it was built of. What is left is to be consolidated.
"""

from dataclasses import dataclass
from random import Random
from typing import Any

from joinery.objects.karpenter import labels as keys
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.kubernetes.core import PodDisruptionBudget
from simulator import builders

Document = dict[str, Any]
#: All that is sold: worlds are small, and a market of a few families makes their decisions quick.
FAMILIES = ("c7a", "m7a", "r7i", "t3")
#: What clusters of old types are built of.
OLD = "r7i"
_CPUS = ("200m", "300m", "500m", "700m", "1", "1500m", "2")
_MEMORIES = ("256Mi", "512Mi", "1Gi", "2Gi", "4Gi")


@dataclass(frozen=True)
class Workload:
    """A Deployment. ``replicas`` at first, ``left`` after the scale-down; ``spec``: what its pods demand besides.

    ``budget``: how many of its pods may be missing at once; None where nobody says.
    """

    name: str
    replicas: int
    left: int
    cpu: str
    memory: str
    spec: Document
    budget: int | None = None

    def document(self) -> Document:
        """The Deployment, with all its replicas."""
        requests = {"cpu": self.cpu, "memory": self.memory}
        container = {"name": "main", "image": "none", "resources": {"requests": requests}}
        template = {"metadata": {"labels": {"app": self.name}}, "spec": {"containers": [container], **self.spec}}
        spec = {"replicas": self.replicas, "selector": {"matchLabels": {"app": self.name}}, "template": template}
        return {"metadata": {"name": self.name}, "spec": spec}

    def disruption_budget(self) -> PodDisruptionBudget | None:
        """Its PodDisruptionBudget, if it has one."""
        if self.budget is None:
            return None
        return builders.pdb(self.name, labels={"app": self.name}, max_unavailable=self.budget)


@dataclass(frozen=True)
class Shrinking:
    """The cluster of a seed. ``families``: which its NodePool allows at first; in the end it allows all."""

    seed: int
    workloads: tuple[Workload, ...]
    families: tuple[str, ...]
    capacity_types: tuple[str, ...]
    largest: int

    def pool(self, families: tuple[str, ...]) -> NodePool:
        """Its NodePool, with these families. Any number of nodes may be disrupted at once, and at once."""
        requirements: list[Any] = [
            f"{keys.CAPACITY_TYPE}={','.join(self.capacity_types)}",
            f"{keys.AWS_GROUP}/instance-family={','.join(families)}",
            {"key": f"{keys.AWS_GROUP}/instance-cpu", "operator": "Gt", "values": ["3"]},
            {"key": f"{keys.AWS_GROUP}/instance-cpu", "operator": "Lt", "values": [str(self.largest + 1)]},
        ]
        return builders.node_pool(
            requirements=requirements, budgets=[{"nodes": "100%"}], consolidateAfter="0s", ready=False
        )

    @property
    def replicas(self) -> int:
        """How many pods there are at first."""
        return sum(workload.replicas for workload in self.workloads)

    @property
    def left(self) -> int:
        """How many pods there are after the scale-down."""
        return sum(workload.left for workload in self.workloads)


def shrinking(seed: int) -> Shrinking:
    """The cluster of a seed."""
    rng = Random(seed)
    workloads = tuple(_workload(rng, f"w{number}") for number in range(rng.randint(3, 7)))
    return Shrinking(
        seed=seed,
        workloads=workloads,
        families=(OLD,) if rng.random() < 1 / 3 else FAMILIES,
        capacity_types=rng.choice(((keys.ON_DEMAND,), (keys.SPOT, keys.ON_DEMAND))),
        largest=rng.choice((4, 8, 16)),
    )


def _workload(rng: Random, name: str) -> Workload:
    replicas = rng.randint(2, 12)
    left = max(1, round(replicas * rng.uniform(0.2, 0.8)))
    spec: Document = {"terminationGracePeriodSeconds": 1, **rng.choice(_DEMANDS)(name, rng)}
    budget = max(1, left // 2) if rng.random() < 0.3 else None
    return Workload(name, replicas, left, rng.choice(_CPUS), rng.choice(_MEMORIES), spec, budget)


def _spread(key: str, app: str, skew: int, otherwise: str) -> Document:
    rule = {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": otherwise}
    return {"topologySpreadConstraints": [{**rule, "labelSelector": {"matchLabels": {"app": app}}}]}


def _nothing(app: str, rng: Random) -> Document:
    return {}


def _zone_spread(app: str, rng: Random) -> Document:
    return _spread(keys.ZONE, app, rng.choice((1, 2)), "DoNotSchedule")


def _host_spread(app: str, rng: Random) -> Document:
    return _spread(keys.HOSTNAME, app, rng.choice((2, 3)), "DoNotSchedule")


def _soft_spread(app: str, rng: Random) -> Document:
    return _spread(rng.choice((keys.ZONE, keys.HOSTNAME)), app, 1, "ScheduleAnyway")


def _in_zone(app: str, rng: Random) -> Document:
    return {"nodeSelector": {keys.ZONE: rng.choice(builders.ZONES)}}


def _apart(app: str, rng: Random) -> Document:
    term = {"topologyKey": keys.HOSTNAME, "labelSelector": {"matchLabels": {"app": app}}}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


_DEMANDS = (_nothing, _nothing, _nothing, _zone_spread, _host_spread, _soft_spread, _in_zone, _apart)
