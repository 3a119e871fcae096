"""A NodePool or node class that cannot be used says so in its status, and stops nothing else."""

from joinery.objects.karpenter.labels import NODE_POOL
from simulator import builders
from tests.functional.stand import Stand


def test_a_bad_pool_does_not_stop_the_others(stand: Stand) -> None:
    """It is reported in its status; its neighbour serves the pods."""
    broken = builders.node_pool("broken").to_wire()
    broken["spec"]["weight"] = 1000
    stand.world.cluster.add_document(broken)
    stand.pods(1)
    stand.live()
    assert stand.provision()["launched"] == 1
    conditions = {
        condition["type"]: condition
        for condition in stand.world.cluster.document("NodePool", "broken")["status"]["conditions"]
    }
    assert (conditions["Ready"]["status"], conditions["ValidationSucceeded"]["status"]) == ("False", "False")
    assert conditions["ValidationSucceeded"]["message"] == "spec.weight: must be at most 100, is 1000"


def test_a_pool_that_only_we_find_wrong_does_not_stop_the_others(stand: Stand) -> None:
    """The API server's schema takes it; its status names the field, and its neighbour serves the pods."""
    stand.world.cluster.add(builders.node_pool("heavy", weight=100, requirements=["team=-red-"]))
    stand.pods(1)
    assert stand.provision()["launched"] == 1
    assert stand.claim.metadata.labels[NODE_POOL] == "default"
    stand.live()
    conditions = {condition.type: condition for condition in stand.world.cluster.node_pools["heavy"].status.conditions}
    assert (conditions["Ready"].status, conditions["ValidationSucceeded"].status) == ("False", "False")
    assert (
        conditions["ValidationSucceeded"].message
        == "spec.template.spec.requirements[0].values[0]: '-red-' is not a label value"
    )


def test_a_pool_whose_fault_is_mended_serves_again(stand: Stand) -> None:
    """Nobody has to touch its status."""
    stand.world.cluster.add(builders.node_pool("heavy", weight=100, requirements=["team=-red-"]))
    stand.live()
    stand.world.cluster.add(builders.node_pool("heavy", weight=100, requirements=["team=red"], ready=False))
    stand.live()
    stand.pods(1)
    stand.provision()
    assert stand.claim.metadata.labels[NODE_POOL] == "heavy"


def test_a_class_whose_placement_group_is_not_there_is_not_used(stand: Stand) -> None:
    """An instance outside of it is not what was asked for: the status says so."""
    stand.world.cluster.add(builders.node_class(placementGroupSelector={"name": "rack"}))
    stand.live()
    stand.pods(1)
    assert stand.provision()["launched"] == 0
    conditions = {
        condition.type: condition for condition in stand.world.cluster.node_pools["default"].status.conditions
    }
    assert (conditions["NodeClassReady"].status, conditions["NodeClassReady"].reason) == (
        "False",
        "PlacementGroupNotFound",
    )
