"""ProvisioningRequests: nodes for pods that are still to be created, all of them or none."""

from typing import Any

import pytest

from joinery.gateways.doorbell.gateway import Bell
from joinery.objects.autoscaling.provisioningrequest import CONSUMES, ProvisioningRequest
from joinery.objects.karpenter.labels import GANGS
from joinery.objects.snapshot.offerings import OfferingKey
from joinery.objects.snapshot.pods import bound_to
from simulator import builders
from tests.functional.stand import Stand

#: One fills a node of the stand.
WORKER: dict[str, Any] = {"cpu": "3"}


@pytest.fixture
def asked(stand: Stand) -> Stand:
    """A request for two workers."""
    stand.world.cluster.add(builders.pod_template("worker", **WORKER), builders.provisioning_request(count=2))
    return stand


def request(stand: Stand) -> ProvisioningRequest:
    """As it is now."""
    (only,) = stand.world.cluster.snapshot().provisioning_requests
    return only


def conditions(stand: Stand) -> dict[str, tuple[str, str]]:
    """By type, status and reason."""
    return {one.type: (one.status, one.reason) for one in request(stand).status.conditions}


def provisioned(stand: Stand) -> None:
    """From the request to nodes that are fit."""
    stand.provision()
    stand.boot()
    stand.live()
    stand.provision()


def test_a_request_is_provisioned_once_all_of_its_nodes_are_fit(asked: Stand) -> None:
    """And no pod is created for it."""
    asked.provision()
    assert len(asked.alive) == 2
    assert {claim.metadata.annotations[GANGS] for claim in asked.claims} == {"ProvisioningRequest default/train"}
    assert conditions(asked) == {"Accepted": ("True", "Accepted"), "Provisioned": ("False", "CapacityIsNotFound")}
    asked.boot()
    asked.live()
    asked.provision()
    assert conditions(asked)["Provisioned"] == ("True", "CapacityIsProvisioned")
    assert len(asked.alive) == 2
    assert asked.world.cluster.pods == {}


def test_half_of_a_request_is_not_bought(asked: Stand) -> None:
    """The whole of it exceeds the NodePool's limit."""
    asked.world.cluster.add(
        builders.node_pool(requirements=["karpenter.k8s.aws/instance-size=xlarge"], limits={"cpu": "4"})
    )
    asked.provision()
    assert asked.alive == []
    told = request(asked).status.conditions
    assert any("ProvisioningRequest default/train places 2 pods together" in one.message for one in told)


def test_what_nobody_sells_is_looked_for_until_the_request_ends(stand: Stand) -> None:
    """As long as ValidUntilSeconds says."""
    stand.world.cluster.add(builders.pod_template("worker", **WORKER))
    now = stand.world.clock.now()
    stand.world.cluster.add(builders.provisioning_request(count=2, created=now, ValidUntilSeconds="600"))
    sold = stand.world.cloud.catalog().offerings
    stand.world.cloud.run_out(*(OfferingKey(o.instance_type, o.zone, o.capacity_type) for o in sold))
    stand.provision()
    assert Bell.PROVISIONING in stand.rung()
    assert conditions(stand)["Provisioned"] == ("False", "CapacityIsNotFound")
    stand.wait(600)
    stand.provision()
    assert conditions(stand)["Failed"] == ("True", "Expired")
    stand.live()
    stand.provision()
    assert stand.alive == []


def test_pods_that_name_the_request_take_its_room(asked: Stand) -> None:
    """And nothing more is bought for it."""
    provisioned(asked)
    nodes = sorted(asked.world.cluster.nodes)
    named = {CONSUMES[0]: "train"}
    for number, node in enumerate(nodes):
        asked.world.cluster.add(bound_to(builders.pod(f"worker-{number}", annotations=named, **WORKER), node))
    asked.provision()
    assert len(asked.alive) == 2
    assert conditions(asked)["Provisioned"] == ("True", "CapacityIsProvisioned")
    assert conditions(asked)["BookingExpired"] == ("True", "CapacityBookingConsumed")


def test_room_that_was_taken_is_not_bought_again_for_a_pod_that_ends(asked: Stand) -> None:
    """Of two workers one is done before the ten minutes are over."""
    provisioned(asked)
    named = {CONSUMES[0]: "train"}
    nodes = sorted(asked.world.cluster.nodes)
    workers = [bound_to(builders.pod(f"worker-{n}", annotations=named, **WORKER), node) for n, node in enumerate(nodes)]
    asked.world.cluster.add(*workers)
    asked.provision()
    asked.world.cluster.api.delete(workers[0])
    asked.world.cluster.add(bound_to(builders.pod("another", **WORKER), nodes[0]))
    assert asked.provision()["launches"] == 0


def test_room_is_kept_for_ten_minutes(asked: Stand) -> None:
    """Then the nodes are empty, and go."""
    provisioned(asked)
    asked.wait(120)
    asked.live()
    asked.consolidate()
    asked.live()
    assert not any(claim.is_deleting for claim in asked.claims)
    asked.wait(480)
    asked.provision()
    assert conditions(asked)["BookingExpired"] == ("True", "CapacityReservationTimeExpired")
    asked.live()
    asked.consolidate()
    asked.live()
    assert any(claim.is_deleting for claim in asked.claims)


@pytest.mark.parametrize(("count", "reason"), [(1, "CapacityIsFound"), (2, "CapacityIsNotFound")])
def test_a_check_says_whether_there_is_room_and_buys_nothing(stand: Stand, count: int, reason: str) -> None:
    """One node is there, and empty."""
    stand.world.cluster.add(builders.pod_template("worker", **WORKER))
    stand.free_nodes(1, **WORKER)
    stand.world.cluster.add(builders.provisioning_request(count=count, check=True))
    stand.provision()
    assert len(stand.alive) == 1
    assert conditions(stand)["Provisioned"] == ("True" if count == 1 else "False", reason)


def test_a_request_without_its_template_fails(stand: Stand) -> None:
    """It says which one is missing."""
    stand.world.cluster.add(builders.provisioning_request())
    stand.provision()
    assert conditions(stand)["Failed"] == ("True", "FailedToCreatePods")
    assert "worker" in next(one.message for one in request(stand).status.conditions if one.type == "Failed")


def test_a_parameter_that_counts_for_nothing_is_said_where_the_request_is_accepted(stand: Stand) -> None:
    """With its field, and what counts in its place."""
    created = stand.world.clock.now()
    stand.world.cluster.add(
        builders.pod_template("worker", **WORKER),
        builders.provisioning_request(count=2, created=created, ValidUntilSeconds="1h"),
    )
    stand.provision()
    (accepted,) = [one.message for one in request(stand).status.conditions if one.type == "Accepted"]
    assert accepted == (
        "ProvisioningRequest is accepted; spec.parameters.ValidUntilSeconds: must be a whole number of seconds, is "
        "'1h', so the request ends 7 days after its creation"
    )


def test_room_that_nobody_had_to_ask_for_is_found(stand: Stand) -> None:
    """As the cluster autoscaler calls it."""
    stand.world.cluster.add(builders.pod_template("worker", **WORKER))
    stand.free_nodes(1, **WORKER)
    stand.world.cluster.add(builders.provisioning_request(count=1))
    stand.provision()
    assert conditions(stand)["Provisioned"] == ("True", "CapacityIsFound")


def test_nothing_is_bought_for_a_request_whose_time_is_over(stand: Stand) -> None:
    """Nobody would look at the nodes."""
    created = stand.world.clock.now()
    stand.world.cluster.add(
        builders.pod_template("worker", **WORKER),
        builders.provisioning_request(count=2, created=created, ValidUntilSeconds="600"),
    )
    stand.wait(600)
    stand.provision()
    assert (stand.alive, conditions(stand)["Failed"]) == ([], ("True", "Expired"))
