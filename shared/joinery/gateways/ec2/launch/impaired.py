"""The instances that EC2 finds something wrong with (EC2 API DescribeInstanceStatus).

They are asked for by what is wrong, and not by their ids: three calls, whose answers are nearly always empty, in place
of one for each hundred nodes. (There are three because an instance has to pass all filters of a call.) No filter knows
tags, so instances of others in the account may be among them.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from joinery.gateways.answers import at, entries
from joinery.gateways.aws import Clients, translated
from joinery.objects.snapshot.instances import InstanceStatus

_CALL = "EC2 DescribeInstanceStatus"
#: What EC2 may schedule for an instance: all of it interrupts whatever runs there.
EVENT_CODES = ("instance-reboot", "system-reboot", "system-maintenance", "instance-retirement", "instance-stop")
_FILTERS = (
    ("instance-status.status", ("impaired",)),
    ("system-status.status", ("impaired",)),
    ("event.code", EVENT_CODES),
)
#: How the description of an event begins that is over. EC2 lists it for another week (EC2 API `InstanceStatusEvent`).
_OVER = ("[Completed]", "[Canceled]")
#: Since when a check has failed that does not say it.
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


def impaired(clients: Clients) -> tuple[InstanceStatus, ...]:
    """Every running instance of the region that something is wrong with, once each."""
    by_id: dict[str, InstanceStatus] = {}
    for name, values in _FILTERS:
        with translated("describing the status of instances"):
            filters: Any = [{"Name": name, "Values": list(values)}]
            pages = clients.ec2.get_paginator("describe_instance_status").paginate(Filters=filters)
            for page in pages:
                for entry in entries(page, "InstanceStatuses", "InstanceId", call=_CALL, log=clients.log):
                    by_id.setdefault(entry["InstanceId"], _as_ours(entry))
    return tuple(status for status in by_id.values() if _is_impaired(status))


def _as_ours(entry: Mapping[str, Any]) -> InstanceStatus:
    events = [
        event
        for event in entries(entry, "Events", "Code", call=_CALL)
        if event["Code"] in EVENT_CODES and not str(at(event, "Description") or "").startswith(_OVER)
    ]
    starts = [event["NotBefore"] for event in events if event.get("NotBefore")]
    return InstanceStatus(
        instance_id=entry["InstanceId"],
        instance_failed=_failed_since(at(entry, "InstanceStatus.Details")),
        system_failed=_failed_since(at(entry, "SystemStatus.Details")),
        events=tuple(event["Code"] for event in events),
        starts=min(starts) if starts and len(starts) == len(events) else None,
    )


def _failed_since(details: Iterable[Mapping[str, Any]] | None) -> datetime | None:
    """Since when the first check of these has failed; None if none has."""
    failed = (detail for detail in details or () if detail.get("Status") == "failed")
    return min((detail.get("ImpairedSince") or _LONG_AGO for detail in failed), default=None)


def _is_impaired(status: InstanceStatus) -> bool:
    return bool(status.instance_failed or status.system_failed or status.events)
