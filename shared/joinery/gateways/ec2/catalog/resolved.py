"""A catalogue of instance types that were resolved for some node class before: what ``joinery catalog -o json`` prints.

Labels, capacity and allocatable are taken from it as they are. Kubelet settings, AMI families and disks of other
classes do not act on them.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property

import msgspec

from joinery.gateways.ec2.catalog.document import Catalog, CatalogOffering, Price, Zone
from joinery.objects.errors import ConfigurationError
from joinery.objects.karpenter.labels import REGION, ZONE, ZONE_ID
from joinery.objects.kubernetes.quantity import Resources, amounts
from joinery.objects.snapshot.offerings import InstanceType, Offering, Reservation


class _Offering(msgspec.Struct, frozen=True, rename="camel"):
    zone: str
    capacity_type: str
    price: Price
    available: bool = True
    capacity_reservation: str = ""
    remaining: int = 0


class _ResolvedEntry(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    labels: dict[str, str | list[str]]
    capacity: dict[str, str | int | float]
    allocatable: dict[str, str | int | float]
    offerings: list[_Offering] = []
    attachments: dict[str, int] = {}
    partial: dict[str, str | int | float] = {}


class ResolvedType(msgspec.Struct, frozen=True):
    """One type without what changes with the region: its offerings, and the labels of zones and region.

    ``reserved``: offerings of capacity reservations.
    """

    name: str
    labels: dict[str, tuple[str, ...]]
    capacity: Resources
    allocatable: Resources
    reserved: tuple[Offering, ...] = ()
    attachments: Mapping[str, int] = msgspec.field(default_factory=dict)


class ResolvedCatalog(Catalog, frozen=True, rename="camel", kw_only=True, dict=True):
    """A ``Catalog`` that holds its types in ``resolved``, and none as EC2 describes it."""

    resolved: tuple[ResolvedType, ...] = ()

    @cached_property
    def types(self) -> tuple[InstanceType, ...]:
        """The types where the catalogue sells them."""
        return tuple(self._type(resolved) for resolved in self.resolved)

    def _type(self, resolved: ResolvedType) -> InstanceType:
        offerings = (*self.sold.get(resolved.name, ()), *resolved.reserved)
        zones = tuple(dict.fromkeys(offering.zone for offering in offerings))
        ids = {zone.name: zone.id for zone in self.zones if zone.id}
        labels = {**resolved.labels, REGION: (self.region,), ZONE: zones}
        named = tuple(ids[zone] for zone in zones if zone in ids)
        return InstanceType(
            resolved.name,
            {**labels, ZONE_ID: named} if named else labels,
            resolved.capacity,
            resolved.allocatable,
            offerings,
            resolved.attachments,
        )


def decode_entries(data: bytes) -> ResolvedCatalog:
    """The catalogue in a JSON array. Raises ``ConfigurationError`` naming the entry that is wrong."""
    try:
        entries = msgspec.json.decode(data, type=list[_ResolvedEntry])
        resolved = tuple(_resolved(entries))
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
        raise ConfigurationError(f"not a catalogue: {error}") from error
    if not entries:
        raise ConfigurationError("not a catalogue: no instance type in it")
    return ResolvedCatalog(
        region=next((one.labels[REGION][0] for one in resolved if one.labels.get(REGION)), ""),
        zones=tuple(Zone(name, zone_id) for name, zone_id in sorted(_zones(entries).items())),
        offerings=tuple(
            CatalogOffering(entry.name, sold.zone, sold.capacity_type, sold.price, sold.available)
            for entry in entries
            for sold in entry.offerings
            if not sold.capacity_reservation
        ),
        resolved=resolved,
    )


def _resolved(entries: list[_ResolvedEntry]) -> Iterator[ResolvedType]:
    for entry in entries:
        labels = {key: (value,) if isinstance(value, str) else tuple(value) for key, value in entry.labels.items()}
        reserved = tuple(_reserved(sold) for sold in entry.offerings if sold.capacity_reservation)
        room = amounts(entry.capacity | entry.partial), amounts(entry.allocatable | entry.partial)
        yield ResolvedType(entry.name, labels, *room, reserved, entry.attachments)


def _reserved(sold: _Offering) -> Offering:
    return Offering(
        zone=sold.zone,
        capacity_type=sold.capacity_type,
        price=sold.price,
        available=sold.available,
        reservation=Reservation(sold.capacity_reservation, remaining=sold.remaining),
    )


def _zones(entries: list[_ResolvedEntry]) -> Mapping[str, str]:
    """Zone names with their ids. A type lists both in the same order."""
    zones: dict[str, str] = {}
    for entry in entries:
        names, ids = (_listed(entry.labels.get(key, [])) for key in (ZONE, ZONE_ID))
        for index, name in enumerate(names):
            zones.setdefault(name, ids[index] if len(ids) == len(names) else "")
    return zones


def _listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value
