"""An unhealthy node, followed through the controllers."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace as changed

from joinery.gateways.doorbell.gateway import Bell
from joinery.objects.errors import JoineryError, UnavailableError
from joinery.objects.karpenter.labels import REBOOTED_AT
from joinery.objects.kubernetes.core import Condition
from simulator.latency import Killed
from simulator.world import World
from tests.functional.fuse import Fuse
from tests.functional.stand import Stand


def _running(world: World, mode: str, **given: Any) -> Stand:
    """Three pods that run on one node."""
    stand = Stand(world, node_repair=mode, **given).with_defaults()
    stand.pods(3)
    stand.settle()
    stand.rung()
    return stand


def _break(stand: Stand, status: str = "Unknown") -> None:
    """The kubelet of every node is silent from now on, or speaks again (``True``)."""
    for node in list(stand.world.cluster.nodes.values()):
        condition = Condition(type="Ready", status=status, last_transition_time=stand.world.clock.now())
        kept = [other for other in node.status.conditions if other.type != "Ready"]
        stand.world.cluster.api.update(changed(node, status=changed(node.status, conditions=[*kept, condition])))


def test_a_broken_node_is_replaced(world: World) -> None:
    """Its replacement is launched, its pods are deleted past their budgets, its instance is terminated."""
    stand = _running(world, "replace")
    (old,) = stand.alive
    _break(stand)
    stand.wait(29 * 60)
    stand.live()
    assert not stand.claim.is_deleting
    stand.wait(60)
    stand.live()
    assert stand.rung() >= {Bell.PROVISIONING, Bell.LIFECYCLE}
    assert "NodeUnhealthy" in stand.event_reasons("Node")
    stand.provision()
    assert len(stand.alive) == 2
    for _ in range(30):
        stand.wait(5)
        stand.live()
    assert old not in stand.alive


def test_nothing_is_repaired_unless_it_is_asked_for(world: World) -> None:
    """The default."""
    stand = _running(world, "off")
    _break(stand)
    stand.wait(24 * 3600)
    stand.live()
    assert not stand.claim.is_deleting


def test_a_reboot_that_helps_keeps_the_node(world: World) -> None:
    """Once, however often lifecycle runs."""
    stand = _running(world, "reboot")
    (old,) = stand.alive
    _break(stand)
    stand.wait(30 * 60)
    for _ in range(3):
        stand.live()
    assert stand.world.cloud.rebooted == [old]
    assert "NodeRebooted" in stand.event_reasons("Node")
    stand.wait(120)
    _break(stand, "True")
    stand.wait(24 * 3600)
    stand.live()
    assert stand.alive == [old]
    assert not stand.claim.is_deleting


def test_a_reboot_that_does_not_help_is_followed_by_a_replacement(world: World) -> None:
    """After a quarter of an hour."""
    stand = _running(world, "reboot")
    _break(stand)
    stand.wait(30 * 60)
    stand.live()
    stand.wait(15 * 60)
    stand.live()
    assert len(stand.world.cloud.rebooted) == 1
    assert stand.claim.is_deleting


def test_a_reboot_that_ec2_refuses_is_not_tried_again(world: World) -> None:
    """The claim is marked first, so the node is replaced when the reboot should have helped."""
    stand = _running(world, "reboot")
    _break(stand)
    stand.wait(30 * 60)
    world.cloud.fail_next("reboot", UnavailableError("throttled"))
    with pytest.raises(JoineryError):
        stand.live()
    stand.live()
    assert REBOOTED_AT in stand.claim.metadata.annotations
    assert world.cloud.rebooted == []
    stand.wait(15 * 60)
    stand.live()
    assert stand.claim.is_deleting


@pytest.mark.parametrize("mode", ["replace", "reboot"])
@pytest.mark.parametrize("after", range(1, 6))
def test_a_run_that_is_killed_is_simply_repeated(world: World, mode: str, after: int) -> None:
    """After any write: the node is replaced in the end, and rebooted once at most."""
    fuse = Fuse(after)
    stand = _running(world, mode)
    (old,) = stand.alive
    _break(stand)
    stand.wait(30 * 60)
    victim = Stand(world, gateways=fuse.protect(world.gateways), node_repair=mode)
    for seconds in (0, 5, 15 * 60, 5, *[5] * 30):
        stand.wait(seconds)
        try:
            victim.live()
        except Killed:
            fuse.replace()
        stand.provision()
    assert old not in stand.alive
    assert len(world.cloud.rebooted) <= 1


def test_the_brake_is_told_of_on_the_node(world: World) -> None:
    """All three nodes are unhealthy: none is touched."""
    stand = Stand(world, node_repair="replace").with_defaults()
    stand.pods(12)
    stand.settle()
    assert len(stand.alive) == 3
    _break(stand)
    stand.wait(timedelta(minutes=30).total_seconds())
    stand.live()
    assert not any(claim.is_deleting for claim in stand.claims)
    told = stand.messages("NodeRepairBlocked")
    assert len(told) == 3
    assert all("3 of 3 nodes" in text for text in told.values())
