"""``joinery replay``, as a person runs it, and what it makes of each sample event.

To drive a story until its nodes run takes two seconds, most of them in packing. So the events of one door go through
one story.
"""

import json
import re
from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from joinery_cli.main import app
from simulator.doors.wakeups import call, read
from simulator.story import render
from simulator.story.replay import put_through, story_at
from simulator.story.replay_text import show

SAMPLES = Path(__file__).parents[2] / "events"
REAL = Path(__file__).parents[1] / "data/real"
SEED = 7
#: One of each way in which an event is written; tests/real puts every one through its handler.
WRITTEN = (
    "eventbridge/spot-interruption",
    "eventbridge/state-stopping",
    "eventbridge/capacity-block-delivered",
    "lambda/sqs-through-sns",
    "lambda/sqs-batch-mixed",
    "lambda/function-url-base64-event-create",
    "admission/event-create-events-k8s-io",
)
EVENTS = [
    *sorted(SAMPLES.glob("*.json")),
    *(REAL / f"{name}.json" for name in WRITTEN),
]
CALLS = {path: call(read(path), path) for path in EVENTS}
DOORS = sorted({door for door, _ in CALLS.values()})


def run(*arguments: str) -> Result:
    """The command line, in this process."""
    return CliRunner().invoke(app, list(arguments))


@cache
def spot_warning() -> str:
    """What is printed of the sample."""
    result = run("replay", str(SAMPLES / "interruption_spot_warning.json"))
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("door", DOORS)
def test_every_sample_event_of_a_door_can_be_replayed(door: str) -> None:
    """However it is written: by itself, in a queue's record, through SNS, or as the Function URL's call. None fails."""
    with story_at(door, SEED) as simulation:
        errors = {
            path.name: put_through(simulation, door, event).error
            for path, (its_door, event) in CALLS.items()
            if its_door == door
        }
    assert errors == dict.fromkeys(errors, "")


def test_a_replayed_spot_warning_says_what_was_decided_and_what_changed() -> None:
    """The instance of the sample is played by one of the simulated cluster."""
    output = spot_warning()
    assert output.startswith("interruption_spot_warning.json at the interruption door, ")
    assert "is played by i-" in output
    assert "DeleteClaim" in output
    assert "EC2 will reclaim the spot instance" in output
    assert "changed: deletion timestamp" in output


def test_a_replay_says_that_an_instance_id_is_none() -> None:
    """A slip in a file by hand: the door would find no claim for it, and say nothing."""
    _, event = CALLS[SAMPLES / "interruption_spot_warning.json"]
    slip = json.loads(re.sub("i-[0-9a-f]{17}", "i-spot", json.dumps(event)))
    with story_at("interruption", SEED) as simulation:
        replayed = put_through(simulation, "interruption", slip)
    assert replayed.played == "no node plays in it: what it names as instance-id is none, such as i-0123456789abcdef0"


def test_a_replay_says_which_events_it_sends() -> None:
    """As ``kubectl get events`` lists them."""
    assert "Warning SpotInterrupted nodeclaim/" in spot_warning()
    assert "Warning TerminatingOnInterruption node/" in spot_warning()


def test_what_a_replay_says_is_indented_below_its_heading() -> None:
    """Also where it takes two lines; none ends in blanks or exceeds eighty columns."""
    lines = spot_warning().splitlines()
    assert "    spot instance" in lines or "    instance" in lines
    assert all(line == line.rstrip() and len(line) <= 80 for line in lines)


def test_a_reservation_that_an_event_names_holds_a_node_of_the_story() -> None:
    """So that it can be seen what becomes of it."""
    output = run("replay", str(REAL / "eventbridge/capacity-block-expiration-warning.json")).output
    assert "cr-0a1b2c3d4e5f60718 is taken to hold the node of" in output
    assert "Warning CapacityBlockExpiring nodeclaim/" in output
    assert "DeleteClaim" in output


def test_an_event_that_needs_nothing_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever the cluster is like: here it is that of the story's beginning, as the catalogue's door finds it."""
    path = REAL / "eventbridge/health-retirement-closed.json"
    with story_at("catalog", SEED) as simulation:
        replayed = put_through(simulation, *call(read(path), path))
    show(render.console(), path.name, replayed)
    assert "Ignored:\n  the scheduled change is closed" in capsys.readouterr().out


def test_a_message_that_lacks_what_it_must_say_is_ignored_and_names_the_field(tmp_path: Path) -> None:
    """Whoever replays it wants to know what is wrong with it."""
    event = json.loads((REAL / "eventbridge/spot-interruption.json").read_text())
    del event["detail"]["instance-id"]
    path = tmp_path / "event.json"
    path.write_text(json.dumps(event))
    result = run("replay", str(path))
    assert "Ignored:\n  " in result.output
    assert "instance-id" in result.output
    assert result.exit_code == 0


def test_an_event_may_come_from_standard_input() -> None:
    """``-`` is standard input, as for ``joinery plan``."""
    event = (SAMPLES / "webhook_failed_scheduling.json").read_bytes()
    piped = CliRunner().invoke(app, ["replay", "-"], input=event)
    assert (piped.exit_code, "at the webhook door" in piped.output) == (0, True)
