"""The event in a message of the queue. EventBridge puts it there as it is; SNS between the two wraps it once more.

What holds no event, or not what its kind must say, is ignored, with the reason: delivering it again would not change
it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Ignored:
    """A message that nothing is done about; ``reason`` says why, for the log.

    ``is_broken``: it should have said more, so that a person may want to know of it.
    """

    reason: str
    is_broken: bool = False


def opened(body: object) -> Mapping[str, Any] | Ignored:
    """The event in the body of an SQS message, out of its SNS notification if raw message delivery is off."""
    try:
        envelope = json.loads(body) if isinstance(body, str) else None
    except (ValueError, RecursionError):
        return Ignored("the message is not JSON")
    if not isinstance(envelope, dict):
        return Ignored("the message is not an event")
    if "TopicArn" not in envelope:
        return envelope
    if envelope.get("Type") == "Notification":
        return opened(envelope.get("Message"))
    return Ignored(f"SNS sent a {envelope.get('Type')}, not a notification")


def is_event(envelope: Mapping[str, Any]) -> bool:
    """Whether it is an event at all: EventBridge gives every event a source and a detail-type."""
    return bool(isinstance(envelope.get("source"), str) and detail_type(envelope))


def detail_type(event: Mapping[str, Any]) -> str:
    """The event's ``detail-type``, empty if it has none.

    The EC2 User Guide spells it ``detail_type`` in the events of Capacity Blocks.
    """
    spellings = (event.get("detail-type"), event.get("detail_type"))
    return next((value for value in spellings if isinstance(value, str)), "")
