"""A catalogue of one region, presented as if it were another's: what a plan can be made from where nothing better is at
hand.

Without it every pod of a cluster in Frankfurt stays pending beside a catalogue of Virginia, for zones that nobody there
has heard of. With it the plan has the right shape (types and sizes are much the same everywhere), its prices are an
estimate, and the plan says so wherever it names a price.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from joinery.gateways.ec2.catalog.document import Catalog, CatalogOffering, Zone

_FEWEST, _LETTERS = 3, "abc"


def relocated(catalog: Catalog, region: str, zones: Mapping[str, str], asked_ids: Iterable[str] = ()) -> Catalog:
    """The same types at the same prices in the zones of another region. ``zones``: those known of it, name to id.

    ``asked_ids``: ids that NodePools ask for. Those of no known zone are given to zones without an id, in order.

    A region has three zones at least (but for two that are older than the rule): missing ones are named by letter. What
    is left of capacity reservations is another region's, and left out.
    """
    targets = _zones(region, zones)
    unnamed = iter(sorted({*asked_ids} - {*zones.values()}))
    ids = {zone: zones.get(zone) or next(unnamed, "") for zone in targets}
    ranked = _ranked(catalog)
    if not ranked:
        return msgspec.structs.replace(catalog, region=region)
    source = {zone: ranked[number % len(ranked)] for number, zone in enumerate(targets)}
    return msgspec.structs.replace(
        catalog,
        region=region,
        zones=tuple(Zone(zone, ids[zone]) for zone in targets),
        offerings=tuple(_moved(catalog.offerings, source)),
        capacity_reservations=(),
    )


def _zones(region: str, zone_ids: Mapping[str, str]) -> list[str]:
    lettered = (f"{region}{letter}" for letter in _LETTERS)
    missing = max(0, _FEWEST - len(zone_ids))
    return sorted([*zone_ids, *[zone for zone in lettered if zone not in zone_ids][:missing]])


def _ranked(catalog: Catalog) -> list[str]:
    """The catalogue's zones, those first in which most is sold."""
    sold = Counter(offering.zone for offering in catalog.offerings)
    return sorted(sold, key=lambda zone: (-sold[zone], zone))


def _moved(offerings: Iterable[CatalogOffering], source: Mapping[str, str]) -> Iterable[CatalogOffering]:
    targets: dict[str, list[str]] = {}
    for target, origin in source.items():
        targets.setdefault(origin, []).append(target)
    for offering in offerings:
        for target in targets.get(offering.zone, ()):
            yield msgspec.structs.replace(offering, zone=target)
