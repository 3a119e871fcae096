"""What an instance type is said to have, its node has once it is there: nothing is bought for the same pod twice."""

from typing import Any

import pytest

from joinery.objects.karpenter.labels import DEDICATED, TENANCY
from joinery.objects.snapshot.offerings import EFA
from simulator import builders
from simulator.cloud.market import market
from simulator.world import World
from tests.functional.stand import Stand

RUNS = 4


@pytest.fixture
def stand() -> Stand:
    """A NodePool of whatever the pods need, among it machines with Elastic Fabric Adapters."""
    found = Stand(World(catalog=market(families=("m6a", "c6in"))))
    found.world.cluster.add(builders.node_class(), builders.node_pool())
    found.live()
    return found


def _buy(stand: Stand, **pod: Any) -> None:
    """One pod, and run after run of all doors."""
    stand.pods(1, **pod)
    for _ in range(RUNS):
        stand.settle()
        stand.wait(60)


@pytest.mark.parametrize(
    "pod",
    [
        {"node_selector": {TENANCY: DEDICATED}},
        {"node_selector": {TENANCY: "default"}},
        {"requests": {EFA: "1"}},
        {"requests": {EFA: "2"}},
    ],
)
def test_one_node_serves_the_pod_that_it_was_bought_for(stand: Stand, pod: dict[str, Any]) -> None:
    """By its labels and resources, as the node itself has them."""
    _buy(stand, **pod)
    (node,) = stand.world.cluster.nodes.values()
    assert len(stand.alive) == 1
    assert stand.world.cluster.pods["default/pod-0"].spec.node_name == node.metadata.name
    assert pod.get("node_selector", {}).items() <= node.metadata.labels.items()
    assert int(node.status.allocatable.get(EFA, "0")) >= int(pod.get("requests", {}).get(EFA, "0"))


def test_dedicated_hardware_is_asked_for_only_where_it_must_be(stand: Stand) -> None:
    """It is dearer; whoever takes either gets shared hardware, and its label."""
    _buy(stand)
    (request,) = stand.world.cloud.requests
    assert (request.tenancy, stand.claim.metadata.labels[TENANCY]) == ("default", "default")


def test_adapters_are_attached_only_for_pods_that_ask_for_them(stand: Stand) -> None:
    """An instance without them does not promise any, so the next pod that wants some gets another."""
    _buy(stand, node_selector={"node.kubernetes.io/instance-type": "c6in.32xlarge"})
    assert EFA not in stand.claim.status.capacity
    stand.world.cluster.add(builders.pod("fast", requests={EFA: "1"}))
    stand.settle()
    (first, second) = stand.world.cloud.requests
    assert {found.efa for found in first.overrides} == {0}
    assert {found.efa for found in second.overrides} <= {1, 2}
