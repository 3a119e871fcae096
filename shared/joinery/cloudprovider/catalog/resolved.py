"""A catalogue of instance types as one EC2NodeClass has them already: what ``joinery catalog -o json`` prints.

Labels, capacity and allocatable are in it as they are; other classes' kubelet settings, AMI families and disks cannot act on them.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property

import msgspec

from joinery.apis.labels import REGION, ZONE, ZONE_ID
from joinery.apis.quantity import Resources, amounts
from joinery.cloudprovider.catalog.document import Catalog, CatalogOffering, Price, Zone
from joinery.errors import ConfigurationError
from joinery.state.offerings import InstanceType, Offering, Reservation


class _Offering(msgspec.Struct, frozen=True, rename="camel"):
    zone: str
    capacity_type: str
    price: Price
    available: bool = True
    capacity_reservation: str = ""
    remaining: int = 0


class _Entry(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    labels: dict[str, str | list[str]]
    capacity: dict[str, str | int | float]
    allocatable: dict[str, str | int | float]
    offerings: list[_Offering] = []


class ResolvedType(msgspec.Struct, frozen=True):
    """One type but for what changes with the region: offerings, and the labels of zone and region."""

    name: str
    labels: dict[str, tuple[str, ...]]
    capacity: Resources
    allocatable: Resources
    reserved: tuple[Offering, ...] = ()


class ResolvedCatalog(Catalog, frozen=True, rename="camel", kw_only=True, dict=True):
    """A ``Catalog`` whose types are ``kinds``; it describes no type as EC2 does."""

    kinds: tuple[ResolvedType, ...] = ()

    @cached_property
    def types(self) -> tuple[InstanceType, ...]:
        """The types where the catalogue sells them."""
        return tuple(self._type(kind) for kind in self.kinds)

    def _type(self, kind: ResolvedType) -> InstanceType:
        offerings = (*self.sold.get(kind.name, ()), *kind.reserved)
        zones = tuple(dict.fromkeys(offering.zone for offering in offerings))
        ids = {zone.name: zone.id for zone in self.zones if zone.id}
        labels = {**kind.labels, REGION: (self.region,), ZONE: zones}
        named = tuple(ids[zone] for zone in zones if zone in ids)
        return InstanceType(
            kind.name, {**labels, ZONE_ID: named} if named else labels, kind.capacity, kind.allocatable, offerings
        )


def decode_entries(data: bytes) -> ResolvedCatalog:
    """Read the array. Raises ``ConfigurationError`` naming the entry that is wrong."""
    try:
        entries = msgspec.json.decode(data, type=list[_Entry])
        kinds = tuple(_kinds(entries))
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
        raise ConfigurationError(f"not a catalogue: {error}") from error
    if not entries:
        raise ConfigurationError("not a catalogue: no instance type in it")
    return ResolvedCatalog(
        region=next((kind.labels[REGION][0] for kind in kinds if kind.labels.get(REGION)), ""),
        zones=tuple(Zone(name, zone_id) for name, zone_id in sorted(_zones(entries).items())),
        offerings=tuple(
            CatalogOffering(entry.name, sold.zone, sold.capacity_type, sold.price, sold.available)
            for entry in entries
            for sold in entry.offerings
            if not sold.capacity_reservation
        ),
        kinds=kinds,
    )


def _kinds(entries: list[_Entry]) -> Iterator[ResolvedType]:
    for entry in entries:
        labels = {key: (value,) if isinstance(value, str) else tuple(value) for key, value in entry.labels.items()}
        reserved = tuple(
            Offering(one.zone, one.capacity_type, one.price, one.available, "", Reservation(one.capacity_reservation, remaining=one.remaining))
            for one in entry.offerings
            if one.capacity_reservation
        )  # fmt: skip
        yield ResolvedType(entry.name, labels, amounts(entry.capacity), amounts(entry.allocatable), reserved)


def _zones(entries: list[_Entry]) -> Mapping[str, str]:
    """Zone names, with their ids: a type lists both in the same order."""
    found: dict[str, str] = {}
    for entry in entries:
        names, ids = (_listed(entry.labels.get(key, [])) for key in (ZONE, ZONE_ID))
        for index, name in enumerate(names):
            found.setdefault(name, ids[index] if len(ids) == len(names) else "")
    return found


def _listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value
