"""Packs pods on new nodes as Karpenter's scheduler does: the largest first, on the first node with room for them.

A node's instance type is chosen at the end: the cheapest that holds its pods.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

from joinery.decisions.scheduling.packing import PlacedOffering
from joinery.objects.karpenter.labels import ON_DEMAND, SPOT
from joinery.objects.snapshot.offerings import InstanceType
from tools.consolidation.making.workloads import ZONES, Workload

#: What the DaemonSets of every made cluster take of a node: millicores, MiB, pods.
OVERHEAD = (280, 448, 4)
_MEBIBYTE = 2**20


@dataclass(frozen=True, slots=True)
class Replica:
    """One pod of a workload."""

    workload: Workload
    index: int


@dataclass(frozen=True, slots=True)
class Size:
    """Room for pods on a node of an instance type, beside DaemonSets: millicores, MiB, and pods."""

    instance_type: str
    cpu: int
    memory: int
    pods: int


@dataclass
class PackedNode:
    """A node and what was put on it."""

    zone: str
    capacity_type: str
    replicas: list[Replica] = field(default_factory=list)
    cpu: int = 0
    memory: int = 0
    apps: set[str] = field(default_factory=set)

    def add(self, replica: Replica) -> None:
        self.replicas.append(replica)
        self.cpu += replica.workload.cpu
        self.memory += replica.workload.memory
        self.apps.add(replica.workload.app)


class Shop:
    """The instance types that a cluster's nodes were bought from, and their prices. ``types``: by name."""

    def __init__(self, types: Sequence[InstanceType]) -> None:
        self.types = {kind.name: kind for kind in sorted(types, key=lambda kind: kind.name)}
        self._offers: dict[tuple[str, str], list[tuple[float, str, Size]]] = {}
        self._largest: dict[tuple[str, str], list[Size]] = {}
        for zone, capacity_type in product(ZONES, (ON_DEMAND, SPOT)):
            offers = list(self._sold(zone, capacity_type))
            sizes = {size for _, _, size in offers}
            self._offers[zone, capacity_type] = offers
            # A pod fits on a node if it fits on its largest type, and few types are not exceeded by another.
            self._largest[zone, capacity_type] = [
                size for size in sizes if not any(_exceeds(other, size) for other in sizes)
            ]

    def _sold(self, zone: str, capacity_type: str) -> Iterator[tuple[float, str, Size]]:
        """Price, zone and size of what a node of the zone may be. A spot node may be in any zone."""
        for place in ZONES if capacity_type == SPOT else (zone,):
            for kind in self.types.values():
                price = kind.price(place, capacity_type)
                if price is not None:
                    yield price, place, size_of(kind)

    def holds(self, node: PackedNode, workload: Workload) -> bool:
        cpu, memory, pods = node.cpu + workload.cpu, node.memory + workload.memory, len(node.replicas) + 1
        largest = self._largest[node.zone, node.capacity_type]
        return any(cpu <= size.cpu and memory <= size.memory and pods <= size.pods for size in largest)

    def offering(self, node: PackedNode) -> PlacedOffering:
        """The cheapest offering that holds the node's pods."""
        price, instance_type, zone = min(
            (price, size.instance_type, zone)
            for price, zone, size in self._offers[node.zone, node.capacity_type]
            if node.cpu <= size.cpu and node.memory <= size.memory and len(node.replicas) <= size.pods
        )
        return PlacedOffering(instance_type, zone, node.capacity_type, price)


def size_of(kind: InstanceType) -> Size:
    cpu, memory, pods = (kind.allocatable[key] for key in ("cpu", "memory", "pods"))
    return Size(kind.name, cpu - OVERHEAD[0], memory // _MEBIBYTE - OVERHEAD[1], pods - OVERHEAD[2])


def _exceeds(one: Size, other: Size) -> bool:
    rooms = [(size.cpu, size.memory, size.pods) for size in (one, other)]
    return rooms[0] != rooms[1] and all(more >= less for more, less in zip(*rooms, strict=True))


def pack(workloads: Sequence[Workload], shop: Shop, chance: random.Random, *, spot: bool = False) -> list[PackedNode]:
    """All pods of the workloads on new nodes. ``spot``: pods that may, run on spot nodes."""
    nodes: list[PackedNode] = []
    for workload in sorted(workloads, key=lambda workload: (-workload.cpu, -workload.memory, workload.app)):
        first_zone = chance.randrange(len(ZONES))
        capacity_type = SPOT if spot and not workload.on_demand else ON_DEMAND
        for index in range(workload.count):
            zone = ZONES[(first_zone + index) % len(ZONES)] if workload.is_spread else None
            node = next((node for node in nodes if _fits(node, workload, zone, capacity_type, shop)), None)
            if node is None:
                node = PackedNode(zone or chance.choice(ZONES), capacity_type)
                nodes.append(node)
            node.add(Replica(workload, index))
    return nodes


def _fits(node: PackedNode, workload: Workload, zone: str | None, capacity_type: str, shop: Shop) -> bool:
    if node.capacity_type != capacity_type or (zone is not None and node.zone != zone):
        return False
    return not (workload.is_apart and workload.app in node.apps) and shop.holds(node, workload)
