"""Drains that take long: what was bought for the pods of a node that goes is kept until they have come."""

import pytest

from simulator import builders
from simulator.world import World
from tests.functional.disrupting import running
from tests.functional.stand import Stand


@pytest.fixture
def stand(world: World) -> Stand:
    """Two nodes with a pod each, which keep apart. What is empty goes at once."""
    stand = Stand(world).with_defaults()
    size = "karpenter.k8s.aws/instance-size=xlarge"
    pool = builders.node_pool(requirements=[size], budgets=[{"nodes": "100%"}], consolidateAfter="0s")
    world.cluster.add(pool)
    running(stand, 2, owner="web")
    stand.wait(7200)
    stand.live()
    return stand


def _minutes(stand: Stand, count: int) -> set[str]:
    """All instances that there were meanwhile. Each door looks every minute."""
    seen = set(stand.alive)
    for _ in range(count):
        stand.provision()
        stand.live()
        stand.boot()
        stand.live()
        stand.consolidate()
        stand.live()
        seen |= set(stand.alive)
        stand.wait(50)
    return seen


def test_what_replaces_a_node_that_a_budget_keeps_is_bought_once(stand: Stand) -> None:
    """Empty, it was given up in every run, and bought again in the next: sixty instances in an hour."""
    stand.world.cluster.add(builders.pdb("web", labels={"app": "web"}, allowed=0))
    stand.world.cluster.delete_node_claim(stand.claims[0])
    assert len(_minutes(stand, 20)) == 3
    assert len(stand.alive) == 3


def test_it_goes_when_nobody_needs_it_any_more(stand: Stand) -> None:
    """The pod ends by itself."""
    stand.world.cluster.add(builders.pdb("web", labels={"app": "web"}, allowed=0))
    going = stand.claims[0]
    stand.world.cluster.delete_node_claim(going)
    _minutes(stand, 3)
    for pod in list(stand.world.cluster.pods.values()):
        if pod.spec.node_name == going.status.node_name:
            stand.world.cluster.api.delete(pod)
    stand.world.cluster.end_grace()
    _minutes(stand, 10)
    assert len(stand.alive) == 1
