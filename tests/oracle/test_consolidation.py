"""A few seeded clusters consolidated by the doors before the real scheduler; ``make oracle`` tries a hundred."""

from collections.abc import Iterator

import pytest

from tests.controlplane.fixtures import PLANES, require
from tests.controlplane.objects import MANIFEST_FILES, install
from tests.oracle.__main__ import BACKOFF_SECONDS
from tests.oracle.consolidating import Consolidated, run
from tools.controlplane.plane import ControlPlane, running

#: Small ones: nodes that are replaced, and nodes whose pods compete for the room that is left.
SEEDS = (4, 7)

pytestmark = pytest.mark.xdist_group("control_plane")


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane of its own, whose scheduler tries again soon."""
    require(*PLANES["control_plane"])
    with running(tmp_path_factory.mktemp("consolidation") / "plane", backoff_seconds=BACKOFF_SECONDS) as running_plane:
        install(running_plane, *MANIFEST_FILES)
        yield running_plane


@pytest.fixture(scope="module")
def results(plane: ControlPlane) -> list[Consolidated]:
    """All seeds, grown, shrunk, and consolidated until nothing is found any more."""
    return [run(plane, seed) for seed in SEEDS]


def test_every_pod_runs_at_the_price_that_was_planned(results: list[Consolidated]) -> None:
    """Wherever the scheduler put the pods that were evicted."""
    for result in results:
        assert result.failures == [], result.cluster.seed
        assert result.after < result.before, result.cluster.seed
