"""How tests are dealt out to pytest-xdist's workers: file by file, those that take longest first.

A file stays together, so that what its tests share (a story that was told, a catalogue that was read) is made once,
not once a worker. Tests of an ``xdist_group`` stay together too, wherever they are. What takes long starts early, so
that no worker waits for another in the end. How long that is, the last run has told: pytest's cache remembers it. In a
fresh clone nothing is remembered, and ``LONG`` says which those are.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sized

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadGroupScheduling
from xdist.workermanage import WorkerController

_REMEMBERED = "joinery/seconds-a-test"
#: What takes longest, in this order: groups and files for which a worker is busy for ten seconds and more.
LONG = (
    "api_server",
    "control_plane",
    "tests/fire/test_failing_calls.py",
    "build",
    "tests/functional/test_storm.py",
    "tests/story/test_trouble.py",
    "installer",
    "tests/unit/decisions/verification/test_mutations.py",
    "tests/unit/decisions/scheduling/test_tangles.py",
    "tests/unit/decisions/scheduling/test_optimise.py",
    "tests/simulator/test_top.py",
    "tests/fire/test_interleaved_doors.py",
    "tests/functional/test_canary.py",
    "tests/oracle/test_oracle.py",
    "tests/unit/decisions/scheduling/test_warm.py",
    "golden",
    "tests/gateways/test_node_class_resolution.py",
    "tests/unit/decisions/disruption/test_rules.py",
    "rights",
    "tests/cli/output/test_disruptions_page.py",
    "tests/story/test_story.py",
    "tests/unit/decisions/scheduling/test_device_effort.py",
    "tests/unit/decisions/disruption/test_no_churn.py",
    "tests/simulator/test_replay.py",
    "tests/gateways/test_ec2_adapter.py",
    "tests/cli/test_live.py",
    "tests/cli/input/test_record_secrets.py",
    "tests/tools/consolidation/test_making.py",
    "tests/unit/decisions/optimizer/test_many_items.py",
    "tests/story/test_headroom.py",
    "tests/unit/decisions/optimizer/test_columns.py",
    "tests/unit/decisions/optimizer/test_rounding.py",
    "tests/cli/input/test_hostile_fields.py",
    "tests/cli/input/test_hostile.py",
    "tests/gateways/test_cluster_adapter.py",
    "tests/gateways/test_cluster_pods.py",
    "tests/gateways/test_observing.py",
    "tests/unit/decisions/scheduling/test_hostile_pods.py",
    "browser",
    "served",
    "tests/tree/test_page_commands.py",
    "tests/unit/decisions/scheduling/test_deferral.py",
    "tests/gateways/test_cluster_mirrors.py",
)


def scope_of(nodeid: str) -> str:
    """The group of a test, or else its file. xdist writes ``@group`` behind the name of a test that has one."""
    _, at, group = nodeid.rpartition("@")
    # The last @ may be part of a parameter.
    return group if at and "]" not in group else nodeid.partition("::")[0]


def longest(waiting: Mapping[str, Sized], seconds: Mapping[str, float]) -> str:
    """The scope to begin next. ``waiting``: tests by scope. ``seconds``: what a test of a scope took on average.

    Of a scope that never ran nothing is known, so it may be the longest; those of ``LONG`` come first among them.
    """
    ranks = {scope: -rank for rank, scope in enumerate(LONG)}

    def expected(scope: str) -> tuple[float, int]:
        return seconds.get(scope, float("inf")) * len(waiting[scope]), ranks.get(scope, -len(LONG))

    return max(waiting, key=expected)


class LongestFirst(LoadGroupScheduling):  # type: ignore[misc] # xdist is not typed
    """xdist's scheduler of groups, with other scopes and another order."""

    def __init__(self, config: pytest.Config, log: Producer | None, seconds: dict[str, float]) -> None:
        super().__init__(config, log)
        self._seconds = seconds

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        self.workqueue.move_to_end(longest(self.workqueue, self._seconds), last=False)
        super()._assign_work_unit(node)


class Distribution:
    """The plugin: makes the scheduler, and remembers for the next run how long this one took."""

    def __init__(self, config: pytest.Config) -> None:
        self._cache = config.cache
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._tests: Counter[str] = Counter()

    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Producer) -> LongestFirst:
        """Asked once, in the process that has the workers."""
        return LongestFirst(config, log, self._cache.get(_REMEMBERED, {}) if self._cache else {})

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add what a test took, with its fixtures."""
        scope = scope_of(report.nodeid)
        self._seconds[scope] += report.duration
        self._tests[scope] += report.when == "setup"

    def pytest_sessionfinish(self) -> None:
        """Scopes of which no test ran keep what is known of them."""
        if self._cache is not None:
            told = {scope: round(self._seconds[scope] / tests, 4) for scope, tests in self._tests.items() if tests}
            self._cache.set(_REMEMBERED, self._cache.get(_REMEMBERED, {}) | told)


def pytest_addoption(parser: pytest.Parser) -> None:
    """For runs of few tests that take minutes each, and share little."""
    parser.addoption("--one-by-one", action="store_true", help="deal out test by test, in pytest-xdist's own way")


def pytest_configure(config: pytest.Config) -> None:
    """Only where there are workers, and not in a worker."""
    is_dealing = config.getoption("dist", "no") == "loadgroup" and not hasattr(config, "workerinput")
    if is_dealing and not config.getoption("one_by_one"):
        config.pluginmanager.register(Distribution(config))
