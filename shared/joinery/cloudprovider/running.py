"""The instances that EC2 has, as ours."""

from collections.abc import Mapping
from typing import Any

from joinery.apis import labels
from joinery.aws import Clients, translated
from joinery.cloudprovider.templates import RESERVED_ONLY
from joinery.state.instances import Instance
from joinery.state.offerings import CAPACITY_BLOCK

_RESERVED_LIFECYCLES = (CAPACITY_BLOCK, "interruptible-capacity-reservation")


def described(clients: Clients, **asked: Any) -> tuple[Instance, ...]:
    """DescribeInstances, all pages. ``NotFoundError`` for an id that EC2 has forgotten."""
    with translated("describing instances"):
        pages = clients.ec2.get_paginator("describe_instances").paginate(**asked)
        return tuple(
            as_ours(found)
            for page in pages
            for reservation in page["Reservations"]
            for found in reservation["Instances"]
        )


def as_ours(found: Mapping[str, Any]) -> Instance:
    """One entry of DescribeInstances."""
    return Instance(
        instance_id=found["InstanceId"],
        instance_type=found["InstanceType"],
        zone=found["Placement"]["AvailabilityZone"],
        capacity_type=_capacity_type(found),
        state=found["State"]["Name"],
        launched_at=found["LaunchTime"],
        image_id=found.get("ImageId", ""),
        tags={tag["Key"]: tag["Value"] for tag in found.get("Tags", ())},
        reservation=found.get("CapacityReservationId", "") if _capacity_type(found) == labels.RESERVED else "",
    )


def _capacity_type(found: Mapping[str, Any]) -> str:
    """Reserved is what was launched for its reservation alone; an instance that happens to be in one is on-demand (2.9).

    EC2 says so by the preference, or where there is no other way to be in that sort of reservation, by the lifecycle.
    """
    lifecycle = found.get("InstanceLifecycle")
    if lifecycle == "spot":
        return labels.SPOT
    preference = found.get("CapacityReservationSpecification", {}).get("CapacityReservationPreference")
    is_meant = preference == RESERVED_ONLY or lifecycle in _RESERVED_LIFECYCLES
    return labels.RESERVED if is_meant and found.get("CapacityReservationId") else labels.ON_DEMAND
