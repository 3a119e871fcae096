"""The kinds of clusters that can be made up. The same kind, seed and number of nodes give the same bytes."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Any, Protocol

from joinery.gateways.ec2.catalog.document import Catalog
from joinery.gateways.ec2.offline import default_class, instance_types
from joinery.objects.karpenter.labels import AWS_GROUP, ON_DEMAND, SPOT
from joinery.objects.snapshot.offerings import InstanceType
from simulator import builders
from simulator.kubernetes.resources import document
from tools.bench.frame import Document
from tools.consolidation.making import objects, workloads
from tools.consolidation.making.first_fit import PackedNode, Shop, pack, size_of
from tools.consolidation.making.workloads import Workload

_OLD_FAMILIES = ("c5", "m5", "r5")
_TIGHT_TYPE = "c6a.4xlarge"


class Fill(Protocol):
    """Workloads of a batch: a prefix for their names, and about how many pods."""

    def __call__(self, chance: random.Random, prefix: str, *, total: int) -> Iterator[Workload]: ...


Shrink = Callable[[Sequence[PackedNode], Shop, random.Random], None]


# -- what goes ---------------------------------------------------------------------------------------------------------


def half_of_most(nodes: Sequence[PackedNode], shop: Shop, chance: random.Random) -> None:
    """Workloads are scaled down, each to a share of its own; a fifth of them are not."""
    shares: dict[str, float] = {}
    for node in nodes:
        for app in sorted(node.apps):
            shares.setdefault(app, 1.0 if chance.random() < 0.2 else chance.uniform(0.1, 0.7))
        node.replicas = [replica for replica in node.replicas if chance.random() < shares[replica.workload.app]]


def some(nodes: Sequence[PackedNode], shop: Shop, chance: random.Random, *, share: float) -> None:
    """So large a share of the pods end, any of them."""
    for node in nodes:
        node.replicas = [replica for replica in node.replicas if chance.random() >= share]


def down_to_a_share(nodes: Sequence[PackedNode], shop: Shop, chance: random.Random) -> None:
    """Each node is left 20 to 70 % used, as weeks of comings and goings do."""
    for node in nodes:
        size = size_of(shop.types[shop.offering(node).instance_type])
        share = chance.uniform(0.2, 0.7)
        chance.shuffle(node.replicas)
        cpu, memory = node.cpu, node.memory
        while node.replicas and max(cpu / size.cpu, memory / size.memory) > share:
            gone = node.replicas.pop().workload
            cpu, memory = cpu - gone.cpu, memory - gone.memory


def nothing(nodes: Sequence[PackedNode], shop: Shop, chance: random.Random) -> None:
    """Everything stays."""


# -- what comes --------------------------------------------------------------------------------------------------------


def to_the_brim(chance: random.Random, prefix: str, *, total: int, cpu: int, memory: int) -> Iterator[Workload]:
    """Pods of one node each time, every one of its own size, that leave no room on it."""
    left_cpu, left_memory, numbers = cpu, memory, count()
    while left_cpu:
        one = min(left_cpu, chance.choice((100, 150, 250, 400, 500, 750, 1000, 1500, 2000)))
        is_last = one == left_cpu
        own = (
            left_memory
            if is_last
            else min(int(one * left_memory / left_cpu * chance.uniform(0.8, 1.2)), left_memory * 9 // 10)
        )
        if not is_last and left_cpu - one < 100:
            continue
        left_cpu, left_memory = left_cpu - one, left_memory - own
        yield Workload(app=f"{prefix}svc-{next(numbers):02d}", count=1, cpu=one, memory=own)


@dataclass(frozen=True, kw_only=True)
class Kind:
    """How clusters of a kind come to be.

    fill             what runs on its nodes before anything goes
    batch_pods       about how many pods are packed together; packing takes the square of them
    shrink           what goes afterwards
    capacity_types   what its pool allows
    most_cpus        of its pool's instance types
    families         those that nodes were bought from; empty for any that the pool allows
    teams            NodePools for one team each, with what they say about disruption
    has_budgets      PodDisruptionBudgets for some workloads
    """

    fill: Fill
    batch_pods: int
    shrink: Shrink
    capacity_types: Sequence[str] = (ON_DEMAND,)
    most_cpus: int = 16
    families: Sequence[str] = ()
    teams: dict[str, dict[str, Any]] = field(default_factory=lambda: {"": {}})
    has_budgets: bool = False


_TEAMS: dict[str, dict[str, Any]] = {
    "general": {"budgets": [{"nodes": "10%"}]},
    "batch": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "5m", "budgets": [{"nodes": "2"}]},
    "steady": {"consolidateAfter": "Never", "budgets": [{"nodes": "10%"}]},
    "office": {
        "budgets": [
            {"nodes": "20%"},
            {"nodes": "0", "reasons": ["Underutilized"], "schedule": "0 9 * * mon-fri", "duration": "8h"},
        ]
    },
    "night": {
        "consolidateAfter": "10m",
        "budgets": [{"nodes": "15%"}, {"nodes": "0", "schedule": "0 20 * * *", "duration": "6h"}],
    },
}
_services = partial(workloads.services, kinds=18)
_fragments = Kind(
    fill=partial(workloads.services, kinds=14, sizes=workloads.SMALL_SIZES), batch_pods=2500, shrink=down_to_a_share
)
#: Twenty pods a node: 5,000 nodes run 100,000.
_large = replace(_fragments, fill=partial(workloads.services, kinds=14, sizes=workloads.SMALL_SIZES[1:]))
KINDS: dict[str, Kind] = {
    "services": Kind(fill=_services, batch_pods=1100, shrink=half_of_most),
    "trace": Kind(fill=workloads.jobs, batch_pods=120, shrink=partial(some, share=0.45), most_cpus=64),
    "mix": Kind(fill=workloads.mixed, batch_pods=800, shrink=half_of_most, has_budgets=True),
    "old-prices": Kind(fill=_services, batch_pods=900, shrink=partial(some, share=0.08), families=_OLD_FAMILIES),
    "spot": Kind(fill=workloads.either_capacity, batch_pods=900, shrink=half_of_most, capacity_types=(SPOT, ON_DEMAND)),
    "fragmented": _fragments,
    "large": _large,
    "tight": Kind(fill=partial(to_the_brim, cpu=0, memory=0), batch_pods=1, shrink=nothing, families=("c6a",)),
    "budgets": Kind(fill=_services, batch_pods=500, shrink=half_of_most, teams=_TEAMS),
}


def make(kind_name: str, seed: int, nodes: int, catalog: Catalog) -> list[Document]:
    """The objects of a cluster, which was bought from the catalogue."""
    kind, chance = KINDS[kind_name], random.Random(f"{kind_name}/{seed}/{nodes}")
    node_class = default_class()
    sold = instance_types([node_class], catalog)[node_class.metadata.name]
    shop = Shop([one for one in sold if _is_allowed(one, kind)])
    if kind_name == "tight":
        size = size_of(shop.types[_TIGHT_TYPE])
        kind = replace(kind, fill=partial(to_the_brim, cpu=size.cpu, memory=size.memory))
    builder = objects.Builder(shop.types, chance)
    packed: list[PackedNode] = []
    made: list[Any] = [node_class, *objects.daemon_sets()]
    for index, (team, disruption) in enumerate(kind.teams.items()):
        pool = objects.node_pool(team or "default", kind.capacity_types, kind.most_cpus, team, **disruption)
        share = nodes * (index + 1) // len(kind.teams) - nodes * index // len(kind.teams)
        own = _packed(kind, team, share, shop, chance)
        bought = [shop.offering(node) for node in own]
        kind.shrink(own, shop, chance)
        packed += own
        made.append(pool)
        for node, offering in zip(own, bought, strict=True):
            made += builder.machine(node, offering, pool)
    if kind.has_budgets:
        made += [builders.storage_class(), *objects.disruption_budgets(packed, chance)]
    return [document(item) for item in made]


def _is_allowed(sold: InstanceType, kind: Kind) -> bool:
    labels = {key.removeprefix(f"{AWS_GROUP}/instance-"): values[0] for key, values in sold.labels.items()}
    is_general = labels["kubernetes.io/arch"] == "amd64" and labels["category"] in ("c", "m", "r")
    if not is_general or int(labels["generation"]) <= 4 or not sold.offerings:
        return False
    return 1 < int(labels["cpu"]) <= kind.most_cpus and (not kind.families or labels["family"] in kind.families)


def _packed(kind: Kind, team: str, nodes: int, shop: Shop, chance: random.Random) -> list[PackedNode]:
    """So many full nodes. They are packed in batches, each of workloads of its own."""
    packed: list[PackedNode] = []
    for batch in count():
        prefix = f"{team}-" * bool(team) + f"p{batch}-"
        wanted = [_for_team(workload, team) for workload in kind.fill(chance, prefix, total=kind.batch_pods)]
        packed += pack(wanted, shop, chance, spot=SPOT in kind.capacity_types)
        if len(packed) >= nodes:
            # Not the first, which hold the largest pods.
            return chance.sample(packed, nodes)
    raise AssertionError("count() does not end")


def _for_team(workload: Workload, team: str) -> Workload:
    if not team:
        return workload
    toleration = {"key": "team", "operator": "Equal", "value": team, "effect": "NoSchedule"}
    return replace(workload, spec={**workload.spec, "node_selector": {"team": team}, "tolerations": [toleration]})
