"""A handful of seeded clusters before the real scheduler,
some that were hard to steer; ``make oracle`` tries hundreds.
"""

from collections.abc import Iterator

import pytest

from tests.controlplane.fixtures import BACKOFF_SECONDS, PLANES, require
from tests.controlplane.objects import MANIFEST_FILES, install
from tests.oracle.arena import Arena
from tests.oracle.trial import REPLANS, WORST, Trial, run
from tools.controlplane.plane import running

SEEDS = (0, 22, 27, 28, 168)


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    """A control plane of its own, whose scheduler tries again soon."""
    require(*PLANES["control_plane"])
    with running(tmp_path_factory.mktemp("oracle") / "plane", backoff_seconds=BACKOFF_SECONDS) as plane:
        install(plane, *MANIFEST_FILES)
        yield Arena(plane)


@pytest.fixture(scope="module")
def trials(arena: Arena) -> list[Trial]:
    """All seeds, planned, bought and bound."""
    return run(arena, SEEDS)


def test_the_real_scheduler_binds_what_was_planned_and_nothing_that_was_given_up(trials: list[Trial]) -> None:
    """Every planned pod runs after at most two more plans; one given up fits on no node at all."""
    for trial in trials:
        assert trial.problems == [], trial.world.seed
        assert not trial.missing or not trial.missing[-1], trial.world.seed
        assert len(trial.plans) <= 1 + REPLANS


def test_what_is_bound_costs_little_more_than_planned(trials: list[Trial]) -> None:
    """The price in the end is the first plan's, or nearly."""
    for trial in trials:
        assert trial.excess <= WORST, trial.world.seed
