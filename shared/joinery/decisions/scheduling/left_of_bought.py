"""What an account has bought, less what others than this cluster's nodes use of it: the document that plans count.

Others come first. AWS may well cover a node of this cluster before them, and then they are paid for in its place: what
a plan adds to the bill is the same. Commitments that pay alike become one, because an account may have dozens.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from msgspec.structs import replace

from joinery.decisions.scheduling.commitments import Commitment, Usage, coverage
from joinery.decisions.scheduling.paid_for import Sold, by_family, by_scope, normalized_rates
from joinery.objects.commitments import Bought, OtherInstance, PaidFor, ReservedInstances, SavingsPlan, kind_of
from joinery.objects.errors import JoineryError
from joinery.objects.karpenter.labels import ON_DEMAND
from joinery.objects.wording import shortened

_DIGITS = 6


def left_of(bought: Bought, earlier: PaidFor | None, sold: Sold, *, share: float, now: datetime) -> PaidFor:
    """The document. ``share``: how much of each commitment is for this account and region at all.

    What could not be read is as it was ``earlier``. Where nobody knows who else uses a commitment, nothing is left.
    """
    before = earlier or PaidFor()
    plans, reserved, others = bought.savings_plans, bought.reserved_instances, bought.others
    owned = _merged_instances(before.reserved_instances if isinstance(reserved, JoineryError) else reserved, sold)
    planned = _merged_plans(before.savings_plans if isinstance(plans, JoineryError) else plans)
    used = _used_before(before) if isinstance(others, JoineryError) else _used(others, owned, planned, sold, share)
    return PaidFor(
        reserved_instances=tuple(replace(one, used_elsewhere=used.get(one.name, one.count)) for one in owned),
        savings_plans=tuple(
            replace(one, used_elsewhere=used.get(one.name, one.commitment), rates=_sold(one.rates or {}, sold))
            for one in planned
        ),
        read=now,
        missing=tuple(_missing(bought, earlier)),
    )


def _merged_instances(listed: Sequence[ReservedInstances], sold: Sold) -> Sequence[ReservedInstances]:
    """Those of types that are sold, as one where they pay alike."""
    alike: dict[tuple[str, str], list[ReservedInstances]] = defaultdict(list)
    for one in sorted(listed, key=lambda one: one.name):
        if one.instance_type in sold:
            alike[one.instance_type, one.zone].append(one)
    return by_scope(
        replace(first, name=_named(first.name, more), count=sum(one.count for one in (first, *more)),
                end=_first_end([first, *more]))
        for first, *more in alike.values()
    )  # fmt: skip


def _merged_plans(listed: Sequence[SavingsPlan]) -> Sequence[SavingsPlan]:
    """As one where they pay alike."""
    alike: dict[tuple[str, frozenset[tuple[str, float]]], list[SavingsPlan]] = defaultdict(list)
    for one in sorted(listed, key=lambda one: one.name):
        alike[one.family, frozenset((one.rates or {}).items())].append(one)
    return by_family(
        replace(first, name=_named(first.name, more), commitment=sum(one.commitment for one in (first, *more)),
                end=_first_end([first, *more]))
        for first, *more in alike.values()
    )  # fmt: skip


def _named(first: str, more: Sequence[object]) -> str:
    return f"{first} and {len(more)} more" if more else first


def _first_end(listed: Sequence[ReservedInstances | SavingsPlan]) -> datetime | None:
    """From then on less is there, and the next hour's document says how much."""
    return min((one.end for one in listed if one.end is not None), default=None)


def _used_before(document: PaidFor) -> Mapping[str, float]:
    instances = {one.name: one.used_elsewhere for one in document.reserved_instances}
    return instances | {one.name: one.used_elsewhere for one in document.savings_plans}


def _used(
    others: Sequence[OtherInstance],
    owned: Sequence[ReservedInstances],
    planned: Sequence[SavingsPlan],
    sold: Sold,
    share: float,
) -> Mapping[str, float]:
    """By name of a commitment, what others use of it, and what is not for this account."""
    prices = {name: o.price for name, listed in sold.items() for o in listed if o.capacity_type == ON_DEMAND}
    usages = [
        Usage(
            node=str(number),
            instance_type=kind_of(one.instance_type, one.platform, one.tenancy),
            zone=one.zone,
            price=prices.get(one.instance_type, 0.0),
        )
        for number, one in enumerate(others)
    ]
    kinds = {*sold, *(usage.instance_type for usage in usages)}
    wholes = {one.name: one.count for one in owned} | {one.name: one.commitment for one in planned}
    rates = {one.name: normalized_rates(one, kinds) for one in owned} | {one.name: one.rates or {} for one in planned}
    zones = {one.name: one.zone for one in owned}
    shares = [
        Commitment(name=name, stock=whole * share, rates=rates[name], zone=zones.get(name, ""))
        for name, whole in wholes.items()
    ]
    left = coverage(usages, shares).left
    return {name: round(whole - left[name], _DIGITS) for name, whole in wholes.items()}


def _sold(rates: Mapping[str, float], sold: Sold) -> Mapping[str, float]:
    return {kind: rate for kind, rate in rates.items() if kind in sold}


def _missing(bought: Bought, earlier: PaidFor | None) -> Iterator[str]:
    stand_in = f"those of {earlier.read:%Y-%m-%dT%H:%MZ} stand in" if earlier and earlier.read else "none is known"
    for source, answer, instead in (
        ("Savings Plans", bought.savings_plans, stand_in),
        ("Reserved Instances", bought.reserved_instances, stand_in),
        ("the account's other instances", bought.others, "what they used before counts, or else nothing is left"),
    ):
        if isinstance(answer, JoineryError):
            yield f"{source} could not be read: {instead} ({shortened(str(answer))})"
