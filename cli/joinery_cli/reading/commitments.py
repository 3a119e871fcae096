"""What is paid for already, from a file (``objects.commitments`` has an example of one).

The fields are checked here, one by one, so that a person learns which is wrong.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from joinery.decisions.scheduling.commitments import Commitment
from joinery.decisions.scheduling.paid_for import Sold, commitments_of, family_of, is_current
from joinery.objects.commitments import PaidFor, ReservedInstances, SavingsPlan
from joinery.objects.errors import ConfigurationError
from joinery.objects.spelling import meant_by
from joinery.objects.wording import must_be, rfc3339
from joinery_cli.notices import UserNotice, warning
from joinery_cli.reading.documents import read, source_name
from joinery_cli.reading.values import checked_map, checked_number, one_document

_FIELDS = ("discount", "reservedInstances", "savingsPlans", "read", "missing")
_OF_INSTANCES = ("name", "instanceType", "zone", "count", "usedElsewhere", "sizeFlexible", "end")
_OF_PLANS = ("name", "family", "commitment", "usedElsewhere", "discount", "rates", "end")


@dataclass(frozen=True, kw_only=True)
class Commitments:
    """``commitments``: those of the document, in the order in which AWS uses them. ``notices``: what a person should
    know.
    """

    document: PaidFor
    commitments: tuple[Commitment, ...]
    notices: tuple[UserNotice, ...] = ()


def read_commitments(path: str, sold: Sold, now: datetime) -> Commitments:
    """The commitments of a file at that moment. ``sold``: the catalogue's offerings of each instance type.

    Raises ``ConfigurationError`` naming file and field.
    """
    source = source_name(path)
    document = _map(source, _of_record(source, one_document(source, read(path), "commitments")), _FIELDS)
    instances = list(_entries(source, document, "reservedInstances", _OF_INSTANCES))
    plans = list(_entries(source, document, "savingsPlans", _OF_PLANS))
    names = [_text(field, entry, "name") for field, entry in (*instances, *plans)]
    for field, entry in instances:
        _check_instances(field, entry, sold)
    for field, entry in plans:
        _check_plan(field, entry, sold)
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigurationError(f"{source}: two commitments are called {twice}")
    _share(f"{source}: discount", document.get("discount", 0))
    paid_for = _converted(source, {name: value for name, value in document.items() if value})
    found = commitments_of(paid_for, sold, now)
    return Commitments(document=paid_for, commitments=found, notices=tuple(_notices(source, paid_for, found, now)))


def _of_record(source: str, document: Any) -> Any:
    """What a decision counted, of the decision's record; any other document as it is."""
    if not isinstance(document, dict) or document.get("kind") != "List":
        return document
    joinery = document.get("joinery")
    counted = joinery.get("commitments") if isinstance(joinery, dict) else None
    if counted is None:
        raise ConfigurationError(f"{source}: the decision counted no commitments")
    return counted


def _converted(source: str, document: Mapping[str, Any]) -> PaidFor:
    try:
        return msgspec.convert(document, PaidFor, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{source}: {error}") from None


def _notices(source: str, document: PaidFor, found: Sequence[Commitment], now: datetime) -> Iterator[UserNotice]:
    listed: tuple[ReservedInstances | SavingsPlan, ...] = (*document.reserved_instances, *document.savings_plans)
    for bought in listed:
        if bought.end is not None and not is_current(bought.end, now):
            yield warning(f"{source}: {bought.name} ended at {rfc3339(bought.end)}, so it counts no more")
    for one in found:
        if not one.rates:
            yield warning(f"{source}: {one.name} covers no instance type that the catalogue sells on demand")
        elif one.stock <= 0:
            yield warning(f"{source}: nothing is left of {one.name} for this cluster")


def _check_instances(field: str, entry: Mapping[str, Any], sold: Sold) -> None:
    kind, zone = _text(field, entry, "instanceType"), _text(field, entry, "zone", "")
    if kind not in sold:
        raise ConfigurationError(f"{field}.instanceType: the catalogue has no {kind}{_hint(kind, sold)}")
    zones = {offering.zone for offerings in sold.values() for offering in offerings}
    if zone and zone not in zones:
        raise ConfigurationError(f"{field}.zone: the catalogue has no {zone}{_hint(zone, zones)}")
    is_flexible = entry.get("sizeFlexible", False)
    if not isinstance(is_flexible, bool) or (is_flexible and zone):
        wanted = "true or false; one of a zone is for its own size alone"
        raise ConfigurationError(f"{field}.sizeFlexible: {must_be(wanted, is_flexible)}")
    _check_stock(field, entry, "count")


def _check_plan(field: str, entry: Mapping[str, Any], sold: Sold) -> None:
    family, rates = _text(field, entry, "family", ""), entry.get("rates")
    if (rates is None) == ("discount" not in entry):
        raise ConfigurationError(f"{field}: must have either rates or a discount")
    families = {family_of(name) for name in sold}
    if family and family not in families:
        raise ConfigurationError(f"{field}.family: the catalogue has no {family}{_hint(family, families)}")
    if rates is None:
        _share(f"{field}.discount", entry["discount"])
    else:
        for name, rate in checked_map(f"{field}.rates", rates).items():
            _positive(f"{field}.rates.{name}", rate)
    _check_stock(field, entry, "commitment")


def _check_stock(field: str, entry: Mapping[str, Any], name: str) -> None:
    if name not in entry:
        raise ConfigurationError(f"{field}.{name}: is missing")
    _number(f"{field}.{name}", entry[name])
    _number(f"{field}.usedElsewhere", entry.get("usedElsewhere", 0))
    _check_end(field, entry.get("end"))


def _check_end(field: str, value: Any) -> None:
    try:
        is_moment = value is None or isinstance(msgspec.convert(value, datetime), datetime)
    except msgspec.ValidationError:
        is_moment = False
    if not is_moment:
        raise ConfigurationError(f"{field}.end: {must_be('a moment such as 2027-01-01T00:00:00Z', value)}")


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


def _positive(field: str, value: Any) -> None:
    if not _number(field, value):
        raise ConfigurationError(f"{field}: {must_be('$/h, more than 0', value)}")


def _share(field: str, value: Any) -> None:
    if _number(field, value) >= 1:
        raise ConfigurationError(f"{field}: {must_be('a share, from 0 to less than 1', value)}")
