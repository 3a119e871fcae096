"""The instances that EC2 has, as ours."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from joinery.answers import at, entries
from joinery.apis import labels
from joinery.aws import Clients, translated
from joinery.cloudprovider.launch.templates import RESERVED_ONLY
from joinery.state.instances import Instance
from joinery.state.offerings import CAPACITY_BLOCK

_CALL = "EC2 DescribeInstances"
#: Of an instance that does not say when it was launched: it is too young to be taken for a leak.
_NOT_SAID = datetime.max.replace(tzinfo=UTC)
_RESERVED_LIFECYCLES = (CAPACITY_BLOCK, "interruptible-capacity-reservation")


def described(clients: Clients, **asked: Any) -> tuple[Instance, ...]:
    """DescribeInstances, all pages. ``NotFoundError`` for an id that EC2 has forgotten."""
    with translated("describing instances"):
        pages = clients.ec2.get_paginator("describe_instances").paginate(**asked)
        return tuple(
            as_ours(found)
            for page in pages
            for reservation in entries(page, "Reservations", call=_CALL)
            for found in entries(reservation, "Instances", "InstanceId", call=_CALL, tell=clients.tell)
        )


def as_ours(found: Mapping[str, Any]) -> Instance:
    """One entry of DescribeInstances. One that says less is there all the same: its claim would be given up if it were left out."""
    return Instance(
        instance_id=found["InstanceId"],
        instance_type=at(found, "InstanceType") or "",
        zone=at(found, "Placement.AvailabilityZone") or "",
        capacity_type=_capacity_type(found),
        state=at(found, "State.Name") or "",
        launched_at=at(found, "LaunchTime") or _NOT_SAID,
        image_id=at(found, "ImageId") or "",
        tags={tag["Key"]: tag.get("Value") or "" for tag in entries(found, "Tags", "Key", call=_CALL)},
        reservation=(at(found, "CapacityReservationId") or "") if _capacity_type(found) == labels.RESERVED else "",
    )


def _capacity_type(found: Mapping[str, Any]) -> str:
    """Reserved is what was launched for its reservation alone; an instance that happens to be in one is on-demand (2.9).

    EC2 says so by the preference, or where there is no other way to be in that sort of reservation, by the lifecycle.
    """
    lifecycle = found.get("InstanceLifecycle")
    if lifecycle == "spot":
        return labels.SPOT
    preference = at(found, "CapacityReservationSpecification.CapacityReservationPreference")
    is_meant = preference == RESERVED_ONLY or lifecycle in _RESERVED_LIFECYCLES
    return labels.RESERVED if is_meant and found.get("CapacityReservationId") else labels.ON_DEMAND
