"""Small clusters of many kinds, drawn by a seed: what most plans are like, from one pod to two hundred."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from joinery.decisions.scheduling.problem import Options, Problem
from joinery.gateways.ec2.instancetypes.resolve import resolve
from joinery.objects.karpenter.labels import ARCH, CAPACITY_TYPE, HOSTNAME, ZONE
from joinery.objects.snapshot.offerings import InstanceType
from joinery.objects.snapshot.snapshot import Snapshot
from joinery_cli.sources import SAMPLE, load_catalog
from simulator.builders import EPOCH, daemon_set, node, node_class, node_pool, pod

ZONES = tuple(f"us-east-1{letter}" for letter in "abc")
COUNTS = (1, 2, 3, 5, 8, 12, 20, 35, 60, 100, 200)
_CPU = (50, 100, 250, 500, 750, 1000, 1500, 2000, 3000, 4000, 7000)
_GIB = (0.125, 0.25, 0.5, 1, 2, 3, 4, 6, 8, 16, 30)
_ORDINARY = [
    "karpenter.k8s.aws/instance-category=c,m,r",
    {"key": "karpenter.k8s.aws/instance-generation", "operator": "Gt", "values": ["5"]},
]
_ON_DEMAND = [*_ORDINARY, f"{CAPACITY_TYPE}=on-demand"]
_EITHER = [*_ORDINARY, f"{CAPACITY_TYPE}=spot,on-demand"]
_BATCH = {"key": "example.com/batch", "value": "true", "effect": "NoSchedule"}

Draw = random.Random
Objects = Sequence[Any]


@cache
def instance_types() -> tuple[InstanceType, ...]:
    """The sample catalogue's, as nodes of a default EC2NodeClass in three zones have them."""
    return tuple(resolve(load_catalog(str(SAMPLE)).catalog, node_class(zones=ZONES)))


def _sizes(draw: Draw) -> Mapping[str, Any]:
    return {"cpu": f"{draw.choice(_CPU)}m", "memory": f"{int(draw.choice(_GIB) * 1024)}Mi"}


def _apps(draw: Draw, count: int, ruled: Callable[[Draw, str], Mapping[str, Any]] | None = None) -> list[Any]:
    """So many pods in a few workloads; ``ruled``: what else the spec of some of them says, by app."""
    found: list[Any] = []
    number = 0
    while len(found) < count:
        name, copies = f"app-{number}", min(count - len(found), draw.choice((1, 2, 3, 3, 5, 10)) * (1 + count // 50))
        size = _sizes(draw)
        more = ruled(draw, name) if ruled and (number == 0 or draw.random() < 0.5) else {}
        found += [pod(f"{name}-{i}", labels={"app": name}, **size, **more) for i in range(copies)]
        number += 1
    return found


def _selector(app: str) -> Mapping[str, Any]:
    return {"matchLabels": {"app": app}}


def _spread(key: str, how: str = "DoNotSchedule", skew: int = 1) -> Callable[[Draw, str], Mapping[str, Any]]:
    def rule(_: Draw, app: str) -> Mapping[str, Any]:
        listed = {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": how, "labelSelector": _selector(app)}
        return {"spread": [listed]}

    return rule


def _apart(key: str, *, hard: bool) -> Callable[[Draw, str], Mapping[str, Any]]:
    def rule(_: Draw, app: str) -> Mapping[str, Any]:
        term = {"labelSelector": _selector(app), "topologyKey": key}
        if hard:
            return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
        soft = [{"weight": 100, "podAffinityTerm": term}]
        return {"affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": soft}}}

    return rule


def _together(key: str) -> Callable[[Draw, str], Mapping[str, Any]]:
    def rule(_: Draw, app: str) -> Mapping[str, Any]:
        term = {"labelSelector": _selector(app), "topologyKey": key}
        return {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}

    return rule


def _preferring(draw: Draw, _: str) -> Mapping[str, Any]:
    key, values = draw.choice(
        ((ZONE, [draw.choice(ZONES)]), (ARCH, ["amd64"]), ("karpenter.k8s.aws/instance-family", ["m7i", "m6i"]))
    )
    preference = {"matchExpressions": [{"key": key, "operator": "In", "values": values}]}
    soft = [{"weight": draw.choice((1, 50, 100)), "preference": preference}]
    return {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": soft}}}


def _selecting(draw: Draw, _: str) -> Mapping[str, Any]:
    choices = [{ZONE: zone} for zone in ZONES] + [{ARCH: "amd64"}, {ARCH: "arm64"}]
    return {"node_selector": draw.choice(choices)}


def _port(draw: Draw, _: str) -> Mapping[str, Any]:
    ports = [{"hostPort": draw.choice((80, 8080))}]
    return {"init_containers": [{"name": "door", "restartPolicy": "Always", "ports": ports}]}


def _tolerating(draw: Draw, _: str) -> Mapping[str, Any]:
    return {"tolerations": [{"key": "example.com/batch", "operator": "Exists"}]}


def _plain(draw: Draw, count: int) -> Objects:
    return [node_pool(requirements=_ON_DEMAND), *_apps(draw, count)]


def _with(ruled: Callable[[Draw, str], Mapping[str, Any]], *, either: bool = False) -> Callable[[Draw, int], Objects]:
    return lambda draw, count: [node_pool(requirements=_EITHER if either else _ON_DEMAND), *_apps(draw, count, ruled)]


def _alike(draw: Draw, count: int) -> Objects:
    size = _sizes(draw)
    return [node_pool(requirements=_ON_DEMAND), *(pod(f"web-{i}", **size) for i in range(count))]


def _spot(draw: Draw, count: int) -> Objects:
    return [node_pool(requirements=_EITHER), *_apps(draw, count)]


def _running(draw: Draw, count: int) -> Objects:
    there = [
        node(f"n-{i}", cpu=str(draw.choice((2, 4, 8))), memory=f"{draw.choice((8, 16, 32))}Gi", zone=draw.choice(ZONES))
        for i in range(draw.randint(1, 3))
    ]
    return [node_pool(requirements=_ON_DEMAND), *there, *_apps(draw, count)]


def _daemons(draw: Draw, count: int) -> Objects:
    return [node_pool(requirements=_ON_DEMAND), daemon_set(cpu="150m", memory="256Mi"), *_apps(draw, count)]


def _weighted(draw: Draw, count: int) -> Objects:
    heavy = node_pool(
        "heavy", weight=50, requirements=[*_ON_DEMAND, f"{ARCH}=amd64"], limits={"cpu": str(draw.choice((4, 16, 64)))}
    )
    return [heavy, node_pool("light", requirements=_ON_DEMAND), *_apps(draw, count)]


def _tainted(draw: Draw, count: int) -> Objects:
    batch = node_pool("batch", requirements=[*_ORDINARY, f"{CAPACITY_TYPE}=spot"], taints=[_BATCH])
    return [node_pool(requirements=_ON_DEMAND), batch, *_apps(draw, count, _tolerating)]


def _limited(draw: Draw, count: int) -> Objects:
    return [node_pool(requirements=_ON_DEMAND, limits={"nodes": str(max(2, count // 4))}), *_apps(draw, count)]


def _mixed(draw: Draw, count: int) -> Objects:
    rules = (_spread(ZONE), _apart(HOSTNAME, hard=True), _preferring, _selecting, _spread(HOSTNAME, skew=2))
    return [node_pool(requirements=_EITHER), *_apps(draw, count, lambda chance, app: chance.choice(rules)(chance, app))]


KINDS: Mapping[str, Callable[[Draw, int], Objects]] = {
    "plain": _plain,
    "alike": _alike,
    "spot or on-demand": _spot,
    "zones apart": _with(_spread(ZONE)),
    "capacity types apart": _with(_spread(CAPACITY_TYPE), either=True),
    "hosts apart": _with(_spread(HOSTNAME)),
    "anti-affinity over hosts": _with(_apart(HOSTNAME, hard=True)),
    "anti-affinity over zones": _with(_apart(ZONE, hard=True)),
    "affinity over zones": _with(_together(ZONE)),
    "affinity over hosts": _with(_together(HOSTNAME)),
    "host ports": _with(_port),
    "node selectors": _with(_selecting),
    "running nodes": _running,
    "daemons": _daemons,
    "weights and limits": _weighted,
    "taints": _tainted,
    "a limit of nodes": _limited,
    "preferred nodes": _with(_preferring, either=True),
    "preferred hosts apart": _with(_apart(HOSTNAME, hard=False)),
    "preferred zones apart": _with(_spread(ZONE, "ScheduleAnyway")),
    "of everything": _mixed,
}

_FIELDS = {"Pod": "pods", "Node": "nodes", "NodePool": "node_pools", "DaemonSet": "daemon_sets"}


def problem(kind: str, count: int, seed: int) -> Problem:
    """One cluster: so many pods of a kind."""
    fields: dict[str, Any] = {}
    for one in KINDS[kind](random.Random(f"{kind}/{count}/{seed}"), count):  # noqa: S311 - a scenario, not a secret
        name = _FIELDS[type(one).__name__]
        fields[name] = (*fields.get(name, ()), one)
    snapshot = Snapshot(now=EPOCH, node_classes=(node_class(zones=ZONES),), **fields)
    options = Options(only_marked_unschedulable=False, seed=0)
    return Problem(snapshot=snapshot, instance_types={"default": instance_types()}, options=options)


def family(seeds: int) -> Iterator[tuple[str, int, int]]:
    """Every kind with every number of pods, several times."""
    return ((kind, count, seed) for kind in KINDS for count in COUNTS for seed in range(seeds))
