"""Finding what an EC2NodeClass selects: subnets, security groups and capacity reservations (EC2 API DescribeSubnets and its like).

Ids and names of all terms are asked for together; a term of tags is a question of its own, whose tags must all match.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from joinery.answers import entries
from joinery.apis.ec2nodeclass import (
    CapacityReservationSelectorTerm,
    CapacityReservationStatus,
    SecurityGroupSelectorTerm,
    SecurityGroupStatus,
    SubnetSelectorTerm,
    SubnetStatus,
)
from joinery.aws import Clients, translated
from joinery.cloudprovider.catalog.reservation_queries import (
    Filters,
    active_reservations,
    reservations_by_id,
    tag_filters,
)
from joinery.cloudprovider.nodeclass.reservations import selected

_SUBNETS, _GROUPS = "EC2 DescribeSubnets", "EC2 DescribeSecurityGroups"


def questions(name: str, ids: Iterable[str], tags: Iterable[Mapping[str, str]]) -> list[Filters]:
    """One set of filters a call: the ids together, then each term of tags."""
    known = sorted(filter(None, ids))
    asked: list[Filters] = [[{"Name": name, "Values": known}]] if known else []
    return asked + [tag_filters(term) for term in tags if term]


def subnets(clients: Clients, terms: Sequence[SubnetSelectorTerm]) -> list[SubnetStatus]:
    """The subnets that any term selects; the one with the most free addresses first.

    Those without IPv4 are left out: EKS runs nodes in IPv4 and dual-stack subnets only, also in IPv6 clusters.
    """
    found: dict[str, Any] = {}
    with translated("describing subnets"):
        pages = clients.ec2.get_paginator("describe_subnets")
        for filters in questions("subnet-id", (term.id for term in terms), (term.tags for term in terms)):
            for page in pages.paginate(Filters=filters):  # type: ignore[arg-type]
                listed = entries(page, "Subnets", "SubnetId", "AvailabilityZone", call=_SUBNETS, tell=clients.tell)
                found |= {each["SubnetId"]: each for each in listed if not each.get("Ipv6Native")}
    ranked = sorted(found.values(), key=lambda each: (-(each.get("AvailableIpAddressCount") or 0), each["SubnetId"]))
    return [
        SubnetStatus(id=each["SubnetId"], zone=each["AvailabilityZone"], zone_id=each.get("AvailabilityZoneId") or "")
        for each in ranked
    ]


def security_groups(clients: Clients, terms: Sequence[SecurityGroupSelectorTerm]) -> list[SecurityGroupStatus]:
    """The security groups that any term selects, by id."""
    asked = questions("group-id", (term.id for term in terms), (term.tags for term in terms))
    asked += questions("group-name", (term.name for term in terms), ())
    found: dict[str, str] = {}
    with translated("describing security groups"):
        pages = clients.ec2.get_paginator("describe_security_groups")
        for filters in asked:
            for page in pages.paginate(Filters=filters):  # type: ignore[arg-type]
                listed = entries(page, "SecurityGroups", "GroupId", call=_GROUPS, tell=clients.tell)
                found |= {group["GroupId"]: group.get("GroupName") or "" for group in listed}
    return [SecurityGroupStatus(id=key, name=found[key]) for key in sorted(found)]


def capacity_reservations(
    clients: Clients, terms: Sequence[CapacityReservationSelectorTerm], now: datetime
) -> list[CapacityReservationStatus]:
    """The active reservations that any term selects. Nobody is asked where there are no terms."""
    known = list(reservations_by_id(clients, [term.id for term in terms if term.id]))
    for term in terms:
        if not term.id:
            known += active_reservations(clients, _reservation_filters(term))
    return selected(terms, known, now)


def _reservation_filters(term: CapacityReservationSelectorTerm) -> Filters:
    named = {"owner-id": term.owner_id, "instance-match-criteria": term.instance_match_criteria}
    return tag_filters(term.tags) + [{"Name": name, "Values": [value]} for name, value in named.items() if value]
