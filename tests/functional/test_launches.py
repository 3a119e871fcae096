"""What EC2 answers to a launch, and what becomes of the claims that were to be launched."""

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest

from joinery.controllers.acting.lease import LEASE
from joinery.controllers.lifecycle import LifecycleController
from joinery.gateways.doorbell.gateway import Bell
from joinery.gateways.ec2.gateway import Cloud, LaunchFailure, LaunchRequest, LaunchResult
from joinery.gateways.kubernetes.gateway import Cluster
from joinery.objects.errors import CapacityError, ConfigurationError, ConflictError, UnavailableError
from joinery.objects.karpenter.labels import CAPACITY_TYPE, LAUNCH_TOKEN, ON_DEMAND, REPLACEMENT_LAUNCHED, SPOT
from joinery.objects.karpenter.nodeclaim import NodeClaimStatus
from joinery.objects.snapshot.offerings import ALL_SPOT, OfferingKey
from simulator.world import World
from tests.functional.disrupting import running
from tests.functional.fuse import Fuse
from tests.functional.overtaken import LostAnswer, Overtaken
from tests.functional.stand import APART, Stand


def _everything_of(world: World, *capacity_types: str) -> list[OfferingKey]:
    offerings = world.cloud.catalog().offerings
    return [
        OfferingKey(o.instance_type, o.zone, o.capacity_type) for o in offerings if o.capacity_type in capacity_types
    ]


def test_identical_nodes_are_one_request(stand: Stand) -> None:
    """Four nodes of one kind are one call to EC2 with a count of four."""
    stand.pods(4, labels={"app": "web"}, affinity=APART)
    stand.provision()
    assert [request.count for request in stand.world.cloud.requests] == [4]
    assert len({claim.status.provider_id for claim in stand.claims}) == 4


def test_without_the_role_for_spot_everything_is_bought_on_demand(stand: Stand) -> None:
    """One refusal is enough: the next plan does not try the types that the first call did not name."""
    stand.world.unavailable.mark([ALL_SPOT], now=stand.world.clock.now(), reason="no role")
    stand.pods(1)
    stand.provision()
    assert [claim.metadata.labels[CAPACITY_TYPE] for claim in stand.claims] == [ON_DEMAND]


def test_a_zone_whose_only_subnet_is_full_is_not_bought_in(stand: Stand) -> None:
    """Whichever run found it full; and the call is told, for zones that have another subnet."""
    (subnet,) = (id for id, zone in stand.world.cluster.node_classes["default"].subnets if zone == "us-east-1a")
    full = OfferingKey("", "us-east-1a", "", scope=subnet)
    stand.world.unavailable.mark([full], now=stand.world.clock.now(), reason="InsufficientFreeAddressesInSubnet")
    stand.pods(3, labels={"app": "web"}, affinity=APART)
    stand.provision()
    (request,) = stand.world.cloud.requests
    assert {override.zone for override in request.overrides} == {"us-east-1b", "us-east-1c"}
    assert request.full_subnets == {subnet}


def test_a_launch_from_a_pool_ends_what_was_known_of_it(stand: Stand) -> None:
    """The next time it is out, it is left alone for three minutes again."""
    now = stand.world.clock.now()
    pools = _everything_of(stand.world, SPOT)
    stand.world.unavailable.mark(pools, now=now - timedelta(minutes=4), reason="out")
    stand.pods(1)
    stand.provision()
    (instance,) = stand.world.cloud.instances()
    stand.world.unavailable.mark(pools, now=now, reason="out")
    still_out = stand.world.unavailable.at(now + timedelta(minutes=4))
    assert (instance.offering in still_out, still_out >= set(pools) - {instance.offering}) == (False, True)


class _Refusing:
    """The cloud, which makes fleets without instances: EC2 names a reason that is no want of capacity."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def __getattr__(self, method: str) -> Any:
        return getattr(self._cloud, method)

    def launch(self, request: LaunchRequest) -> LaunchResult:
        return LaunchResult((), (LaunchFailure(min(request.pools), "RequestLimitExceeded", "slow down", False),))


def test_a_claim_that_is_tried_again_wakes_nobody_to_plan(stand: Stand) -> None:
    """It is launched at lifecycle's next look. Woken for it, provisioning would launch it again, a second later,
    and then be woken for that.
    """
    refusing = Stand(stand.world, gateways=replace(stand.gateways, cloud=cast("Cloud", _Refusing(stand.world.cloud))))
    refusing.pods(1)
    refusing.provision()
    assert stand.rung() == {Bell.LIFECYCLE}
    for _ in range(3):
        stand.wait(5)
        refusing.live()
    assert stand.rung() == {Bell.LIFECYCLE}
    condition = stand.claim.condition("Launched")
    assert condition is not None
    assert (condition.reason, condition.message) == ("LaunchFailed", "RequestLimitExceeded: slow down")


def test_a_launch_without_an_answer_is_repeated_with_the_same_token(stand: Stand) -> None:
    """EC2 may have accepted it: the token makes the second call return the first one's instance."""
    stand.pods(1)
    stand.world.cloud.fail_next("launch", UnavailableError("timed out"))
    with pytest.raises(UnavailableError):
        stand.provision()
    condition = stand.claim.condition("Launched")
    assert condition is not None
    assert (condition.status, condition.reason) == ("Unknown", "LaunchFailed")
    stand.wait(5)
    stand.live()
    assert stand.claim.is_true("Launched")
    assert len(stand.alive) == 1


def test_a_claim_that_may_have_been_written_is_launched_with_its_siblings(stand: Stand) -> None:
    """Launched without it, they would be launched once more with it: the token of a call depends on all its claims."""
    stand.pods(3, labels={"app": "web"}, affinity=APART)
    lost = LostAnswer(stand.gateways.cluster, "create_node_claim", UnavailableError("timed out"))
    with pytest.raises(UnavailableError):
        Stand(stand.world, gateways=replace(stand.gateways, cluster=cast("Cluster", lost))).provision()
    assert stand.alive == []
    stand.provision()
    assert [claim.is_true("Launched") for claim in stand.claims] == [True] * 3
    assert len(stand.alive) == 3


def test_a_claim_that_is_deleted_before_its_instance_is_written_costs_its_siblings_nothing(stand: Stand) -> None:
    """Provisioning was killed right after EC2's answer, and somebody deletes one of the two claims."""
    stand.pods(2, labels={"app": "web"}, affinity=APART)
    fuse = Fuse(after=5)
    assert not fuse.outlives(Stand(stand.world, gateways=fuse.protect(stand.gateways)).provision)
    assert fuse.writes[-1] == "cloud.launch"
    launched = set(stand.alive)
    stand.world.cluster.delete_node_claim(stand.claims[0])
    for _ in range(12):
        stand.live()
        stand.wait(10)
    assert len(stand.world.cloud.requests) == 1
    assert stand.claim.is_true("Launched")
    assert set(stand.alive) < launched


def test_nothing_is_bought_for_a_claim_that_is_deleted_before_its_launch(stand: Stand) -> None:
    """Its sibling is launched alone."""
    stand.pods(2, labels={"app": "web"}, affinity=APART)
    stand.world.cloud.fail_next("launch", UnavailableError("timed out"))
    with suppress(UnavailableError):
        stand.provision()
    stand.world.cluster.delete_node_claim(stand.claims[0])
    stand.live()
    stand.live()
    assert len(stand.alive) == 1
    assert stand.claim.is_true("Launched")


def test_a_refused_launch_is_tried_again_with_the_same_token(stand: Stand) -> None:
    """EC2 remembers no refusal, and somebody else may be making the same call: two tokens would launch twice."""
    stand.pods(1)
    stand.world.cloud.fail_next("launch", ConfigurationError("UnauthorizedOperation: no"))
    with pytest.raises(ConfigurationError):
        stand.provision()
    assert stand.claim.metadata.annotations[LAUNCH_TOKEN] == stand.claim.metadata.name
    stand.live()
    assert stand.claim.is_true("Launched")
    assert len(stand.alive) == 1


def test_an_instance_that_cannot_be_written_to_its_claim_is_not_bought_again(stand: Stand) -> None:
    """Were the claim given up after five minutes, another would be bought in its place, every six minutes for ever."""
    stand.pods(1)
    fuse = Fuse(failing="cluster.update_node_claim", error=UnavailableError("a webhook does not answer"))
    working = stand.gateways
    stand.gateways = fuse.protect(working)
    with pytest.raises(UnavailableError):
        stand.provision()
    (instance,) = stand.alive
    for _ in range(60):
        stand.wait(60)
        for door in (stand.provision, stand.live):
            with suppress(UnavailableError):
                door()
    assert (stand.alive, len(stand.claims)) == ([instance], 1)
    stand.gateways = working
    stand.live()
    assert stand.claim.status.provider_id.endswith(instance)


def test_a_claim_whose_instance_ended_before_it_was_written_is_given_up(stand: Stand) -> None:
    """Nothing is there to wait for."""
    stand.pods(1)
    fuse = Fuse(failing="cluster.update_node_claim", error=UnavailableError("a webhook does not answer"))
    working = stand.gateways
    stand.gateways = fuse.protect(working)
    with pytest.raises(UnavailableError):
        stand.provision()
    stand.gateways = working
    stand.world.cloud.terminate(stand.alive)
    stand.wait(360)
    stand.live()
    assert "GivenUp" in stand.event_reasons("NodeClaim")


def test_two_doors_that_launch_one_claim_get_one_instance(stand: Stand) -> None:
    """A call of lifecycle is slow. Meanwhile provisioning is refused once, and tries again."""
    stand.pods(1)
    stand.world.cloud.fail_next("launch", UnavailableError("timed out"))
    with pytest.raises(UnavailableError):
        stand.provision()

    def meanwhile() -> None:
        stand.world.cloud.fail_next("launch", ConfigurationError("UnauthorizedOperation: no"))
        stand.provision()
        stand.provision()

    slow = cast("Cloud", Overtaken(stand.gateways.cloud, "launch", meanwhile))
    with pytest.raises(ConflictError):
        LifecycleController(replace(stand.gateways, cloud=slow), stand.settings).reconcile(stand.invocation())
    assert stand.claim.is_true("Launched")
    assert len(stand.alive) == 1


def test_a_claim_is_not_launched_while_those_planned_with_it_are_being_written(stand: Stand) -> None:
    """The claims of one call are its token, so a door that sees half of them would make another call."""
    stand.pods(1)
    stand.world.cloud.fail_next("launch", UnavailableError("timed out"))
    with pytest.raises(UnavailableError):
        stand.provision()
    lease = stand.world.cluster.acquire_lease(LEASE, holder="a run that writes claims", seconds=60)
    stand.live()
    assert not stand.claim.is_true("Launched")
    assert Bell.LIFECYCLE in stand.rung()
    stand.world.cluster.release_lease(lease)
    stand.live()
    assert stand.claim.is_true("Launched")


def test_pools_that_ec2_is_out_of_are_left_out_of_the_next_plan(stand: Stand) -> None:
    """The claim is given up, its pools are remembered, and the bell rings: the next run buys on demand."""
    stand.pods(1)
    stand.world.cloud.run_out(*_everything_of(stand.world, SPOT))
    outcome = stand.provision()
    assert outcome["launched"] == 0
    assert "InsufficientCapacityError" in stand.event_reasons("NodeClaim")
    assert Bell.PROVISIONING in stand.rung()
    stand.live()
    for _ in range(5):
        if stand.provision()["launched"]:
            break
        stand.live()
    assert stand.claim.metadata.labels[CAPACITY_TYPE] == ON_DEMAND


@pytest.mark.parametrize("error", [UnavailableError("throttled"), ConfigurationError("there is no such table")])
def test_pods_get_nodes_while_nobody_can_say_what_ec2_was_out_of(stand: Stand, error: Exception) -> None:
    """A plan that may ask for what EC2 is out of is better than no plan. Without need nothing is bought that way."""
    stand.gateways = Fuse(failing="unavailable.at", error=error).protect(stand.gateways)
    stand.pods(1)
    assert stand.provision()["launched"] == 1
    stand.settle()
    with pytest.raises(type(error)):
        stand.consolidate()


def test_a_call_that_ec2_refuses_for_want_of_capacity_is_answered_like_one_that_brought_nothing(stand: Stand) -> None:
    """Its pools are remembered, and the next run buys of others."""
    stand.pods(1)
    spot = frozenset(_everything_of(stand.world, SPOT))
    stand.world.cloud.fail_next("launch", CapacityError("creating a fleet: MaxSpotInstanceCountExceeded: no", spot))
    assert stand.provision()["launched"] == 0
    assert "InsufficientCapacityError" in stand.event_reasons("NodeClaim")
    assert any("MaxSpotInstanceCountExceeded" in event.message for event in stand.world.recorder.events)
    assert stand.world.unavailable.at(stand.world.clock.now()) == spot
    stand.live()
    assert stand.provision()["launched"] == 1
    assert [claim.metadata.labels[CAPACITY_TYPE] for claim in stand.claims if not claim.is_deleting] == [ON_DEMAND]


def test_what_ec2_can_give_is_taken(stand: Stand) -> None:
    """Two of three instances are two nodes; the third claim is given up and planned anew."""
    stand.world.cloud.run_out(*_everything_of(stand.world, SPOT, ON_DEMAND))
    stand.world.cloud.run_out(OfferingKey("m6a.xlarge", "us-east-1a", SPOT), left=2)
    stand.pods(
        3, labels={"app": "web"}, affinity=APART, node_selector={"node.kubernetes.io/instance-type": "m6a.xlarge"}
    )
    assert stand.provision()["launched"] == 2
    stand.live()
    assert len(stand.claims) == len(stand.alive) == 2


def test_a_replacement_that_ec2_refuses_marks_nothing(stand: Stand) -> None:
    """A plan is not a node: the old one keeps its pods for its fifteen seconds."""
    stand.pods(3)
    stand.settle()
    stand.receive("interruption_spot_warning", stand.alive[0])
    stand.world.cloud.run_out(*_everything_of(stand.world, SPOT, ON_DEMAND))
    assert stand.provision()["launched"] == 0
    (old,) = [claim for claim in stand.claims if claim.metadata.deletion_timestamp and claim.status.node_name]
    assert REPLACEMENT_LAUNCHED not in old.metadata.annotations


def test_a_copy_of_a_claim_is_launched_once_and_alone(stand: Stand) -> None:
    """`kubectl apply` of what `kubectl get` has printed: the copy has the token of a call that was answered long ago.

    Its siblings were launched once more, and ended as nobody's.
    """
    first, *_ = running(stand, 2)
    stand.wait(3600)
    copied = first.metadata.model_copy(update={"name": "copy", "uid": "", "creation_timestamp": None})
    stand.world.cluster.create_node_claim(first.model_copy(update={"metadata": copied, "status": NodeClaimStatus()}))
    for _ in range(4):
        stand.wait(30)
        stand.live()
    assert [request.count for request in stand.world.cloud.requests] == [2, 1]
    assert len(stand.alive) == 3
