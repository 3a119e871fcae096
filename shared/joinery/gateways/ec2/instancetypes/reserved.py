"""Capacity reservations as offerings.

How many more instances one takes only EC2 knows, so that comes with the catalogue.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from joinery.gateways.ec2.catalog.reservations import CapacityReservation
from joinery.gateways.ec2.instancetypes.typelabels import Labels
from joinery.gateways.ec2.nodeclass.reservations import may_enter, reservations_of
from joinery.objects.karpenter.ec2nodeclass import CapacityReservationStatus, EC2NodeClass
from joinery.objects.karpenter.labels import CAPACITY_TYPE, ON_DEMAND, RESERVED
from joinery.objects.snapshot.offerings import Offering, Reservation

#: A reservation is paid for whether it is used or not. Its price is next to nothing, and keeps the order of what its
#: instances cost (as in Karpenter for AWS).
DISCOUNT = 10_000_000


def reserved_offerings(
    node_class: EC2NodeClass,
    reservations: Iterable[CapacityReservation],
    sold: Mapping[str, Iterable[Offering]],
    zones: Mapping[str, str],
    now: datetime,
) -> Mapping[str, tuple[Offering, ...]]:
    """The reserved offerings of a class, by instance type.

    ``reservations``: as they were counted last. ``sold``: on-demand and spot offerings by type. ``zones``: name to id,
    of the zones that the class reaches.
    """
    counted = {
        reservation.capacity_reservation_id: reservation
        for reservation in reservations
        if may_enter(node_class.spec, reservation.placement_group_arn)
    }
    offerings: dict[str, list[Offering]] = {}
    for entry in reservations_of(node_class, counted.values(), now):
        price = _on_demand_price(sold.get(entry.instance_type, ()), entry.availability_zone) / DISCOUNT
        offering = _offering(entry, counted.get(entry.id), zones, price=price, now=now)
        offerings.setdefault(entry.instance_type, []).append(offering)
    return {name: tuple(listed) for name, listed in offerings.items()}


def reservation_labels(bought_as: Sequence[str], reserved: Iterable[Offering]) -> Labels:
    """The labels that a type has because of its reserved offerings; none without any.

    ``bought_as``: its other capacity types.
    """
    values: Labels = {}
    for offering in reserved:
        values[CAPACITY_TYPE] = (*bought_as, RESERVED)
        for key, value in offering.reservation.labels.items() if offering.reservation else ():
            values[key] = tuple(dict.fromkeys((*values.get(key, ()), value)))
    return values


def _offering(
    entry: CapacityReservationStatus,
    counted: CapacityReservation | None,
    zones: Mapping[str, str],
    *,
    price: float,
    now: datetime,
) -> Offering:
    """``counted``: the reservation as EC2 described it, None where nobody knows what is left of it."""
    zone = entry.availability_zone
    remaining = (counted.available_instance_count or 0) if counted else 0
    is_going = entry.state == "expiring" or counted is None or not counted.is_usable(now) or counted.is_expiring(now)
    return Offering(
        zone,
        RESERVED,
        price,
        available=remaining > 0 and zone in zones and not is_going,
        zone_id=zones.get(zone, ""),
        reservation=Reservation(entry.id, entry.reservation_type, entry.interruptible, remaining),
    )


def _on_demand_price(offerings: Iterable[Offering], zone: str) -> float:
    """$/h of the type without a reservation, in that zone if it is sold there; 0 where nobody knows."""
    prices = sorted(
        (offering.zone != zone, offering.price) for offering in offerings if offering.capacity_type == ON_DEMAND
    )
    return prices[0][1] if prices else 0.0
