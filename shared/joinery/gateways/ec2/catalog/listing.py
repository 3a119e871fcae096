"""The live catalogue: every instance type of the region, where it is sold, and for how much.

(EC2 API DescribeInstanceTypes, DescribeInstanceTypeOfferings.) Nothing is remembered between runs. If EC2 or the price
list fails, the run fails, and the catalogue that was stored last stays in use. An offering without a price is left out
until it has one.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from joinery.gateways.answers import at, entries
from joinery.gateways.aws import Clients, translated
from joinery.gateways.ec2.catalog import pricing
from joinery.gateways.ec2.catalog.description import Description, converted
from joinery.gateways.ec2.catalog.document import Catalog, CatalogOffering, Zone, entry
from joinery.gateways.ec2.catalog.reservation_queries import active_reservations
from joinery.objects.errors import ConfigurationError
from joinery.objects.karpenter import labels
from joinery.objects.kubernetes.decoding import without_nulls

_TYPES, _ZONES = "EC2 DescribeInstanceTypes", "EC2 DescribeAvailabilityZones"
_PLACES = "EC2 DescribeInstanceTypeOfferings"
#: Fields without which no node can be planned. A type that is only announced may not have them yet.
_WHOLE = ("InstanceType", "VCpuInfo.DefaultVCpus", "MemoryInfo.SizeInMiB", "NetworkInfo")
_ARCHITECTURE = "processor-info.supported-architecture"
_FILTERS = {
    "supported-virtualization-type": ["hvm"],
    _ARCHITECTURE: ["x86_64", "arm64"],
}


def read(clients: Clients, now: datetime, *, prices_are_estimated: bool = False) -> Catalog:
    """The catalogue of the clients' region. It takes seconds and some sixty requests.

    ``prices_are_estimated``: those on demand, because the price list cannot be reached.

    Raises ``ConfigurationError`` if the region sells nothing at all.
    """
    prices = pricing.on_demand(clients, is_estimated=prices_are_estimated)
    spot = pricing.spot(clients, now)
    types = _types(clients)
    places = _places(clients)
    usage = {name: at(entry, "SupportedUsageClasses") or () for name, entry in types.items()}
    offerings = tuple(_offerings(places, usage, prices, spot))
    if not offerings:
        raise ConfigurationError(f"no instance type has a price in {clients.region}")
    return Catalog(
        region=clients.region,
        priced=_moment(now),
        listed=_moment(now),
        zones=_zones(clients, {zone for zones in places.values() for zone in zones}),
        instance_types=tuple(entry(types[name]) for name in sorted(types)),
        offerings=offerings,
        capacity_reservations=tuple(active_reservations(clients, [])),
    )


def repriced(clients: Clients, earlier: Catalog, now: datetime) -> Catalog:
    """The earlier catalogue with the spot prices and reservations of this moment: some ten requests, in seconds.

    A type is sold as spot where EC2 says a price, in the zones in which the catalogue has it.
    """
    prices = pricing.spot(clients, now)
    zones: dict[str, set[str]] = {}
    for offering in earlier.offerings:
        zones.setdefault(offering.instance_type, set()).add(offering.zone)
    kept = (offering for offering in earlier.offerings if offering.capacity_type != labels.SPOT)
    spot = (
        CatalogOffering(name, zone, labels.SPOT, price)
        for (name, zone), price in prices.items()
        if zone in zones.get(name, ())
    )
    return msgspec.structs.replace(
        earlier,
        priced=_moment(now),
        listed=earlier.listed or earlier.priced,
        # In the order of ``read``, so that the document changes only where prices do.
        offerings=tuple(sorted((*kept, *spot), key=lambda o: (o.instance_type, o.zone, o.capacity_type))),
        capacity_reservations=tuple(active_reservations(clients, [])),
    )


def _moment(now: datetime) -> str:
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _offerings(
    places: Mapping[str, Iterable[str]],
    usage: Mapping[str, Iterable[str]],
    prices: Mapping[str, float],
    spot: Mapping[tuple[str, str], float],
) -> Iterable[CatalogOffering]:
    """The offerings that have a price.

    By type: the zones, the capacity types and the on-demand price; by type and zone: the spot price.
    """
    for name in sorted(usage):
        for zone in sorted(places.get(name, ())):
            if labels.ON_DEMAND in usage[name] and name in prices:
                yield CatalogOffering(name, zone, labels.ON_DEMAND, prices[name])
            if labels.SPOT in usage[name] and (name, zone) in spot:
                yield CatalogOffering(name, zone, labels.SPOT, spot[name, zone])


def _types(clients: Clients) -> dict[str, Mapping[str, Any]]:
    filters = [{"Name": name, "Values": values} for name, values in _FILTERS.items()]
    with translated("describing instance types"):
        pages = clients.ec2.get_paginator("describe_instance_types").paginate(Filters=filters)  # type: ignore[arg-type]
        listed = [
            entry
            for page in pages
            for entry in entries(page, "InstanceTypes", *_WHOLE, call=_TYPES, log=clients.log)
            if _boots(entry)
        ]
    # The entries themselves are kept. They are decoded here only to leave out what no decision could read.
    decoded = converted(listed, Description, "InstanceType", call=_TYPES, log=clients.log)
    readable = {description.instance_type for description in decoded}
    return {entry["InstanceType"]: without_nulls(entry) for entry in listed if entry["InstanceType"] in readable}


def _boots(entry: Mapping[str, Any]) -> bool:
    """Whether a node can run on the type.

    Macs have an architecture of their own (``arm64_mac``), which Kubernetes does not know.
    """
    return any(name in _FILTERS[_ARCHITECTURE] for name in at(entry, "ProcessorInfo.SupportedArchitectures") or ())


def _places(clients: Clients) -> dict[str, set[str]]:
    """Instance type to the zones in which it is sold."""
    places: dict[str, set[str]] = {}
    with translated("describing instance type offerings"):
        pages = clients.ec2.get_paginator("describe_instance_type_offerings")
        for page in pages.paginate(LocationType="availability-zone"):
            for offering in entries(
                page, "InstanceTypeOfferings", "InstanceType", "Location", call=_PLACES, log=clients.log
            ):
                places.setdefault(offering["InstanceType"], set()).add(offering["Location"])
    return places


def _zones(clients: Clients, names: set[str]) -> tuple[Zone, ...]:
    with translated("describing zones"):
        answer = clients.ec2.describe_availability_zones(AllAvailabilityZones=False)
    listed = entries(answer, "AvailabilityZones", "ZoneName", call=_ZONES, log=clients.log)
    ids = {zone["ZoneName"]: zone.get("ZoneId") or "" for zone in listed}
    return tuple(Zone(name, ids.get(name, "")) for name in sorted(names))
