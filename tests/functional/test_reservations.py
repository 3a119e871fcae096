"""Reserved capacity through the doors: found, planned, launched, used up."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from joinery.gateways.ec2.catalog.reservations import CapacityReservation
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from joinery.objects.karpenter.labels import (
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    ON_DEMAND,
    RESERVATION_ID,
    RESERVATION_INTERRUPTIBLE,
    RESERVATION_LABELS,
    RESERVATION_TYPE,
    RESERVED,
)
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.snapshot.offerings import OfferingKey
from simulator import builders
from tests.functional.stand import Stand

ZONE = builders.ZONES[1]
KIND = "m7a.xlarge"


@pytest.fixture
def reserved(stand: Stand) -> Stand:
    """One place in a reservation that the class selects by tag; nodes of its type hold four pods each."""
    stand.world.cloud.reserved["cr-1"] = _reservation("cr-1")
    rules = [f"{INSTANCE_TYPE}={KIND}", f"{CAPACITY_TYPE}=on-demand,reserved"]
    node_class = builders.node_class(capacityReservationSelectorTerms=[{"tags": {"team": "a"}}])
    stand.world.cluster.add(node_class, builders.node_pool(requirements=rules))
    stand.live()
    return stand


def _reservation(name: str, **given: Any) -> CapacityReservation:
    wire = {
        "CapacityReservationId": name, "InstanceType": KIND, "AvailabilityZone": ZONE, "OwnerId": "111122223333",
        "AvailableInstanceCount": 1, "Tags": [{"Key": "team", "Value": "a"}], **given,
    }  # fmt: skip
    return msgspec.convert(wire, CapacityReservation)


def _class(stand: Stand) -> EC2NodeClass:
    found = stand.world.cluster.node_classes["default"]
    assert isinstance(found, EC2NodeClass)
    return found


def _labels(claim: NodeClaim) -> dict[str, str]:
    return {key: claim.metadata.labels[key] for key in RESERVATION_LABELS if key in claim.metadata.labels}


def test_a_class_says_what_its_terms_select(reserved: Stand) -> None:
    """The condition is True whatever they select, because what is not reserved can be bought."""
    (found,) = _class(reserved).status.capacity_reservations
    assert (found.id, found.instance_type, found.availability_zone, found.state) == ("cr-1", KIND, ZONE, "active")
    assert {each.type: each.status for each in _class(reserved).status.conditions}[
        "CapacityReservationsReady"
    ] == "True"
    reserved.world.cloud.reserved.clear()
    reserved.live()
    assert _class(reserved).status.capacity_reservations == []
    assert {each.type: each.status for each in _class(reserved).status.conditions}[
        "CapacityReservationsReady"
    ] == "True"


def test_a_reserved_node_comes_first_and_the_rest_is_bought(reserved: Stand) -> None:
    """In one run: the claim in the reservation says so in its labels, and the other is on-demand."""
    reserved.pods(6)
    assert reserved.provision()["launched"] == 2
    ways = {claim.metadata.labels[CAPACITY_TYPE]: claim for claim in reserved.claims}
    assert _labels(ways[RESERVED]) == {
        RESERVATION_ID: "cr-1", RESERVATION_TYPE: "default", RESERVATION_INTERRUPTIBLE: "false",
    }  # fmt: skip
    assert _labels(ways[ON_DEMAND]) == {}
    reserved.boot()
    reserved.live()
    nodes = {
        node.metadata.labels[CAPACITY_TYPE]: node.metadata.labels for node in reserved.world.cluster.nodes.values()
    }
    assert (nodes[RESERVED][RESERVATION_ID], RESERVATION_ID in nodes[ON_DEMAND]) == ("cr-1", False)


def test_a_place_that_is_taken_is_not_planned_for_again(reserved: Stand) -> None:
    """EC2 is asked what is left, each time: the next pods get a node that is bought."""
    reserved.pods(1)
    reserved.provision()
    reserved.world.cluster.add(*(builders.pod(f"late-{number}", cpu="900m") for number in range(4)))
    reserved.provision()
    assert sorted(claim.metadata.labels[CAPACITY_TYPE] for claim in reserved.claims) == [ON_DEMAND, RESERVED]


def test_a_place_is_there_again_once_its_node_is_gone(reserved: Stand) -> None:
    """What an instance leaves the next one takes."""
    reserved.pods(1)
    reserved.provision()
    reserved.world.cloud.terminate(reserved.alive)
    reserved.wait(60)
    assert [found.available_instance_count for found in reserved.world.cloud.catalog().capacity_reservations] == [1]


def test_a_reservation_that_ec2_finds_exceeded_is_left_alone_for_a_while(reserved: Stand) -> None:
    """Its count was older than somebody else's launch: the claim goes, and the pods get a node that is bought."""
    reserved.world.cloud.run_out(OfferingKey(KIND, ZONE, RESERVED, "cr-1"))
    reserved.pods(1)
    assert reserved.provision()["launched"] == 0
    assert reserved.world.unavailable.at(reserved.world.clock.now()) == {OfferingKey(KIND, ZONE, RESERVED, "cr-1")}
    reserved.live()
    assert reserved.provision()["launched"] == 1
    assert [c.metadata.labels[CAPACITY_TYPE] for c in reserved.claims if c.status.provider_id] == [ON_DEMAND]


def test_pods_that_want_what_is_reserved_hear_that_nothing_is_left(reserved: Stand) -> None:
    """By an Event, which names the reservation."""
    reserved.pods(6, node_selector={CAPACITY_TYPE: RESERVED})
    outcome = reserved.provision()
    assert (outcome["launched"], outcome["unplaced"]) == (1, 2)
    failed = [event for event in reserved.world.cluster.events if event.reason == "FailedScheduling"]
    assert "nothing is left of the capacity reservations that it may use (cr-1 had 1)" in failed[-1].message


def test_nothing_is_launched_into_a_capacity_block_that_ends(reserved: Stand) -> None:
    """Forty minutes before its end a block is expiring: EC2 would take the node back before it is of use."""
    end = reserved.world.clock.now() + timedelta(minutes=39)
    reserved.world.cloud.reserved["cr-1"] = _reservation(
        "cr-1", ReservationType="capacity-block", EndDate=end.isoformat()
    )
    reserved.live()
    assert _class(reserved).status.capacity_reservations[0].state == "expiring"
    reserved.pods(1)
    reserved.provision()
    assert reserved.claim.metadata.labels[CAPACITY_TYPE] == ON_DEMAND


def test_a_node_whose_reservation_is_gone_lives_on_as_on_demand(reserved: Stand) -> None:
    """EC2 bills it so from then on: claim and node say so, and nobody looks for its reservation."""
    reserved.pods(1)
    reserved.settle()
    reserved.world.cloud.cancel("cr-1")
    reserved.live()
    (node,) = reserved.world.cluster.nodes.values()
    for labels in (reserved.claim.metadata.labels, node.metadata.labels):
        assert (labels[CAPACITY_TYPE], [key for key in RESERVATION_LABELS if key in labels]) == (ON_DEMAND, [])
    assert len(reserved.alive) == 1


def test_a_reservation_that_takes_its_instance_back_is_left_alone_for_a_while(reserved: Stand) -> None:
    """The pods of an interrupted node get one that is bought: the place is not theirs any more."""
    reserved.pods(1)
    reserved.settle()
    reserved.receive("interruption_capacity_reservation", reserved.alive[0])
    assert reserved.world.unavailable.at(reserved.world.clock.now()) == {OfferingKey(KIND, ZONE, RESERVED, "cr-1")}
    reserved.provision()
    assert sorted(claim.metadata.labels[CAPACITY_TYPE] for claim in reserved.claims) == [ON_DEMAND, RESERVED]


def test_what_one_reservation_lacks_says_nothing_of_another(reserved: Stand) -> None:
    """Both hold the same type in the same zone: the pods of the interrupted node go into the second."""
    reserved.pods(1)
    reserved.settle()
    reserved.world.cloud.reserved["cr-2"] = _reservation("cr-2")
    reserved.live()
    reserved.receive("interruption_capacity_reservation", reserved.alive[0])
    reserved.provision()
    assert {claim.metadata.labels[RESERVATION_ID] for claim in reserved.claims} == {"cr-1", "cr-2"}


def test_nodes_leave_a_capacity_block_before_it_ends(reserved: Stand) -> None:
    """Forty minutes before the end the claim goes, as one that has expired: its pods get another node first."""
    end = reserved.world.clock.now() + timedelta(minutes=50)
    reserved.world.cloud.reserved["cr-1"] = _reservation(
        "cr-1", ReservationType="capacity-block", EndDate=end.isoformat()
    )
    reserved.live()
    reserved.pods(1)
    reserved.settle()
    assert reserved.claim.metadata.labels[RESERVATION_TYPE] == "capacity-block"
    reserved.expire()
    assert not reserved.claim.is_deleting
    reserved.wait(601)
    reserved.live()
    reserved.expire()
    assert reserved.claim.is_deleting


def test_the_warning_that_a_capacity_block_ends_empties_it(reserved: Stand) -> None:
    """EC2's warning may come before the sweep: its nodes are replaced first, and not in the block that ends."""
    end = reserved.world.clock.now() + timedelta(minutes=41)
    reserved.world.cloud.reserved["cr-1"] = _reservation(
        "cr-1", ReservationType="capacity-block", EndDate=end.isoformat()
    )
    reserved.live()
    reserved.pods(1)
    reserved.settle()
    reserved.receive("interruption_capacity_block", "cr-1")
    assert reserved.claim.is_deleting
    assert {"CapacityBlockExpiring", "TerminatingOnInterruption"} <= reserved.event_reasons("NodeClaim")
    reserved.provision()
    assert sorted(claim.metadata.labels[CAPACITY_TYPE] for claim in reserved.claims) == [ON_DEMAND, RESERVED]


def test_a_recorded_decision_says_what_was_left(reserved: Stand) -> None:
    """So that it can be made again."""
    reserved.pods(1)
    reserved.provision()
    (key,) = reserved.world.store.documents
    assert reserved.world.store.read(key)["joinery"]["reservations"] == {"cr-1": 1}
