"""``joinery --version``."""

from importlib.metadata import version

from tests.cli.conftest import Run


def test_the_version_is_that_of_the_installed_package(run: Run) -> None:
    """On standard output, and nothing else is done."""
    outcome = run("--version")
    assert (outcome.status, outcome.out, outcome.err) == (0, f"joinery {version('joinery')}\n", "")
