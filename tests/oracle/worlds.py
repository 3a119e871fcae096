"""Seeded clusters: pools, nodes with free room, volumes, and pods that ask for everything that a scheduler minds.

One seed is one world, the same every time. A world's pods select its nodes by a label and live in a namespace of their
own, so that worlds which share a control plane do not influence each other: no rule here looks past a pod's own node
selector.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any

from msgspec.structs import replace

from joinery.gateways.ec2.instancetypes.resolve import resolve
from joinery.objects.karpenter import labels as keys
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.kubernetes import core
from joinery.objects.snapshot.offerings import InstanceType
from simulator import builders
from simulator.cloud.market import ZONES, market
from simulator.kubernetes.resources import from_document

Document = dict[str, Any]
WORLD = "oracle.joinery.dev/world"
TIER = "oracle.joinery.dev/tier"
FAMILIES = ("c7a", "m7a", "m7g", "r7i", "t3")
#: The classes of priority. None of them pre-empts: a pod that lost its place would be one that nobody planned.
PRIORITIES = {"oracle-high": 1000, "oracle-low": 10}
CPUS = ("100m", "250m", "500m", "700m", "1", "1500m", "2", "3")
MEMORIES = ("128Mi", "512Mi", "1Gi", "2Gi", "3Gi", "6Gi")
DEDICATED = {"key": "dedicated", "value": "yes", "effect": "NoSchedule"}
TOLERATED = {**DEDICATED, "operator": "Equal"}


@dataclass
class World:
    """What a seed stands for. ``nodes`` exist already, with the ``bound`` pods on them; ``pods`` wait."""

    seed: int
    pools: list[NodePool] = field(default_factory=list)
    pods: list[core.Pod] = field(default_factory=list)
    nodes: list[core.Node] = field(default_factory=list)
    bound: list[core.Pod] = field(default_factory=list)
    volumes: list[core.PersistentVolume] = field(default_factory=list)
    volume_claims: list[core.PersistentVolumeClaim] = field(default_factory=list)
    daemon_sets: list[core.DaemonSet] = field(default_factory=list)

    @property
    def namespace(self) -> str:
        return f"oracle-{self.seed}"


@cache
def types() -> tuple[InstanceType, ...]:
    """What may be bought: five families in three zones, at recorded prices."""
    return resolve(market(FAMILIES, ZONES), builders.node_class())


def world(seed: int) -> World:
    """The world of a seed."""
    rng, made = Random(seed), World(seed)
    made.pools = _pools(made, rng)
    for number in range(rng.choice((0, 0, 1, 2, 3))):
        _add_node(made, rng, number)
    for number in range(rng.randint(2, 7)):
        _add_workload(made, rng, f"w{number}")
    if rng.random() < 0.15:
        made.pods += _impossible(made, rng)
    if rng.random() < 0.2:
        selector = {WORLD: str(seed)}
        made.daemon_sets.append(builders.daemon_set("agent", namespace=made.namespace, node_selector=selector))
    return made


def _pools(made: World, rng: Random) -> list[NodePool]:
    pools = [_pool(made, rng, "default", weight=None, taints=())]
    if rng.random() < 0.35:
        pools.append(_pool(made, rng, "second", weight=rng.choice((None, 10)), taints=()))
    if rng.random() < 0.3:
        pools.append(_pool(made, rng, "dedicated", weight=None, taints=(DEDICATED,)))
    return pools


def _pool(made: World, rng: Random, name: str, *, weight: int | None, taints: tuple[Document, ...]) -> NodePool:
    asked: list[Any] = [f"{keys.CAPACITY_TYPE}={rng.choice(('spot', 'on-demand', 'spot,on-demand'))}"]
    if rng.random() < 0.4:
        asked.append(f"{keys.ARCH}=amd64")
    asked.append({"key": f"{keys.AWS_GROUP}/instance-cpu", "operator": "Lt", "values": [rng.choice(("5", "9", "33"))]})
    if rng.random() < 0.3:
        asked.append({"key": TIER, "operator": "In", "values": ["gold", "silver"]})
    labels = {WORLD: str(made.seed)}
    return builders.node_pool(name, requirements=asked, labels=labels, taints=taints, weight=weight)


def _add_node(made: World, rng: Random, number: int) -> None:
    """A node of the default pool that runs one pod and has room for more."""
    kind = rng.choice([kind for kind in types() if kind.name.endswith((".large", ".xlarge"))])
    name, cores = f"old-{made.seed}-{number}", kind.allocatable["cpu"] // 1000
    labels = {WORLD: str(made.seed), keys.ARCH: kind.labels[keys.ARCH][0], keys.HOSTNAME: name}
    made.nodes.append(
        builders.node(
            name, cpu=f"{kind.allocatable['cpu']}m", memory=str(kind.allocatable["memory"]),
            pods=kind.allocatable["pods"],
            zone=rng.choice(ZONES), instance_type=kind.name, labels=labels, finalizers=(),
        )
    )  # fmt: skip
    cpu = f"{rng.randint(1, max(1, cores)) * 500}m"
    made.bound.append(_pod(made, f"old-{number}", {"app": f"w{number}"}, {"nodeName": name}, cpu=cpu, memory="512Mi"))


def _add_workload(made: World, rng: Random, app: str) -> None:
    """Replicas of one description, with one or two demands of a kind."""
    count, spec = rng.randint(1, 10), dict[str, Any]()
    for demand in dict.fromkeys(rng.choices(_DEMANDS, k=rng.choice((0, 1, 1, 2)))):
        demand(spec, app, rng)
    if any(pool.spec.template.spec.taints for pool in made.pools) and rng.random() < 0.4:
        spec["tolerations"] = [TOLERATED]
    if rng.random() < 0.2:
        spec["priorityClassName"] = rng.choice(sorted(PRIORITIES))
    cpu, memory = rng.choice(CPUS), rng.choice(MEMORIES)
    pods = [_pod(made, f"{app}-{n}", {"app": app}, spec, cpu=cpu, memory=memory) for n in range(count)]
    if rng.random() < 0.12:
        pods[0] = _with_volume(made, pods[0], rng.choice(ZONES))
    made.pods += pods


def _pod(made: World, name: str, labels: dict[str, str], spec: Document, *, cpu: str, memory: str) -> core.Pod:
    ports = [{"containerPort": port, "hostPort": port} for port in spec.get("hostPorts", ())]
    container = {"name": "main", "resources": {"requests": {"cpu": cpu, "memory": memory}}, "ports": ports}
    rest = {key: value for key, value in spec.items() if key not in ("hostPorts", "nodeSelector")}
    selector = {WORLD: str(made.seed), **spec.get("nodeSelector", {})}
    metadata = {"name": name, "namespace": made.namespace, "labels": labels}
    document = {"metadata": metadata, "spec": {"containers": [container], "nodeSelector": selector, **rest}}
    pod: core.Pod = from_document("Pod", document)
    return pod


def _with_volume(made: World, pod: core.Pod, zone: str) -> core.Pod:
    """The pod with a volume of that zone."""
    name = f"{made.namespace}-{pod.metadata.name}"
    made.volumes.append(builders.volume(name, zone=zone))
    made.volume_claims.append(builders.volume_claim(pod.metadata.name, volume=name, namespace=made.namespace))
    source = {"name": "data", "persistentVolumeClaim": {"claimName": pod.metadata.name}}
    volumes = from_document("Pod", {"spec": {"volumes": [source]}}).spec.volumes
    return replace(pod, spec=replace(pod.spec, volumes=volumes))


def _impossible(made: World, rng: Random) -> list[core.Pod]:
    """Pods that no node of any pool can take, each for another reason."""
    choices: list[tuple[Document, str]] = [
        ({}, "200"),
        ({"nodeSelector": {keys.ZONE: "us-east-1z"}}, "1"),
        ({"nodeSelector": {keys.ARCH: "s390x"}}, "1"),
        ({"affinity": {"podAffinity": _required("nobody", keys.ZONE)}}, "1"),
    ]
    spec, cpu = rng.choice(choices)
    return [_pod(made, f"impossible-{n}", {"app": "impossible"}, spec, cpu=cpu, memory="512Mi") for n in range(2)]


def _required(app: str, key: str) -> Document:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


# --- what a workload may demand -------------------------------------------------------------------------------------


def _zone_spread(spec: Document, app: str, rng: Random) -> None:
    rule = _spread(keys.ZONE, app, rng.choice((1, 1, 2)), "DoNotSchedule")
    if rng.random() < 0.2:
        rule["minDomains"] = rng.choice((2, 3))
    spec.setdefault("topologySpreadConstraints", []).append(rule)


def _host_spread(spec: Document, app: str, rng: Random) -> None:
    rule = _spread(keys.HOSTNAME, app, rng.choice((1, 2, 3)), "DoNotSchedule")
    spec.setdefault("topologySpreadConstraints", []).append(rule)


def _soft_spread(spec: Document, app: str, rng: Random) -> None:
    rule = _spread(rng.choice((keys.ZONE, keys.HOSTNAME)), app, 1, "ScheduleAnyway")
    spec.setdefault("topologySpreadConstraints", []).append(rule)


def _spread(key: str, app: str, skew: int, otherwise: str) -> Document:
    selector = {"matchLabels": {"app": app}}
    return {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": otherwise, "labelSelector": selector}


def _apart(spec: Document, app: str, rng: Random) -> None:
    """From its own kind, or from another workload."""
    other = rng.choice((app, app, "w0"))
    spec.setdefault("affinity", {})["podAntiAffinity"] = _required(other, keys.HOSTNAME)


def _zones_apart(spec: Document, app: str, rng: Random) -> None:
    spec.setdefault("affinity", {})["podAntiAffinity"] = _required(app, keys.ZONE)


def _together(spec: Document, app: str, rng: Random) -> None:
    """With its own kind in a zone, or with another workload in its zone or on its node."""
    other, key = rng.choice(((app, keys.ZONE), ("w0", keys.ZONE), ("w0", keys.HOSTNAME)))
    spec.setdefault("affinity", {})["podAffinity"] = _required(other, key)


def _selected(spec: Document, app: str, rng: Random) -> None:
    choices = [
        (keys.ZONE, rng.choice(ZONES)),
        (keys.ARCH, "amd64"),
        (keys.CAPACITY_TYPE, rng.choice(("spot", "on-demand"))),
    ]
    key, value = rng.choice([*choices, (f"{keys.AWS_GROUP}/instance-family", rng.choice(FAMILIES)), (TIER, "gold")])
    spec.setdefault("nodeSelector", {})[key] = value


def _node_affinity(spec: Document, app: str, rng: Random) -> None:
    expression = rng.choice(
        [
            {"key": keys.ZONE, "operator": "In", "values": rng.sample(ZONES, 2)},
            {"key": keys.ZONE, "operator": "NotIn", "values": [rng.choice(ZONES)]},
            {"key": f"{keys.AWS_GROUP}/instance-cpu", "operator": "Gt", "values": ["3"]},
            {"key": TIER, "operator": "DoesNotExist"},
        ]
    )
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    spec.setdefault("affinity", {})["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": terms}


def _port(spec: Document, app: str, rng: Random) -> None:
    spec["hostPorts"] = [rng.choice((8080, 9090))]


def _init(spec: Document, app: str, rng: Random) -> None:
    spec["initContainers"] = [{"name": "init", "resources": {"requests": {"cpu": rng.choice(("1", "2500m"))}}}]


_DEMANDS: list[Callable[[Document, str, Random], None]] = [
    _zone_spread, _zone_spread, _host_spread, _soft_spread, _apart, _zones_apart, _together, _selected, _node_affinity,
    _port,
    _init,
]  # fmt: skip
