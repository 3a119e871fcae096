"""What is paid for already: a file of Savings Plans, Reserved Instances, and a discount on all prices.

    discount: 0.06
    reservedInstances:
    - {name: web, instanceType: m7a.xlarge, zone: eu-central-1a, count: 20, usedElsewhere: 3}
    - {name: api, instanceType: m7a.xlarge, count: 10}
    savingsPlans:
    - {name: m7, family: m7a, commitment: 12.5, discount: 0.34}
    - {name: compute, commitment: 40, usedElsewhere: 10, rates: {m7a.large: 0.07}}

``discount`` of all is the share that a private pricing agreement (EDP) takes off prices. A Reserved Instance without a
zone is one of the region; then it is for all sizes of its family, unless ``sizeFlexible: false``. A Savings Plan
without a family is a Compute Savings Plan. Its rates are $/h by instance type (AWS API DescribeSavingsPlanRates), or a
share off on-demand prices. ``usedElsewhere``: what others than this cluster's nodes use.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from joinery.decisions.scheduling.commitments import Commitment
from joinery.objects.errors import ConfigurationError
from joinery.objects.karpenter.labels import ON_DEMAND
from joinery.objects.snapshot.offerings import Offering
from joinery.objects.spelling import meant_by
from joinery.objects.wording import must_be
from joinery_cli.notices import UserNotice, warning
from joinery_cli.reading.documents import read, source_name
from joinery_cli.reading.values import checked_map, checked_number, one_document

#: Normalized units of a size, from which the larger ones follow (AWS, "Regional Reserved Instance sizes and
#: normalization factors").
_UNITS = {"nano": 0.25, "micro": 0.5, "small": 1.0, "medium": 2.0, "large": 4.0, "xlarge": 8.0}

_FIELDS = ("discount", "reservedInstances", "savingsPlans")
_OF_INSTANCES = ("name", "instanceType", "zone", "count", "usedElsewhere", "sizeFlexible")
_OF_PLANS = ("name", "family", "commitment", "usedElsewhere", "discount", "rates")

Sold = Mapping[str, Sequence[Offering]]


@dataclass(frozen=True, kw_only=True)
class Commitments:
    """``discount``: the share that is taken off all prices. ``commitments``: in the order in which AWS uses them.
    ``notices``: what a person should know.
    """

    discount: float
    commitments: tuple[Commitment, ...]
    notices: tuple[UserNotice, ...] = ()


def read_commitments(path: str, sold: Sold) -> Commitments:
    """The commitments of a file. ``sold``: the catalogue's offerings of each instance type.

    Raises ``ConfigurationError`` naming file and field.
    """
    source = source_name(path)
    document = _map(source, one_document(source, read(path), "commitments"), _FIELDS)
    instances = list(_entries(source, document, "reservedInstances", _OF_INSTANCES))
    plans = list(_entries(source, document, "savingsPlans", _OF_PLANS))
    # Reserved Instances before Savings Plans, and the narrower before the wider.
    instances.sort(key=lambda each: not each[1].get("zone"))
    plans.sort(key=lambda each: not each[1].get("family"))
    found = [_instances(*each, sold) for each in instances] + [_plan(*each, sold) for each in plans]
    names = [one.name for one in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigurationError(f"{source}: two commitments are called {twice}")
    return Commitments(
        discount=_share(f"{source}: discount", document.get("discount", 0)),
        commitments=tuple(found),
        notices=tuple(_notices(source, found)),
    )


def _notices(source: str, found: Sequence[Commitment]) -> Iterator[UserNotice]:
    for one in found:
        if not one.rates:
            yield warning(f"{source}: {one.name} covers no instance type that the catalogue sells on demand")
        elif one.stock <= 0:
            yield warning(f"{source}: nothing is left of {one.name} for this cluster")


def _instances(field: str, entry: Mapping[str, Any], sold: Sold) -> Commitment:
    kind, zone = _text(field, entry, "instanceType"), _text(field, entry, "zone", "")
    if kind not in sold:
        raise ConfigurationError(f"{field}.instanceType: the catalogue has no {kind}{_hint(kind, sold)}")
    zones = {offering.zone for offerings in sold.values() for offering in offerings}
    if zone and zone not in zones:
        raise ConfigurationError(f"{field}.zone: the catalogue has no {zone}{_hint(zone, zones)}")
    is_flexible = entry.get("sizeFlexible", not zone)
    if not isinstance(is_flexible, bool) or (is_flexible and zone):
        wanted = "true or false; one of a zone is for its own size alone"
        raise ConfigurationError(f"{field}.sizeFlexible: {must_be(wanted, is_flexible)}")
    units = _units(kind) if is_flexible else None
    family = kind.partition(".")[0]
    rates = {kind: 1.0}
    if units is not None:
        alike = {name: _units(name) for name in sold if name.partition(".")[0] == family}
        rates = {name: other / units for name, other in alike.items() if other is not None}
    return Commitment(
        name=_text(field, entry, "name"), stock=_stock(field, entry, "count"), rates=_on_demand(rates, sold), zone=zone
    )


def _units(kind: str) -> float | None:
    """Normalized units of an instance type; None of one whose size has none, such as bare metal."""
    size = kind.partition(".")[2]
    times = size.removesuffix("xlarge")
    return 8.0 * int(times) if size != times and times.isascii() and times.isdigit() else _UNITS.get(size)


def _plan(field: str, entry: Mapping[str, Any], sold: Sold) -> Commitment:
    family, rates = _text(field, entry, "family", ""), entry.get("rates")
    if (rates is None) == ("discount" not in entry):
        raise ConfigurationError(f"{field}: must have either rates or a discount")
    families = {name.partition(".")[0] for name in sold}
    if family and family not in families:
        raise ConfigurationError(f"{field}.family: the catalogue has no {family}{_hint(family, families)}")
    if rates is None:
        share = _share(f"{field}.discount", entry["discount"])
        prices = {name: [o.price for o in listed if o.capacity_type == ON_DEMAND] for name, listed in sold.items()}
        rates = {name: min(found) * (1 - share) for name, found in prices.items() if found}
    else:
        where = f"{field}.rates"
        rates = {name: _positive(f"{where}.{name}", rate) for name, rate in checked_map(where, rates).items()}
    covered = {name: rate for name, rate in rates.items() if family in ("", name.partition(".")[0])}
    name, stock = _text(field, entry, "name"), _stock(field, entry, "commitment")
    return Commitment(name=name, stock=stock, rates=_on_demand(covered, sold))


def _on_demand(rates: Mapping[str, float], sold: Sold) -> Mapping[str, float]:
    """Those of the types that are sold on demand."""
    return {
        name: rate
        for name, rate in rates.items()
        if rate > 0 and any(offering.capacity_type == ON_DEMAND for offering in sold.get(name, ()))
    }


def _stock(field: str, entry: Mapping[str, Any], name: str) -> float:
    if name not in entry:
        raise ConfigurationError(f"{field}.{name}: is missing")
    whole, elsewhere = _number(f"{field}.{name}", entry[name]), entry.get("usedElsewhere", 0)
    return max(0.0, whole - _number(f"{field}.usedElsewhere", elsewhere))


def _entries(
    source: str, document: Mapping[str, Any], name: str, fields: Sequence[str]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each entry of a list, with its field."""
    listed = document.get(name) or []
    if not isinstance(listed, list):
        raise ConfigurationError(f"{source}: {name}: {must_be('a list', listed)}")
    for number, entry in enumerate(listed):
        field = f"{source}: {name}[{number}]"
        yield field, _map(field, entry, fields)


def _map(field: str, value: Any, fields: Sequence[str]) -> Mapping[str, Any]:
    given = checked_map(field, value)
    unknown = next((name for name in given if name not in fields), None)
    if unknown is not None:
        raise ConfigurationError(f"{field}: has no field {unknown}{_hint(unknown, fields)}")
    return given


def _hint(given: str, known: Any) -> str:
    meant = meant_by(given, known)
    return f"; is it {meant}?" if meant else ""


def _text(field: str, entry: Mapping[str, Any], name: str, default: str | None = None) -> str:
    value = entry.get(name, default)
    if not isinstance(value, str) or (default is None and not value):
        problem = "is missing" if value is None else must_be("a text", value)
        raise ConfigurationError(f"{field}.{name}: {problem}")
    return value


def _number(field: str, value: Any) -> float:
    return checked_number(field, value, "a number, 0 or more", most=1e9)


def _positive(field: str, value: Any) -> float:
    if not (number := _number(field, value)):
        raise ConfigurationError(f"{field}: {must_be('$/h, more than 0', value)}")
    return number


def _share(field: str, value: Any) -> float:
    if (share := _number(field, value)) >= 1:
        raise ConfigurationError(f"{field}: {must_be('a share, from 0 to less than 1', value)}")
    return share
