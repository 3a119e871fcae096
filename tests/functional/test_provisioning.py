"""Pods that fit nowhere get nodes."""

from dataclasses import replace
from datetime import datetime
from itertools import count
from typing import Any, cast

import pytest

from joinery.controllers.acting.invocation import Invocation
from joinery.controllers.acting.lease import LEASE
from joinery.controllers.provisioning import ProvisioningController
from joinery.gateways.doorbell.gateway import Bell
from joinery.gateways.ec2.gateway import Cloud
from joinery.gateways.kubernetes.gateway import Lease
from joinery.objects.annotations.plans import planned_pods
from joinery.objects.errors import ConfigurationError, ConflictError, RefusedError, UnavailableError
from joinery.objects.karpenter.labels import NODE_POOL_HASH, REPLACEMENT_LAUNCHED, TERMINATION_FINALIZER
from joinery.objects.kubernetes.quantity import amounts
from simulator import builders
from simulator.aws import InMemoryStore
from simulator.world import World
from tests.functional.fuse import Fuse
from tests.functional.overtaken import Overtaken
from tests.functional.stand import APART, Stand


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
    assert stand.messages("Nominated") == {"pod-0": f"pod should schedule on nodeclaim/{stand.claim.metadata.name}"}


def test_a_pod_that_fits_nowhere_is_told_why(stand: Stand) -> None:
    """A reason, not a silence; and the pods that fit somewhere are served."""
    stand.pods(1)
    stand.world.cluster.add(builders.pod("huge", cpu="5000"))
    outcome = stand.provision()
    assert (outcome["launched"], outcome["unplaced"]) == (1, 1)
    assert set(stand.messages("FailedScheduling")) == {"huge"}
    assert "default" in stand.messages("FailedScheduling")["huge"]


def test_only_one_decides_at_a_time(stand: Stand) -> None:
    """Two deciders would buy twice for the same pods; the second gives up, and its door rings again."""
    stand.pods(1)
    stand.world.cluster.acquire_lease(LEASE, holder="somebody else", seconds=60)
    with pytest.raises(ConflictError):
        stand.provision()
    assert stand.claims == []


def test_two_runs_of_one_door_do_not_buy_for_the_same_pods(stand: Stand) -> None:
    """SQS delivers a message again when it becomes visible, also while its first run is still at work."""
    stand.pods(2, labels={"app": "web"}, affinity=APART)
    outcomes: list[Any] = []

    def meanwhile() -> None:
        stand.wait(1)
        outcomes.append(stand.provision())

    slow = cast("Cloud", Overtaken(stand.gateways.cloud, "instance_types", meanwhile))
    first = ProvisioningController(replace(stand.gateways, cloud=slow), stand.settings)
    outcomes.append(first.reconcile(Invocation("the first")))
    assert [outcome["launches"] for outcome in outcomes] == [2, 0]
    assert (len(stand.claims), len(stand.alive)) == (2, 2)


def test_a_run_that_is_overtaken_again_and_again_plans_by_the_lease(stand: Stand) -> None:
    """Whoever comes meanwhile is refused then, so that the run ends with what it came for."""
    stand.pods(1)
    refusals: list[str] = []
    numbers = count(1)

    def meanwhile() -> None:
        number = next(numbers)
        stand.wait(1)
        stand.world.cluster.add(builders.pod(f"other-{number}", cpu="3500m"))
        try:
            stand.provision()
        except ConflictError as error:
            refusals.append(str(error))
        stand.world.cluster.add(builders.pod(f"more-{number}", cpu="3500m"))

    slow = cast("Cloud", Overtaken(stand.gateways.cloud, "instance_types", *[meanwhile] * 5))
    first = ProvisioningController(replace(stand.gateways, cloud=slow), stand.settings)
    first.reconcile(Invocation("the first"))
    assert refusals == [f"Lease {LEASE} is held by provisioning/the first"]
    # All but the two pods that came while the last plan was made.
    assert len(stand.claims) == len(stand.alive) == 5


def test_others_may_write_while_a_plan_is_made(stand: Stand) -> None:
    """A plan takes seconds, and a plan without launches needs no Lease at all."""
    stand.pods(1)
    leases: list[Lease] = []

    def meanwhile() -> None:
        leases.append(stand.world.cluster.acquire_lease(LEASE, holder="another", seconds=60))
        stand.world.cluster.release_lease(leases[0])

    slow = cast("Cloud", Overtaken(stand.gateways.cloud, "instance_types", meanwhile))
    ProvisioningController(replace(stand.gateways, cloud=slow), stand.settings).reconcile(stand.invocation())
    assert (len(leases), len(stand.alive)) == (1, 1)
    stand.boot()
    stand.live()
    stand.world.cluster.acquire_lease(LEASE, holder="another", seconds=60)
    assert stand.provision()["launches"] == 0


@pytest.mark.parametrize("error", [UnavailableError("throttled"), ConfigurationError("no permission")])
def test_the_lease_is_given_back_whatever_happens(stand: Stand, error: Exception) -> None:
    """The next bell must not wait for the lease to expire."""
    stand.pods(1)
    stand.world.cloud.fail_next("launch", error)
    with pytest.raises(type(error)):
        stand.provision()
    stand.world.cluster.acquire_lease(LEASE, holder="the next", seconds=60)


@pytest.mark.parametrize("error", [UnavailableError("timed out"), ConflictError("somebody wrote first")])
def test_a_lease_that_cannot_be_given_back_keeps_no_node_from_its_launch(stand: Stand, error: Exception) -> None:
    """Its claims are written: if they waited for the Lease to end, a spot instance would be gone before that."""
    stand.pods(1)
    fuse = Fuse(failing="cluster.release_lease", error=error)
    controller = ProvisioningController(fuse.protect(stand.gateways), stand.settings)
    assert controller.reconcile(stand.invocation())["launched"] == 1
    assert len(stand.alive) == 1


def _settings(cap: str) -> dict[str, Any]:
    return {"max_launches": 1} if cap == "MaxLaunches" else {"max_hourly": 0.06}


@pytest.mark.parametrize("cap", ["MaxLaunches", "MaxHourly"])
def test_of_a_plan_beyond_a_cap_as_much_is_bought_as_fits(world: World, cap: str) -> None:
    """A runaway Deployment should meet a person before it meets the bill; the decision is kept for that person."""
    stand = Stand(world, **_settings(cap)).with_defaults()
    stand.pods(40)
    with pytest.raises(RefusedError, match=cap):
        stand.provision()
    assert len(stand.claims) == len(stand.alive) == 1
    assert len(stand.messages("Nominated")) + len(stand.messages("FailedScheduling")) == 40
    assert len(world.store.documents) == 1


def test_a_decision_is_recorded_as_a_list_that_can_be_planned_again(stand: Stand) -> None:
    """The recorder's file is the planner's input."""
    stand.pods(3)
    stand.provision()
    (key,) = stand.world.store.documents
    document = stand.world.store.read(key)
    kinds = [item["kind"] for item in document["items"]]
    assert document["kind"] == "List"
    assert (kinds.count("Pod"), kinds.count("NodePool"), kinds.count("EC2NodeClass")) == (3, 1, 1)
    assert len(document["joinery"]["result"]["launches"]) == 1


def test_a_plan_is_recorded_with_its_proof_when_its_nodes_are_launched(world: World) -> None:
    """No pod waits for either."""
    stand = Stand(world, gateways=replace(world.gateways, store=_Watching(world))).with_defaults()
    stand.pods(3)
    stand.provision()
    (key,) = world.store.documents
    assert world.store.read(key)["joinery"]["result"]["lower_bound"] > 0


class _Watching(InMemoryStore):
    """Keeps the records of the world, and expects instances when it is asked to."""

    def __init__(self, world: World) -> None:
        super().__init__(world.store.documents, world.store.stored)
        self._cloud = world.cloud

    def record(self, controller: str, now: datetime, decision: dict[str, Any]) -> str:
        assert self._cloud.instances()
        return super().record(controller, now, decision)


def test_a_door_waits_for_the_first_catalogue_and_does_not_make_it(stand: Stand) -> None:
    """Its role may neither read prices nor store them: the function catalog does, and the bell is rung again."""
    stored, stand.world.store.stored = stand.world.store.stored, None
    stand.pods(1)
    with pytest.raises(UnavailableError, match="the function catalog makes the first one"):
        stand.provision()
    assert stand.world.store.stored is None
    stand.world.store.stored = stored
    assert stand.provision()["launched"] == 1


def test_pods_of_an_interrupted_node_are_replaced_and_its_claim_is_told(stand: Stand) -> None:
    """The mark is what lets the drain start before its fifteen seconds are over."""
    stand.pods(3)
    stand.settle()
    stand.receive("interruption_spot_warning", stand.alive[0])
    assert stand.provision()["launched"] == 1
    (old,) = [claim for claim in stand.claims if claim.is_deleting]
    assert REPLACEMENT_LAUNCHED in old.metadata.annotations
    assert len(stand.alive) == 2
