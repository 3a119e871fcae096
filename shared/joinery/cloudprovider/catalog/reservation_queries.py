"""Asking EC2 for capacity reservations: all active ones for the catalogue, those that a class selects, or some by id."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from joinery.answers import Answer, entries
from joinery.aws import Clients, translated
from joinery.cloudprovider.catalog.reservations import CapacityReservation
from joinery.cloudprovider.catalog.structs import converted
from joinery.errors import NotFoundError

Filters = list[dict[str, Any]]
_CALL = "EC2 DescribeCapacityReservations"


def tag_filters(tags: Mapping[str, str]) -> Filters:
    """EC2's filters for tags; ``*`` means any value."""
    return [
        {"Name": "tag-key", "Values": [key]} if value == "*" else {"Name": f"tag:{key}", "Values": [value]}
        for key, value in sorted(tags.items())
    ]


def active_reservations(clients: Clients, filters: Filters) -> list[CapacityReservation]:
    """All active ones that also meet the filters."""
    asked: Any = [{"Name": "state", "Values": ["active"]}, *filters]
    with translated("describing capacity reservations"):
        pages = clients.ec2.get_paginator("describe_capacity_reservations").paginate(Filters=asked)
        return [found for page in pages for found in _reservations(clients, page)]


def reservations_by_id(clients: Clients, ids: Sequence[str]) -> tuple[CapacityReservation, ...]:
    """Those of them that EC2 knows. It refuses a whole call over one id it does not know, so then each is asked for alone."""
    if not ids:
        return ()
    try:
        with translated("describing capacity reservations"):
            answer = clients.ec2.describe_capacity_reservations(CapacityReservationIds=list(ids))
    except NotFoundError:
        return tuple(found for each in ids for found in reservations_by_id(clients, [each])) if len(ids) > 1 else ()
    return tuple(_reservations(clients, answer))


def _reservations(clients: Clients, answer: Answer) -> Iterator[CapacityReservation]:
    """Those that say what they are of and where."""
    named = ("CapacityReservationId", "InstanceType", "AvailabilityZone")
    found = entries(answer, "CapacityReservations", *named, call=_CALL, tell=clients.tell)
    return converted(found, CapacityReservation, named[0], call=_CALL, tell=clients.tell)
