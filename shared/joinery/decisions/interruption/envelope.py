"""The event in a message of the queue. EventBridge puts it there as it is; SNS between the two wraps it once more.

What holds no event, or not what its kind must say, is ignored, with the reason: delivering it again would not change
it. A ``MalformedNoticeError`` names the field that an event lacks, for the log.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from joinery.objects.errors import JoineryError


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


class MalformedNoticeError(JoineryError):
    """An event of a known kind without the fields of that kind. The message names the field."""


def mapping(value: object, name: str) -> Mapping[str, Any]:
    """The value, if it is an object. Raises ``MalformedNoticeError`` with ``name`` if it is not."""
    if not isinstance(value, dict):
        raise MalformedNoticeError(f"{name} is not an object")
    return value


def text(fields: Mapping[str, Any], name: str) -> str:
    """The field, if it is a text that is not empty. Raises ``MalformedNoticeError`` with its name if it is not."""
    value = fields.get(name)
    if not isinstance(value, str) or not value:
        raise MalformedNoticeError(f"{name} is missing or not a text")
    return value
