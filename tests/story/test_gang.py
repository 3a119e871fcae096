"""A gang's life: nothing for a part of it, one zone for all of it, and a place beside the others for one made anew."""

from collections.abc import Callable

import pytest

from joinery.objects.karpenter.labels import ZONE
from simulator.story.leaks import leaks
from tests.story.conftest import PlayedScenario


@pytest.fixture(scope="module")
def job(played: Callable[..., PlayedScenario]) -> PlayedScenario:
    """The scenario, played once."""
    return played("gang")


def test_three_of_four_workers_are_nothing_to_buy_for(job: PlayedScenario) -> None:
    """Nothing is launched, bound or said before the fourth is there."""
    fourth = job.index("workloads", "create", "1 pod")
    assert fourth < job.index("provisioning", "launches")
    assert fourth < job.index("scheduler", "waits", "4 pods")


def test_all_four_are_bound_at_once(job: PlayedScenario) -> None:
    """The scheduler waits for a place for all of them, and binds them in one go."""
    first = [one.at for one in job.lines("scheduler", "binds")][:4]
    assert len(set(first)) == 1
    assert job.lines("kubelet", "all run")[0].subject == "4 pods"


def test_the_worker_that_ec2_takes_back_comes_back_beside_the_others(job: PlayedScenario) -> None:
    """In their zone, of another type if need be, within the warning's two minutes."""
    (warned,) = [one.at for one in job.lines("ec2", "warns")]
    again = job.lines("kubelet", "all run")[-1]
    assert again.subject == "4 pods"
    assert (again.at - warned).total_seconds() < 120
    nodes = job.simulation.world.cluster.nodes.values()
    assert (len(nodes), len({node.metadata.labels[ZONE] for node in nodes})) == (4, 1)
    assert leaks(job.simulation) == ()
