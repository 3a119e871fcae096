"""Static NodePools: as many nodes as ``replicas`` says, whether pods need them or not."""

from collections import Counter
from dataclasses import replace

import pytest

from joinery.controllers.static_capacity import StaticCapacity
from joinery.decisions.scheduling.packing import Packing
from joinery.decisions.scheduling.problem import Problem
from joinery.decisions.scheduling.replicas import replenish
from joinery.gateways.doorbell.gateway import Bell
from joinery.objects.errors import ConfigurationError, JoineryError, RefusedError
from joinery.objects.karpenter.labels import NODE_POOL, PLANNED_TAINT, ZONE
from joinery.objects.snapshot.offerings import OfferingKey
from simulator import builders
from simulator.world import World
from tests.functional.fuse import Fuse, crashes
from tests.functional.stand import Stand
from tests.functional.static_pools import (
    XLARGE,
    after_drains,
    rung_until_still,
    scaled,
    settled,
    static_pool,
    static_stand,
)


def _pools(stand: Stand) -> dict[str, int]:
    return dict(Counter(claim.metadata.labels[NODE_POOL] for claim in stand.claims))


def test_nothing_but_the_api_server_is_called_while_the_lease_is_held(world: World) -> None:
    """A bucket, a queue or a cloud that is silent would keep all others from deciding. One pool grows, one shrinks."""
    stand = static_stand(world, static_pool("grows", replicas=1), static_pool("shrinks", replicas=2))
    settled(stand)
    scaled(stand, 3, "grows")
    scaled(stand, 1, "shrinks")
    fuse = Fuse()
    Stand(world, gateways=fuse.protect(stand.gateways)).provision()
    taken, free = (fuse.calls.index(f"cluster.{call}_lease") for call in ("acquire", "release"))
    held = fuse.calls[taken + 1 : free]
    assert {"cluster.create_node_claim", "cluster.delete_node_claim"} <= set(held)
    assert {call.partition(".")[0] for call in held} <= {"cluster", "recorder"}
    assert "store.record" in fuse.calls[free:]


def test_a_static_pool_gets_its_nodes_and_then_stays_as_it_is(world: World) -> None:
    """In all zones, by one CreateFleet call for each, and open to every pod."""
    stand = static_stand(world, static_pool(replicas=4))
    stand.rung()
    assert stand.provision()["added"] == 4
    assert Bell.LIFECYCLE in stand.rung()
    assert len(stand.alive) == 4
    assert sorted(Counter(claim.metadata.labels[ZONE] for claim in stand.claims).values()) == [1, 1, 2]
    stand.boot()
    stand.live()
    assert all(claim.is_true("Initialized") for claim in stand.claims)
    assert not any(taint.key == PLANNED_TAINT for node in world.cluster.nodes.values() for taint in node.spec.taints)
    assert stand.provision()["added"] == 0
    assert len(stand.alive) == 4
    assert stand.messages("ScaledUp")["base"].startswith("4 nodes to reach its replicas (")


def test_pods_go_to_its_nodes_and_none_are_bought_for_them_in_the_same_run(world: World) -> None:
    """The nodes are launched before the pods are planned."""
    stand = static_stand(world, static_pool(replicas=1), builders.node_pool())
    stand.pods(3)
    outcome = stand.provision()
    assert (outcome["added"], outcome["launches"], outcome["placed"]) == (1, 0, 3)


def test_pods_that_only_a_static_pool_could_serve_are_told_so(world: World) -> None:
    """A pool of a fixed size does not grow for them."""
    stand = static_stand(world, static_pool(replicas=1))
    stand.pods(9)
    stand.provision()
    left = [message for message in stand.messages("FailedScheduling").values() if "fixed number of replicas" in message]
    assert len(left) == 5
    assert len(stand.alive) == 1


def test_a_node_that_goes_is_made_up_for_at_once(world: World) -> None:
    """Interrupted, deleted by a person, or lost: the pool is short of a node, and its pods have the new one."""
    stand = static_stand(world, static_pool(replicas=2))
    settled(stand)
    (first, second) = sorted(stand.alive)
    stand.receive("interruption_spot_warning", first)
    stand.provision()
    assert len(stand.alive) == 3
    claim = next(claim for claim in stand.claims if claim.status.provider_id.endswith(second))
    world.cluster.delete_node_claim(claim)
    stand.provision()
    assert len(stand.alive) == 4
    after_drains(stand)
    assert len(stand.alive) == len(stand.claims) == 2


def test_scaling_up_adds_what_is_lacking_and_pools_are_independent(world: World) -> None:
    """One without a node class gets nothing, says so, and keeps nobody from theirs."""
    stand = static_stand(
        world, static_pool("one", 1), static_pool("two", 2), static_pool("none", 2, node_class="missing")
    )
    stand.provision()
    assert _pools(stand) == {"one": 1, "two": 2}
    assert "it is not ready: NodeClassReady=False" in stand.messages("ReplicasNotReached")["none"]
    scaled(stand, 3, "one")
    stand.provision()
    assert _pools(stand) == {"one": 3, "two": 2}


def test_scaling_down_gives_up_nodes_nobody_uses_and_drains_them(world: World) -> None:
    """The others stay. Nothing is bought meanwhile."""
    stand = static_stand(world, static_pool(replicas=3))
    settled(stand)
    busy = next(iter(world.cluster.nodes))
    world.cluster.add(builders.pod("web", node=busy))
    scaled(stand, 1)
    stand.rung()
    assert stand.provision()["removed"] == 2
    assert Bell.LIFECYCLE in stand.rung()
    assert stand.provision()["removed"] == 0
    after_drains(stand)
    assert list(world.cluster.nodes) == [busy]
    assert len(stand.alive) == 1
    assert len(stand.messages("ScaledDown")) == 2


def test_scaled_to_zero_the_pods_of_a_pool_move_to_others(world: World) -> None:
    """Their places are bought before the drain begins."""
    stand = static_stand(world, static_pool(replicas=1), builders.node_pool(requirements=[XLARGE]))
    settled(stand)
    world.cluster.add(builders.pod("web", node=next(iter(world.cluster.nodes)), phase="Running"))
    scaled(stand, 0)
    stand.provision()
    assert _pools(stand) == {"base": 1, "default": 1}
    assert len(stand.alive) == 2
    stand.boot()
    stand.live()
    after_drains(stand)
    assert _pools(stand) == {"default": 1}


def test_a_pool_that_is_deleted_or_not_ready_gets_no_nodes(world: World) -> None:
    """Deletion takes its claims along by their owner; that is the API server's doing."""
    stand = static_stand(world, static_pool(replicas=2, node_class="missing"))
    stand.provision()
    assert stand.claims == []
    stand = static_stand(World(), static_pool(replicas=2))
    pool = stand.world.cluster.node_pools["base"]
    deleted = pool.metadata.model_copy(update={"deletion_timestamp": world.clock.now(), "finalizers": ["x/y"]})
    stand.world.cluster.add(pool.model_copy(update={"metadata": deleted}))
    stand.provision()
    assert stand.claims == []


def test_where_ec2_is_out_of_a_zone_the_others_get_its_nodes(world: World) -> None:
    """In the next run, because what is sold out is remembered."""
    stand = static_stand(world, static_pool(replicas=3))
    offerings = (offering for offering in world.cloud.catalog().offerings if offering.zone == "us-east-1a")
    world.cloud.run_out(*(OfferingKey(o.instance_type, o.zone, o.capacity_type) for o in offerings))
    stand.rung()
    stand.provision()
    assert Bell.PROVISIONING in stand.rung()
    for _ in range(9):
        stand.live()
        stand.provision()
    zones = Counter(claim.metadata.labels[ZONE] for claim in stand.claims)
    assert (zones["us-east-1a"], zones.total(), len(stand.alive)) == (0, 3, 3)


def test_caps_that_have_room_for_all_are_charged(world: World) -> None:
    """What is left of them is for pods."""
    stand = static_stand(world, static_pool(replicas=2), builders.node_pool(requirements=[XLARGE]), max_launches=3)
    stand.pods(16)
    with pytest.raises(RefusedError):
        stand.provision()
    assert _pools(stand) == {"base": 2, "default": 1}


def test_caps_without_room_for_all_serve_pods_first(world: World) -> None:
    """A node that nobody waits for is the least urgent one. The next runs make up for it, as far as each may."""
    taints = [{"key": "dedicated", "value": "base", "effect": "NoSchedule"}]
    base = static_pool(replicas=4, taints=taints)
    stand = static_stand(world, base, builders.node_pool(requirements=[XLARGE]), max_launches=3)
    stand.pods(6)
    with pytest.raises(RefusedError, match="the caps leave out 3 nodes of static NodePools"):
        stand.provision()
    assert _pools(stand) == {"base": 1, "default": 2}
    assert len(stand.alive) == 3
    assert "no room for 3 of the nodes" in stand.messages("ReplicasNotReached")["base"]
    stand.provision()
    assert _pools(stand) == {"base": 4, "default": 2}
    assert len(stand.alive) == 6


def test_a_run_says_all_that_its_caps_left_out(world: World) -> None:
    """Pods and static NodePools are two parts of it, and the failures of one do not hide those of the other."""
    taints = [{"key": "dedicated", "value": "base", "effect": "NoSchedule"}]
    base = static_pool(replicas=4, taints=taints)
    stand = static_stand(world, base, builders.node_pool(requirements=[XLARGE]), max_launches=1)
    stand.pods(6)
    with pytest.raises(RefusedError, match="2 failed, first: the caps leave 2 pods without a node"):
        stand.provision()


def test_a_plan_that_breaks_a_rule_is_recorded_and_fails_the_run(world: World) -> None:
    """Nothing is launched, and somebody should look at it."""
    stand = static_stand(world, static_pool(replicas=2))
    snapshot = world.cluster.snapshot()

    def wrong(problem: Problem) -> Packing:
        packing = replenish(problem)
        return replace(packing, launches=tuple(replace(launch, node_pool="other") for launch in packing.launches))

    static = StaticCapacity(stand.gateways, stand.settings, snapshot.now, stand.invocation(), wrong)
    static.adjust(snapshot)
    assert stand.claims == []
    assert any("-replicas-" in key for key in world.store.documents)
    with pytest.raises(RefusedError, match="the plan for static NodePools breaks"):
        static.actor.conclude()


def test_observe_mode_says_what_it_would_do_and_writes_nothing(world: World) -> None:
    """Neither up nor down."""
    stand = static_stand(world, static_pool(replicas=2))
    before = dict(world.cluster.node_claims)
    assert stand.observing().provision()["added"] == 2
    assert dict(world.cluster.node_claims) == before
    assert stand.alive == []
    assert stand.messages("ScaledUp").keys() == {"base"}
    settled(stand)
    scaled(stand, 1)
    assert stand.observing().provision()["removed"] == 1
    assert not any(claim.is_deleting for claim in stand.claims)


def test_a_claim_that_the_api_server_refuses_fails_the_run_and_not_the_other_pools(world: World) -> None:
    """The run says so; the next one tries again."""
    refusal = ConfigurationError("NodeClaim refused", cause="no")
    fuse = Fuse(failing="cluster.create_node_claim", error=refusal, about=lambda claim: "one" in claim.metadata.name)
    stand = static_stand(world, static_pool("one", 1), static_pool("two", 1))
    stand.gateways = fuse.protect(world.gateways)
    with pytest.raises(JoineryError):
        stand.provision()
    assert _pools(stand) == {"two": 1}
    assert len(stand.alive) == 1
    assert stand.messages("ScaledUp").keys() == {"two"}


def _tell(fuse: Fuse, launched: set[str]) -> Stand:
    """Up to three nodes, then down to one; after a crash the schedule rings. ``launched``: every instance that was."""
    world = World(seed=7)
    world.cloud.watch(launched.add)
    stand = static_stand(world, static_pool(replicas=3))
    stand.gateways = fuse.protect(world.gateways)
    for replicas in (3, 1):
        scaled(stand, replicas)
        rung_until_still(stand, fuse)
    return stand


@pytest.mark.soak
def test_a_crash_after_any_write_buys_nothing_twice(pytestconfig: pytest.Config) -> None:
    """Three instances ever, and one in the end."""
    undisturbed, launched = Fuse(), set[str]()
    assert len(_tell(undisturbed, launched).alive) == 1
    assert len(launched) == 3
    for after in crashes(undisturbed.writes, pytestconfig):
        launched = set()
        stand = _tell(Fuse(after), launched)
        assert (len(stand.alive), len(stand.claims), len(launched)) == (1, 1, 3), after
