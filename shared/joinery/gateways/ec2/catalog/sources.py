"""What a catalogue is read from: six questions to AWS that do not need each other's answers.

(EC2 API DescribeInstanceTypes, DescribeInstanceTypeOfferings, DescribeSpotPriceHistory, DescribeAvailabilityZones,
DescribeCapacityReservations; Price List API GetProducts.) Pages are as large as AWS allows, which makes some fifty
requests of the largest region.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from joinery.gateways.answers import at, entries
from joinery.gateways.aws import Clients, translated
from joinery.gateways.ec2.catalog import pricing
from joinery.gateways.ec2.catalog.description import Description, converted
from joinery.gateways.ec2.catalog.document import Catalog, entry
from joinery.gateways.ec2.catalog.reservation_queries import active_reservations
from joinery.gateways.ec2.catalog.reservations import CapacityReservation
from joinery.objects.karpenter import labels
from joinery.objects.kubernetes.decoding import without_nulls

_TYPES, _ZONES = "EC2 DescribeInstanceTypes", "EC2 DescribeAvailabilityZones"
_PLACES = "EC2 DescribeInstanceTypeOfferings"
#: The most entries that a page may have.
_TYPES_A_PAGE, _PLACES_A_PAGE = 100, 1000
#: Fields without which no node can be planned. A type that is only announced may not have them yet.
_WHOLE = ("InstanceType", "VCpuInfo.DefaultVCpus", "MemoryInfo.SizeInMiB", "NetworkInfo")
_ARCHITECTURE = "processor-info.supported-architecture"
_FILTERS = {
    "supported-virtualization-type": ["hvm"],
    _ARCHITECTURE: ["x86_64", "arm64"],
}


@dataclass(frozen=True, slots=True)
class TypeEntry:
    """An instance type: how it may be bought, and its entry of DescribeInstanceTypes, undecoded."""

    bought_as: Collection[str]
    entry: msgspec.Raw


@dataclass(frozen=True, slots=True)
class Parts:
    """What the sources say, each in a field of its name.

    ``prices``: on demand, $/h, by type. ``spot``: $/h by type and zone. ``types``: by name. ``places``: the zones in
    which a type is sold. ``zone_ids``: by the zone's name.
    """

    prices: Mapping[str, float]
    spot: Mapping[tuple[str, str], float]
    types: Mapping[str, TypeEntry]
    places: Mapping[str, Collection[str]]
    zone_ids: Mapping[str, str]
    reservations: tuple[CapacityReservation, ...]


def questions(
    clients: Clients, now: datetime, *, prices_are_estimated: bool = False
) -> Mapping[str, Callable[[], Any]]:
    """How each field of ``Parts`` is read."""
    return {
        "prices": lambda: pricing.on_demand(clients, is_estimated=prices_are_estimated),
        "spot": lambda: pricing.spot(clients, now),
        "types": lambda: _types(clients),
        "places": lambda: _places(clients),
        "zone_ids": lambda: _zone_ids(clients),
        "reservations": lambda: tuple(active_reservations(clients, [])),
    }


def parts_of(catalog: Catalog) -> Parts:
    """What the sources said when a catalogue was made."""
    sold = [(o.instance_type, o.zone) for o in catalog.offerings]
    sold += [(o.instance_type, o.zone) for o in catalog.unpriced]
    pairs = zip(catalog.described, catalog.instance_types, strict=True)
    return Parts(
        prices={o.instance_type: o.price for o in catalog.offerings if o.capacity_type == labels.ON_DEMAND},
        spot={(o.instance_type, o.zone): o.price for o in catalog.offerings if o.capacity_type == labels.SPOT},
        types={kind.instance_type: TypeEntry(kind.supported_usage_classes, raw) for kind, raw in pairs},
        places=zones_by_type(sold),
        zone_ids={zone.name: zone.id for zone in catalog.zones},
        reservations=catalog.capacity_reservations,
    )


def zones_by_type(sold: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    """By instance type the zones that it is sold in. ``sold``: types and zones."""
    places: dict[str, set[str]] = {}
    for name, zone in sold:
        places.setdefault(name, set()).add(zone)
    return places


def _types(clients: Clients) -> dict[str, TypeEntry]:
    filters: Any = [{"Name": name, "Values": values} for name, values in _FILTERS.items()]
    with translated("describing instance types"):
        pages = clients.ec2.get_paginator("describe_instance_types").paginate(
            Filters=filters, PaginationConfig={"PageSize": _TYPES_A_PAGE}
        )
        listed = [
            each
            for page in pages
            for each in entries(page, "InstanceTypes", *_WHOLE, call=_TYPES, log=clients.log)
            if _boots(each)
        ]
    # The entries themselves are kept. They are decoded here only to leave out what no decision could read.
    decoded = converted(listed, Description, "InstanceType", call=_TYPES, log=clients.log)
    bought_as = {description.instance_type: description.supported_usage_classes for description in decoded}
    named = ((each["InstanceType"], each) for each in listed)
    return {name: TypeEntry(bought_as[name], entry(without_nulls(each))) for name, each in named if name in bought_as}


def _boots(each: Mapping[str, Any]) -> bool:
    """Whether a node can run on the type.

    Macs have an architecture of their own (``arm64_mac``), which Kubernetes does not know.
    """
    return any(name in _FILTERS[_ARCHITECTURE] for name in at(each, "ProcessorInfo.SupportedArchitectures") or ())


def _places(clients: Clients) -> dict[str, set[str]]:
    with translated("describing instance type offerings"):
        pages = clients.ec2.get_paginator("describe_instance_type_offerings").paginate(
            LocationType="availability-zone", PaginationConfig={"PageSize": _PLACES_A_PAGE}
        )
        needed = ("InstanceType", "Location")
        listed = (
            each
            for page in pages
            for each in entries(page, "InstanceTypeOfferings", *needed, call=_PLACES, log=clients.log)
        )
        return zones_by_type((each["InstanceType"], each["Location"]) for each in listed)


def _zone_ids(clients: Clients) -> dict[str, str]:
    with translated("describing zones"):
        answer = clients.ec2.describe_availability_zones(AllAvailabilityZones=False)
    listed = entries(answer, "AvailabilityZones", "ZoneName", call=_ZONES, log=clients.log)
    return {zone["ZoneName"]: zone.get("ZoneId") or "" for zone in listed}
