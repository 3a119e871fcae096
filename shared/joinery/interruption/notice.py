"""Reading what EventBridge delivers: an event of EC2 or AWS Health becomes a ``Notice``, or nothing.

The envelope's version, source and detail-type name the kind of event; each kind has one reader in ``READERS``. What is
not in that table, or is of no consequence (an instance that starts), is None: to be counted and dropped. What is in the
table and cannot be read raises, because a lost warning costs a node (disruption-lifecycle.md 4.1, 4.2).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from joinery.errors import JoineryError


class MalformedNoticeError(JoineryError):
    """An event of a known kind without the fields of that kind. The message names the field."""


class Kind(Enum):
    """What is happening to the instances; the value is the metric's."""

    SPOT_INTERRUPTED = "spot_interrupted"
    CAPACITY_RESERVATION_INTERRUPTED = "capacity_reservation_interrupted"
    REBALANCE_RECOMMENDATION = "rebalance_recommendation"
    SCHEDULED_CHANGE = "scheduled_change"
    INSTANCE_STOPPED = "instance_stopped"
    INSTANCE_TERMINATED = "instance_terminated"


@dataclass(frozen=True, slots=True)
class Notice:
    """EC2 will take these instances away, or has."""

    kind: Kind
    instances: tuple[str, ...]


Reader = Callable[[Mapping[str, Any]], Notice | None]

_STATES = {
    "stopping": Kind.INSTANCE_STOPPED,
    "stopped": Kind.INSTANCE_STOPPED,
    "shutting-down": Kind.INSTANCE_TERMINATED,
    "terminated": Kind.INSTANCE_TERMINATED,
}


def parse(event: Mapping[str, Any]) -> Notice | None:
    """The notice in an EventBridge envelope; None for an event that needs nothing. Raises ``MalformedNoticeError``."""
    key = tuple(event.get(name) for name in ("version", "source", "detail-type"))
    reader = READERS.get(key) if all(isinstance(part, str) for part in key) else None
    return reader(_mapping(event.get("detail"), "detail")) if reader else None


def _of_one(kind: Kind) -> Reader:
    return lambda detail: Notice(kind, (_text(detail, "instance-id"),))


def _state_change(detail: Mapping[str, Any]) -> Notice | None:
    kind = _STATES.get(_text(detail, "state").lower())
    return Notice(kind, (_text(detail, "instance-id"),)) if kind else None


def _scheduled_change(detail: Mapping[str, Any]) -> Notice | None:
    """Health speaks of many things: only a change that EC2 has scheduled concerns a node."""
    if (detail.get("service"), detail.get("eventTypeCategory")) != ("EC2", "scheduledChange"):
        return None
    listed = detail.get("affectedEntities")
    if not isinstance(listed, list):
        raise MalformedNoticeError("detail.affectedEntities is not a list")
    entities = [_mapping(entity, "detail.affectedEntities[]") for entity in listed]
    return Notice(Kind.SCHEDULED_CHANGE, tuple(_text(entity, "entityValue") for entity in entities))


def _mapping(value: object, name: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise MalformedNoticeError(f"{name} is not an object")
    return value


def _text(mapping: Mapping[str, Any], field: str) -> str:
    value = mapping.get(field)
    if not isinstance(value, str) or not value:
        raise MalformedNoticeError(f"{field} is missing or not a text")
    return value


READERS: Mapping[tuple[Any, ...], Reader] = {
    ("0", "aws.ec2", "EC2 Spot Instance Interruption Warning"): _of_one(Kind.SPOT_INTERRUPTED),
    ("0", "aws.ec2", "EC2 Instance Rebalance Recommendation"): _of_one(Kind.REBALANCE_RECOMMENDATION),
    ("0", "aws.ec2", "EC2 Instance State-change Notification"): _state_change,
    ("0", "aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"): _of_one(
        Kind.CAPACITY_RESERVATION_INTERRUPTED
    ),
    ("0", "aws.health", "AWS Health Event"): _scheduled_change,
}
