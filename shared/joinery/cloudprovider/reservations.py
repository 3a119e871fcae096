"""Capacity reservations: which ones an EC2NodeClass may use, and what they are as offerings (EC2 API DescribeCapacityReservations).

The status of a class names what its terms selected; how many instances a reservation still takes only EC2 knows, so that
comes with the catalogue. A file's class often has no status: then its terms are matched with the catalogue's reservations, by
the same rules by which EC2 is asked.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta

import msgspec

from joinery.apis.ec2nodeclass import CapacityReservationSelectorTerm, CapacityReservationStatus, EC2NodeClass
from joinery.apis.labels import ON_DEMAND, RESERVED
from joinery.state.offerings import CAPACITY_BLOCK, RESERVATION_KINDS, Offering, Reservation

READY = "CapacityReservationsReady"
#: Next to nothing, and still in order of what the instances cost (as in Karpenter for AWS).
DISCOUNT = 10_000_000
#: EC2 takes a block back 30 minutes before its end; ten more to leave (EC2 user guide, Capacity Blocks for ML).
_EXPIRING = timedelta(minutes=40)
_CRITERIA = ("open", "targeted")


class Tag(msgspec.Struct, frozen=True):
    key: str = msgspec.field(name="Key", default="")
    value: str = msgspec.field(name="Value", default="")


class CapacityReservation(msgspec.Struct, frozen=True, rename="pascal", kw_only=True):
    """An entry of DescribeCapacityReservations, as far as it is read. No ``available_instance_count``: nobody knows."""

    capacity_reservation_id: str
    instance_type: str
    availability_zone: str
    owner_id: str = ""
    available_instance_count: int | None = None
    instance_match_criteria: str = "open"
    reservation_type: str = "default"
    interruptible: bool = False
    state: str = "active"
    end_date: datetime | None = None
    tags: tuple[Tag, ...] = ()

    def is_usable(self, now: datetime) -> bool:
        """Whether it is active, not over, and of a sort that is known."""
        is_over = self.end_date is not None and self.end_date <= now
        is_known = self.reservation_type in RESERVATION_KINDS and self.instance_match_criteria in _CRITERIA
        return self.state == "active" and is_known and not is_over

    def is_expiring(self, now: datetime) -> bool:
        """Whether it is a capacity block about to end: nothing more is launched into it."""
        is_block = self.reservation_type == CAPACITY_BLOCK
        return is_block and self.end_date is not None and now >= self.end_date - _EXPIRING


def selected(
    terms: Iterable[CapacityReservationSelectorTerm], known: Iterable[CapacityReservation], now: datetime
) -> list[CapacityReservationStatus]:
    """The usable reservations that any of the terms selects, as a class's status lists them: by id."""
    asked = tuple(terms)
    found = {
        each.capacity_reservation_id: each
        for each in known
        if each.is_usable(now) and any(_selects(term, each) for term in asked)
    }
    return [_status(found[key], now) for key in sorted(found)]


def _selects(term: CapacityReservationSelectorTerm, found: CapacityReservation) -> bool:
    if term.id:
        return term.id == found.capacity_reservation_id
    has = {tag.key: tag.value for tag in found.tags}
    return (
        term.owner_id in ("", found.owner_id)
        and term.instance_match_criteria in ("", found.instance_match_criteria)
        and all(key in has and value in ("*", has[key]) for key, value in term.tags.items())
    )


def _status(found: CapacityReservation, now: datetime) -> CapacityReservationStatus:
    return CapacityReservationStatus(
        id=found.capacity_reservation_id,
        availability_zone=found.availability_zone,
        instance_type=found.instance_type,
        owner_id=found.owner_id,
        instance_match_criteria=found.instance_match_criteria,
        reservation_type=found.reservation_type,
        interruptible=found.interruptible,
        end_time=found.end_date.isoformat().replace("+00:00", "Z") if found.end_date else None,
        state="expiring" if found.is_expiring(now) else "active",
    )


def reservations_of(
    node_class: EC2NodeClass, known: Iterable[CapacityReservation], now: datetime
) -> list[CapacityReservationStatus]:
    """What the class may use: what its status says, or where nobody has looked yet, what its terms select."""
    status = node_class.status
    if status.capacity_reservations or any(condition.type == READY for condition in status.conditions):
        return status.capacity_reservations
    return selected(node_class.spec.capacity_reservation_selector_terms, known, now)


def uncounted(node_class: EC2NodeClass, known: Iterable[CapacityReservation], now: datetime) -> list[str]:
    """The ids of reservations that the class has and of which nobody knows how much is left: none of them is used."""
    counted = {each.capacity_reservation_id for each in known if each.available_instance_count is not None}
    return [found.id for found in reservations_of(node_class, known, now) if found.id not in counted]


def reserved_offerings(
    node_class: EC2NodeClass,
    known: Iterable[CapacityReservation],
    sold: Mapping[str, Iterable[Offering]],
    zones: Mapping[str, str],
    now: datetime,
) -> Mapping[str, tuple[Offering, ...]]:
    """The reserved offerings of a class by instance type; ``sold``: all others, ``zones``: the class's, by name with their ids."""
    counts = {each.capacity_reservation_id: each for each in known}
    found: dict[str, list[Offering]] = {}
    for entry in reservations_of(node_class, counts.values(), now):
        price = _on_demand(sold.get(entry.instance_type, ()), entry.availability_zone) / DISCOUNT
        found.setdefault(entry.instance_type, []).append(
            _offering(entry, counts.get(entry.id), zones, price=price, now=now)
        )
    return {name: tuple(listed) for name, listed in found.items()}


def _offering(
    entry: CapacityReservationStatus,
    counted: CapacityReservation | None,
    zones: Mapping[str, str],
    *,
    price: float,
    now: datetime,
) -> Offering:
    remaining = (counted.available_instance_count or 0) if counted else 0
    is_going = entry.state == "expiring" or counted is None or not counted.is_usable(now) or counted.is_expiring(now)
    zone = entry.availability_zone
    return Offering(
        zone,
        RESERVED,
        price,
        available=remaining > 0 and zone in zones and not is_going,
        zone_id=zones.get(zone, ""),
        reservation=Reservation(entry.id, entry.reservation_type, entry.interruptible, remaining),
    )


def _on_demand(offerings: Iterable[Offering], zone: str) -> float:
    """The price of the type without a reservation, in that zone if it is sold there; 0 where nobody knows."""
    prices = sorted((o.zone != zone, o.price) for o in offerings if o.capacity_type == ON_DEMAND)
    return prices[0][1] if prices else 0.0


def usage(listed: Iterable[Offering]) -> Iterator[tuple[str, str]]:
    """The labels that a type has for its reservations, key and value."""
    for offering in listed:
        if offering.reservation:
            yield from offering.reservation.labels.items()
