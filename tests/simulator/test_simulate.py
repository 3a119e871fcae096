"""``joinery simulate``, as a person runs it."""

import io
import json
import re
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from joinery_cli.main import app
from simulator.builders import EPOCH
from simulator.story import render
from simulator.story.bill import Item
from simulator.story.commands import Output, simulate
from simulator.story.scenario import Scenario, find, load
from simulator.story.show import as_json, as_text
from simulator.story.timeline import Entry


def run(*arguments: str) -> Result:
    """The command line, in this process."""
    return CliRunner().invoke(app, list(arguments))


@cache
def slow_drain(output: Output, seed: int) -> Result:
    """The scenario as it was printed the first time."""
    return run("simulate", "slow-drain", "-o", output, "--seed", str(seed))


def test_a_simulation_as_json_has_timeline_bill_and_leaks() -> None:
    """For programs."""
    result = slow_drain(Output.JSON, 1)
    document = json.loads(result.output)
    assert result.exit_code == 0
    assert document["leaks"] == []
    assert document["timeline"][0]["word"] == "retires"
    assert sum(item["cost"] for item in document["bill"]) == pytest.approx(document["total"], abs=1e-5)


@pytest.mark.parametrize("output", Output)
def test_two_runs_of_one_seed_print_the_same_bytes(output: Output) -> None:
    """As text and as JSON."""
    assert run("simulate", "slow-drain", "-o", output, "--seed", "1").output == slow_drain(output, 1).output


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


_SHORT = """
kind: Scenario
metadata: {name: short}
spec: {title: Nothing happens, seed: 1, length: 1m, objects: []}
"""


@pytest.mark.parametrize("shows", [as_json, as_text])
def test_a_terminal_is_told_how_far_it_is_whatever_becomes_of_the_output(
    shows: Callable[[Scenario, int | None], tuple[str, ...]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A story of a day took minutes in silence where its output went into a file; the file gets nothing of the bar."""
    (path := tmp_path / "short.yaml").write_text(_SHORT)
    monkeypatch.setenv("TERM", "xterm")
    with redirect_stderr(_Terminal()) as said, redirect_stdout(io.StringIO()) as printed:
        shows(load(path), None)
    assert "09:01:00" in said.getvalue()
    assert "━" not in printed.getvalue()
    with redirect_stderr(io.StringIO()) as unsaid, redirect_stdout(io.StringIO()):
        shows(load(path), None)
    assert unsaid.getvalue() == ""


def test_its_decisions_are_kept_as_the_bucket_has_them(tmp_path: Path) -> None:
    """History reads them, and a second run leaves nothing of the first."""
    lines = []
    for _ in range(2):
        assert run("simulate", "slow-drain", "--seed", "1", "--records", str(tmp_path)).exit_code == 0
        lines.append(len(list(tmp_path.glob("decisions/*/*/*/*.json.gz"))))
    assert lines[0] == lines[1] > 0
    assert run("history", str(tmp_path), "-o", "json").exit_code == 0


def test_another_seed_is_another_story() -> None:
    """Whose timeline differs, and not its seed alone."""
    first, other = (json.loads(slow_drain(Output.JSON, seed).output) for seed in (1, 2))
    assert first["timeline"] != other["timeline"]


def test_the_commands_are_offered_to_the_command_line() -> None:
    """The product does not import the simulator: it finds its commands by entry point."""
    listed = run("--help").output
    assert "simulate" in listed
    assert "replay" in listed
    assert simulate.__doc__ is not None


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
    item = Item("i-00000000000000001", "default", "m6a.24xlarge", "us-east-1a", "on-demand", 0.254, 0.0864, still=False)
    render.invoice(out, [item])
    render.leaked(out, [])
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in capsys.readouterr().out.splitlines()]
    assert max(map(len, lines)) <= columns
    assert any("i-00000000000000001" in line for line in lines) == whole_names
    assert {"m6a.24xlarge", "us-east-1a", "on-demand"} <= {*" ".join(lines).split()}


def test_a_cause_is_not_counted_among_what_leaked(capsys: pytest.CaptureFixture[str]) -> None:
    """One pod without a node is one leak, whatever may be the reason."""
    render.leaked(render.console(), ["pod default/web has no node"], ["there is no NodePool"])
    assert capsys.readouterr().out.splitlines() == [
        "",
        "What leaked: 1",
        "  pod default/web has no node",
        "Its cause may be:",
        "  there is no NodePool",
    ]
