"""What ``make sam-local`` takes for success."""

import pytest

from tools.sam_local import is_success
from tools.template import ROOT, doors, load


@pytest.mark.parametrize(
    "answer",
    ['{"outcome": "done", "launches": 1}', '{"batchItemFailures": []}', '{"statusCode": 200, "body": "{}"}'],
)
def test_a_door_that_did_its_work_has_succeeded(answer: str) -> None:
    """Bells, sweeps, messages and admission reviews are each answered in their own way."""
    assert is_success(answer)


@pytest.mark.parametrize(
    "answer",
    [
        '{"outcome": "rung again", "error": "no route"}',
        '{"outcome": "off"}',
        '{"batchItemFailures": [{"itemIdentifier": "1"}]}',
        '{"statusCode": 403}',
        '{"errorType": "Runtime.ImportModuleError", "errorMessage": "No module named app"}',
        "Task timed out after 60.00 seconds",
        "null",
        "",
    ],
)
def test_a_door_that_only_answered_has_not(answer: str) -> None:
    """A failed bell is completed, so that it blocks no queue: its answer must be read."""
    assert not is_success(answer)


def test_every_sample_event_is_named_after_its_door() -> None:
    """Tools find the door of an event by its name."""
    assert {event.stem.partition("_")[0] for event in (ROOT / "events").glob("*.json")} == set(doors(load()))
