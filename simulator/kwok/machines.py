"""What the cloud of kwok sells: the instance types and prices of Karpenter's provider (its ``gen_instance_types.go``).

1 to 256 vCPUs, with two (``c``), four (``s``) or eight (``m``) GiB for each, for amd64 and arm64, in four zones; a vCPU
costs $.025/h, a GB $.001/h, and spot seven tenths of that.
"""

from collections.abc import Iterator

import msgspec

from joinery.gateways.ec2.catalog.document import Catalog, CatalogOffering, Zone, entry
from joinery.objects.karpenter import labels
from joinery.objects.kubernetes.quantity import amounts
from joinery.objects.snapshot.offerings import InstanceType
from simulator.kwok.nodeclass import GROUP

ZONES = ("test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d")
_CPUS = (1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256)
_FAMILIES = {"c": 2, "s": 4, "m": 8}
_SHARES = {labels.ON_DEMAND: 1.0, labels.SPOT: 0.7}
_GB = 2**30 / 1e9


class _Machine(msgspec.Struct, frozen=True):
    name: str
    family: str
    arch: str
    cpu: int
    memory: int

    @property
    def price(self) -> float:
        """In $/h, on demand."""
        return 0.025 * self.cpu + 0.001 * self.memory * _GB


_MACHINES = tuple(
    _Machine(f"{family}-{cpu}x-{arch}-linux", family, arch, cpu, cpu * gib)
    for cpu in _CPUS
    for family, gib in _FAMILIES.items()
    for arch in ("amd64", "arm64")
)


def catalogue() -> Catalog:
    """All types, in all zones."""
    offerings = tuple(
        CatalogOffering(machine.name, zone, kind, round(machine.price * share, 6))
        for machine in _MACHINES
        for zone in ZONES
        for kind, share in _SHARES.items()
    )
    return Catalog(
        region="kwok",
        zones=tuple(map(Zone, ZONES)),
        instance_types=tuple(entry(msgspec.to_builtins(machine)) for machine in _MACHINES),
        offerings=offerings,
    )


def instance_types(catalog: Catalog) -> Iterator[InstanceType]:
    """The catalogue's types. The kubelet keeps 100m and 10Mi for itself."""
    for machine in _MACHINES:
        pods = {"pods": str(min(machine.cpu * 16, 1024)), "ephemeral-storage": "20Gi"}
        capacity = amounts({"cpu": str(machine.cpu), "memory": f"{machine.memory}Gi", **pods})
        free = {"cpu": f"{machine.cpu * 1000 - 100}m", "memory": f"{machine.memory * 1024 - 10}Mi"}
        known = {
            labels.INSTANCE_TYPE: (machine.name,),
            labels.ARCH: (machine.arch,),
            labels.OS: ("linux",),
            labels.ZONE: ZONES,
            labels.CAPACITY_TYPE: tuple(_SHARES),
            f"{GROUP}/instance-family": (machine.family,),
            f"{GROUP}/instance-size": (str(machine.cpu),),
            f"{GROUP}/instance-cpu": (str(machine.cpu),),
            f"{GROUP}/instance-memory": (f"{machine.memory}Gi",),
        }
        yield InstanceType(machine.name, known, capacity, amounts({**free, **pods}), tuple(catalog.sold[machine.name]))
