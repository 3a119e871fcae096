"""Finding what an EC2NodeClass selects: subnets, security groups and capacity reservations.

(EC2 API DescribeSubnets, DescribeSecurityGroups, DescribeCapacityReservations.) The terms of a selector are
alternatives. Of a term that says several things an id counts before a name, and a name before tags (Karpenter for AWS,
subnet and securitygroup). One call asks for the ids, or names, of all terms together. Each term of tags takes a call of
its own, because its tags must all match.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from joinery.gateways.answers import entries
from joinery.gateways.aws import Clients, translated
from joinery.gateways.ec2.catalog.reservation_queries import (
    Filters,
    active_reservations,
    reservations_by_id,
    tag_filters,
)
from joinery.gateways.ec2.nodeclass.reservations import selected
from joinery.objects.karpenter.ec2nodeclass import (
    CapacityReservationSelectorTerm,
    CapacityReservationStatus,
    EC2NodeClassSpec,
    SecurityGroupSelectorTerm,
    SecurityGroupStatus,
    SubnetSelectorTerm,
    SubnetStatus,
)

T = TypeVar("T")
_SUBNETS, _GROUPS = "EC2 DescribeSubnets", "EC2 DescribeSecurityGroups"


class Found(list[T]):
    """What was selected, and the ids of the VPCs that it is of."""

    def __init__(self, selected: Iterable[T], described: Iterable[Mapping[str, Any]]) -> None:
        super().__init__(selected)
        self.vpcs = frozenset(each["VpcId"] for each in described if each.get("VpcId"))


def filters_of(name: str, values: Iterable[str], tags: Iterable[Mapping[str, str]]) -> list[Filters]:
    """The filters of each call.

    ``name``: of the filter for ``values``, among which empty ones do not count; ``tags``: of each term.
    """
    given = sorted(filter(None, values))
    calls: list[Filters] = [[{"Name": name, "Values": given}]] if given else []
    return calls + [tag_filters(term) for term in tags if term]


def subnets(clients: Clients, terms: Sequence[SubnetSelectorTerm]) -> Found[SubnetStatus]:
    """The subnets that any term selects, the one with the most free addresses first.

    Subnets without IPv4 are left out: EKS runs nodes in IPv4 and dual-stack subnets only, also in IPv6 clusters.
    """
    by_id: dict[str, Any] = {}
    with translated("describing subnets"):
        pages = clients.ec2.get_paginator("describe_subnets")
        tags = (term.tags for term in terms if not term.id)
        for filters in filters_of("subnet-id", (term.id for term in terms), tags):
            for page in pages.paginate(Filters=filters):  # type: ignore[arg-type]
                listed = entries(page, "Subnets", "SubnetId", "AvailabilityZone", call=_SUBNETS, log=clients.log)
                by_id |= {subnet["SubnetId"]: subnet for subnet in listed if not subnet.get("Ipv6Native")}
    ranked = sorted(by_id.values(), key=_most_free)
    selected = (
        SubnetStatus(
            id=subnet["SubnetId"], zone=subnet["AvailabilityZone"], zone_id=subnet.get("AvailabilityZoneId") or ""
        )
        for subnet in ranked
    )
    return Found(selected, ranked)


def free_addresses(clients: Clients, names: Sequence[str]) -> dict[str, int]:
    """How many addresses are free in each of these subnets, by id."""
    with translated("describing subnets"):
        filters: Any = [{"Name": "subnet-id", "Values": list(names)}]
        pages = clients.ec2.get_paginator("describe_subnets").paginate(Filters=filters)
        listed = [entry for page in pages for entry in entries(page, "Subnets", "SubnetId", call=_SUBNETS)]
    return {entry["SubnetId"]: entry.get("AvailableIpAddressCount") or 0 for entry in listed}


def _most_free(subnet: Mapping[str, Any]) -> tuple[int, str]:
    return -(subnet.get("AvailableIpAddressCount") or 0), subnet["SubnetId"]


def security_groups(clients: Clients, terms: Sequence[SecurityGroupSelectorTerm]) -> Found[SecurityGroupStatus]:
    """The security groups that any term selects, by id."""
    tags = (term.tags for term in terms if not (term.id or term.name))
    calls = filters_of("group-id", (term.id for term in terms), tags)
    calls += filters_of("group-name", (term.name for term in terms if not term.id), ())
    by_id: dict[str, Any] = {}
    with translated("describing security groups"):
        pages = clients.ec2.get_paginator("describe_security_groups")
        for filters in calls:
            for page in pages.paginate(Filters=filters):  # type: ignore[arg-type]
                listed = entries(page, "SecurityGroups", "GroupId", call=_GROUPS, log=clients.log)
                by_id |= {group["GroupId"]: group for group in listed}
    selected = (SecurityGroupStatus(id=key, name=by_id[key].get("GroupName") or "") for key in sorted(by_id))
    return Found(selected, by_id.values())


def capacity_reservations(clients: Clients, spec: EC2NodeClassSpec, now: datetime) -> list[CapacityReservationStatus]:
    """The active reservations that any term of the class selects. Without terms EC2 is not asked."""
    terms = spec.capacity_reservation_selector_terms
    candidates = list(reservations_by_id(clients, [term.id for term in terms if term.id]))
    for term in terms:
        if not term.id:
            candidates += active_reservations(clients, _reservation_filters(term))
    # EC2 has filtered by one term at a time. Which reservations can be used at all is decided in one place.
    return selected(spec, candidates, now)


def _reservation_filters(term: CapacityReservationSelectorTerm) -> Filters:
    named = {"owner-id": term.owner_id, "instance-match-criteria": term.instance_match_criteria}
    return tag_filters(term.tags) + [{"Name": name, "Values": [value]} for name, value in named.items() if value]
