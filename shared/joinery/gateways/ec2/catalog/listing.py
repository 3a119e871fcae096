"""The live catalogue: every instance type of the region, where it is sold, and for how much.

A source that cannot be read, because a right is missing or AWS does not answer, keeps nobody from the others. The
earlier catalogue stands in for it, or what is known without (``_STAND_INS``), and the catalogue says so. An offering
without a price is left out until it has one; of types without any, where they are sold is there, for NodeOverlays.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from joinery.gateways.aws import Clients
from joinery.gateways.ec2.catalog import pricing
from joinery.gateways.ec2.catalog.document import Catalog, CatalogOffering, Missing, UnpricedOffering, Zone
from joinery.gateways.ec2.catalog.sources import Parts, parts_of, questions, zones_by_type
from joinery.gateways.workers import OneByOne, Workers
from joinery.objects.errors import ConfigurationError, JoineryError
from joinery.objects.karpenter import labels
from joinery.objects.wording import shortened

#: What stands in for each source where there is no earlier catalogue. Nothing does for the types.
_STAND_INS = {
    "prices": "estimates stand in, which are those of us-east-1",
    "spot": "nothing is sold as spot",
    "types": "",
    "places": "each is sold where it has a spot price",
    "zone_ids": "none is known",
    "reservations": "none is known",
}
#: What changes by the hour.
_HOURLY = ("spot", "reservations")
#: What is as old as the catalogue's ``listed`` says.
_LISTED = {"prices", "types", "places"}

Questions = Mapping[str, Callable[[], Any]]


def read(
    clients: Clients,
    now: datetime,
    earlier: Catalog | None = None,
    *,
    in_full: bool = True,
    workers: Workers | None = None,
    prices_are_estimated: bool = False,
) -> Catalog:
    """The catalogue of the clients' region. It takes seconds and some fifty requests.

    ``earlier``: stands in for what cannot be read. ``in_full``: False to read spot prices and reservations alone, by
    some ten requests, and take over the rest: a type is sold as spot where EC2 says a price, in the zones in which the
    earlier catalogue has it. ``workers``: ask several things at a time. ``prices_are_estimated``: those on demand,
    because the price list cannot be reached.

    Raises what keeps the instance types from being read, where none are known; ``ConfigurationError`` if the region
    sells nothing at all.
    """
    asked = questions(clients, now, prices_are_estimated=prices_are_estimated)
    known = _known(earlier) if earlier else None
    if known is None:
        nothing = Parts(pricing.estimates(clients.region), {}, {}, {}, {}, ())
        return _catalog(asked, nothing, None, now, workers, clients.region)
    if not in_full:
        asked = {name: asked[name] for name in _HOURLY}
    return _catalog(asked, known, earlier, now, workers, clients.region)


def _known(earlier: Catalog) -> Parts | None:
    """None for one whose types cannot be read: it is to be replaced."""
    try:
        return parts_of(earlier)
    except ConfigurationError:
        return None


def _catalog(
    asked: Questions, known: Parts, earlier: Catalog | None, now: datetime, workers: Workers | None, region: str
) -> Catalog:
    answers = dict(zip(asked, (workers or OneByOne()).run(list(asked.values())), strict=True))
    errors = {name: answer for name, answer in answers.items() if isinstance(answer, JoineryError)}
    found: dict[str, Any] = {name: answer for name, answer in answers.items() if name not in errors}
    parts = replace(known, **found)
    if not parts.types and "types" in errors:
        raise errors["types"]
    if not parts.places:
        parts = replace(parts, places=zones_by_type(parts.spot))
    offerings = tuple(_offerings(parts))
    if not offerings:
        raise ConfigurationError(f"no instance type has a price in {region}")
    moment = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Catalog(
        region=region,
        priced=moment if earlier is None or "spot" in found else earlier.priced,
        listed=moment if earlier is None or found.keys() >= _LISTED else earlier.listed or earlier.priced,
        zones=_zones(parts) if earlier is None or "places" in found else earlier.zones,
        instance_types=tuple(parts.types[name].entry for name in sorted(parts.types)),
        offerings=offerings,
        unpriced=tuple(_unpriced(parts, offerings)),
        capacity_reservations=parts.reservations,
        missing=tuple(_missing(asked, errors, earlier)),
    )


def _missing(asked: Questions, errors: Mapping[str, JoineryError], earlier: Catalog | None) -> Iterator[Missing]:
    """What could not be read, and what was not asked for now and could not be read before.

    What stood in for a source before is standing in still.
    """
    before = {missing.source: missing for missing in earlier.missing} if earlier else {}
    for name, instead in _STAND_INS.items():
        if name in before and name not in asked:
            yield before[name]
        elif name in errors:
            if earlier is not None:
                age = earlier.priced if name in _HOURLY else earlier.listed or earlier.priced
                instead = before[name].instead if name in before else f"those of {age} stand in"
            yield Missing(name, instead, shortened(str(errors[name])))


def _offerings(parts: Parts) -> Iterator[CatalogOffering]:
    """The offerings that have a price."""
    for name in sorted(parts.types):
        bought_as = parts.types[name].bought_as
        for zone in sorted(parts.places.get(name, ())):
            if labels.ON_DEMAND in bought_as and name in parts.prices:
                yield CatalogOffering(name, zone, labels.ON_DEMAND, parts.prices[name])
            if labels.SPOT in bought_as and (name, zone) in parts.spot:
                yield CatalogOffering(name, zone, labels.SPOT, parts.spot[name, zone])


def _unpriced(parts: Parts, offerings: Iterable[CatalogOffering]) -> Iterator[UnpricedOffering]:
    """Where types are sold that have no price at all. One without a spot price in a zone is not sold there as spot."""
    priced = {offering.instance_type for offering in offerings}
    for name in sorted(parts.types.keys() - priced):
        for zone in sorted(parts.places.get(name, ())):
            for capacity_type in (labels.ON_DEMAND, labels.SPOT):
                if capacity_type in parts.types[name].bought_as:
                    yield UnpricedOffering(name, zone, capacity_type)


def _zones(parts: Parts) -> tuple[Zone, ...]:
    names = {zone for zones in parts.places.values() for zone in zones}
    return tuple(Zone(name, parts.zone_ids.get(name, "")) for name in sorted(names))
