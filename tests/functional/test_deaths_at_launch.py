"""Instances that end at launch or soon after, because of what they are made of: it is said, and launches wait ever
longer.

The reason and its words are EC2's for a key that it may not use (aws/karpenter-provider-aws 1407, 4342).
"""

from datetime import timedelta

import pytest

from joinery.decisions.interruption.notice import Notice, NoticeKind
from joinery.gateways.doorbell.gateway import Bell
from joinery.gateways.ec2.gateway import Instance
from joinery.objects.karpenter.conditions import find
from joinery.objects.karpenter.meta import Condition
from joinery.objects.snapshot.instances import instance_id
from joinery.objects.snapshot.offerings import OfferingKey
from simulator import builders
from tests.functional.stand import Stand

_KEY = ("Client.InvalidKMSKey.InvalidState", "The KMS key provided is in an incorrect state")


def _passes(stand: Stand, minutes: int) -> None:
    """Let time pass, in which the schedule and bells wake lifecycle and provisioning, and instances become nodes."""
    until = stand.world.clock.now() + timedelta(minutes=minutes)
    while stand.world.clock.now() < until:
        stand.rung()
        stand.live()
        stand.provision()
        stand.boot()
        stand.live()
        stand.bind()
        stand.wait(5 if {Bell.PROVISIONING, Bell.LIFECYCLE} & stand.rung() else 50)


def _lives(stand: Stand, minutes: int) -> None:
    """The same, while a Deployment makes the three pods anew that go with their nodes."""
    cluster = stand.world.cluster
    for _ in range(minutes):
        for pod in list(cluster.pods.values()):
            if pod.spec.node_name and pod.spec.node_name not in cluster.nodes:
                cluster.api.delete(pod)
        there = {pod.metadata.name for pod in cluster.pods.values()}
        cluster.add(*(builders.pod(f"pod-{n}", cpu="900m") for n in range(3) if f"pod-{n}" not in there))
        _passes(stand, 1)


def _health(stand: Stand) -> Condition:
    condition = find(stand.world.cluster.node_pools["default"].status.conditions, "NodeRegistrationHealthy")
    assert condition is not None
    return condition


def _doom(stand: Stand, why: tuple[str, str] | None = _KEY, seconds: int = 2) -> None:
    stand.world.cloud.dooms = lambda _: why
    stand.world.cloud.dies_in = timedelta(seconds=seconds)


def test_launches_that_all_die_wait_ever_longer(stand: Stand) -> None:
    """It were 358 in fifteen minutes. The pool, its pods and the claims say EC2's code and words."""
    _doom(stand)
    stand.pods(3)
    _passes(stand, 15)
    assert len(stand.world.cloud.requests) <= 6
    told = ": ".join(_KEY)
    assert (_health(stand).status, _health(stand).reason, _health(stand).message) == ("False", "InstanceDied", told)
    assert told in stand.messages("NodeRegistrationUnhealthy")["default"]
    assert all(told in message for message in stand.messages("InstanceGone").values())
    assert told in stand.messages("FailedScheduling")["pod-0"]
    before = len(stand.world.cloud.requests)
    _passes(stand, 45)
    assert 1 <= len(stand.world.cloud.requests) - before <= 2


def test_instances_that_ec2_never_lists_and_that_never_join_are_tried_ever_less_often(stand: Stand) -> None:
    """Each attempt takes a quarter of an hour; three nodes in each would be twelve an hour."""
    stand.world.cloud.lag = timedelta(days=1)
    stand.pods(9)
    for _ in range(3 * 60):
        stand.live()
        stand.provision()
        stand.wait(60)
    launched = [request.count for request in stand.world.cloud.requests]
    assert (sum(launched) <= 13, launched[-4:]) == (True, [1] * 4)
    assert "NeverListed" in stand.messages("FailedScheduling")["pod-0"]


@pytest.mark.parametrize("is_told", [False, True])
def test_instances_that_somebody_ends_before_they_join_wait_ever_longer(stand: Stand, is_told: bool) -> None:
    """A tool that ends whatever lacks its tags ends the next one too. EC2 may tell of it before lifecycle looks."""
    _doom(stand, ("Client.UserInitiatedShutdown", "User initiated"))
    stand.pods(3)
    for _ in range(15):
        stand.provision()
        for claim in stand.claims if is_told else ():
            notice = Notice(NoticeKind.INSTANCE_TERMINATED, (instance_id(claim.status.provider_id),))
            stand.notify(notice)
        _passes(stand, 1)
    assert len(stand.world.cloud.requests) <= 8
    assert (_health(stand).status, _health(stand).reason) == ("False", "InstanceDied")


def test_what_was_mended_outside_of_the_cluster_is_found_by_one_launch(stand: Stand) -> None:
    """The others wait until it has joined."""
    _doom(stand)
    stand.pods(9)
    _passes(stand, 10)
    dead = len(stand.world.cloud.requests)
    _doom(stand, None)
    while len(stand.world.cloud.requests) == dead:
        stand.live()
        stand.provision()
        stand.wait(10)
    assert len(stand.alive) == 1
    _passes(stand, 4)
    assert (len(stand.alive), [pod for pod in stand.world.cluster.pods.values() if not pod.spec.node_name]) == (3, [])


def test_a_change_of_the_node_class_is_tried_at_once(stand: Stand) -> None:
    """What was wrong may have been in it."""
    _doom(stand)
    stand.pods(3)
    _passes(stand, 30)
    _doom(stand, None)
    node_class = stand.world.cluster.node_classes["default"]
    spec = node_class.spec.model_copy(update={"tags": {"mended": "true"}})
    stand.world.cluster.api.update(node_class.model_copy(update={"spec": spec}))
    _passes(stand, 2)
    assert (len(stand.alive), _health(stand).status) == (1, "True")


@pytest.mark.parametrize(
    "why",
    [
        ("Server.SpotInstanceTermination", "Instance terminated due to Spot interruption"),
        ("Server.InsufficientInstanceCapacity", "There was not enough capacity available"),
    ],
)
def test_what_ec2_is_out_of_is_no_death(stand: Stand, why: tuple[str, str]) -> None:
    """Another offering is tried at once, and the pool is as healthy as before."""

    offerings: list[OfferingKey] = []

    def doom(instance: Instance) -> tuple[str, str] | None:
        offerings.append(instance.offering)
        return why if len(offerings) <= 2 else None

    stand.world.cloud.dooms = doom
    stand.pods(3)
    _passes(stand, 3)
    assert len(set(offerings)) == len(offerings) == 3
    assert (len(stand.alive), _health(stand).status) == (1, "True")


def test_a_claim_that_somebody_deletes_while_it_boots_is_no_death(stand: Stand) -> None:
    """Its instance ends because it was asked to."""
    for _ in range(3):
        stand.pods(1)
        stand.provision()
        stand.world.cluster.delete_node_claim(stand.claim)
        for _ in range(3):
            stand.live()
            stand.wait(31)
    assert _health(stand).status == "Unknown"


def test_images_that_boot_are_bought_while_another_dies(stand: Stand) -> None:
    """A snapshot of one architecture's image is gone."""
    images: list[str] = []

    def doom(instance: Instance) -> tuple[str, str] | None:
        images.append(instance.image_id)
        return ("Client.InvalidSnapshot.NotFound", "no snapshot") if instance.image_id == images[0] else None

    stand.world.cloud.dooms = doom
    stand.pods(3)
    _passes(stand, 5)
    assert stand.alive
    assert len(set(images)) == 2


def test_a_death_of_which_ec2_does_not_say_why_is_one(stand: Stand) -> None:
    """Nobody has asked for it, as far as the claim says."""
    _doom(stand, ("", ""))
    stand.pods(3)
    _passes(stand, 8)
    assert len(stand.world.cloud.requests) <= 5
    assert "EC2 does not say why" in stand.messages("FailedScheduling")["pod-0"]


def test_nodes_that_die_again_and_again_soon_after_they_joined_wait_ever_longer(stand: Stand) -> None:
    """User data that shuts the instance down after three minutes. The pool's registrations are as healthy as before.

    One that has served for ten minutes ends it; until then it is the only one.
    """
    _doom(stand, ("Client.InstanceInitiatedShutdown", "Instance initiated shutdown"), 180)
    _lives(stand, 30)
    assert _health(stand).status == "True"
    assert 3 <= len(stand.world.cloud.requests) <= 6
    assert "soon after they have joined (Client.Inst" in stand.messages("FailedScheduling")["pod-0"]
    _doom(stand, None)
    _lives(stand, 15)
    (last,) = stand.alive
    stand.world.cluster.add(*(builders.pod(f"more-{number}", cpu="900m") for number in range(3)))
    _lives(stand, 5)
    assert stand.alive == [last]
    _lives(stand, 6)
    assert len(stand.alive) == 2


@pytest.mark.parametrize(
    "why", [("Client.UserInitiatedShutdown", "User initiated"), ("Server.SpotInstanceTermination", "")]
)
def test_what_somebody_or_spot_takes_soon_after_it_joined_is_no_death(stand: Stand, why: tuple[str, str]) -> None:
    """The next node is bought at once."""
    _doom(stand, why, 60)
    _lives(stand, 10)
    assert len(stand.world.cloud.requests) > 4
