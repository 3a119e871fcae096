"""What a file holds that wakes a door: a call as Lambda would make it, or an event as its source writes it.

An EventBridge event by itself comes over the interruption queue, an AdmissionReview by itself over the Function URL.
Copies of one are taken too: what ``aws sqs receive-message`` prints, and the notification of an SNS topic.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from joinery.decisions.installation.requests import is_request
from joinery.decisions.interruption.envelope import Ignored, detail_type, opened
from joinery.objects.errors import ConfigurationError
from simulator.doors.doors import TOKEN
from simulator.doors.queues import record

_QUEUES = {
    "provisioning": "provisioning",
    "lifecycle": "lifecycle",
    "disruption": "disruption",
    "interruption": "interruption",
}


def read(path: Path) -> dict[str, Any]:
    """The event of a file, or of standard input for ``-``. Raises ``ConfigurationError`` naming the file."""
    try:
        data = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
        if not data.strip():
            raise ConfigurationError(f"{path}: is empty")
        event = json.loads(data)
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"{path}: not JSON: {error}") from error
    if not isinstance(event, dict):
        raise ConfigurationError(f"{path}: an event is an object")
    return event


def call(event: dict[str, Any], path: Path) -> tuple[str, dict[str, Any]]:
    """The door that the event wakes, and what Lambda gives it.

    Raises ``ConfigurationError`` for one that wakes none.
    """
    if "requestContext" in event:
        return "webhook", event | {"rawPath": f"/{TOKEN}"}
    if is_request(event) or "operation" in event:
        return "installer", event
    if event.get("kind") == "AdmissionReview":
        return "webhook", {"rawPath": f"/{TOKEN}", "body": json.dumps(event), "isBase64Encoded": False}
    if "schedule" in event:
        return str(event.get("door") or path.stem.partition("_")[0]), event
    if detail_type(event):
        return "interruption", {"Records": [record("message-1", "joinery-interruptions", event)]}
    if copies := [body for body in _copied(event) if isinstance(body, str)]:
        blank = [record(f"message-{number}", "joinery-interruptions", {}) for number in range(1, len(copies) + 1)]
        return "interruption", {"Records": [one | {"body": body} for one, body in zip(blank, copies, strict=True)]}
    door = next(filter(None, map(_door_of, _objects(event, "Records"))), "")
    if not door:
        raise ConfigurationError(
            f"{path}: neither an event of EventBridge, nor an AdmissionReview, nor a Function URL's call, "
            "nor SQS records or messages, nor a notification of SNS, nor a schedule's input, "
            "nor a request of CloudFormation"
        )
    return door, event


def _copied(event: Mapping[str, Any]) -> Iterator[object]:
    """The bodies of messages that were printed by a tool, or that SNS sends elsewhere than to a queue."""
    if "TopicArn" in event:
        yield json.dumps(event)
    for message in _objects(event, "Messages"):
        yield message.get("Body")
    for message in _objects(event, "Records"):
        if isinstance(notification := message.get("Sns"), dict):
            yield json.dumps(notification)


def _objects(event: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    listed = event.get(key)
    return [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []


def _is_event(body: object) -> bool:
    inside = opened(body)
    return not isinstance(inside, Ignored) and bool(detail_type(inside))


def _door_of(message: Mapping[str, Any]) -> str:
    """By the queue's name. A queue of another name is the one that events come over: that door says why a message is
    none.
    """
    source = str(message.get("eventSourceARN", "")).lower()
    named = next((door for part, door in _QUEUES.items() if part in source), "")
    is_of_queue = isinstance(message.get("body"), str) and message.get("eventSource") == "aws:sqs"
    return named or ("interruption" if is_of_queue or _is_event(message.get("body")) else "")
