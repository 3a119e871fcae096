"""``joinery --version``."""

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from tests.cli.conftest import Run


def test_the_version_is_that_of_the_installed_package(run: Run) -> None:
    """On standard output, and nothing else is done."""
    outcome = run("--version")
    assert (outcome.status, outcome.out, outcome.err) == (0, f"joinery {version('joinery')}\n", "")


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
