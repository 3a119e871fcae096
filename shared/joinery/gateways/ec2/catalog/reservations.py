"""Capacity reservations as EC2 describes them (EC2 API DescribeCapacityReservations)."""

from datetime import datetime, timedelta
from typing import Annotated

import msgspec

from joinery.objects.snapshot.offerings import CAPACITY_BLOCK, RESERVATION_KINDS

#: EC2 takes a block back 30 minutes before its end (EC2 user guide, Capacity Blocks for ML). Nodes get ten more to be
#: drained.
_EXPIRING = timedelta(minutes=40)
_CRITERIA = ("open", "targeted")


class Tag(msgspec.Struct, frozen=True):
    """A tag as EC2 spells it."""

    key: str = msgspec.field(name="Key", default="")
    value: str = msgspec.field(name="Value", default="")


class CapacityReservation(msgspec.Struct, frozen=True, rename="pascal", kw_only=True):
    """An entry of DescribeCapacityReservations, as far as it is read.

    ``available_instance_count``: how many more instances it takes; None where nobody knows. ``instance_platform``:
    EC2's word for the system of its instances (``Linux/UNIX``). ``end_date``: in UTC, None for one without end.
    ``placement_group_arn``: of the group that its instances must be in; empty for one without.
    """

    capacity_reservation_id: str
    instance_type: str
    availability_zone: str
    owner_id: str = ""
    available_instance_count: int | None = None
    instance_match_criteria: str = "open"
    instance_platform: str = ""
    reservation_type: str = "default"
    interruptible: bool = False
    state: str = "active"
    end_date: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    placement_group_arn: str = ""
    tags: tuple[Tag, ...] = ()

    def is_usable(self, now: datetime) -> bool:
        """Whether it is active, not over, and of a type that Joinery can launch into."""
        is_over = self.end_date is not None and self.end_date <= now
        is_known = self.reservation_type in RESERVATION_KINDS and self.instance_match_criteria in _CRITERIA
        return self.state == "active" and is_known and not is_over

    def is_expiring(self, now: datetime) -> bool:
        """Whether it is a capacity block that is about to end. Nothing more is launched into it."""
        is_block = self.reservation_type == CAPACITY_BLOCK
        return is_block and self.end_date is not None and now >= self.end_date - _EXPIRING
