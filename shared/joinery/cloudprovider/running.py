"""The instances that EC2 has, as ours."""

from collections.abc import Mapping
from typing import Any

from joinery.apis import labels
from joinery.aws import Clients, translated
from joinery.state.instances import Instance


def described(clients: Clients, **asked: Any) -> tuple[Instance, ...]:
    """DescribeInstances, all pages. ``NotFoundError`` for an id that EC2 has forgotten."""
    with translated("describing instances"):
        pages = clients.ec2.get_paginator("describe_instances").paginate(**asked)
        return tuple(
            _instance(found)
            for page in pages
            for reservation in page["Reservations"]
            for found in reservation["Instances"]
        )


def _instance(found: Mapping[str, Any]) -> Instance:
    return Instance(
        instance_id=found["InstanceId"],
        instance_type=found["InstanceType"],
        zone=found["Placement"]["AvailabilityZone"],
        capacity_type=labels.SPOT if found.get("InstanceLifecycle") == "spot" else labels.ON_DEMAND,
        state=found["State"]["Name"],
        launched_at=found["LaunchTime"],
        image_id=found.get("ImageId", ""),
        tags={tag["Key"]: tag["Value"] for tag in found.get("Tags", ())},
    )
