"""Which capacity reservations an EC2NodeClass may use.

The status of a class names what its terms selected. A class from a file often has no status: then its terms are matched
with the catalogue's reservations, by the rules by which EC2 matches them.
"""

import re
from collections.abc import Iterable
from datetime import datetime

from joinery.gateways.ec2.catalog.reservations import CapacityReservation
from joinery.objects.karpenter.ec2nodeclass import (
    CapacityReservationSelectorTerm,
    CapacityReservationStatus,
    EC2NodeClass,
    EC2NodeClassSpec,
)
from joinery.objects.karpenter.ec2nodeclass_status import RESERVATIONS_READY


def selected(
    spec: EC2NodeClassSpec, reservations: Iterable[CapacityReservation], now: datetime
) -> list[CapacityReservationStatus]:
    """The usable reservations that any of the class's terms selects, as its status lists them, by id.

    One takes instances of its own platform alone (EC2 User Guide, "Launch instances into an existing Capacity
    Reservation").
    """
    matching = {
        reservation.capacity_reservation_id: reservation
        for reservation in reservations
        if reservation.is_usable(now)
        and _may_boot_as(spec, reservation.instance_platform)
        and may_enter(spec, reservation.placement_group_arn)
        and any(_selects(term, reservation) for term in spec.capacity_reservation_selector_terms)
    }
    return [_status(matching[key], now) for key in sorted(matching)]


def _may_boot_as(spec: EC2NodeClassSpec, platform: str) -> bool:
    """Whether the class's images may be what EC2 calls that platform; also where EC2 does not say.

    Amazon's, by their alias, are plain. One's own may be of any Linux (``Red Hat Enterprise Linux``), or any Windows.
    """
    plain = "Windows" if spec.is_windows else "Linux/UNIX"
    if all(term.alias for term in spec.ami_selector_terms):
        return platform in ("", plain)
    return platform == "" or platform.startswith("Windows") == (plain == "Windows")


def may_enter(spec: EC2NodeClassSpec, group_arn: str) -> bool:
    """Whether the class's nodes are in a reservation's placement group, where it has one: it takes no instance that is
    elsewhere (EC2 User Guide, "Use Capacity Reservations with placement groups").

    Its ARN has the group's name. What group a class's id is of is not known here, so EC2 says whether that fits.
    """
    selector = spec.placement_group_selector
    if not group_arn or selector is None:
        return not group_arn
    return bool(selector.id) or group_arn.rpartition("/")[2] == selector.name


def _selects(term: CapacityReservationSelectorTerm, reservation: CapacityReservation) -> bool:
    if term.id:
        return term.id == reservation.capacity_reservation_id
    tags = {tag.key: tag.value for tag in reservation.tags}
    return (
        term.owner_id in ("", reservation.owner_id)
        and term.instance_match_criteria in ("", reservation.instance_match_criteria)
        and all(key in tags and _passes(value, tags[key]) for key, value in term.tags.items())
    )


def _passes(filter_value: str, value: str) -> bool:
    """Whether a tag's value passes one of EC2's filters.

    An asterisk stands for any characters, a question mark for one or none, and a backslash takes that away from what
    follows it (EC2 API, ``Filter``).
    """
    # How much of the value may have been read by then. A regular expression can take ages for many asterisks.
    read = {0}
    for part in re.findall(r"\\.|.", filter_value, re.DOTALL):
        if part == "*":
            read = set(range(min(read), len(value) + 1)) if read else set()
        elif part == "?":
            read |= {end + 1 for end in read if end < len(value)}
        else:
            read = {end + 1 for end in read if value[end : end + 1] == part[-1]}
    return len(value) in read


def _status(reservation: CapacityReservation, now: datetime) -> CapacityReservationStatus:
    ends = reservation.end_date
    return CapacityReservationStatus(
        id=reservation.capacity_reservation_id,
        availability_zone=reservation.availability_zone,
        instance_type=reservation.instance_type,
        owner_id=reservation.owner_id,
        instance_match_criteria=reservation.instance_match_criteria,
        reservation_type=reservation.reservation_type,
        interruptible=reservation.interruptible,
        end_time=ends.isoformat().replace("+00:00", "Z") if ends else None,
        state="expiring" if reservation.is_expiring(now) else "active",
    )


def reservations_of(
    node_class: EC2NodeClass, reservations: Iterable[CapacityReservation], now: datetime
) -> list[CapacityReservationStatus]:
    """What the class may use: what its status says, or what its terms select where nobody has looked yet."""
    status = node_class.status
    if status.capacity_reservations or any(condition.type == RESERVATIONS_READY for condition in status.conditions):
        return status.capacity_reservations
    return selected(node_class.spec, reservations, now)


def uncounted(node_class: EC2NodeClass, reservations: Iterable[CapacityReservation], now: datetime) -> list[str]:
    """The ids of the class's reservations of which nobody knows how much is left. None of them is used."""
    listed = tuple(reservations)
    counted = {one.capacity_reservation_id for one in listed if one.available_instance_count is not None}
    return [entry.id for entry in reservations_of(node_class, listed, now) if entry.id not in counted]
