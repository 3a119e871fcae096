"""The stand-in, once for all tests of this folder. `make deploy-test` runs them; `make test` does not."""

import signal
from collections.abc import Iterator

import pytest

from tests.controlplane.fixtures import PLANES, require
from tests.deploy.member_story import GREEN, HOME, MemberStory
from tests.deploy.member_story import tell as member_story_of
from tests.deploy.story import Story, tell
from tools.standin.world import standing

CLUSTER = "blue"


@pytest.fixture(scope="session")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """What happened, from an empty account to an empty account."""
    require(*PLANES["control_plane"])
    # Whoever ends this process by SIGTERM means all of it: as on Ctrl-C, everything that was started is ended.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with standing(tmp_path_factory.mktemp("standin") / "run", CLUSTER) as standin:
        yield tell(standin)


@pytest.fixture(scope="session")
def member_story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemberStory]:
    """What happened to a home and its member."""
    require(*PLANES["control_plane"])
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with standing(tmp_path_factory.mktemp("standin") / "run", GREEN, HOME) as standin:
        yield member_story_of(standin)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How long each part took, in seconds."""
    reports = [one for those in terminalreporter.stats.values() for one in those if hasattr(one, "user_properties")]
    figures = dict(pair for report in reports for pair in report.user_properties if pair[0].startswith("seconds: "))
    if figures:
        terminalreporter.section("deployment, in seconds")
        for name, seconds in figures.items():
            terminalreporter.line(f"{seconds:7.1f} {name.removeprefix('seconds: ')}")
