"""Asking EC2 for capacity reservations: all active ones, those that a class selects, or some by id."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from joinery.gateways.answers import Answer, entries
from joinery.gateways.aws import Clients, translated
from joinery.gateways.ec2.catalog.description import converted
from joinery.gateways.ec2.catalog.reservations import CapacityReservation
from joinery.objects.errors import NotFoundError

Filters = list[dict[str, Any]]
_CALL = "EC2 DescribeCapacityReservations"


def tag_filters(tags: Mapping[str, str]) -> Filters:
    """EC2's filters for tags. The value ``*`` stands for any."""
    return [
        {"Name": "tag-key", "Values": [key]} if value == "*" else {"Name": f"tag:{key}", "Values": [value]}
        for key, value in sorted(tags.items())
    ]


def active_reservations(clients: Clients, filters: Filters) -> list[CapacityReservation]:
    """All active reservations that also meet the filters."""
    given: Any = [{"Name": "state", "Values": ["active"]}, *filters]
    with translated("describing capacity reservations"):
        pages = clients.ec2.get_paginator("describe_capacity_reservations").paginate(Filters=given)
        return [reservation for page in pages for reservation in _reservations(clients, page)]


def reservations_by_id(clients: Clients, ids: Sequence[str]) -> tuple[CapacityReservation, ...]:
    """The reservations with these ids that EC2 knows."""
    if not ids:
        return ()
    try:
        with translated("describing capacity reservations"):
            answer = clients.ec2.describe_capacity_reservations(CapacityReservationIds=list(ids))
    except NotFoundError:
        # EC2 refuses the whole call because of one id that it does not know. Then each id is asked for alone.
        alone = ([name] for name in ids) if len(ids) > 1 else ()
        return tuple(reservation for name in alone for reservation in reservations_by_id(clients, name))
    return tuple(_reservations(clients, answer))


def _reservations(clients: Clients, answer: Answer) -> Iterator[CapacityReservation]:
    """The reservations in an answer that say their type and zone."""
    needed = ("CapacityReservationId", "InstanceType", "AvailabilityZone")
    listed = entries(answer, "CapacityReservations", *needed, call=_CALL, log=clients.log)
    return converted(listed, CapacityReservation, needed[0], call=_CALL, log=clients.log)
