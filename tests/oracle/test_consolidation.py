"""A few seeded clusters consolidated by the doors before the real scheduler; ``make oracle`` tries a hundred."""

import pytest

from tests.oracle.consolidating import Consolidated, run
from tools.controlplane.plane import ControlPlane

#: Small ones: nodes that are replaced, and nodes whose pods compete for the room that is left.
SEEDS = (4, 7)


@pytest.fixture(scope="module")
def results(joinery_control_plane: ControlPlane) -> list[Consolidated]:
    """All seeds, grown, shrunk, and consolidated until nothing is found any more."""
    return [run(joinery_control_plane, seed) for seed in SEEDS]


def test_every_pod_runs_at_the_price_that_was_planned(results: list[Consolidated]) -> None:
    """Wherever the scheduler put the pods that were evicted."""
    for result in results:
        assert result.failures == [], result.cluster.seed
        assert result.after < result.before, result.cluster.seed
