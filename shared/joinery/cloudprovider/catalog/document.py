"""The catalogue: instance types as EC2 describes them and their offerings, as one document.

The ``catalog`` door writes it into the bucket, every decision reads it from there, and ``joinery plan --catalog`` takes
the same file.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any

import msgspec

from joinery.cloudprovider.catalog.description import Description
from joinery.cloudprovider.catalog.reservations import CapacityReservation
from joinery.errors import ConfigurationError
from joinery.state.offerings import Offering


class Zone(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    id: str = ""


#: $/h: no machine is paid for by its tenant, and none costs a million.
Price = Annotated[float, msgspec.Meta(ge=0, le=1e6)]


class CatalogOffering(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """Price in $/h."""

    instance_type: str
    zone: str
    capacity_type: str
    price: Price
    available: bool = True


class Catalog(msgspec.Struct, frozen=True, rename="camel", kw_only=True, dict=True):
    """``instance_types`` are entries of DescribeInstanceTypes, unchanged and undecoded; ``entry`` makes one.

    ``capacity_reservations``: entries of DescribeCapacityReservations, for what is left of each; a document may leave them out.
    ``priced``: the day or moment (RFC3339) that the prices are of; empty where a document does not say it.
    """

    api_version: str = "joinery.dev/v1"
    kind: str = "Catalog"
    region: str
    priced: str = ""
    zones: tuple[Zone, ...] = ()
    instance_types: tuple[msgspec.Raw, ...] = ()
    offerings: tuple[CatalogOffering, ...] = ()
    capacity_reservations: tuple[CapacityReservation, ...] = ()

    @cached_property
    def described(self) -> tuple[Description, ...]:
        """The entries, decoded once per catalogue. Raises ``ConfigurationError``."""
        decoder = msgspec.json.Decoder(Description)
        found: list[Description] = []
        try:
            for raw in self.instance_types:
                found.append(decoder.decode(raw))
        except msgspec.DecodeError as error:
            raise ConfigurationError(f"not a catalogue: instanceTypes[{len(found)}]: {error}") from error
        return tuple(found)

    @cached_property
    def sold(self) -> Mapping[str, tuple[Offering, ...]]:
        """The offerings of each instance type, in the document's order."""
        ids = {zone.name: zone.id for zone in self.zones}
        result: dict[str, list[Offering]] = {}
        for o in self.offerings:
            offering = Offering(o.zone, o.capacity_type, o.price, o.available, ids.get(o.zone, ""))
            result.setdefault(o.instance_type, []).append(offering)
        return {name: tuple(found) for name, found in result.items()}


def entry(description: Mapping[str, Any]) -> msgspec.Raw:
    """One entry of DescribeInstanceTypes, as a catalogue holds it."""
    return msgspec.Raw(msgspec.json.encode(description))


def decode(data: bytes) -> Catalog:
    """Read a catalogue document. Raises ``ConfigurationError`` naming the field that is wrong."""
    try:
        catalog = msgspec.json.decode(data, type=Catalog)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"not a catalogue: {error}") from error
    if catalog.kind != "Catalog":
        raise ConfigurationError(f"not a catalogue: kind is {catalog.kind!r}")
    return catalog


def encode(catalog: Catalog) -> bytes:
    return msgspec.json.encode(catalog)
