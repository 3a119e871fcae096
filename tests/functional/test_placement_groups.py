"""Nodes in placement groups: launched into them, labelled with where they are."""

from typing import Any

import pytest

from joinery.gateways.ec2.nodeclass.placement import PlacementGroup
from joinery.objects.karpenter.labels import PARTITION, PLACEMENT_GROUP
from joinery.objects.snapshot.offerings import OfferingKey
from simulator import builders
from simulator.world import World
from tests.functional.stand import Stand

RACKS = PlacementGroup("pg-racks", "racks", "partition", 3)


@pytest.fixture
def grouped(world: World) -> Stand:
    """A class whose nodes are in one of three partitions."""
    stand = Stand(world)
    world.cloud.network.groups.append(RACKS)
    pool = builders.node_pool(requirements=["karpenter.k8s.aws/instance-size=xlarge"])
    world.cluster.add(builders.node_class(placementGroupSelector={"name": "racks"}), pool)
    stand.live()
    return stand


def labels_of(stand: Stand, key: str) -> list[str]:
    """What the Nodes say."""
    return sorted(node.metadata.labels.get(key, "") for node in stand.world.cluster.nodes.values())


def test_a_pod_gets_a_node_in_the_partition_that_it_names(grouped: Stand) -> None:
    """The launch names it, and the Node has it as a label."""
    grouped.pods(1, node_selector={PARTITION: "2"})
    grouped.provision()
    assert [request.partition for request in grouped.world.cloud.requests] == ["2"]
    grouped.boot()
    grouped.live()
    assert (labels_of(grouped, PARTITION), labels_of(grouped, PLACEMENT_GROUP)) == (["2"], ["pg-racks"])


def test_a_node_that_may_be_in_any_partition_says_in_which_it_is(grouped: Stand) -> None:
    """EC2 chooses it, and pods wait until the Node has the label (Karpenter for AWS, registrationhooks)."""
    grouped.pods(1)
    grouped.provision()
    assert [request.partition for request in grouped.world.cloud.requests] == [""]
    grouped.boot()
    grouped.live()
    (instance,) = grouped.world.cloud.instances()
    assert instance.partition in RACKS.partition_numbers
    assert labels_of(grouped, PARTITION) == [instance.partition]


def test_pods_are_spread_over_partitions(grouped: Stand) -> None:
    """By the topology spread constraints that zones have as well."""
    spread: dict[str, Any] = {
        "topologyKey": PARTITION, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "store"}},
    }  # fmt: skip
    grouped.pods(3, labels={"app": "store"}, spread=[spread])
    grouped.provision()
    assert sorted(request.partition for request in grouped.world.cloud.requests) == ["1", "2", "3"]
    grouped.boot()
    grouped.live()
    assert labels_of(grouped, PARTITION) == ["1", "2", "3"]


def test_what_one_partition_lacks_is_not_asked_for_there(grouped: Stand) -> None:
    """The claim's other types are; and in other partitions that one as well."""
    lacking: frozenset[OfferingKey] = frozenset()
    for number, (partition, is_asked) in enumerate((("1", True), ("1", False), ("2", True))):
        grouped.world.cluster.add(builders.pod(f"pod-{number}", cpu="3", node_selector={PARTITION: partition}))
        grouped.provision()
        request = grouped.world.cloud.requests[-1]
        cheapest = request.overrides[0].instance_type
        lacking = lacking or frozenset(pool for pool in request.pools if pool.instance_type == cheapest)
        lacking_type = {pool.instance_type for pool in lacking}
        assert (lacking_type <= {override.instance_type for override in request.overrides}) is is_asked
        grouped.world.unavailable.mark(lacking, now=grouped.world.clock.now(), reason="a test")
    assert len(grouped.world.cloud.requests) == 3
