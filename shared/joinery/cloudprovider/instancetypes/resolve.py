"""Instance types as nodes of one EC2NodeClass would have them: labels, capacity, allocatable, offerings.

The same machine is a different node under another class: AMI family, kubelet settings, disks, subnets and images decide
what it holds, where it may stand and whether it can boot at all. Whatever the class rules out is still listed, with
offerings that are not available, so that its price stays known for the nodes that exist.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from joinery.apis import labels
from joinery.apis.ec2nodeclass import EC2NodeClass
from joinery.apis.quantity import Resources
from joinery.cloudprovider.catalog.description import Description
from joinery.cloudprovider.catalog.document import Catalog
from joinery.cloudprovider.catalog.reservations import CapacityReservation
from joinery.cloudprovider.catalog.resolved import ResolvedCatalog
from joinery.cloudprovider.instancetypes.capacity import NodeSettings, allocatable, capacity, node_settings
from joinery.cloudprovider.instancetypes.compatibility import image_for, serves
from joinery.cloudprovider.instancetypes.reserved import reserved_offerings, usage
from joinery.cloudprovider.instancetypes.typelabels import type_labels
from joinery.state.offerings import InstanceType, Offering

_BOUGHT_AS = (labels.ON_DEMAND, labels.SPOT)
LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class _Region:
    """What all types of a class share: ``zones`` are those it reaches, name to id; ``reserved``: its reservations by type."""

    name: str
    zones: Mapping[str, str]
    sold: Mapping[str, tuple[Offering, ...]]
    reserved: Mapping[str, tuple[Offering, ...]]


def resolve(
    catalog: Catalog,
    node_class: EC2NodeClass,
    *,
    now: datetime = LONG_AGO,
    reservations: Sequence[CapacityReservation] | None = None,
    vm_memory_overhead: float = 0.075,
    reserved_enis: int = 0,
) -> tuple[InstanceType, ...]:
    """The catalogue's types for a class; a class without subnets in its status has all zones.

    ``now`` decides which capacity reservations are about to end; none is where it is not said. ``reservations``: what is left of
    them, where that is known better than by the catalogue. Types of a ``ResolvedCatalog`` are taken as they are, but for the zones. Whether the class is Ready is for the caller to ask. Raises ``ConfigurationError`` for a broken catalogue. Cost: about
    40 microseconds a type.
    """
    if isinstance(catalog, ResolvedCatalog):
        reached = _zones(catalog, node_class)
        return tuple(_confined(kind, reached) for kind in catalog.types)
    settings = node_settings(node_class.spec, vm_memory_overhead=vm_memory_overhead, reserved_enis=reserved_enis)
    zones = _zones(catalog, node_class)
    known = catalog.capacity_reservations if reservations is None else reservations
    reserved = reserved_offerings(node_class, known, catalog.sold, zones, now)
    region = _Region(catalog.region, zones, catalog.sold, reserved)
    return tuple(_resolve(kind, node_class, settings, region) for kind in catalog.described)


def _zones(catalog: Catalog, node_class: EC2NodeClass) -> Mapping[str, str]:
    """Zone name to zone id, of the zones the class reaches."""
    subnets = {subnet.zone: subnet.zone_id for subnet in node_class.status.subnets}
    known = {zone.name: zone.id for zone in catalog.zones}
    return {name: zone_id or known.get(name, "") for name, zone_id in subnets.items()} if subnets else known


def _resolve(kind: Description, node_class: EC2NodeClass, settings: NodeSettings, region: _Region) -> InstanceType:
    found = type_labels(kind, settings.family, region.name)
    has = capacity(kind, settings)
    leaves = allocatable(kind, has, settings)
    offerings = region.sold.get(kind.instance_type, ())
    found |= _offering_labels(kind, offerings, region.zones)
    reserved = region.reserved.get(kind.instance_type, ())
    if reserved:
        found |= _reservation_labels(found[labels.CAPACITY_TYPE], reserved)
        offerings = (*offerings, *reserved)
    usable = _usable(kind, node_class, found, leaves)
    return InstanceType(kind.instance_type, found, has, leaves, _reachable(offerings, region.zones if usable else {}))


def _confined(kind: InstanceType, zones: Mapping[str, str]) -> InstanceType:
    """A type that was resolved before, in the zones that the class reaches."""
    reached = tuple(zone for zone in kind.labels.get(labels.ZONE, ()) if zone in zones)
    if len(reached) == len(kind.labels.get(labels.ZONE, ())):
        return kind
    told = {**kind.labels, labels.ZONE: reached, labels.ZONE_ID: tuple(zones[zone] for zone in reached if zones[zone])}
    return replace(kind, labels=told, offerings=_reachable(kind.offerings, zones))


def _usable(
    kind: Description, node_class: EC2NodeClass, found: Mapping[str, tuple[str, ...]], leaves: Resources
) -> bool:
    """Whether a node of the type could boot and hold a pod at all."""
    amis = node_class.status.amis
    if not kind.arch or min(leaves.values()) < 0 or not serves(node_class.spec, kind):
        return False
    return not amis or image_for(amis, found) is not None


def _offering_labels(
    kind: Description, offerings: tuple[Offering, ...], zones: Mapping[str, str]
) -> dict[str, tuple[str, ...]]:
    reached = tuple(dict.fromkeys(o.zone for o in offerings if o.zone in zones))
    found = {
        labels.ZONE: reached,
        labels.CAPACITY_TYPE: tuple(way for way in _BOUGHT_AS if way in kind.supported_usage_classes),
    }
    ids = tuple(zones[zone] for zone in reached if zones[zone])
    return found | {labels.ZONE_ID: ids} if ids else found


def _reservation_labels(bought_as: tuple[str, ...], reserved: tuple[Offering, ...]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {labels.CAPACITY_TYPE: (*bought_as, labels.RESERVED)}
    for key, value in usage(reserved):
        found[key] = tuple(dict.fromkeys((*found.get(key, ()), value)))
    return found


def _reachable(offerings: tuple[Offering, ...], zones: Mapping[str, str]) -> tuple[Offering, ...]:
    """The offerings, those outside the class's zones marked unavailable. Usually all are inside: then nothing is copied."""
    if all(o.zone in zones for o in offerings):
        return offerings
    return tuple(o if o.zone in zones or not o.available else replace(o, available=False) for o in offerings)
