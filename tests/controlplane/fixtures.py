"""Real Kubernetes for tests: fixtures that any test may ask for by name.

Two control planes, each started at most once per xdist worker, when the first test asks for it, and stopped behind the
last one that does, because one that nobody asks anything still takes a tenth of a processor:

- ``api_server``: etcd and kube-apiserver. Objects stay as written. For adapters, CRDs, RBAC.
- ``control_plane``: with kube-scheduler and kube-controller-manager too. For stories.

Tests that use one are put into an xdist group of its name, so that with ``--dist loadgroup`` they share a worker and
hence a control plane. Where a binary is missing a test is skipped, by name; with ``CI`` set it fails instead.
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tools.controlplane.assets import MissingBinaryError, binary
from tools.controlplane.plane import ControlPlane, running

PLANES = {
    "api_server": ("etcd", "kube-apiserver"),
    "control_plane": ("etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager"),
}
PREFIX = "control plane: "
#: How long the scheduler leaves a pod alone, at most, after it did not fit.
BACKOFF_SECONDS = 1
PATIENCE_SECONDS = 120
#: How many tests are still to come for each plane, and what stops those that run.
_AWAITED, _STOPS = pytest.StashKey[Counter[str]](), pytest.StashKey[dict[str, ExitStack]]()


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks for groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of one control plane share a worker."""
    for item in items:
        for plane in PLANES:
            if plane in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.xdist_group(plane))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Count the tests of each plane. Every worker collects all tests, and one worker runs all of a group."""
    session.config.stash[_AWAITED] = Counter(plane for item in session.items for plane in _planes_of(item))
    session.config.stash[_STOPS] = {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Stop a plane that no test will ask for, once the fixtures of this test's module have been torn down too."""
    yield
    awaited = item.config.stash[_AWAITED]
    awaited.subtract(_planes_of(item))
    if nextitem is None or nextitem.path != item.path:
        for plane, stop in item.config.stash[_STOPS].items():
            if not awaited[plane]:
                stop.close()


def _planes_of(item: pytest.Item) -> set[str]:
    """By its groups, because a test may ask for a plane while it runs (``tests/gateways``)."""
    return {mark.args[0] for mark in item.iter_markers("xdist_group")} & PLANES.keys()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A missing binary is said loudly, after everything else, whatever the verbosity."""
    skipped = terminalreporter.stats.get("skipped", [])
    missing = [report for report in skipped if PREFIX in str(report.longrepr)]
    if missing:
        terminalreporter.section("NOT TESTED ON REAL KUBERNETES", red=True, bold=True)
        for report in missing:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            terminalreporter.line(f"{report.nodeid}: {reason.removeprefix('Skipped: ')}", red=True)


def require(*names: str) -> None:
    """Skip the test, or fail it in CI, unless these binaries are here."""
    try:
        for name in names:
            binary(name)
    except MissingBinaryError as error:
        if os.environ.get("CI"):
            pytest.fail(f"{PREFIX}{error}", pytrace=False)
        pytest.skip(f"{PREFIX}{error}")


@pytest.fixture(scope="session")
def api_server(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[ControlPlane]:
    """etcd and kube-apiserver, without anything that changes objects by itself."""
    require(*PLANES["api_server"])
    with ExitStack() as stack:
        pytestconfig.stash[_STOPS]["api_server"] = stack
        folder = tmp_path_factory.mktemp("api-server")
        yield stack.enter_context(running(folder, schedules=False, controls=False))


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[ControlPlane]:
    """A whole control plane: the real scheduler binds pods, and tries again soon; the real controllers count disruption
    budgets.
    """
    require(*PLANES["control_plane"])
    with ExitStack() as stack:
        pytestconfig.stash[_STOPS]["control_plane"] = stack
        folder = tmp_path_factory.mktemp("control-plane")
        yield stack.enter_context(running(folder, backoff_seconds=BACKOFF_SECONDS))


@pytest.fixture(scope="session")
def joinery_api_server(api_server: ControlPlane) -> ControlPlane:
    """``api_server`` with our custom resources and roles applied, as a user would."""
    from tests.controlplane.objects import MANIFEST_FILES, install

    install(api_server, *MANIFEST_FILES)
    return api_server


@pytest.fixture(scope="session")
def joinery_control_plane(control_plane: ControlPlane) -> ControlPlane:
    """``control_plane`` with our custom resources and roles applied."""
    from tests.controlplane.objects import MANIFEST_FILES, install

    install(control_plane, *MANIFEST_FILES)
    return control_plane


@pytest.fixture(scope="session")
def until() -> Callable[[Callable[[], Any]], Any]:
    """Ask a question again until its answer is true, and return the answer: real processes take their time.

    This is no sleep that hopes: it ends with the first true answer, and fails after two minutes without one.
    """

    def ask(question: Callable[[], Any]) -> Any:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not (answer := question()):
            if time.monotonic() > deadline:
                pytest.fail(f"still not true after {PATIENCE_SECONDS} s")
            time.sleep(0.05)
        return answer

    return ask
