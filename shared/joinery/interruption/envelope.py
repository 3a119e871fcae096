"""The event in a message: EventBridge puts it into the queue as it is, SNS between the two wraps it once more.

A message that holds no event is not an error of its sender's that waiting would mend: it is ignored, with the reason.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Ignored:
    """A message that needs nothing; ``reason`` says why, for the log."""

    reason: str


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


def detail_type(event: Mapping[str, Any]) -> str:
    """What kind of event its source says that it is; empty if it does not say.

    ``detail_type`` is how the EC2 User Guide spells it in the events of Capacity Blocks.
    """
    spelled = (event.get("detail-type"), event.get("detail_type"))
    return next((value for value in spelled if isinstance(value, str)), "")
