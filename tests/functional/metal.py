"""A made-up cloud: machines in racks, with a node class of its own.

It is what a second cloud has to bring, and nothing else.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

import msgspec

from joinery.gateways.ec2.catalog.document import Catalog, CatalogOffering, Zone, entry
from joinery.gateways.ec2.gateway import LaunchedInstance, LaunchFailure, LaunchRequest, LaunchResult, Override
from joinery.objects.commitments import Bought
from joinery.objects.errors import NotFoundError
from joinery.objects.karpenter import labels
from joinery.objects.karpenter.conditions import READY, Observation, false, put, true
from joinery.objects.karpenter.hashing import digest
from joinery.objects.karpenter.meta import Model
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodeclass import NodeClass, NodeClassStatus
from joinery.objects.kubernetes.quantity import amounts
from joinery.objects.snapshot.instances import Instance, InstanceStatus
from joinery.objects.snapshot.offerings import InstanceType, OfferingKey
from simulator.clock import Clock

GROUP = "metal.example.com"
#: Free machines by size and rack.
STOCK = {("small", "rack-1"): 2, ("large", "rack-2"): 1}
_SIZES = ({"size": "small", "cpu": "4", "memory": "16Gi"}, {"size": "large", "cpu": "32", "memory": "128Gi"})
_PRICES = {"small": 0.1, "large": 0.7}


class MetalNodeClassSpec(Model):
    """Which racks may be used, and what a machine boots."""

    racks: list[str]
    image: str


class MetalNodeClass(NodeClass):
    """What a machine is made of."""

    api_version = f"{GROUP}/v1"
    kind = "MetalNodeClass"
    plural = "metalnodeclasses"

    spec: MetalNodeClassSpec

    @property
    def static_hash(self) -> str:
        return digest({"image": self.spec.image})

    @property
    def claim_annotations(self) -> Mapping[str, str]:
        return {f"{GROUP}/image": self.spec.image}


class MetalCloud:
    """Implements ``joinery.gateways.ec2.gateway.Cloud``. ``requests`` are the launches that it was asked for."""

    def __init__(self, clock: Clock) -> None:
        self.requests: list[LaunchRequest] = []
        self._clock = clock
        self._free = Counter(STOCK)
        self._machines: dict[str, Instance] = {}
        self._answers: dict[str, LaunchResult] = {}

    def catalog(self, earlier: Catalog | None = None, *, in_full: bool = False) -> Catalog:
        offerings = (CatalogOffering(size, rack, labels.ON_DEMAND, _PRICES[size]) for size, rack in STOCK)
        zones = tuple(Zone(rack) for _, rack in STOCK)
        return Catalog(
            region="basement", zones=zones, instance_types=tuple(map(entry, _SIZES)), offerings=tuple(offerings)
        )

    def bought(self) -> Bought:
        return Bought()

    def status_of(self, node_class: NodeClass) -> NodeClassStatus:
        at = Observation(now=self._clock.now(), generation=node_class.metadata.generation)
        unknown = set(_spec(node_class).racks) - {rack for _, rack in STOCK}
        ready = false(READY, "NoSuchRack", f"there is no rack {min(unknown)}", at) if unknown else true(READY, at)
        return NodeClassStatus(conditions=put(node_class.status.conditions, ready))

    def prepare(self, node_class: NodeClass, likely: object = None) -> NodeClassStatus:
        return self.status_of(node_class)

    def instance_types(
        self, node_classes: Sequence[NodeClass], catalog: Catalog, now: datetime, memory: object = None
    ) -> Mapping[str, tuple[InstanceType, ...]]:
        return {each.metadata.name: tuple(_types(catalog, _spec(each).racks)) for each in node_classes}

    def launch(self, request: LaunchRequest) -> LaunchResult:
        if request.token not in self._answers:
            self.requests.append(request)
            self._answers[request.token] = self._launch(request)
        return self._answers[request.token]

    def _launch(self, request: LaunchRequest) -> LaunchResult:
        launched: list[LaunchedInstance] = []
        failures: list[LaunchFailure] = []
        for pool in sorted(request.overrides, key=lambda override: override.price):
            while len(launched) < request.count and self._free[pool.instance_type, pool.zone] > 0:
                launched.append(self._start(pool, request))
            if len(launched) < request.count:
                key = OfferingKey(pool.instance_type, pool.zone, request.capacity_type)
                failures.append(
                    LaunchFailure(key, "NoMachine", f"no {pool.instance_type} machine in {pool.zone}", True)
                )
        return LaunchResult(tuple(launched), tuple(failures))

    def _start(self, pool: Override, request: LaunchRequest) -> LaunchedInstance:
        self._free[pool.instance_type, pool.zone] -= 1
        name, image = f"machine-{len(self._machines) + 1}", _spec(request.node_class).image
        launched = LaunchedInstance(name, pool.instance_type, pool.zone, request.capacity_type, image, provider="metal")
        self._machines[name] = Instance(
            name, pool.instance_type, pool.zone, request.capacity_type, "running", self._clock.now(), image,
            tags={labels.LAUNCH_TOKEN: request.token, labels.NODE_POOL: request.node_pool}, provider="metal",
        )  # fmt: skip
        return launched

    def shifted_zones(self) -> frozenset[str]:
        return frozenset()

    def instances(self) -> tuple[Instance, ...]:
        return tuple(self._machines.values())

    def look_up(self, instance_ids: Sequence[str]) -> tuple[Instance, ...]:
        return tuple(machine for name in instance_ids if (machine := self._machines.get(name)))

    def terminate(self, instance_ids: Sequence[str]) -> None:
        gone = [machine for name in instance_ids if (machine := self._machines.pop(name, None))]
        if not gone:
            raise NotFoundError(f"no such machine: {', '.join(instance_ids)}")
        self._free.update((machine.instance_type, machine.zone) for machine in gone)

    def impaired(self) -> tuple[InstanceStatus, ...]:
        return ()

    def reboot(self, instance_id: str) -> None:
        if instance_id not in self._machines:
            raise NotFoundError(f"no such machine: {instance_id}")

    def tag(self, instance_id: str, tags: Mapping[str, str]) -> None:
        machine = self._machines[instance_id]
        self._machines[instance_id] = replace(machine, tags={**(machine.tags or {}), **tags})

    def remove_unused(
        self, node_classes: Sequence[NodeClass], claims: Sequence[NodeClaim], instances: Sequence[Instance]
    ) -> None:
        pass


def _spec(node_class: NodeClass) -> MetalNodeClassSpec:
    assert isinstance(node_class, MetalNodeClass)
    return node_class.spec


def _types(catalog: Catalog, racks: Sequence[str]) -> Iterator[InstanceType]:
    """The catalogue's sizes in these racks. A machine keeps nothing for itself, and holds 50 pods."""
    for raw in catalog.instance_types:
        given = msgspec.json.decode(raw, type=dict[str, str])
        offerings = tuple(offering for offering in catalog.sold[given["size"]] if offering.zone in racks)
        room = amounts({"cpu": given["cpu"], "memory": given["memory"], "pods": "50"})
        known = {
            labels.INSTANCE_TYPE: (given["size"],), labels.ARCH: ("amd64",), labels.OS: ("linux",),
            labels.ZONE: tuple(offering.zone for offering in offerings), labels.CAPACITY_TYPE: (labels.ON_DEMAND,),
        }  # fmt: skip
        yield InstanceType(given["size"], known, room, room, offerings)
