"""Reading what EventBridge delivers: an event of EC2 or AWS Health becomes a ``Notice``, or is ignored with a reason.

The envelope's source and detail-type name the kind of event, and each kind has one reader in ``READERS``. An event that
is not in that table, or that needs nothing (an instance that starts), is ``Ignored``: it is counted, logged and
dropped. So is one that lacks what its kind must say, such as a warning without an instance: whoever reads it again
finds no more in it (Karpenter interruption messages).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from typing import Any

from joinery.decisions.interruption import health
from joinery.decisions.interruption.envelope import Ignored, MalformedNoticeError, detail_type, mapping, text
from joinery.objects.karpenter.labels import OWN_GROUP
from joinery.objects.snapshot.claims import moment


class NoticeKind(Enum):
    """What is happening to the instances.

    The three that end in STATUS are not sent by EC2: it says them when it is asked. STATUS_POLL is the schedule's word
    that it is time to ask.
    """

    SPOT_INTERRUPTED = "spot_interrupted"
    CAPACITY_RESERVATION_INTERRUPTED = "capacity_reservation_interrupted"
    CAPACITY_BLOCK_EXPIRING = "capacity_block_expiring"
    REBALANCE_RECOMMENDATION = "rebalance_recommendation"
    SCHEDULED_CHANGE = "scheduled_change"
    INSTANCE_STOPPED = "instance_stopped"
    INSTANCE_TERMINATED = "instance_terminated"
    INSTANCE_STATUS = "instance_status"
    SYSTEM_STATUS = "system_status"
    EVENT_STATUS = "event_status"
    STATUS_POLL = "status_poll"


@dataclass(frozen=True, slots=True)
class Notice:
    """EC2 will take instances away, or has taken them.

    ``instances``: their ids; or ``reservation``: the id of the capacity reservation in which all instances are
    concerned. ``unread``: what of the event could not be read, for the log. Usually empty.
    ``at``: when it was sent, in UTC; None if the event does not say. ``starts``: when a scheduled change begins;
    None if nobody says, and for all other kinds.
    """

    kind: NoticeKind
    instances: tuple[str, ...] = ()
    reservation: str = ""
    unread: str = ""
    at: datetime | None = None
    starts: datetime | None = None


Reader = Callable[[Mapping[str, Any]], Notice | Ignored]

_VERSION = "0"
_STATES = {
    "stopping": NoticeKind.INSTANCE_STOPPED,
    "stopped": NoticeKind.INSTANCE_STOPPED,
    "shutting-down": NoticeKind.INSTANCE_TERMINATED,
    "terminated": NoticeKind.INSTANCE_TERMINATED,
}


def parse(event: Mapping[str, Any]) -> Notice | Ignored:
    """The notice in an EventBridge envelope, or why there is none."""
    version = event.get("version")
    if version not in (None, _VERSION):
        return Ignored(f"version {version} of its envelope is not known")
    source, kind = event.get("source"), detail_type(event)
    reader = READERS.get((source, kind)) if isinstance(source, str) else None
    if reader is None:
        return Ignored(f"nobody acts on {_called(source, kind)}")
    try:
        notice = reader(mapping(event.get("detail"), "detail"))
    except MalformedNoticeError as error:
        return Ignored(f"{_called(source, kind)} cannot be read: {error}", is_broken=True)
    return notice if isinstance(notice, Ignored) else replace(notice, at=_sent_at(event))


def _called(source: object, kind: str) -> str:
    """The event in a line of the log; whoever sends it may have called it anything."""
    sender = f" of {source!r:.60}" if isinstance(source, str) and source else ""
    return f"an event {kind!r:.80}{sender}" if kind else f"an event without a detail-type{sender}"


def _sent_at(event: Mapping[str, Any]) -> datetime | None:
    time = event.get("time")
    return moment(time) if isinstance(time, str) else None


def _of_one(kind: NoticeKind) -> Reader:
    return lambda detail: Notice(kind, (text(detail, "instance-id"),))


def _of_block(detail: Mapping[str, Any]) -> Notice | Ignored:
    return Notice(NoticeKind.CAPACITY_BLOCK_EXPIRING, reservation=text(detail, "capacity-reservation-id"))


def _state_change(detail: Mapping[str, Any]) -> Notice | Ignored:
    state = text(detail, "state").lower()
    kind = _STATES.get(state)
    return Notice(kind, (text(detail, "instance-id"),)) if kind else Ignored(f"an instance that is {state} stays")


def _scheduled_change(detail: Mapping[str, Any]) -> Notice | Ignored:
    about = health.threatened(detail)
    if isinstance(about, Ignored):
        return about
    return Notice(NoticeKind.SCHEDULED_CHANGE, about.instances, unread=about.unread, starts=about.starts)


#: By source and detail-type. The warning of an interruptible reservation has had two names (EC2 User Guide), and so has
#: that of a Capacity Block ("Monitor Capacity Blocks using EventBridge", and the EventBridge reference of EC2's
#: events).
READERS: Mapping[tuple[str, str], Reader] = {
    ("aws.ec2", "EC2 Spot Instance Interruption Warning"): _of_one(NoticeKind.SPOT_INTERRUPTED),
    ("aws.ec2", "EC2 Instance Rebalance Recommendation"): _of_one(NoticeKind.REBALANCE_RECOMMENDATION),
    ("aws.ec2", "EC2 Instance State-change Notification"): _state_change,
    ("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"): _of_one(
        NoticeKind.CAPACITY_RESERVATION_INTERRUPTED
    ),
    ("aws.ec2", "EC2 Interruptible Capacity Reservation Instance Interruption Warning"): _of_one(
        NoticeKind.CAPACITY_RESERVATION_INTERRUPTED
    ),
    ("aws.ec2", "Capacity Block Reservation Expiration Warning"): _of_block,
    ("aws.ec2", "Capacity Block Expiration Warning"): _of_block,
    ("aws.health", "AWS Health Event"): _scheduled_change,
    (OWN_GROUP, "Instance Status Poll"): lambda _: Notice(NoticeKind.STATUS_POLL),
}
