"""``joinery simulate`` and ``joinery replay``, as a person runs them."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from joinery.cli.main import app
from joinery.errors import ConfigurationError
from simulator.commands import Output, simulate

EVENTS = sorted((Path(__file__).parents[2] / "events").glob("*.json"))


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
