"""Nodes for pods that a plan gave up: of every family a pool allows, the largest type, in every zone and way of buying.

If such a pod can run on any node that could be bought, it can run on one of these, for nothing in these worlds asks for
a small node.
"""

from collections.abc import Iterator, Mapping
from itertools import product

from joinery.objects.karpenter import labels as keys
from joinery.objects.karpenter.meta import Requirement
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.kubernetes import core
from joinery.objects.kubernetes.quantity import texts
from joinery.objects.snapshot.offerings import InstanceType
from simulator.kubernetes.resources import from_document
from tests.oracle.worlds import TIER, World, types

FAMILY = f"{keys.AWS_GROUP}/instance-family"


def probes(world: World) -> list[core.Node]:
    """The nodes, with the labels and taints that they would have."""
    chosen = [probe for pool in world.pools for probe in _of_pool(pool)]
    return [_node(world, number, *probe) for number, probe in enumerate(chosen)]


Labels = Mapping[str, str]


def _of_pool(pool: NodePool) -> Iterator[tuple[NodePool, InstanceType, Labels]]:
    asked = [
        Requirement.model_validate(requirement.model_dump()) for requirement in pool.spec.template.spec.requirements
    ]
    allowed = [
        kind for kind in types() if all(_allows(requirement, kind.labels.get(requirement.key)) for requirement in asked)
    ]
    largest: dict[str, InstanceType] = {}
    for kind in sorted(allowed, key=lambda kind: kind.allocatable["cpu"]):
        largest[kind.labels[FAMILY][0]] = kind
    tiers = next((requirement.values for requirement in asked if requirement.key == TIER), [""])
    for kind, tier in product(largest.values(), tiers):
        for offering in kind.offerings:
            where = {
                keys.ZONE: offering.zone,
                keys.CAPACITY_TYPE: offering.capacity_type,
                **({TIER: tier} if tier else {}),
            }
            if all(
                _allows(requirement, (where[requirement.key],)) for requirement in asked if requirement.key in where
            ):
                yield pool, kind, where


def _allows(asked: Requirement, values: tuple[str, ...] | None) -> bool:
    if values is None:
        return True  # decided elsewhere: by the offering, or by the pool itself
    match asked.operator:
        case "In":
            return bool(set(values) & set(asked.values))
        case "Lt":
            return any(int(value) < int(asked.values[0]) for value in values)
    raise AssertionError(f"no world asks for {asked.operator}")


def _node(world: World, number: int, pool: NodePool, kind: InstanceType, where: Labels) -> core.Node:
    name = f"probe-{world.seed}-{number}"
    single = {key: values[0] for key, values in kind.labels.items() if len(values) == 1}
    template = pool.spec.template
    labels = {
        **single,
        **template.metadata.labels,
        **where,
        keys.HOSTNAME: name,
        keys.NODE_POOL: pool.metadata.name,
    }
    taints = [taint.model_dump(by_alias=True) for taint in template.spec.taints]
    room = dict(texts(kind.allocatable))
    document = {
        "metadata": {"name": name, "labels": labels},
        "spec": {"providerID": f"aws:///probe/{name}", "taints": taints},
        "status": {"capacity": room, "allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]},
    }
    node: core.Node = from_document("Node", document)
    return node
