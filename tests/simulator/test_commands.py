"""``joinery simulate`` and ``joinery replay``, as a person runs them."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from joinery.cli.main import app
from joinery.errors import ConfigurationError
from simulator.builders import EPOCH
from simulator.story import render
from simulator.story.bill import Item
from simulator.story.commands import Output, simulate
from simulator.story.scenario import find, load
from simulator.story.timeline import Entry

EVENTS = sorted((Path(__file__).parents[2] / "events").glob("*.json"))
REAL = Path(__file__).parents[1] / "data/real"
#: One of each way in which an event is written; tests/real puts every one through its handler.
WRITTEN = (
    "eventbridge/state-stopping",
    "eventbridge/capacity-block-delivered",
    "lambda/sqs-through-sns",
    "lambda/sqs-batch-mixed",
    "lambda/function-url-base64-event-create",
    "admission/event-create-events-k8s-io",
)


def run(*arguments: str) -> Result:
    """The command line, in this process."""
    return CliRunner().invoke(app, list(arguments))


@pytest.mark.parametrize("path", EVENTS, ids=lambda path: path.stem)
def test_every_sample_event_can_be_replayed(path: Path) -> None:
    """Through its real handler, which does not fail."""
    result = run("replay", str(path))
    assert result.exit_code == 0, result.output
    assert f"{path.name} at the " in result.output


def test_a_replayed_spot_warning_says_what_was_decided_and_what_changed() -> None:
    """The instance of the sample is played by one of the simulated cluster."""
    output = run("replay", str(EVENTS[0].parent / "interruption_spot_warning.json")).output
    assert "is played by i-" in output
    assert "DeleteClaim" in output
    assert "EC2 will reclaim the spot instance" in output
    assert "changed: deletion timestamp" in output


@pytest.mark.parametrize("name", WRITTEN)
def test_an_event_is_replayed_however_it_is_written(name: str) -> None:
    """By itself, in a queue's record, through SNS, or as the Function URL's call."""
    result = run("replay", str(REAL / f"{name}.json"))
    assert result.exit_code == 0, result.output


def test_a_bare_event_is_replayed_and_says_which_events_it_sends() -> None:
    """What EventBridge delivers can be pasted into a file; the Events are listed as kubectl lists them."""
    output = run("replay", str(REAL / "eventbridge/spot-interruption.json")).output
    assert "at the interruption door" in output
    assert "Warning SpotInterrupted nodeclaim/" in output
    assert "Warning TerminatingOnInterruption node/" in output


def test_a_reservation_that_an_event_names_holds_a_node_of_the_story() -> None:
    """So that it can be seen what becomes of it."""
    output = run("replay", str(REAL / "eventbridge/capacity-block-expiration-warning.json")).output
    assert "cr-0a1b2c3d4e5f60718 is taken to hold the node of" in output
    assert "Warning CapacityBlockExpiring nodeclaim/" in output
    assert "DeleteClaim" in output


def test_an_event_that_needs_nothing_says_why() -> None:
    """Nothing decided is no mystery."""
    output = run("replay", str(REAL / "eventbridge/health-retirement-closed.json")).output
    assert "Ignored:\n  the scheduled change is closed" in output


def _written(tmp_path: Path, document: object) -> str:
    path = tmp_path / "event.json"
    path.write_text(json.dumps(document))
    return str(path)


def test_what_tools_print_of_an_event_is_replayed(tmp_path: Path) -> None:
    """``aws sqs receive-message``, a notification of SNS by itself, and as SNS gives it to a function: whatever is at hand."""
    text = (REAL / "eventbridge/spot-interruption.json").read_text()
    notification = {"Type": "Notification", "TopicArn": "arn:aws:sns:eu-central-1:111122223333:t", "Message": text}
    for document in (
        {"Messages": [{"MessageId": "1", "ReceiptHandle": "A", "Body": text}]},
        notification,
        {"Records": [{"EventSource": "aws:sns", "Sns": notification}]},
    ):
        result = run("replay", _written(tmp_path, document))
        assert "at the interruption door" in result.output, result.exception
        assert "DeleteClaim" in result.output


def test_a_message_that_fails_says_why(tmp_path: Path) -> None:
    """Nothing decided, and delivered again: whoever replays it wants to know what is wrong with it. Exit status 1."""
    event = json.loads((REAL / "eventbridge/spot-interruption.json").read_text())
    del event["detail"]["instance-id"]
    result = run("replay", _written(tmp_path, event))
    assert "Failed, and delivered again:\n  " in result.output
    assert "instance-id" in result.output
    assert result.exit_code == 1


def test_what_a_replay_says_is_set_in_from_its_heading() -> None:
    """Also where it takes two lines; none ends in blanks or exceeds eighty columns."""
    lines = run("replay", str(REAL / "eventbridge/spot-interruption.json")).output.splitlines()
    assert "    spot instance" in lines or "    instance" in lines
    assert all(line == line.rstrip() and len(line) <= 80 for line in lines)


def test_an_empty_event_is_called_empty(tmp_path: Path) -> None:
    """No position of a JSON reader."""
    path = tmp_path / "event.json"
    path.write_bytes(b"\n")
    assert str(run("replay", str(path)).exception) == f"{path}: is empty"


def test_a_queue_of_any_name_is_known_by_what_comes_over_it(tmp_path: Path) -> None:
    """A record of Karpenter's queue, say."""
    event = json.loads((REAL / "lambda/sqs/spot-interruption.json").read_text())
    event["Records"][0]["eventSourceARN"] = "arn:aws:sqs:us-east-1:111122223333:prod"
    path = tmp_path / "event.json"
    path.write_text(json.dumps(event))
    assert "at the interruption door" in run("replay", str(path)).output


@pytest.mark.parametrize("text", ["[]", "{", "null", '{"Records": null}', '{"Records": [7]}', '{"detail-type": 7}'])
def test_a_file_that_wakes_no_door_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    """Naming it."""
    path = tmp_path / "event.json"
    path.write_text(text)
    error = run("replay", str(path)).exception
    assert isinstance(error, ConfigurationError)
    assert str(path) in str(error)
    assert "\n" not in str(error)


def test_a_file_that_is_no_event_is_named(tmp_path: Path) -> None:
    """One clear line."""
    path = tmp_path / "event.json"
    path.write_text('{"hello": "world"}')
    error = run("replay", str(path)).exception
    assert isinstance(error, ConfigurationError)
    assert str(path) in str(error)


def test_a_simulation_as_json_has_timeline_bill_and_leaks() -> None:
    """For programs."""
    result = run("simulate", "slow-drain", "-o", "json")
    document = json.loads(result.output)
    assert result.exit_code == 0
    assert document["leaks"] == []
    assert document["timeline"][0]["word"] == "retires"
    assert sum(item["cost"] for item in document["bill"]) == pytest.approx(document["total"], abs=1e-5)


@pytest.mark.parametrize("output", Output)
def test_two_runs_of_one_seed_print_the_same_bytes(output: Output) -> None:
    """And another seed prints others."""
    first, second, other = (run("simulate", "slow-drain", "-o", output, "--seed", seed).output for seed in "112")
    assert first == second != other


def test_the_commands_are_offered_to_the_command_line() -> None:
    """The product does not import the simulator: it finds it by entry point."""
    assert "simulate" in run("--help").output
    assert simulate.__doc__ is not None


def test_an_event_may_come_from_standard_input() -> None:
    """``-`` is standard input, as for ``joinery plan``."""
    path = EVENTS[0].parent / "interruption_spot_warning.json"
    piped = CliRunner().invoke(app, ["replay", "-"], input=path.read_bytes())
    assert (piped.exit_code, "Decided" in piped.output) == (0, True)


@pytest.mark.parametrize(("columns", "whole_names"), [(80, False), (132, True)])
def test_a_story_fits_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], columns: int, whole_names: bool
) -> None:
    """Timeline, bill and what leaked; a wide terminal has instances by their whole names."""
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    out = render.console()
    assert (out.is_terminal, out.width) == (True, columns)
    scenario = load(find(Path("slow-drain")))
    render.title(out, scenario.spec.title, 7, EPOCH)
    why = "r6a.xlarge on-demand us-east-1b at 0.2268 $/h for 3 search, 1 gateway, 1 storefront"
    render.line(out, Entry(EPOCH, "provisioning", "registers", "default-hpqdg", why, 0.8305))
    render.invoice(out, [Item("i-00000000000000001", "default", "m6a.24xlarge", "us-east-1a", "on-demand", 0.254, 0.0864, still=False)])  # fmt: skip
    render.leaked(out, [])
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in capsys.readouterr().out.splitlines()]
    assert max(map(len, lines)) <= columns
    assert any("i-00000000000000001" in line for line in lines) == whole_names
    assert {"m6a.24xlarge", "us-east-1a", "on-demand"} <= {*" ".join(lines).split()}
