"""Instance types, as the product derives them from what EC2 describes and sells."""

from collections.abc import Mapping, Sequence

from joinery.objects.karpenter import labels as keys
from joinery.objects.kubernetes.quantity import amounts
from joinery.objects.snapshot.offerings import InstanceType, Offering
from simulator.builders.defaults import ZONES, zone_id

#: By the first letter of the family.
_GIB_PER_VCPU = {"c": 2, "m": 4, "r": 8, "t": 4, "x": 16}
#: vCPUs of the sizes without a number; an Nxlarge has 4 N.
_VCPUS = {"medium": 1, "large": 2, "xlarge": 4}


def instance_type(
    name: str = "m7a.large",
    *,
    price: float | None = None,
    zones: Sequence[str] = ZONES,
    spot: float | None = 0.4,
    cpu: int | None = None,
    memory: int | None = None,
    pods: int | None = None,
    arch: str = "amd64",
    labels: Mapping[str, Sequence[str]] | None = None,
    resources: Mapping[str, str] | None = None,
) -> InstanceType:
    """An instance type whose name says what it has: the size gives its vCPUs, the family's letter its memory.

    ``price``: $ per hour on demand; without it, by vCPUs and memory.
    ``spot``: the spot price as a share of ``price``; None sells no spot.
    ``zones``: where it is sold; every zone under every capacity type is an offering.
    ``cpu``, ``memory``: vCPUs and GiB, where they differ from what the name says.
    ``pods``: how many pods its kubelet admits.

    Allocatable is capacity less about what AL2023's kubelet reserves.
    """
    vcpus = cpu or _vcpus(name)
    gib = memory or vcpus * _GIB_PER_VCPU.get(name[0], 4)
    most_pods = pods or min(110, 29 if vcpus <= 2 else 58)
    capacity = amounts(
        {
            "cpu": str(vcpus),
            "memory": f"{gib}Gi",
            "pods": str(most_pods),
            "ephemeral-storage": "20Gi",
            **(resources or {}),
        }
    )
    reserved = amounts(
        {"cpu": f"{60 + 10 * vcpus}m", "memory": f"{255 + 11 * most_pods + 100}Mi", "ephemeral-storage": "3Gi"}
    )
    on_demand = price if price is not None else round(0.05 * vcpus + 0.003 * gib, 4)
    shares = {keys.ON_DEMAND: 1.0} | ({keys.SPOT: spot} if spot else {})
    of_type = _type_labels(name, vcpus, gib, arch, zones, tuple(shares))
    return InstanceType(
        name=name,
        labels=of_type | {key: tuple(values) for key, values in (labels or {}).items()},
        capacity=capacity,
        allocatable={resource: value - reserved.get(resource, 0) for resource, value in capacity.items()},
        offerings=tuple(
            Offering(zone=zone, capacity_type=capacity_type, price=round(on_demand * share, 5), zone_id=zone_id(zone))
            for zone in zones for capacity_type, share in shares.items()
        ),
    )  # fmt: skip


def _vcpus(name: str) -> int:
    size = name.partition(".")[2]
    return _VCPUS.get(size) or 4 * int(size.removesuffix("xlarge"))


def _type_labels(
    name: str, vcpus: int, gib: int, arch: str, zones: Sequence[str], capacity_types: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    family, _, size = name.partition(".")
    generation = next((letter for letter in family if letter.isdigit()), "7")
    described = {
        "instance-category": family[0],
        "instance-generation": generation,
        "instance-family": family,
        "instance-size": size,
        "instance-cpu": str(vcpus),
        "instance-memory": str(gib * 1024),
        "instance-hypervisor": "nitro",
    }
    return {
        keys.INSTANCE_TYPE: (name,), keys.ARCH: (arch,), keys.OS: ("linux",), keys.REGION: (zones[0][:-1],),
        keys.ZONE: tuple(zones), keys.ZONE_ID: tuple(zone_id(zone) for zone in zones),
        keys.CAPACITY_TYPE: tuple(capacity_types),
        **{f"{keys.AWS_GROUP}/{key}": (value,) for key, value in described.items()},
    }  # fmt: skip
