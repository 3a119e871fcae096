"""How often EC2 takes spot nodes back: a file of rates, or the one that AWS's Spot Advisor shows.

Rates of one's own are a map in YAML or JSON, from instance types to the share of their spot nodes that is interrupted
within a month, such as ``m7i.large: 0.08``. Spot Advisor's is public
(https://spot-bid-advisor.s3.amazonaws.com/spot-advisor-data.json): by region, operating system and instance type ``r``,
the number of a bucket, and ``s``, the savings in percent, which prices say better.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import msgspec

from joinery.objects.errors import ConfigurationError
from joinery.objects.spelling import meant_by
from joinery.objects.wording import must_be, one_of
from joinery_cli.notices import UserNotice, note, some_of, warning
from joinery_cli.reading.documents import read, source_name
from joinery_cli.reading.values import checked_map, checked_number, one_document

#: By the labels of Spot Advisor's buckets, the middle of each; of the last, which has no end, as far from its beginning
#: as those below are from each other.
_BUCKETS: Mapping[str, float] = {"<5%": 0.025, "5-10%": 0.075, "10-15%": 0.125, "15-20%": 0.175, ">20%": 0.25}
_ADVISOR, _RANGES, _SYSTEM, _RATE = "spot_advisor", "ranges", "Linux", "r"
_OPEN = b"{"


@dataclass(frozen=True, kw_only=True)
class Rates:
    """By instance type the share of its spot nodes that is interrupted within a month.

    ``unrated``: what a type without a rate counts as, the mean of those that have one. ``notices``: what a person
    should know.
    """

    by_type: Mapping[str, float]
    unrated: float
    notices: tuple[UserNotice, ...] = ()


def read_rates(path: str, region: str, on_spot: Sequence[str]) -> Rates:
    """The rates of a file; of Spot Advisor's those of Linux in the region. ``on_spot``: the types that are sold so.

    Raises ``ConfigurationError`` naming file and field.
    """
    source = source_name(path)
    document = _document(source, read(path))
    if not isinstance(document, dict) or not document:
        raise ConfigurationError(f"{source}: {must_be('a map of instance types to shares', document)}")
    if _ADVISOR in document:
        by_type = _advised(source, document, region)
    else:
        by_type = {name: _share(f"{source}: {name}", value) for name, value in document.items()}
    unrated = fmean(by_type.values())
    return Rates(by_type=by_type, unrated=unrated, notices=tuple(_notices(source, by_type, unrated, on_spot)))


def _notices(source: str, by_type: Mapping[str, float], unrated: float, on_spot: Sequence[str]) -> Iterator[UserNotice]:
    lacking = [name for name in on_spot if name not in by_type]
    if lacking and len(lacking) == len(on_spot):
        yield warning(f"{source}: has a rate for none of the types that are sold on spot; is it the right file?")
    elif lacking:
        counted = f"they count as the mean of the others, {unrated:.1%} a month"
        yield note(f"{source}: no rate for {len(lacking):,} types on spot ({some_of(lacking)}); {counted}")


def _document(source: str, data: bytes) -> Any:
    if data.lstrip().startswith(_OPEN):
        try:
            return msgspec.json.decode(data)
        except msgspec.DecodeError:
            # A map of YAML may begin so, too, and its reader says where the mistake is.
            pass
        except RecursionError as error:
            raise ConfigurationError(f"{source}: is nested too deeply") from error
    return one_document(source, data, "rates")


def _share(field: str, value: Any) -> float:
    wanted = "the share of its spot nodes that is interrupted within a month, from 0 to 1"
    return checked_number(field, value, wanted, most=1)


def _advised(source: str, document: Mapping[str, Any], region: str) -> Mapping[str, float]:
    shares = _buckets(source, document)
    regions = checked_map(f"{source}: {_ADVISOR}", document[_ADVISOR])
    if region not in regions:
        known = meant_by(region, regions)
        hint = f"; is it {known}?" if known else f"; it has {some_of(sorted(regions))}"
        raise ConfigurationError(f"{source}: {_ADVISOR}: has no region {region or '(none is known: --region)'}{hint}")
    field = f"{source}: {_ADVISOR}.{region}"
    systems = checked_map(field, regions[region])
    if not systems.get(_SYSTEM):
        raise ConfigurationError(f"{field}: has no {_SYSTEM}")
    rates = {}
    for name, entry in checked_map(f"{field}.{_SYSTEM}", systems[_SYSTEM]).items():
        bucket = checked_map(f"{field}.{_SYSTEM}.{name}", entry).get(_RATE)
        if not isinstance(bucket, int) or isinstance(bucket, bool) or bucket not in shares:
            problem = must_be(f"the index of one of {_RANGES}, {_listed(shares)}", bucket)
            raise ConfigurationError(f"{field}.{_SYSTEM}.{name}.{_RATE}: {problem}")
        rates[name] = shares[bucket]
    return rates


def _buckets(source: str, document: Mapping[str, Any]) -> Mapping[int, float]:
    """By index, the share of each bucket. If AWS ever changes them, that is said rather than read wrongly."""
    listed = document.get(_RANGES)
    if not isinstance(listed, list) or not listed:
        raise ConfigurationError(f"{source}: {_RANGES}: {must_be('the list of buckets', listed)}")
    shares = {}
    for number, entry in enumerate(listed):
        field = f"{source}: {_RANGES}[{number}]"
        bucket = checked_map(field, entry)
        if bucket.get("label") not in _BUCKETS:
            raise ConfigurationError(f"{field}.label: {one_of([*_BUCKETS], bucket.get('label'))}")
        if not isinstance(bucket.get("index"), int):
            raise ConfigurationError(f"{field}.index: {must_be('a whole number', bucket.get('index'))}")
        shares[bucket["index"]] = _BUCKETS[bucket["label"]]
    return shares


def _listed(shares: Mapping[int, float]) -> str:
    return ", ".join(map(str, sorted(shares)))
