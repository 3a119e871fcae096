"""Terminate-first: a node ends before its replacement is launched, because there is no room for both."""

import msgspec
import pytest

from joinery.gateways.ec2.catalog.reservations import CapacityReservation
from joinery.objects.annotations.disruption import is_postponed
from joinery.objects.errors import CapacityError
from joinery.objects.karpenter.labels import (
    CAPACITY_TYPE,
    DISRUPTION_COMMAND,
    DO_NOT_DISRUPT,
    INSTANCE_TYPE,
    RETIRED_FOR,
    TERMINATE_FIRST,
)
from joinery.objects.policies import TerminateFirst
from simulator import builders
from simulator.world import World
from tests.functional.disrupting import end_first, is_tainted, now, others, running
from tests.functional.stand import APART, Stand

ZONE, KIND = builders.ZONES[1], "m7a.xlarge"


def _rounds(stand: Stand, count: int, seconds: int = 10) -> None:
    for _ in range(count):
        stand.wait(seconds)
        stand.provision()
        stand.live()


def test_the_node_ends_and_its_replacement_is_launched_then(stand: Stand) -> None:
    """There is never an instance more than before, and nothing else is bought for the pods that wait meanwhile."""
    (old,) = running(stand, owner="web")
    end_first(stand, old)
    (new,) = others(stand, [old])
    assert is_postponed(new)
    assert is_tainted(stand, old)
    stand.live()
    assert now(stand, old).is_deleting
    stand.live()
    assert "Evicted" in stand.event_reasons("Pod")
    stand.world.cluster.add(builders.pod("pod-9", cpu="900m", labels={"app": "web"}, affinity=APART, owner="web"))
    most = 0
    for _ in range(12):
        assert stand.provision()["launches"] == 0
        stand.wait(10)
        stand.live()
        most = max(most, len(stand.alive))
    assert most == 1
    assert old.metadata.name not in stand.world.cluster.node_claims
    assert now(stand, new).is_true("Launched")
    stand.boot()
    stand.live()
    stand.bind()
    stand.live()
    assert stand.world.cluster.pods["default/pod-9"].spec.node_name == now(stand, new).status.node_name


def test_the_second_look_keeps_the_node_and_its_replacement_was_never_launched(stand: Stand) -> None:
    """A pod that must not be disrupted came in between."""
    (old,) = running(stand)
    end_first(stand, old)
    guard = builders.pod("guard", cpu="100m", node=old.status.node_name, annotations={DO_NOT_DISRUPT: "true"})
    stand.world.cluster.add(guard)
    _rounds(stand, 4)
    assert not now(stand, old).is_deleting
    assert not is_tainted(stand, old)
    assert not {DISRUPTION_COMMAND, RETIRED_FOR} & set(now(stand, old).metadata.annotations)
    assert len(stand.claims) == len(stand.alive) == 1


def test_budgets_of_pods_bind_the_drain(stand: Stand) -> None:
    """The node keeps a pod whose budget is used up since the command began."""
    (old,) = running(stand, owner="web")
    end_first(stand, old)
    stand.live()
    assert now(stand, old).is_deleting
    stand.world.cluster.add(builders.pdb("web", labels={"app": "web"}))
    _rounds(stand, 6)
    assert old.metadata.name in stand.world.cluster.node_claims
    assert len(stand.alive) == 1


def test_a_node_that_does_not_end_gives_its_replacement_up(stand: Stand) -> None:
    """Its budget may wait for pods that were evicted already. After ten minutes all of them get another place."""
    (old,) = running(stand, owner="web")
    end_first(stand, old)
    (new,) = others(stand, [old])
    stand.live()
    stand.world.cluster.add(builders.pdb("web", labels={"app": "web"}))
    _rounds(stand, 40, seconds=20)
    assert new.metadata.name not in stand.world.cluster.node_claims
    (bought,) = others(stand, [old])
    assert bought.is_true("Launched")


def test_where_ec2_gives_nothing_back_the_pods_are_planned_anew(stand: Stand) -> None:
    """What was given up is gone to somebody else. The claim is given up, and another is bought for what waits."""
    (old,) = running(stand, owner="web")
    end_first(stand, old)
    (new,) = others(stand, [old])
    stand.live()
    stand.live()
    stand.world.cluster.add(builders.pod("pod-9", cpu="900m", labels={"app": "web"}, affinity=APART, owner="web"))
    stand.world.cloud.fail_next("launch", CapacityError("out of it"))
    _rounds(stand, 12)
    assert new.metadata.name not in stand.world.cluster.node_claims
    assert len(stand.alive) == len(stand.claims) == 1


def test_a_replacement_that_waits_long_has_its_whole_time_to_launch_and_join(stand: Stand) -> None:
    """The drain took longer than a launch may take."""
    (old,) = running(stand, owner="web", termination_grace_period_seconds=8 * 60)
    end_first(stand, old)
    (new,) = others(stand, [old])
    stand.live()
    stand.world.cluster.add(builders.pdb("web", labels={"app": "web"}))
    _rounds(stand, 24, seconds=20)
    assert is_postponed(now(stand, new))
    stand.world.cluster.api.delete(stand.world.cluster.pods["default/pod-0"])
    _rounds(stand, 30, seconds=20)
    assert "GivenUp" not in stand.event_reasons("NodeClaim")


# --- who is chosen ---


def _drifted(world: World, wish: TerminateFirst | None, capacity: str) -> Stand:
    """A node of one type whose pods have drifted by a label of the template."""
    stand = Stand(world, terminate_first=frozenset({wish} if wish else ()))
    world.cloud.reserved["cr-1"] = msgspec.convert(
        {
            "CapacityReservationId": "cr-1", "InstanceType": KIND, "AvailabilityZone": ZONE, "OwnerId": "111122223333",
            "AvailableInstanceCount": 1, "Tags": [{"Key": "team", "Value": "a"}],
        },
        CapacityReservation,
    )  # fmt: skip
    rules = [f"{INSTANCE_TYPE}={KIND}", f"{CAPACITY_TYPE}={capacity}"]
    node_class = builders.node_class(capacityReservationSelectorTerms=[{"tags": {"team": "a"}}])
    world.cluster.add(node_class, builders.node_pool(requirements=rules, budgets=[]))
    stand.live()
    running(stand, owner="web")
    pool = world.cluster.node_pools["default"]
    metadata = pool.spec.template.metadata.model_copy(update={"labels": {"release": "two"}})
    template = pool.spec.template.model_copy(update={"metadata": metadata})
    world.cluster.api.update(pool.model_copy(update={"spec": pool.spec.model_copy(update={"template": template})}))
    stand.live()
    stand.wait(60)
    return stand


@pytest.mark.parametrize(
    ("wish", "capacity", "commands"),
    [
        (TerminateFirst.RESERVED, "reserved,on-demand", 1),
        (TerminateFirst.SCARCE, "reserved", 1),
        (TerminateFirst.STATIC, "reserved", 0),
        (None, "reserved", 0),
    ],
)
def test_a_node_without_room_for_its_replacement_ends_first_where_that_is_wanted(
    world: World, wish: TerminateFirst | None, capacity: str, commands: int
) -> None:
    """A full reservation, though on-demand would do; no other place at all."""
    stand = _drifted(world, wish, capacity)
    (old,) = stand.claims
    assert stand.consolidate()["commands"] == commands
    if not commands:
        assert "its pods have no other place" in stand.messages("DisruptionBlocked")[old.metadata.name]
        return
    (new,) = others(stand, [old])
    assert is_postponed(new)
    _rounds(stand, 2)
    assert "Evicted" in stand.event_reasons("Pod")
    stand.world.cluster.add(builders.pod("pod-9", cpu="900m", labels={"app": "web"}, affinity=APART, owner="web"))
    _rounds(stand, 12)
    (claim,) = stand.claims
    assert claim.metadata.labels["release"] == "two"
    assert claim.metadata.labels[CAPACITY_TYPE] == capacity.partition(",")[0]


def test_a_node_whose_pods_may_not_all_go_at_once_does_not_end_first(world: World) -> None:
    """The first would wait for a node that never ends."""
    stand = _drifted(world, TerminateFirst.SCARCE, "reserved")
    stand.world.cluster.add(builders.pod("pod-1", cpu="100m", node=stand.claim.status.node_name, labels={"app": "web"}))
    stand.world.cluster.add(builders.pdb("web", labels={"app": "web"}, allowed=1))
    assert stand.consolidate()["commands"] == 0


def test_a_node_pool_may_say_so_itself(world: World) -> None:
    """Its annotation counts, and not the setting."""
    stand = _drifted(world, TerminateFirst.SCARCE, "reserved")
    pool = stand.world.cluster.node_pools["default"]
    metadata = pool.metadata.model_copy(update={"annotations": {TERMINATE_FIRST: "off"}})
    stand.world.cluster.api.update(pool.model_copy(update={"metadata": metadata}))
    assert stand.consolidate()["commands"] == 0
