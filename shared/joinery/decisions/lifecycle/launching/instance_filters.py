"""Instance filters: which instance types a launch asks EC2 for, out of those that its claim allows.

The rules are those of Karpenter for AWS, instance/filter. A claim allows every type that can hold its pods. CreateFleet
gets fewer: those on sale now; nothing exotic (a GPU, bare metal) where something generic does; no spot dearer than
on-demand; the sixty cheapest types; and one capacity type only, because EC2 does not fall back from one to another
within a call. Of what is reserved it gets one sort of reservation, because a call can ask for one sort only.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from joinery.decisions.scheduling.constraints.requirements import Requirements, read
from joinery.objects.karpenter.labels import (
    CAPACITY_TYPE,
    DEDICATED,
    MIN_VALUES_RELAXED,
    ON_DEMAND,
    PARTITION,
    RESERVATION_LABELS,
    RESERVED,
    SHARED_TENANCY,
    SPOT,
    TENANCY,
    ZONE,
    ZONE_ID,
)
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.quantity import Resources, amounts, fits
from joinery.objects.snapshot.offerings import CAPACITY_BLOCK, RESERVATION_KINDS, InstanceType, Offering

#: How many types one call lists at most; each is an override for every zone (Karpenter for AWS `maxInstanceTypes`).
LARGEST_REQUEST = 60
#: Which capacity type is asked for first, if there are several: what is paid for already, then what is cheaper.
_BY_PRIORITY = (RESERVED, SPOT, ON_DEMAND)
#: Labels whose value depends on the offering, and not on the type alone.
_PER_OFFERING = (ZONE, ZONE_ID, CAPACITY_TYPE, *RESERVATION_LABELS)
#: Resources that make a type exotic: dear, and of no use to pods that do not ask for them.
_EXOTIC = ("nvidia.com/gpu", "amd.com/gpu", "aws.amazon.com/neuron", "aws.amazon.com/neuroncore", "habana.ai/gaudi")


@dataclass(frozen=True, slots=True)
class FilteredTypes:
    """What one call asks for.

    ``capacity_type``: reserved, spot or on-demand. ``types``: the instance types, cheapest first, each with its usable
    offerings of that capacity type and no others.
    """

    capacity_type: str
    types: tuple[InstanceType, ...]


def filtered(
    claim: NodeClaim, types: Iterable[InstanceType], requests: Resources | None = None
) -> FilteredTypes | None:
    """What to ask EC2 for; None if nothing that the claim allows is on sale now.

    ``types`` are all that the claim's node class gives. ``requests`` stand in for the claim's own, where several claims
    share one call.
    """
    allowed = read(claim.spec.requirements)
    needed = amounts(claim.spec.resources.requests) if requests is None else requests
    compatible = (_compatible(claim, allowed, instance_type, needed) for instance_type in types)
    candidates = _only_reserved([instance_type for instance_type in compatible if instance_type])
    # With minValues the user asks for many different types, so none is left out for being exotic or dear.
    if not _wants_variety(claim):
        candidates = _without_dear_spot(_generic(candidates))
    candidates = sorted(candidates, key=_cheapest)[:LARGEST_REQUEST]
    return _of_first_capacity_type(candidates) if _has_variety(claim, candidates) else None


def tenancy(claim: NodeClaim) -> str:
    """Shared hardware wherever the claim allows it, because dedicated hardware is dearer."""
    allowed = read(claim.spec.requirements).get(TENANCY)
    return DEDICATED if allowed.has(DEDICATED) and not allowed.has(SHARED_TENANCY) else SHARED_TENANCY


def partition(claim: NodeClaim) -> str:
    """The partition of its placement group that the claim asks for: the first of those that it names; empty for any."""
    allowed = read(claim.spec.requirements).get(PARTITION)
    named = (rule.values for rule in claim.spec.requirements if (rule.key, rule.operator) == (PARTITION, "In"))
    return next((value for values in named for value in sorted(values) if allowed.has(value)), "")


def is_relaxed(claim: NodeClaim) -> bool:
    """Whether its pods would have no node if ``minValues`` were kept, and the setting says to lower them then."""
    return claim.metadata.annotations.get(MIN_VALUES_RELAXED) == "true"


# --- what the claim allows ---


def _compatible(
    claim: NodeClaim, allowed: Requirements, instance_type: InstanceType, needed: Resources
) -> InstanceType | None:
    """The type with the offerings that the claim may use now; None if there are none."""
    if not fits(needed, instance_type.allocatable):
        return None
    if not all(_admits(claim, allowed, instance_type, key) for key in allowed):
        return None
    usable = tuple(offering for offering in instance_type.offerings if offering.available and _sells(allowed, offering))
    return replace(instance_type, offerings=usable) if usable else None


def _admits(claim: NodeClaim, allowed: Requirements, instance_type: InstanceType, key: str) -> bool:
    """Whether the claim's requirement on one label takes the type.

    A label that types do not have may be on the claim itself.
    """
    if key in _PER_OFFERING:
        return True
    values = instance_type.labels.get(key)
    if values is None and key in claim.metadata.labels:
        values = (claim.metadata.labels[key],)
    return allowed.get(key).absent if values is None else any(allowed.get(key).has(value) for value in values)


def _sells(allowed: Requirements, offering: Offering) -> bool:
    """Whether the claim's requirements on zone, capacity type and reservation take the offering."""
    labels = {ZONE: offering.zone, CAPACITY_TYPE: offering.capacity_type, ZONE_ID: offering.zone_id}
    if not all(allowed.get(key).has(value) for key, value in labels.items() if value):
        return False
    reservation_labels = offering.reservation.labels if offering.reservation else {}
    return all(
        allowed.get(key).has(reservation_labels[key]) if key in reservation_labels else allowed.get(key).absent
        for key in RESERVATION_LABELS
    )


# --- what is reserved ---


def _only_reserved(types: list[InstanceType]) -> list[InstanceType]:
    """Where something is reserved, that alone, because it is paid for already; else the types as they are.

    A call can ask for one sort of reservation. It is the cheapest one's; of that sort, each type and zone keeps the
    reservation with the most instances left. A call can ask for one capacity block, so of these one is kept in all.
    """
    reserved = [(instance_type, o) for instance_type in types for o in instance_type.offerings if o.reservation]
    if not reserved:
        return types
    instance_type, cheapest = min(reserved, key=_reserved_order)
    if _is_capacity_block(cheapest):
        return [replace(instance_type, offerings=(cheapest,))]
    alike = _with_offerings(
        types, lambda o: o.reservation is not None and _reservation_sort(o) == _reservation_sort(cheapest)
    )
    return [replace(instance_type, offerings=_fullest(instance_type.offerings)) for instance_type in alike]


def _reserved_order(reserved: tuple[InstanceType, Offering]) -> tuple[float, tuple[bool, int], str, str]:
    instance_type, offering = reserved
    return offering.price, _reservation_sort(offering), instance_type.name, offering.reservation_id


def _reservation_sort(offering: Offering) -> tuple[bool, int]:
    """Orders the sorts: ordinary reservations, then capacity blocks, then those whose instances EC2 may take back."""
    reservation = offering.reservation
    return (reservation.is_interruptible, RESERVATION_KINDS.index(reservation.kind)) if reservation else (False, 0)


def _is_capacity_block(offering: Offering) -> bool:
    return offering.reservation is not None and offering.reservation.kind == CAPACITY_BLOCK


def _fullest(offerings: Iterable[Offering]) -> tuple[Offering, ...]:
    """Of each zone's reservations the one with the most instances left."""
    by_zone: dict[str, Offering] = {}
    for offering in sorted(offerings, key=_most_left_first):
        by_zone.setdefault(offering.zone, offering)
    return tuple(by_zone[zone] for zone in sorted(by_zone))


def _most_left_first(offering: Offering) -> tuple[int, str]:
    return -(offering.reservation.remaining if offering.reservation else 0), offering.reservation_id


# --- what is sensible ---


def _generic(types: list[InstanceType]) -> list[InstanceType]:
    """Without exotic types, unless there are no others."""
    return [instance_type for instance_type in types if not _is_exotic(instance_type)] or types


def _is_exotic(instance_type: InstanceType) -> bool:
    is_metal = "metal" in instance_type.name.partition(".")[2]
    return is_metal or any(instance_type.capacity.get(resource, 0) > 0 for resource in _EXOTIC)


def _without_dear_spot(types: list[InstanceType]) -> list[InstanceType]:
    """Without spot that costs more than the cheapest on-demand offering, which nobody interrupts."""
    prices = [o.price for instance_type in types for o in instance_type.offerings if o.capacity_type == ON_DEMAND]
    if not prices:
        return types
    limit = min(prices)
    return _with_offerings(types, lambda offering: offering.capacity_type != SPOT or offering.price <= limit)


def _of_first_capacity_type(types: Sequence[InstanceType]) -> FilteredTypes | None:
    on_sale = {
        offering.capacity_type for offering in chain.from_iterable(instance_type.offerings for instance_type in types)
    }
    first = next((capacity_type for capacity_type in _BY_PRIORITY if capacity_type in on_sale), None)
    if first is None:
        return None
    return FilteredTypes(
        first, tuple(sorted(_with_offerings(types, lambda o: o.capacity_type == first), key=_cheapest))
    )


def _cheapest(instance_type: InstanceType) -> tuple[float, float, str]:
    """By our price, of equal ones by AWS's: a NodeOverlay may give many types one price."""
    return *min((offering.price, offering.list_price) for offering in instance_type.offerings), instance_type.name


def _with_offerings(types: Iterable[InstanceType], is_kept: Callable[[Offering], bool]) -> list[InstanceType]:
    """The types with those of their offerings that are kept; a type that keeps none is left out."""
    narrowed = (replace(wide, offerings=tuple(filter(is_kept, wide.offerings))) for wide in types)
    return [instance_type for instance_type in narrowed if instance_type.offerings]


# --- minValues ---


def _wants_variety(claim: NodeClaim) -> bool:
    return any(requirement.min_values is not None for requirement in claim.spec.requirements)


def _has_variety(claim: NodeClaim, types: Sequence[InstanceType]) -> bool:
    """Whether as many values are left for each label as its ``minValues`` demands."""
    if is_relaxed(claim):
        return True
    return all(
        len({value for instance_type in types for value in instance_type.labels.get(requirement.key, ())})
        >= requirement.min_values
        for requirement in claim.spec.requirements
        if requirement.min_values is not None
    )
