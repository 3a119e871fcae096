"""A real browser for tests: a headless Chromium that any test may ask for as ``browser``.

Started at most once per xdist worker; tests that use it share one worker. Where there is no browser such a test is
skipped, by name; with ``CI`` set it fails instead.
"""

import os
from collections.abc import Iterator

import pytest

from tools.browser.driver import Browser, MissingBrowserError, browsing, executable

PREFIX = "browser: "


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks for groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that look at pages share a worker, and hence a browser."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("browser"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A missing browser is said loudly, after everything else, whatever the verbosity."""
    missing = [report for report in terminalreporter.stats.get("skipped", []) if PREFIX in str(report.longrepr)]
    if missing:
        terminalreporter.section("NOT LOOKED AT IN A REAL BROWSER", red=True, bold=True)
        for report in missing:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            terminalreporter.line(f"{report.nodeid}: {reason.removeprefix('Skipped: ')}", red=True)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser with an empty profile."""
    try:
        executable()
    except MissingBrowserError as error:
        if os.environ.get("CI"):
            pytest.fail(f"{PREFIX}{error}", pytrace=False)
        pytest.skip(f"{PREFIX}{error}")
    with browsing(tmp_path_factory.mktemp("browser")) as started:
        yield started
