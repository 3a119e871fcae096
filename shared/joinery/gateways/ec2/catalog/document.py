"""The catalogue: the instance types of a region as its cloud describes them, and their offerings, as one document.

The ``catalog`` door writes it into the bucket, and every decision reads it from there. ``joinery plan --catalog`` takes
the same file.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Annotated, Any

import msgspec

from joinery.gateways.ec2.catalog.description import Description
from joinery.gateways.ec2.catalog.reservations import CapacityReservation
from joinery.objects.errors import ConfigurationError
from joinery.objects.snapshot.offerings import Offering


class Zone(msgspec.Struct, frozen=True, rename="camel"):
    """An availability zone. ``id``: its zone id, the same in every account; empty where it is not known."""

    name: str
    id: str = ""


#: In $/h. A price below zero or above a million is a mistake in the document.
HIGHEST = 1e6
Price = Annotated[float, msgspec.Meta(ge=0, le=HIGHEST)]


class CatalogOffering(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """An instance type in a zone under a capacity type. ``price``: in $/h."""

    instance_type: str
    zone: str
    capacity_type: str
    price: Price
    available: bool = True


#: The sources of a catalogue, and what each tells.
SOURCES = {
    "prices": "on-demand prices",
    "spot": "spot prices",
    "types": "instance types",
    "places": "the zones of instance types",
    "zone_ids": "zone ids",
    "reservations": "capacity reservations",
}


class Missing(msgspec.Struct, frozen=True, rename="camel"):
    """A source that could not be read: its name (``SOURCES``), what stands in for it, and why."""

    source: str
    instead: str
    reason: str

    def __str__(self) -> str:
        return f"{SOURCES.get(self.source, self.source)} could not be read: {self.instead} ({self.reason})"


class UnpricedOffering(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """An instance type in a zone under a capacity type, at a price that AWS does not say."""

    instance_type: str
    zone: str
    capacity_type: str


class Catalog(msgspec.Struct, frozen=True, rename="camel", kw_only=True, dict=True):
    """What a region sells.

    ``priced``: the day or moment (RFC3339) that the prices are of, ``listed``: the moment that the instance types and
    on-demand prices are of, if they were taken over from an earlier catalogue; empty where a document does not say it.
    ``instance_types``: entries as the cloud describes them, unchanged and undecoded, for EC2 of DescribeInstanceTypes;
    ``entry`` makes one. ``unpriced``: where those are sold that have no price anywhere, as types in preview.
    ``capacity_reservations``: entries of DescribeCapacityReservations with what is left of each; a document may leave
    them out. ``missing``: what could not be read when it was made.
    """

    api_version: str = "joinery.dev/v1"
    kind: str = "Catalog"
    region: str
    priced: str = ""
    listed: str = ""
    zones: tuple[Zone, ...] = ()
    instance_types: tuple[msgspec.Raw, ...] = ()
    offerings: tuple[CatalogOffering, ...] = ()
    unpriced: tuple[UnpricedOffering, ...] = ()
    capacity_reservations: tuple[CapacityReservation, ...] = ()
    missing: tuple[Missing, ...] = ()

    @cached_property
    def described(self) -> tuple[Description, ...]:
        """EC2's entries, decoded once per catalogue. Raises ``ConfigurationError``."""
        decoder = msgspec.json.Decoder(Description)
        decoded: list[Description] = []
        try:
            for raw in self.instance_types:
                decoded.append(decoder.decode(raw))
        except msgspec.DecodeError as error:
            raise ConfigurationError(f"not a catalogue: instanceTypes[{len(decoded)}]: {error}") from error
        return tuple(decoded)

    @cached_property
    def sold(self) -> Mapping[str, tuple[Offering, ...]]:
        """The offerings of each instance type, in the document's order."""
        ids = self._zone_ids
        return _by_type(
            (o.instance_type, Offering(o.zone, o.capacity_type, o.price, o.available, ids.get(o.zone, "")))
            for o in self.offerings
        )

    @cached_property
    def in_preview(self) -> Mapping[str, tuple[Offering, ...]]:
        """The unpriced offerings of each instance type, in the document's order. Their prices mean nothing."""
        ids = self._zone_ids
        return _by_type(
            (o.instance_type, Offering(o.zone, o.capacity_type, 0.0, zone_id=ids.get(o.zone, "")))
            for o in self.unpriced
        )

    @property
    def _zone_ids(self) -> Mapping[str, str]:
        return {zone.name: zone.id for zone in self.zones}


def _by_type(offerings: Iterable[tuple[str, Offering]]) -> Mapping[str, tuple[Offering, ...]]:
    by_type: dict[str, list[Offering]] = {}
    for name, offering in offerings:
        by_type.setdefault(name, []).append(offering)
    return {name: tuple(listed) for name, listed in by_type.items()}


def entry(description: Mapping[str, Any]) -> msgspec.Raw:
    """A description of one instance type, as a catalogue holds it."""
    return msgspec.Raw(msgspec.json.encode(description))


def decode(data: bytes) -> Catalog:
    """The catalogue in a JSON document. Raises ``ConfigurationError`` naming the field that is wrong."""
    try:
        catalog = msgspec.json.decode(data, type=Catalog)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"not a catalogue: {error}") from error
    if catalog.kind != "Catalog":
        raise ConfigurationError(f"not a catalogue: kind is {catalog.kind!r}")
    return catalog


def encode(catalog: Catalog) -> bytes:
    """The JSON document of a catalogue."""
    return msgspec.json.encode(catalog)
