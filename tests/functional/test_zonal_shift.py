"""A zone that traffic is shifted away from, followed through the controllers."""

from dataclasses import replace
from typing import Any

import pytest
from msgspec.structs import replace as changed

from joinery.decisions.lifecycle.garbage import lost_instance
from joinery.decisions.lifecycle.pools.zonal_shift import SHIFTED
from joinery.decisions.lifecycle.state.cluster import state_of
from joinery.objects.errors import NotFoundError, UnavailableError
from joinery.objects.karpenter.conditions import Observation, true
from joinery.objects.karpenter.labels import ZONE, ZONE_ID
from joinery.objects.kubernetes.core import Condition
from joinery.objects.snapshot.claims import INSTANCE_MISSING, MISSING, with_condition
from simulator import builders
from simulator.world import World
from tests.functional.stand import Stand


def _where(stand: Stand) -> set[str]:
    """The zones of the claims that stay."""
    return {claim.metadata.labels[ZONE] for claim in stand.claims if not claim.is_deleting}


def _zone_id(stand: Stand, zone: str) -> str:
    (node_class,) = stand.world.cluster.node_classes.values()
    return dict(node_class.zones)[zone]


@pytest.fixture
def running(stand: Stand) -> Stand:
    """Three pods that run on one node."""
    stand.pods(3)
    stand.settle()
    return stand


def _shift_away(stand: Stand) -> str:
    """Shift traffic away from the zone that nodes are bought in: its name."""
    (zone,) = _where(stand)
    stand.world.cloud.shifted.add(_zone_id(stand, zone))
    return zone


def _pending(stand: Stand, name: str, **given: Any) -> None:
    stand.world.cluster.add(*(builders.pod(f"{name}-{number}", cpu="900m", **given) for number in range(3)))


def test_nothing_is_bought_in_a_zone_that_is_shifted_away_from(running: Stand) -> None:
    """The cheapest offering is in another zone now."""
    away = _shift_away(running)
    _pending(running, "later")
    running.provision()
    assert len(running.claims) == 2
    assert len(_where(running) - {away}) == 1


def test_a_pod_that_must_be_there_waits(running: Stand) -> None:
    """Its volume is in that zone."""
    away = _shift_away(running)
    _pending(running, "bound", node_selector={ZONE: away})
    assert running.provision()["launches"] == 0
    running.world.cloud.shifted.clear()
    assert running.provision()["launches"] == 1


def test_nodes_that_are_there_stay(running: Stand) -> None:
    """Neither cordoned nor drained: the zone comes back."""
    _shift_away(running)
    for _ in range(3):
        running.wait(60)
        running.live()
    assert not running.claim.is_deleting
    (node,) = running.world.cluster.nodes.values()
    assert not node.spec.taints


def test_a_node_that_goes_is_not_held_up(running: Stand) -> None:
    """EC2 answers for the region, so a warning is dealt with as ever (Karpenter waits until the shift is over)."""
    away = _shift_away(running)
    (old,) = running.alive
    running.receive("interruption_spot_warning", old)
    running.provision()
    for _ in range(12):
        running.wait(5)
        running.live()
    assert old not in running.alive
    assert away not in _where(running)


def test_its_nodepools_tell_of_it_once_and_when_it_is_over(running: Stand) -> None:
    """By a condition while it lasts, by an Event at both ends."""
    away = _shift_away(running)
    for _ in range(3):
        running.live()
    (pool,) = running.world.cluster.node_pools.values()
    (condition,) = [c for c in pool.status.conditions if c.type == SHIFTED]
    assert away in condition.message
    assert len([event for event in running.world.cluster.events if event.reason == "ZonalShiftActive"]) == 1
    assert any(c.type == "Ready" and c.status == "True" for c in pool.status.conditions)
    running.world.cloud.shifted.clear()
    for _ in range(3):
        running.live()
    (pool,) = running.world.cluster.node_pools.values()
    assert not any(c.type == SHIFTED for c in pool.status.conditions)
    assert len([event for event in running.world.cluster.events if event.reason == "ZonalShiftCleared"]) == 1


def test_a_nodepool_that_does_not_buy_there_says_nothing(world: World) -> None:
    """Its requirements keep it out of the zone anyway."""
    stand = Stand(world)
    world.cluster.add(builders.node_class(), builders.node_pool(requirements=[f"{ZONE}=us-east-1a"]))
    stand.live()
    world.cloud.shifted.add(_zone_id(stand, "us-east-1b"))
    stand.live()
    assert "ZonalShiftActive" not in stand.event_reasons("NodePool")


def test_while_arc_does_not_answer_pods_get_nodes_and_nothing_is_taken_back(running: Stand) -> None:
    """A plan that may buy in an impaired zone is better than no plan."""
    _shift_away(running)
    running.live()
    running.world.cloud.fail_next("shifted_zones", UnavailableError("ARC is down"))
    running.live()
    assert "ZonalShiftCleared" not in running.event_reasons("NodePool")
    _pending(running, "later")
    running.world.cloud.fail_next("shifted_zones", NotFoundError("not registered"))
    assert running.provision()["unplaced"] == 0


def test_an_instance_that_ec2_does_not_list_there_is_not_given_up(running: Stand) -> None:
    """The kubelet is silent and EC2 knows nothing of an impaired zone for long: elsewhere, that would be proof."""
    _shift_away(running)
    (node,) = running.world.cluster.nodes.values()
    assert ZONE_ID in node.metadata.labels
    silent = Condition(type="Ready", status="Unknown", last_transition_time=running.world.clock.now())
    running.world.cluster.api.update(changed(node, status=changed(node.status, conditions=[silent])))
    long_ago = Observation(running.world.clock.now() - MISSING, 1)
    claim = with_condition(running.claim, true(INSTANCE_MISSING, long_ago))
    view = state_of(running.world.cluster.snapshot(), (), shifted=frozenset(running.world.cloud.shifted))
    assert lost_instance(view, claim) == ()
    assert lost_instance(replace(view, shifted=frozenset()), claim)
