"""The instances that EC2 has (EC2 API DescribeInstances)."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from joinery.gateways.answers import at, entries
from joinery.gateways.aws import Clients, translated
from joinery.gateways.ec2.launch.templates import RESERVED_ONLY
from joinery.objects.karpenter import labels
from joinery.objects.snapshot.instances import Instance
from joinery.objects.snapshot.offerings import CAPACITY_BLOCK

_CALL = "EC2 DescribeInstances"
#: The launch time of an instance that does not say it. It must never be old enough to be collected as garbage.
_NOT_SAID = datetime.max.replace(tzinfo=UTC)
_RESERVED_LIFECYCLES = (CAPACITY_BLOCK, "interruptible-capacity-reservation")


def described(clients: Clients, **parameters: Any) -> tuple[Instance, ...]:
    """The instances that DescribeInstances lists for these parameters.

    ``NotFoundError`` for an id that EC2 has forgotten.
    """
    with translated("describing instances"):
        pages = clients.ec2.get_paginator("describe_instances").paginate(**parameters)
        # A "reservation" is here what one RunInstances call has launched. It has nothing to do with capacity
        # reservations.
        return tuple(
            as_ours(entry)
            for page in pages
            for reservation in entries(page, "Reservations", call=_CALL)
            for entry in entries(reservation, "Instances", "InstanceId", call=_CALL, log=clients.log)
        )


def as_ours(entry: Mapping[str, Any]) -> Instance:
    """One entry of DescribeInstances.

    An instance of which EC2 says little is listed too: left out, its claim would be given up.
    """
    return Instance(
        instance_id=entry["InstanceId"],
        instance_type=at(entry, "InstanceType") or "",
        zone=at(entry, "Placement.AvailabilityZone") or "",
        capacity_type=_capacity_type(entry),
        state=at(entry, "State.Name") or "",
        launched_at=at(entry, "LaunchTime") or _NOT_SAID,
        image_id=at(entry, "ImageId") or "",
        tags={tag["Key"]: tag.get("Value") or "" for tag in entries(entry, "Tags", "Key", call=_CALL)},
        reservation=(at(entry, "CapacityReservationId") or "") if _capacity_type(entry) == labels.RESERVED else "",
        subnet_id=at(entry, "SubnetId") or "",
        security_groups=frozenset(
            group["GroupId"] for group in entries(entry, "SecurityGroups", "GroupId", call=_CALL)
        ),
        placement_group_id=at(entry, "Placement.GroupId") or "",
        placement_group=at(entry, "Placement.GroupName") or "",
        partition=str(at(entry, "Placement.PartitionNumber") or ""),
        reason_code=at(entry, "StateReason.Code") or "",
        reason=_reason(entry),
        # arn:aws:iam::111122223333:instance-profile/path/name
        instance_profile=(at(entry, "IamInstanceProfile.Arn") or "").rpartition("/")[2],
    )


def _reason(entry: Mapping[str, Any]) -> str:
    """EC2's words for why an instance ends. They begin with their code, which is said already."""
    code = at(entry, "StateReason.Code") or ""
    return str(at(entry, "StateReason.Message") or "").removeprefix(f"{code}:").strip()


def _capacity_type(entry: Mapping[str, Any]) -> str:
    """Reserved is what was launched for its reservation alone.

    An on-demand instance that happens to be in an open one is on-demand.

    EC2 says so by the preference. Where there is no other way to be in such a reservation, the lifecycle says it.
    """
    lifecycle = entry.get("InstanceLifecycle")
    if lifecycle == "spot":
        return labels.SPOT
    preference = at(entry, "CapacityReservationSpecification.CapacityReservationPreference")
    is_meant = preference == RESERVED_ONLY or lifecycle in _RESERVED_LIFECYCLES
    return labels.RESERVED if is_meant and entry.get("CapacityReservationId") else labels.ON_DEMAND
