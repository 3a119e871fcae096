"""Narrowing: what a claim asks EC2 for, out of everything it allows (Karpenter for AWS, instance/filter).

A claim allows every type that can hold its pods. Of those, this leaves what is on sale now, nothing exotic (a GPU, bare
metal) where something generic does, no spot dearer than on-demand, and the sixty cheapest types, under one capacity type: EC2
does not fall back from one to another within a call, so the choice between them is made here. Of what is reserved it leaves one
sort of reservation, because a call can ask for one sort only.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from joinery.apis.labels import (
    CAPACITY_TYPE,
    DEDICATED,
    MIN_VALUES_RELAXED,
    ON_DEMAND,
    RESERVATION_LABELS,
    RESERVED,
    SHARED_TENANCY,
    SPOT,
    TENANCY,
    ZONE,
    ZONE_ID,
)
from joinery.apis.nodeclaim import NodeClaim
from joinery.apis.quantity import Resources, amounts, fits
from joinery.scheduling.constraints.requirements import Requirements, read
from joinery.state.offerings import RESERVATION_KINDS, InstanceType, Offering

LARGEST_REQUEST = 60
_BY_PRIORITY = (RESERVED, SPOT, ON_DEMAND)
_PER_OFFERING = (ZONE, ZONE_ID, CAPACITY_TYPE, *RESERVATION_LABELS)
_EXOTIC = ("nvidia.com/gpu", "amd.com/gpu", "aws.amazon.com/neuron", "aws.amazon.com/neuroncore", "habana.ai/gaudi")


@dataclass(frozen=True, slots=True)
class FilteredTypes:
    """One capacity type, and the types to ask for with their offerings under it, cheapest first."""

    capacity_type: str
    types: tuple[InstanceType, ...]


def filtered(
    claim: NodeClaim, types: Iterable[InstanceType], requests: Resources | None = None
) -> FilteredTypes | None:
    """What to ask EC2 for; None if nothing that the claim allows is on sale now.

    ``requests`` stand in for the claim's own, where several claims share one call.
    """
    allowed = read(claim.spec.requirements)
    wanted = amounts(claim.spec.resources.requests) if requests is None else requests
    found = _reserved([kind for each in types if (kind := _compatible(claim, allowed, each, wanted))])
    if not _wants_variety(claim):
        found = _generic(found)
        found = _no_dear_spot(found)
    kept = sorted(found, key=_cheapest)[:LARGEST_REQUEST]
    return _of_first_capacity_type(kept) if _has_variety(claim, kept) else None


def tenancy(claim: NodeClaim) -> str:
    """Shared hardware where the claim allows it, for the other is dearer."""
    allowed = read(claim.spec.requirements).get(TENANCY)
    return DEDICATED if allowed.has(DEDICATED) and not allowed.has(SHARED_TENANCY) else SHARED_TENANCY


def _compatible(claim: NodeClaim, allowed: Requirements, kind: InstanceType, wanted: Resources) -> InstanceType | None:
    """The type with the offerings that the claim may use now; None without any."""
    if not fits(wanted, kind.allocatable) or not all(_admits(claim, allowed, kind, key) for key in allowed):
        return None
    usable = tuple(offering for offering in kind.offerings if offering.available and _sells(allowed, offering))
    return replace(kind, offerings=usable) if usable else None


def _admits(claim: NodeClaim, allowed: Requirements, kind: InstanceType, key: str) -> bool:
    if key in _PER_OFFERING:
        return True
    values = kind.labels.get(key)
    if values is None and key in claim.metadata.labels:
        values = (claim.metadata.labels[key],)
    known = allowed.get(key)
    return known.absent if values is None else any(known.has(value) for value in values)


def _sells(allowed: Requirements, offering: Offering) -> bool:
    spoken = {ZONE: offering.zone, CAPACITY_TYPE: offering.capacity_type, ZONE_ID: offering.zone_id}
    if not all(allowed.get(key).has(value) for key, value in spoken.items() if value):
        return False
    within = offering.reservation.labels if offering.reservation else {}
    known = ((allowed.get(key), within.get(key)) for key in RESERVATION_LABELS)
    return all(found.absent if value is None else found.has(value) for found, value in known)


def _reserved(types: list[InstanceType]) -> list[InstanceType]:
    """Where something is reserved, that alone: of the cheapest sort, one reservation a type and zone, the one with most left.

    Of capacity blocks, one in all.
    """
    listed = [(kind, o) for kind in types for o in kind.offerings if o.reservation]
    if not listed:
        return types
    cheapest = min(listed, key=lambda each: (each[1].price, _sort(each[1]), each[0].name, each[1].reservation_id))
    if _sort(cheapest[1])[0]:
        return [replace(cheapest[0], offerings=(cheapest[1],))]
    alike = _filtered(types, lambda o: o.reservation is not None and _sort(o) == _sort(cheapest[1]))
    return [replace(kind, offerings=_fullest(kind.offerings)) for kind in alike]


def _sort(offering: Offering) -> tuple[int, bool]:
    """Ordinary reservations before capacity blocks before those that can be interrupted."""
    found = offering.reservation
    return (RESERVATION_KINDS.index(found.kind), found.is_interruptible) if found else (0, False)


def _fullest(offerings: Iterable[Offering]) -> tuple[Offering, ...]:
    """Of each zone's reservations the one with the most left."""
    found: dict[str, Offering] = {}
    for offering in sorted(
        offerings, key=lambda o: (-(o.reservation.remaining if o.reservation else 0), o.reservation_id)
    ):
        found.setdefault(offering.zone, offering)
    return tuple(found[zone] for zone in sorted(found))


def _generic(types: list[InstanceType]) -> list[InstanceType]:
    return [kind for kind in types if not _is_exotic(kind)] or types


def _is_exotic(kind: InstanceType) -> bool:
    return "metal" in kind.name.partition(".")[2] or any(kind.capacity.get(name, 0) > 0 for name in _EXOTIC)


def _no_dear_spot(types: list[InstanceType]) -> list[InstanceType]:
    """Without spot that costs more than the cheapest on-demand offering."""
    prices = [o.price for kind in types for o in kind.offerings if o.capacity_type == ON_DEMAND]
    if not prices:
        return types
    limit = min(prices)
    return _filtered(types, lambda offering: offering.capacity_type != SPOT or offering.price <= limit)


def _filtered(types: Iterable[InstanceType], keep: Callable[[Offering], bool]) -> list[InstanceType]:
    narrowed = (replace(kind, offerings=tuple(filter(keep, kind.offerings))) for kind in types)
    return [kind for kind in narrowed if kind.offerings]


def _of_first_capacity_type(types: Sequence[InstanceType]) -> FilteredTypes | None:
    sold = {offering.capacity_type for offering in chain.from_iterable(kind.offerings for kind in types)}
    first = next((capacity_type for capacity_type in _BY_PRIORITY if capacity_type in sold), None)
    if first is None:
        return None
    return FilteredTypes(first, tuple(sorted(_filtered(types, lambda o: o.capacity_type == first), key=_cheapest)))


def _cheapest(kind: InstanceType) -> tuple[float, str]:
    return min(offering.price for offering in kind.offerings), kind.name


def _wants_variety(claim: NodeClaim) -> bool:
    return any(requirement.min_values is not None for requirement in claim.spec.requirements)


def _has_variety(claim: NodeClaim, types: Sequence[InstanceType]) -> bool:
    """Whether as many values are left for each label as its ``minValues`` demands."""
    if claim.metadata.annotations.get(MIN_VALUES_RELAXED) == "true":
        return True
    return all(
        len({value for kind in types for value in kind.labels.get(found.key, ())}) >= found.min_values
        for found in claim.spec.requirements
        if found.min_values is not None
    )
