"""Which capacity reservations an EC2NodeClass may use.

The status of a class names what its terms selected. A file's class often has no status: then its terms are matched with the catalogue's
reservations, by the same rules by which EC2 is asked.
"""

from collections.abc import Iterable
from datetime import datetime

from joinery.apis.ec2nodeclass import CapacityReservationSelectorTerm, CapacityReservationStatus, EC2NodeClass
from joinery.cloudprovider.catalog.reservations import CapacityReservation

READY = "CapacityReservationsReady"


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
