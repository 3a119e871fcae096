"""Pods that fit nowhere get nodes."""

from typing import Any

import pytest

from joinery.apis.labels import (
    CAPACITY_TYPE,
    LAUNCH_TOKEN,
    NODE_POOL,
    NODE_POOL_HASH,
    ON_DEMAND,
    REPLACEMENT_LAUNCHED,
    SPOT,
    TERMINATION_FINALIZER,
)
from joinery.apis.quantity import amounts
from joinery.controllers.provisioning import LEASE
from joinery.doorbell.gateway import Bell
from joinery.errors import CapacityError, ConfigurationError, ConflictError, RefusedError, UnavailableError
from joinery.state.offerings import OfferingKey
from joinery.state.plans import planned_pods
from simulator import builders
from simulator.world import World
from tests.functional.stand import Stand


def test_a_pending_pod_gets_a_claim_and_an_instance(stand: Stand) -> None:
    """The claim is complete: it can be neither forgotten nor launched twice, and it knows its pods."""
    stand.pods(1)
    outcome = stand.provision()
    claim = stand.claim
    assert (outcome["launched"], outcome["unplaced"]) == (1, 0)
    assert claim.metadata.finalizers == [TERMINATION_FINALIZER]
    assert [owner.kind for owner in claim.metadata.owner_references] == ["NodePool"]
    assert NODE_POOL_HASH in claim.metadata.annotations
    assert planned_pods(claim) == ("default/pod-0",)
    assert claim.is_true("Launched")
    assert claim.status.provider_id.endswith(stand.alive[0])
    assert amounts(claim.status.allocatable)["cpu"] >= 900


def test_pods_that_wait_wake_lifecycle(stand: Stand) -> None:
    """Somebody must meet the node when it comes."""
    stand.pods(1)
    stand.provision()
    assert stand.rung() == {Bell.LIFECYCLE}


def test_without_pending_pods_nothing_happens(stand: Stand) -> None:
    """The schedule rings every minute; most of the time there is nothing to do."""
    stand.provision()
    assert (stand.claims, stand.rung(), stand.world.store.documents) == ([], set(), {})


def test_a_second_bell_buys_nothing_more(stand: Stand) -> None:
    """What is on its way is counted, whether EC2 has given the instance yet or not."""
    stand.pods(3)
    stand.provision()
    before = stand.claims
    stand.provision()
    assert stand.claims == before


def test_identical_nodes_are_one_request(stand: Stand) -> None:
    """Ten nodes of one kind are one call to EC2 with a count of ten."""
    spread = [{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
               "labelSelector": {"matchLabels": {"app": "web"}}}]  # fmt: skip
    anti = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}]}}  # fmt: skip
    stand.pods(4, labels={"app": "web"}, spread=spread, affinity=anti)
    stand.provision()
    assert [request.count for request in stand.world.cloud.requests] == [4]
    assert len({claim.status.provider_id for claim in stand.claims}) == 4


def test_the_same_world_gets_the_same_names() -> None:
    """A decision can be replayed: names come from the moment and the plan."""
    names = []
    for _ in range(2):
        stand = Stand(World(seed=3)).with_defaults()
        stand.pods(5)
        stand.provision()
        names.append([claim.metadata.name for claim in stand.claims])
    assert names[0] == names[1]


def test_a_pod_is_told_where_it_is_expected(stand: Stand) -> None:
    """``kubectl describe pod`` should answer the first question that its owner has."""
    stand.pods(1)
    stand.provision()
    (event,) = [found for found in stand.world.cluster.events if found.reason == "Nominated"]
    assert event.message == f"pod should schedule on nodeclaim/{stand.claim.metadata.name}"


def test_a_pod_that_fits_nowhere_is_told_why(stand: Stand) -> None:
    """A reason, not a silence; and the pods that fit somewhere are served."""
    stand.pods(1)
    stand.world.cluster.add(builders.pod("huge", cpu="5000"))
    outcome = stand.provision()
    (event,) = [found for found in stand.world.cluster.events if found.reason == "FailedScheduling"]
    assert (outcome["launched"], outcome["unplaced"], event.name) == (1, 1, "huge")
    assert "default" in event.message


def test_only_one_decides_at_a_time(stand: Stand) -> None:
    """Two deciders would buy twice for the same pods; the second gives up, and its door rings again."""
    stand.pods(1)
    stand.world.cluster.acquire_lease(LEASE, holder="somebody else", seconds=60)
    with pytest.raises(ConflictError):
        stand.provision()
    assert stand.claims == []


@pytest.mark.parametrize("error", [UnavailableError("throttled"), ConfigurationError("no permission")])
def test_the_lease_is_given_back_whatever_happens(stand: Stand, error: Exception) -> None:
    """The next bell must not wait for the lease to expire."""
    stand.pods(1)
    stand.world.cloud.fail_next("launch", error)
    with pytest.raises(type(error)):
        stand.provision()
    stand.world.cluster.acquire_lease(LEASE, holder="the next", seconds=60)


def test_a_launch_without_an_answer_is_repeated_with_the_same_token(stand: Stand) -> None:
    """EC2 may have accepted it: the token makes the second call return the first one's instance."""
    stand.pods(1)
    stand.world.cloud.fail_next("launch", UnavailableError("timed out"))
    with pytest.raises(UnavailableError):
        stand.provision()
    found = stand.claim.condition("Launched")
    assert found is not None
    assert (found.status, found.reason) == ("Unknown", "LaunchFailed")
    stand.wait(5)
    stand.live()
    assert stand.claim.is_true("Launched")
    assert len(stand.alive) == 1


def test_a_refused_launch_is_tried_again_as_another_one(stand: Stand) -> None:
    """EC2 would repeat its answer for the old token."""
    stand.pods(1)
    stand.world.cloud.fail_next("launch", ConfigurationError("UnauthorizedOperation: no"))
    with pytest.raises(ConfigurationError):
        stand.provision()
    assert stand.claim.metadata.annotations[LAUNCH_TOKEN] == f"{stand.claim.metadata.name}/2"
    stand.live()
    assert stand.claim.is_true("Launched")
    assert len(stand.alive) == 1


def _everything_of(world: World, *capacity_types: str) -> list[OfferingKey]:
    offerings = world.cloud.catalog().offerings
    return [
        OfferingKey(o.instance_type, o.zone, o.capacity_type) for o in offerings if o.capacity_type in capacity_types
    ]


def test_pools_that_ec2_is_out_of_are_left_out_of_the_next_plan(stand: Stand) -> None:
    """The claim is given up, its pools are remembered, and the bell rings: the next run buys on demand."""
    stand.pods(1)
    stand.world.cloud.run_out(*_everything_of(stand.world, SPOT))
    outcome = stand.provision()
    assert outcome["launched"] == 0
    assert "InsufficientCapacityError" in stand.told("NodeClaim")
    assert Bell.PROVISIONING in stand.rung()
    stand.live()
    for _ in range(5):
        if stand.provision()["launched"]:
            break
        stand.live()
    assert stand.claim.metadata.labels[CAPACITY_TYPE] == ON_DEMAND


def test_a_call_that_ec2_refuses_for_want_of_capacity_is_answered_like_one_that_brought_nothing(stand: Stand) -> None:
    """Its pools are remembered, and the next run buys of others."""
    stand.pods(1)
    spot = frozenset(_everything_of(stand.world, SPOT))
    stand.world.cloud.fail_next("launch", CapacityError("creating a fleet: MaxSpotInstanceCountExceeded: no", spot))
    assert stand.provision()["launched"] == 0
    assert "InsufficientCapacityError" in stand.told("NodeClaim")
    assert any("MaxSpotInstanceCountExceeded" in event.message for event in stand.world.recorder.events)
    assert stand.world.unavailable.at(stand.world.clock.now()) == spot
    stand.live()
    assert stand.provision()["launched"] == 1
    assert [claim.metadata.labels[CAPACITY_TYPE] for claim in stand.claims if not claim.is_deleting] == [ON_DEMAND]


def test_what_ec2_can_give_is_taken(stand: Stand) -> None:
    """Two of three instances are two nodes; the third claim is given up and planned anew."""
    anti = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}]}}  # fmt: skip
    stand.world.cloud.run_out(*_everything_of(stand.world, SPOT, ON_DEMAND))
    stand.world.cloud.run_out(OfferingKey("m6a.xlarge", "us-east-1a", SPOT), left=2)
    stand.pods(
        3, labels={"app": "web"}, affinity=anti, node_selector={"node.kubernetes.io/instance-type": "m6a.xlarge"}
    )
    assert stand.provision()["launched"] == 2
    stand.live()
    assert len(stand.claims) == len(stand.alive) == 2


def _settings(cap: str) -> dict[str, Any]:
    return {cap: 1 if cap == "max_launches" else 0.05}


@pytest.mark.parametrize("cap", ["max_launches", "max_hourly"])
def test_a_plan_beyond_a_cap_is_refused_as_a_whole(world: World, cap: str) -> None:
    """A runaway Deployment should meet a person before it meets the bill; the plan is kept for that person."""
    stand = Stand(world, **_settings(cap)).with_defaults()
    stand.pods(40)
    with pytest.raises(RefusedError, match=cap):
        stand.provision()
    assert (stand.claims, stand.alive) == ([], [])
    assert len(world.store.documents) == 1


def test_observing_decides_records_and_tells_and_changes_nothing(stand: Stand) -> None:
    """A user tries Joinery beside what they have."""
    stand.pods(3)
    outcome = stand.observing().provision()
    assert (outcome["launches"], outcome["launched"]) == (1, 0)
    assert (stand.claims, stand.alive, stand.rung()) == ([], [], set())
    assert stand.told("Pod") == {"Observed"}
    assert len(stand.world.store.documents) == 1
    assert stand.world.cluster.leases == {}


def test_a_decision_is_recorded_as_a_list_that_can_be_planned_again(stand: Stand) -> None:
    """The recorder's file is the planner's input."""
    stand.pods(3)
    stand.provision()
    (key,) = stand.world.store.documents
    document = stand.world.store.read(key)
    kinds = [item["kind"] for item in document["items"]]
    assert (document["kind"], kinds.count("Pod"), kinds.count("NodePool"), kinds.count("EC2NodeClass")) == (
        "List",
        3,
        1,
        1,
    )
    assert len(document["joinery"]["result"]["launches"]) == 1


def test_a_bad_pool_does_not_stop_the_others(stand: Stand) -> None:
    """It is reported in its status; its neighbour serves the pods."""
    broken = builders.node_pool("broken").to_wire()
    broken["spec"]["weight"] = 1000
    stand.world.cluster.add_document(broken)
    stand.pods(1)
    stand.live()
    assert stand.provision()["launched"] == 1
    told = {each["type"]: each for each in stand.world.cluster.document("NodePool", "broken")["status"]["conditions"]}
    assert (told["Ready"]["status"], told["ValidationSucceeded"]["status"]) == ("False", "False")
    assert told["ValidationSucceeded"]["message"] == "spec.weight: must be at most 100, is 1000"


def test_a_pool_that_only_we_find_wrong_does_not_stop_the_others(stand: Stand) -> None:
    """The API server's schema takes it; its status names the field, and its neighbour serves the pods."""
    stand.world.cluster.add(builders.node_pool("heavy", weight=100, requirements=["team=-red-"]))
    stand.pods(1)
    assert stand.provision()["launched"] == 1
    assert stand.claim.metadata.labels[NODE_POOL] == "default"
    stand.live()
    found = {each.type: each for each in stand.world.cluster.node_pools["heavy"].status.conditions}
    assert (found["Ready"].status, found["ValidationSucceeded"].status) == ("False", "False")
    assert (
        found["ValidationSucceeded"].message
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


def test_a_class_that_asks_for_what_is_not_supported_is_not_used(stand: Stand) -> None:
    """An instance outside of its placement group is not what was asked for: the status says so, and so does the pod's Event."""
    stand.world.cluster.add(builders.node_class(placementGroupSelector={"name": "rack"}))
    stand.pods(1)
    assert stand.provision()["launched"] == 0
    assert (
        "not supported yet: EC2NodeClass default: spec.placementGroupSelector" in stand.world.cluster.events[-1].message
    )
    stand.live()
    pool = {each.type: each for each in stand.world.cluster.node_pools["default"].status.conditions}
    assert (pool["NodeClassReady"].status, pool["NodeClassReady"].reason) == ("False", "UnsupportedPlacementGroup")


def test_the_first_run_of_an_installation_reads_the_catalogue_itself(stand: Stand) -> None:
    """Pods should not wait for a schedule."""
    stand.world.store.stored = None
    stand.pods(1)
    assert stand.provision()["launched"] == 1
    assert stand.world.store.catalog().offerings


def test_pods_of_an_interrupted_node_are_replaced_and_its_claim_is_told(stand: Stand) -> None:
    """The mark is what lets the drain start before its fifteen seconds are over."""
    stand.pods(3)
    stand.settle()
    stand.receive("interruption_spot_warning", stand.alive[0])
    assert stand.provision()["launched"] == 1
    (old,) = [claim for claim in stand.claims if claim.is_deleting]
    assert REPLACEMENT_LAUNCHED in old.metadata.annotations
    assert len(stand.alive) == 2


def test_a_replacement_that_ec2_refuses_marks_nothing(stand: Stand) -> None:
    """A plan is not a node: the old one keeps its pods for its fifteen seconds."""
    stand.pods(3)
    stand.settle()
    stand.receive("interruption_spot_warning", stand.alive[0])
    stand.world.cloud.run_out(*_everything_of(stand.world, SPOT, ON_DEMAND))
    assert stand.provision()["launched"] == 0
    (old,) = [claim for claim in stand.claims if claim.metadata.deletion_timestamp and claim.status.node_name]
    assert REPLACEMENT_LAUNCHED not in old.metadata.annotations
