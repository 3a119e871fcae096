"""``joinery --version``."""

import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.cli.conftest import Run


def test_the_version_is_that_of_the_installed_package(run: Run) -> None:
    """On standard output, and nothing else is done."""
    outcome = run("--version")
    assert (outcome.status, outcome.out, outcome.err) == (0, f"joinery {version('joinery')}\n", "")


def test_the_version_has_a_command_of_its_own(run: Run) -> None:
    """As ``kubectl version`` and ``docker version``."""
    assert run("version").out == run("--version").out


@pytest.mark.parametrize("command", ["", "plan", "disrupt", "catalog", "doctor", "uninstall", "simulate", "replay"])
def test_help_is_there_by_its_short_name_and_says_what_to_write(run: Run, command: str) -> None:
    """``<list[str]>`` and ``<bool>`` are Python's words for it."""
    outcome = run(*filter(None, (command, "-h")))
    assert outcome.status == 0
    assert "-h, --help" in outcome.out
    assert not re.search(r"<(str|int|float|bool|path|list)", outcome.out)


def test_without_a_word_there_is_help(run: Run) -> None:
    """Line by line on standard output, as ``kubectl`` has it; it was one line of an error."""
    assert run() == run("--help")


def test_shells_complete_commands_options_and_values() -> None:
    """Those that other packages offer, too."""
    joinery = Path(sys.executable).parent / "joinery"

    def completed(words: str) -> list[str]:
        asked = {"_JOINERY_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        return subprocess.run([joinery], capture_output=True, text=True, env=os.environ | asked).stdout.split()

    assert completed("joinery sim") == ["simulate"]
    assert completed("joinery plan --node-") == ["--node-size"]
    assert completed("joinery disrupt -o ") == ["table", "wide", "json", "html", "yaml"]


def test_it_is_a_plugin_of_kubectl() -> None:
    """kubectl runs ``kubectl-joinery`` of the PATH for ``kubectl joinery``, and help says what was typed."""
    plugin = Path(sys.executable).parent / "kubectl-joinery"
    done = subprocess.run([plugin, "plan", "--help"], capture_output=True, text=True, check=True)
    assert "kubectl joinery plan" in done.stdout


def test_it_runs_as_a_module() -> None:
    """Where no script is on the PATH."""
    done = subprocess.run(
        [sys.executable, "-m", "joinery_cli", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"joinery {version('joinery')}\n"
