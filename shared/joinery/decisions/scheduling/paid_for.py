"""The commitments of a document, as a plan counts them (``objects.commitments``)."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from joinery.decisions.scheduling.commitments import Commitment
from joinery.objects.commitments import PaidFor, ReservedInstances, SavingsPlan
from joinery.objects.karpenter.labels import ON_DEMAND
from joinery.objects.snapshot.offerings import Offering

#: The catalogue's offerings of each instance type.
Sold = Mapping[str, Sequence[Offering]]

#: Normalized units of a size, from which the larger ones follow (EC2 User Guide, "How Reserved Instance discounts are
#: applied", "Instance size flexibility").
_UNITS = {"nano": 0.25, "micro": 0.5, "small": 1.0, "medium": 2.0, "large": 4.0, "xlarge": 8.0}
#: Families with accelerators, for HPC and of high memory. The same page excepts most of them by name; of one that it
#: does not, other sizes count as not covered.
_OF_ONE_SIZE = re.compile(r"(g|gr|p|inf|trn|dl|vt|f|hpc|u)[-0-9]")
#: What AWS said longer ago says nothing of what is left now.
_LONGEST = timedelta(days=1)


def commitments_of(document: PaidFor, sold: Sold, now: datetime) -> tuple[Commitment, ...]:
    """In the order in which AWS uses them: Reserved Instances before Savings Plans, the narrower before the wider.

    One that has ended is not there, and nothing of what AWS said more than a day ago.
    """
    if document.read is not None and now - _utc(document.read) > _LONGEST:
        return ()
    return (
        *(_instances(one, sold) for one in by_scope(document.reserved_instances) if is_current(one.end, now)),
        *(_plan(one, sold) for one in by_family(document.savings_plans) if is_current(one.end, now)),
    )


def by_scope(listed: Iterable[ReservedInstances]) -> Sequence[ReservedInstances]:
    """In AWS's order: those of a zone first."""
    return sorted(listed, key=lambda one: not one.zone)


def by_family(listed: Iterable[SavingsPlan]) -> Sequence[SavingsPlan]:
    """In AWS's order: those of a family first."""
    return sorted(listed, key=lambda one: not one.family)


def _is_size_flexible(one: ReservedInstances) -> bool:
    """Whether they are for all sizes of their family."""
    return not one.zone and _OF_ONE_SIZE.match(one.instance_type) is None


def family_of(kind: str) -> str:
    """``m7a`` of ``m7a.large``."""
    return kind.partition(".")[0]


def is_current(end: datetime | None, now: datetime) -> bool:
    """Whether what ends then has not ended. A moment without a zone is in UTC."""
    return end is None or _utc(end) > now


def _utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=moment.tzinfo or UTC)


def normalized_rates(one: ReservedInstances, kinds: Iterable[str]) -> Mapping[str, float]:
    """How many of the Reserved Instances an instance of each type uses that they cover. ``kinds``: all types."""
    kind = one.instance_type
    is_flexible = _is_size_flexible(one) if one.size_flexible is None else one.size_flexible
    units = _units(kind) if is_flexible else None
    if units is None:
        return {kind: 1.0}
    alike = {name: _units(name) for name in {*kinds, kind} if family_of(name) == family_of(kind)}
    return {name: other / units for name, other in alike.items() if other is not None}


def _instances(one: ReservedInstances, sold: Sold) -> Commitment:
    stock = max(0.0, one.count - one.used_elsewhere)
    return Commitment(name=one.name, stock=stock, rates=_on_demand(normalized_rates(one, sold), sold), zone=one.zone)


def _units(kind: str) -> float | None:
    """Normalized units of an instance type; None of one whose size has none, such as bare metal."""
    size = kind.partition(".")[2]
    times = size.removesuffix("xlarge")
    return 8.0 * int(times) if size != times and times.isascii() and times.isdigit() else _UNITS.get(size)


def _plan(one: SavingsPlan, sold: Sold) -> Commitment:
    rates = one.rates
    if rates is None:
        prices = {name: [o.price for o in listed if o.capacity_type == ON_DEMAND] for name, listed in sold.items()}
        rates = {name: min(found) * (1 - one.discount) for name, found in prices.items() if found}
    covered = {name: rate for name, rate in rates.items() if one.family in ("", family_of(name))}
    stock = max(0.0, one.commitment - one.used_elsewhere)
    return Commitment(name=one.name, stock=stock, rates=_on_demand(covered, sold))


def _on_demand(rates: Mapping[str, float], sold: Sold) -> Mapping[str, float]:
    """Those of the types that are sold on demand."""
    return {
        name: rate
        for name, rate in rates.items()
        if rate > 0 and any(offering.capacity_type == ON_DEMAND for offering in sold.get(name, ()))
    }
