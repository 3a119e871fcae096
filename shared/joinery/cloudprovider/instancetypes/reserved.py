"""Capacity reservations as offerings. How many instances one still takes only EC2 knows, so that comes with the catalogue."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from joinery.apis.ec2nodeclass import CapacityReservationStatus, EC2NodeClass
from joinery.apis.labels import ON_DEMAND, RESERVED
from joinery.cloudprovider.catalog.reservations import CapacityReservation
from joinery.cloudprovider.nodeclass.reservations import reservations_of
from joinery.state.offerings import Offering, Reservation

#: Next to nothing, and still in order of what the instances cost (as in Karpenter for AWS).
DISCOUNT = 10_000_000


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
