"""Which door an event wakes, and what Lambda would give it: read from a file, whatever tool wrote that."""

import json
from pathlib import Path
from typing import Any

import pytest

from joinery.objects.errors import ConfigurationError
from simulator.doors.wakeups import call, read

REAL = Path(__file__).parents[1] / "data/real"
SPOT = (REAL / "eventbridge/spot-interruption.json").read_text()
NOTIFICATION = {"Type": "Notification", "TopicArn": "arn:aws:sns:eu-central-1:111122223333:t", "Message": SPOT}


def woken(tmp_path: Path, text: str) -> tuple[str, dict[str, Any]]:
    """The door and its event, from a file with this text."""
    path = tmp_path / "event.json"
    path.write_text(text)
    return call(read(path), path)


def test_an_event_by_itself_comes_over_the_interruption_queue(tmp_path: Path) -> None:
    """What EventBridge delivers can be pasted into a file."""
    door, event = woken(tmp_path, SPOT)
    assert (door, [json.loads(record["body"]) for record in event["Records"]]) == ("interruption", [json.loads(SPOT)])


@pytest.mark.parametrize(
    ("document", "body"),
    [
        ({"Messages": [{"MessageId": "1", "ReceiptHandle": "A", "Body": SPOT}]}, json.loads(SPOT)),
        (NOTIFICATION, NOTIFICATION),
        ({"Records": [{"EventSource": "aws:sns", "Sns": NOTIFICATION}]}, NOTIFICATION),
    ],
    ids=["aws sqs receive-message", "SNS", "SNS to a function"],
)
def test_copies_of_an_event_come_over_the_interruption_queue(
    tmp_path: Path, document: dict[str, Any], body: dict[str, Any]
) -> None:
    """As records that differ from the event's own in the body alone; the door opens an envelope of SNS itself."""
    door, event = woken(tmp_path, json.dumps(document))
    _, alone = woken(tmp_path, SPOT)
    (record,) = event["Records"]
    assert (door, json.loads(record["body"])) == ("interruption", body)
    assert {**record, "body": ""} == {**alone["Records"][0], "body": ""}


def test_a_queue_of_any_name_is_known_by_what_comes_over_it(tmp_path: Path) -> None:
    """A record of Karpenter's queue, say."""
    event = json.loads((REAL / "lambda/sqs/spot-interruption.json").read_text())
    event["Records"][0]["eventSourceARN"] = "arn:aws:sqs:us-east-1:111122223333:prod"
    assert woken(tmp_path, json.dumps(event)) == ("interruption", event)


@pytest.mark.parametrize("body", ["Hello from SQS!", "{}"])
def test_a_message_that_is_no_event_comes_over_the_interruption_queue(tmp_path: Path, body: str) -> None:
    """The test event of AWS's console: the door says what is wrong with it."""
    record = {"messageId": "1", "body": body, "eventSource": "aws:sqs", "eventSourceARN": "arn:aws:sqs:eu-1:1:MyQueue"}
    assert woken(tmp_path, json.dumps({"Records": [record]})) == ("interruption", {"Records": [record]})
    door, event = woken(tmp_path, json.dumps({"Messages": [{"Body": body}]}))
    assert (door, [one["body"] for one in event["Records"]]) == ("interruption", [body])


def test_an_empty_file_is_called_empty(tmp_path: Path) -> None:
    """No position of a JSON reader."""
    with pytest.raises(ConfigurationError, match="event.json: is empty"):
        woken(tmp_path, "\n")


@pytest.mark.parametrize(
    "text", ["[]", "{", "null", '{"Records": null}', '{"Records": [7]}', '{"detail-type": 7}', '{"hello": "world"}']
)
def test_a_file_that_wakes_no_door_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    """Naming it."""
    with pytest.raises(ConfigurationError) as refused:
        woken(tmp_path, text)
    assert str(tmp_path / "event.json") in str(refused.value)
    assert "\n" not in str(refused.value)
