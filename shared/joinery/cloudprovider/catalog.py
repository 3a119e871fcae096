"""The catalogue: instance types as EC2 describes them and their offerings, as one document (cli-contract.md, "Catalogue").

The ``catalog`` door writes it into the bucket, every decision reads it from there, and ``joinery plan --catalog`` takes
the same file.
"""

from typing import Any

import msgspec

from joinery.errors import ConfigurationError


class Zone(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    id: str = ""


class CatalogOffering(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """Price in $/h."""

    instance_type: str
    zone: str
    capacity_type: str
    price: float
    available: bool = True


class Catalog(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """``instance_types`` are entries of DescribeInstanceTypes, unchanged."""

    api_version: str = "joinery.dev/v1"
    kind: str = "Catalog"
    region: str
    zones: tuple[Zone, ...] = ()
    instance_types: tuple[dict[str, Any], ...] = ()
    offerings: tuple[CatalogOffering, ...] = ()


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
