"""What the simulated region sells: a part of the recorded catalogue, so that stories are short to tell."""

from collections.abc import Collection
from functools import cache

import msgspec

from joinery.gateways.ec2.catalog.document import Catalog

FAMILIES = ("c6a", "c7a", "c7g", "c7i", "m6a", "m7a", "m7g", "m7i", "r6a", "r7a", "r7g", "r7i", "t3")
ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")


@cache
def sample() -> Catalog:
    """Every instance type of us-east-1, with the prices of the day it was recorded."""
    import gzip
    from importlib import resources

    from joinery.gateways.ec2.catalog.document import decode

    packed = resources.files("joinery_cli").joinpath("data", "catalog-us-east-1.json.gz").read_bytes()
    return decode(gzip.decompress(packed))


@cache
def market(families: tuple[str, ...] = FAMILIES, zones: tuple[str, ...] = ZONES) -> Catalog:
    """The recorded catalogue, restricted to families and zones."""
    return restricted(sample(), families, zones)


def restricted(catalog: Catalog, families: Collection[str], zones: Collection[str]) -> Catalog:
    """A catalogue without the other families and zones."""
    names = [description.instance_type for description in catalog.described]
    entries = zip(names, catalog.instance_types, strict=True)
    kept = {name: entry for name, entry in entries if name.partition(".")[0] in families}
    return msgspec.structs.replace(
        catalog,
        zones=tuple(zone for zone in catalog.zones if zone.name in zones),
        instance_types=tuple(kept.values()),
        offerings=tuple(
            offering for offering in catalog.offerings if offering.instance_type in kept and offering.zone in zones
        ),
    )
