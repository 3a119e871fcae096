"""Instance types, as EC2 describes and sells them."""

from collections.abc import Mapping, Sequence

from joinery.apis import labels as keys
from joinery.apis.quantity import amounts
from joinery.state.offerings import InstanceType, Offering
from simulator.builders.defaults import ZONES, zone_id

#: GiB of memory per vCPU by family letter.
_RATIO = {"c": 2, "m": 4, "r": 8, "t": 4, "x": 16}
_SIZES = {"medium": 1, "large": 2, "xlarge": 4}


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
    """A type by its name: size gives vCPUs, family letter memory. ``price`` in $/h on demand, ``spot`` a share of it, or None.

    Allocatable is capacity less what kubelet reserves on AL2023, roughly; give ``cpu`` (vCPUs) and ``memory`` (GiB) to differ.
    """
    vcpus = cpu or _vcpus(name)
    gib = memory or vcpus * _RATIO.get(name[0], 4)
    density = pods or min(110, 29 if vcpus <= 2 else 58)
    capacity = amounts(
        {
            "cpu": str(vcpus),
            "memory": f"{gib}Gi",
            "pods": str(density),
            "ephemeral-storage": "20Gi",
            **(resources or {}),
        }
    )
    reserved = amounts(
        {"cpu": f"{60 + 10 * vcpus}m", "memory": f"{255 + 11 * density + 100}Mi", "ephemeral-storage": "3Gi"}
    )
    each = price if price is not None else round(0.05 * vcpus + 0.003 * gib, 4)
    shares = {keys.ON_DEMAND: 1.0} | ({keys.SPOT: spot} if spot else {})
    return InstanceType(
        name=name,
        labels=_type_labels(name, vcpus, gib, arch, zones, tuple(shares)) | {key: tuple(found) for key, found in (labels or {}).items()},
        capacity=capacity,
        allocatable={resource: value - reserved.get(resource, 0) for resource, value in capacity.items()},
        offerings=tuple(
            Offering(zone=zone, capacity_type=kind, price=round(each * share, 5), zone_id=zone_id(zone))
            for zone in zones for kind, share in shares.items()
        ),
    )  # fmt: skip


def _vcpus(name: str) -> int:
    size = name.partition(".")[2]
    return _SIZES.get(size) or 4 * int(size.removesuffix("xlarge"))


def _type_labels(
    name: str, vcpus: int, gib: int, arch: str, zones: Sequence[str], kinds: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    family, _, size = name.partition(".")
    generation = next((letter for letter in family if letter.isdigit()), "7")
    described = {
        "instance-category": family[0], "instance-generation": generation, "instance-family": family, "instance-size": size,
        "instance-cpu": str(vcpus), "instance-memory": str(gib * 1024), "instance-hypervisor": "nitro",
    }  # fmt: skip
    return {
        keys.INSTANCE_TYPE: (name,), keys.ARCH: (arch,), keys.OS: ("linux",), keys.REGION: (zones[0][:-1],),
        keys.ZONE: tuple(zones), keys.ZONE_ID: tuple(zone_id(zone) for zone in zones), keys.CAPACITY_TYPE: tuple(kinds),
        **{f"{keys.AWS_GROUP}/{key}": (value,) for key, value in described.items()},
    }  # fmt: skip
