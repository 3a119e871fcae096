"""Instance types of golden cases, and what capacity reservations hold of them."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from joinery.objects.karpenter import labels as keys
from joinery.objects.kubernetes.quantity import amounts
from joinery.objects.snapshot.offerings import InstanceType, Offering, Reservation
from tests.cases.scheduling import notation
from tests.cases.scheduling.notation import ZONES, Document

_TYPE_KEYS = "name cpu memory price pods arch os zones capacity sold labels resources overhead attachments"
_RESERVATION_KEYS = "id type zone count kind interruptible ending class"


def instance_type(given: Document) -> InstanceType:
    """``{name, cpu, memory, price, arch, zones, capacity: {on-demand: 1, spot: 0.4}, sold: [z1/spot], labels,
    resources}``.

    ``sold`` lists the offerings that are available, where not all are; ``overhead`` is what the kubelet keeps;
    ``attachments`` how many volumes of which CSI driver it takes.
    """
    notation.only(given, _TYPE_KEYS)
    name, zones = given["name"], given.get("zones", ZONES)
    shares = given.get("capacity", {keys.ON_DEMAND: 1.0, keys.SPOT: 0.4})
    has = amounts({
        "cpu": given["cpu"], "memory": given["memory"], "pods": given.get("pods", 110), "ephemeral-storage": "20Gi",
        **given.get("resources", {}),
    })  # fmt: skip
    kept = amounts(given.get("overhead", {}))
    return InstanceType(
        name=name,
        labels=_type_labels(given, has, zones, tuple(shares)),
        capacity=has,
        allocatable={resource: value - kept.get(resource, 0) for resource, value in has.items()},
        offerings=tuple(
            Offering(
                zone,
                kind,
                round(_price(given, zone) * share, 5),
                f"{zone}/{kind}" in given.get("sold", [f"{zone}/{kind}"]),
                f"id-{zone}",
            )
            for zone in zones
            for kind, share in shares.items()
        ),
        attachments=given.get("attachments", {}),
    )


def with_reserved(instance_type: InstanceType, node_class: str, given: Document) -> InstanceType:
    """The type with what is reserved of it: ``reservations: [{id, type, zone, count, kind, interruptible, ending,
    class}]``.

    ``ending``: nothing more may be launched in it; ``class``: the one EC2NodeClass that selects it.
    """
    listed = [r for r in given.get("reservations", []) if r["type"] == instance_type.name]
    reserved = [_reserved(instance_type, r) for r in listed if r.get("class", node_class) == node_class]
    if not reserved:
        return instance_type
    ways = (*instance_type.labels[keys.CAPACITY_TYPE], keys.RESERVED)
    labels = {
        **instance_type.labels,
        keys.CAPACITY_TYPE: ways,
        keys.RESERVATION_ID: tuple(o.reservation_id for o in reserved),
    }
    return replace(instance_type, labels=labels, offerings=(*instance_type.offerings, *reserved))


def _reserved(instance_type: InstanceType, given: Document) -> Offering:
    notation.only(given, _RESERVATION_KEYS)
    zone, count = given.get("zone", "z1"), given.get("count", 1)
    about = Reservation(given["id"], given.get("kind", "default"), given.get("interruptible", False), count)
    price = (instance_type.price(zone, keys.ON_DEMAND) or 0) / 10_000_000
    return Offering(zone, keys.RESERVED, price, count > 0 and not given.get("ending"), f"id-{zone}", about)


def _price(given: Document, zone: str) -> float:
    price = given["price"]
    return float(price[zone] if isinstance(price, dict) else price)


def _type_labels(
    given: Document, has: Mapping[str, int], zones: Iterable[str], capacity: tuple[str, ...]
) -> dict[str, tuple[str, ...]]:
    family, _, size = given["name"].partition(".")
    values = {
        "type": given["name"], "arch": given.get("arch", "amd64"), "os": given.get("os", "linux"), "region": "z",
        "instance-family": family, "instance-size": size or "any", "instance-category": family[0],
        "instance-cpu": str(has["cpu"] // 1000), "instance-memory": str(has["memory"] >> 20),
        **{name: str(value) for name, value in given.get("labels", {}).items()},
    }  # fmt: skip
    named = {notation.key(name): (value,) for name, value in values.items()}
    ids = tuple(f"id-{zone}" for zone in zones)
    return {**named, keys.ZONE: tuple(zones), keys.ZONE_ID: ids, keys.CAPACITY_TYPE: capacity}
