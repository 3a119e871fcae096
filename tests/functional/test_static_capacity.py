"""Static NodePools: as many nodes as ``replicas`` says, whether pods need them or not."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from joinery.apis.labels import NODE_POOL, PLANNED_TAINT, ZONE
from joinery.apis.nodepool import NodePool
from joinery.apis.policies import TerminateFirst
from joinery.doorbell.gateway import Bell
from joinery.errors import (
    CapacityError,
    ConfigurationError,
    ConflictError,
    JoineryError,
    RefusedError,
    UnavailableError,
)
from joinery.lifecycle.step import LAUNCHING
from joinery.state.offerings import OfferingKey
from simulator import builders
from simulator.doors.doors import Killed
from simulator.world import World
from tests.functional.fuse import Fuse, crashes
from tests.functional.stand import Stand

XLARGE = "karpenter.k8s.aws/instance-size=xlarge"


def _stand(world: World, *pools: NodePool, **settings: Any) -> Stand:
    stand = Stand(world, **settings)
    world.cluster.add(builders.node_class(), *pools)
    stand.live()
    return stand


def _static(name: str = "base", replicas: int = 3, **given: Any) -> NodePool:
    return builders.node_pool(name, replicas=replicas, requirements=[XLARGE], **given)


def _scaled(stand: Stand, replicas: int, name: str = "base") -> None:
    pool = stand.world.cluster.node_pools[name]
    stand.world.cluster.api.update(
        pool.model_copy(update={"spec": pool.spec.model_copy(update={"replicas": replicas})})
    )


def _run(stand: Stand) -> None:
    """Until nothing moves any more."""
    for _ in range(4):
        stand.provision()
        stand.boot()
        stand.live()


def _end(stand: Stand) -> None:
    """Long enough for drains without pods, and for their instances to end."""
    for _ in range(8):
        stand.wait(10)
        stand.live()


def _pools(stand: Stand) -> dict[str, int]:
    return dict(Counter(claim.metadata.labels[NODE_POOL] for claim in stand.claims))


def test_a_static_pool_gets_its_nodes_and_then_stays_as_it_is(world: World) -> None:
    """In all zones, by one CreateFleet call for each, and open to every pod."""
    stand = _stand(world, _static(replicas=4))
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
    stand = _stand(world, _static(replicas=1), builders.node_pool())
    stand.pods(3)
    outcome = stand.provision()
    assert (outcome["added"], outcome["launches"], outcome["placed"]) == (1, 0, 3)


def test_pods_that_only_a_static_pool_could_serve_are_told_so(world: World) -> None:
    """A pool of a fixed size does not grow for them."""
    stand = _stand(world, _static(replicas=1))
    stand.pods(9)
    stand.provision()
    left = [message for message in stand.messages("FailedScheduling").values() if "fixed number of replicas" in message]
    assert len(left) == 5
    assert len(stand.alive) == 1


def test_a_node_that_goes_is_made_up_for_at_once(world: World) -> None:
    """Interrupted, deleted by a person, or lost: the pool is short of a node, and its pods have the new one."""
    stand = _stand(world, _static(replicas=2))
    _run(stand)
    (first, second) = sorted(stand.alive)
    stand.receive("interruption_spot_warning", first)
    stand.provision()
    assert len(stand.alive) == 3
    claim = next(claim for claim in stand.claims if claim.status.provider_id.endswith(second))
    world.cluster.delete_node_claim(claim)
    stand.provision()
    assert len(stand.alive) == 4
    _end(stand)
    assert len(stand.alive) == len(stand.claims) == 2


def test_scaling_up_adds_what_is_lacking_and_pools_are_independent(world: World) -> None:
    """One without a node class gets nothing, says so, and keeps nobody from theirs."""
    stand = _stand(world, _static("one", 1), _static("two", 2), _static("none", 2, node_class="missing"))
    stand.provision()
    assert _pools(stand) == {"one": 1, "two": 2}
    assert "it is not ready: NodeClassReady=False" in stand.messages("ReplicasNotReached")["none"]
    _scaled(stand, 3, "one")
    stand.provision()
    assert _pools(stand) == {"one": 3, "two": 2}


def test_scaling_down_gives_up_nodes_nobody_uses_and_drains_them(world: World) -> None:
    """The others stay. Nothing is bought meanwhile."""
    stand = _stand(world, _static(replicas=3))
    _run(stand)
    busy = next(iter(world.cluster.nodes))
    world.cluster.add(builders.pod("web", node=busy))
    _scaled(stand, 1)
    stand.rung()
    assert stand.provision()["removed"] == 2
    assert Bell.LIFECYCLE in stand.rung()
    assert stand.provision()["removed"] == 0
    _end(stand)
    assert list(world.cluster.nodes) == [busy]
    assert len(stand.alive) == 1
    assert len(stand.messages("ScaledDown")) == 2


def test_scaled_to_zero_the_pods_of_a_pool_move_to_others(world: World) -> None:
    """Their places are bought before the drain begins."""
    stand = _stand(world, _static(replicas=1), builders.node_pool(requirements=[XLARGE]))
    _run(stand)
    world.cluster.add(builders.pod("web", node=next(iter(world.cluster.nodes)), phase="Running"))
    _scaled(stand, 0)
    stand.provision()
    assert _pools(stand) == {"base": 1, "default": 1}
    assert len(stand.alive) == 2
    stand.boot()
    stand.live()
    _end(stand)
    assert _pools(stand) == {"default": 1}


def test_a_pool_that_is_deleted_or_not_ready_gets_no_nodes(world: World) -> None:
    """Deletion takes its claims along by their owner; that is the API server's doing."""
    stand = _stand(world, _static(replicas=2, node_class="missing"))
    stand.provision()
    assert stand.claims == []
    stand = _stand(World(), _static(replicas=2))
    pool = stand.world.cluster.node_pools["base"]
    deleted = pool.metadata.model_copy(update={"deletion_timestamp": world.clock.now(), "finalizers": ["x/y"]})
    stand.world.cluster.add(pool.model_copy(update={"metadata": deleted}))
    stand.provision()
    assert stand.claims == []


def test_where_ec2_is_out_of_a_zone_the_others_get_its_nodes(world: World) -> None:
    """In the next run, because what is sold out is remembered."""
    stand = _stand(world, _static(replicas=3))
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
    stand = _stand(world, _static(replicas=2), builders.node_pool(requirements=[XLARGE]), max_launches=3)
    stand.pods(16)
    with pytest.raises(RefusedError):
        stand.provision()
    assert _pools(stand) == {"base": 2, "default": 1}


def test_caps_without_room_for_all_serve_pods_first(world: World) -> None:
    """A node that nobody waits for is the least urgent one. The next runs make up for it, as far as each may."""
    taints = [{"key": "dedicated", "value": "base", "effect": "NoSchedule"}]
    base = _static(replicas=4, taints=taints)
    stand = _stand(world, base, builders.node_pool(requirements=[XLARGE]), max_launches=3)
    stand.pods(6)
    with pytest.raises(RefusedError, match="the caps leave out 3 nodes of static NodePools"):
        stand.provision()
    assert _pools(stand) == {"base": 1, "default": 2}
    assert len(stand.alive) == 3
    assert "no room for 3 of the nodes" in stand.messages("ReplicasNotReached")["base"]
    stand.provision()
    assert _pools(stand) == {"base": 4, "default": 2}
    assert len(stand.alive) == 6


def test_observe_mode_says_what_it_would_do_and_writes_nothing(world: World) -> None:
    """Neither up nor down."""
    stand = _stand(world, _static(replicas=2))
    before = dict(world.cluster.node_claims)
    assert stand.observing().provision()["added"] == 2
    assert dict(world.cluster.node_claims) == before
    assert stand.alive == []
    assert stand.messages("ScaledUp").keys() == {"base"}
    _run(stand)
    _scaled(stand, 1)
    assert stand.observing().provision()["removed"] == 1
    assert not any(claim.is_deleting for claim in stand.claims)


def test_a_claim_that_the_api_server_refuses_fails_the_run_and_not_the_other_pools(world: World) -> None:
    """The run says so; the next one tries again."""
    refusal = ConfigurationError("NodeClaim refused", cause="no")
    fuse = Fuse(failing="cluster.create_node_claim", error=refusal, about=lambda claim: "one" in claim.metadata.name)
    stand = _stand(world, _static("one", 1), _static("two", 1))
    stand.gateways = fuse.protect(world.gateways)
    with pytest.raises(JoineryError):
        stand.provision()
    assert _pools(stand) == {"two": 1}
    assert len(stand.alive) == 1


def _ring(stand: Stand, fuse: Fuse) -> None:
    """The schedule rings for as long as anything moves. A run that is killed is followed by a new process."""
    for _ in range(12):
        for door in (stand.provision, stand.live):
            try:
                door()
            except Killed:
                fuse.replace()
                stand.wait(LAUNCHING / timedelta(seconds=1) + 30)
            except (ConflictError, UnavailableError):
                pass
        stand.boot()


def _tell(fuse: Fuse, launched: set[str]) -> Stand:
    """Up to three nodes, then down to one; after a crash the schedule rings. ``launched``: every instance that was."""
    world = World(seed=7)
    world.cloud.watch(launched.add)
    stand = _stand(world, _static(replicas=3))
    stand.gateways = fuse.protect(world.gateways)
    for replicas in (3, 1):
        _scaled(stand, replicas)
        _ring(stand, fuse)
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


# --- drift ---


def _changed(stand: Stand, **labels: str) -> None:
    """Change the labels of the template, so that every node has drifted."""
    pool = stand.world.cluster.node_pools["base"]
    metadata = pool.spec.template.metadata.model_copy(update={"labels": labels})
    template = pool.spec.template.model_copy(update={"metadata": metadata})
    spec = pool.spec.model_copy(update={"template": template})
    stand.world.cluster.api.update(pool.model_copy(update={"spec": spec}))


def _drifted(world: World, replicas: int = 3, budget: str = "1", **given: Any) -> Stand:
    stand = _stand(world, _static(replicas=replicas, budgets=[{"nodes": budget}], **given))
    _run(stand)
    _changed(stand, team="web")
    stand.live()
    return stand


def test_drifted_nodes_are_replaced_one_for_one_within_budgets(world: World) -> None:
    """Each replacement is initialised before its candidate goes; in the end all nodes are new."""
    stand = _drifted(world)
    assert stand.provision()["replaced"] == 1
    assert len(stand.alive) == 4
    assert all(claim.is_true("Drifted") for claim in stand.claims if "team" not in claim.metadata.labels)
    assert stand.provision()["replaced"] == 0
    assert not any(claim.is_deleting for claim in stand.claims)
    most = 0
    for _ in range(16):
        stand.boot()
        stand.live()
        stand.provision()
        most = max(most, len(stand.alive))
    assert len(stand.alive) == len(stand.claims) == 3
    assert most <= 5
    assert {claim.metadata.labels.get("team") for claim in stand.claims} == {"web"}
    assert not any(claim.is_true("Drifted") for claim in stand.claims)
    assert sorted(Counter(claim.metadata.labels[ZONE] for claim in stand.claims).values()) == [1, 1, 1]


def test_a_replacement_that_does_not_come_leaves_the_old_node_as_it_was(world: World) -> None:
    """The command is rolled back, and the pool has its size all the time."""
    stand = _drifted(world, replicas=1)
    old = stand.claim.metadata.name
    world.cloud.fail_next("launch", CapacityError("out of everything"))
    assert stand.provision()["replaced"] == 1
    stand.live()
    stand.live()
    claim = world.cluster.node_claims[old]
    assert not claim.is_deleting
    assert "was lost" in stand.messages("DisruptionRolledBack")[old]
    _end(stand)
    assert stand.alive == [claim.status.provider_id.rpartition("/")[2]]


def test_a_pool_whose_limit_is_its_replicas_keeps_its_drifted_nodes_and_says_so(world: World) -> None:
    """There is no room for a replacement."""
    stand = _drifted(world, replicas=2, limits={"nodes": "2"})
    assert stand.provision()["replaced"] == 0
    assert stand.messages("DisruptionBlocked")["base"] == "drift: limits.nodes has no room for replacements"


def test_a_pool_whose_limit_is_its_replicas_may_end_its_drifted_nodes_first(world: World) -> None:
    """One after another, as its budget says; there is never a node too many."""
    stand = _drifted(world, replicas=2, limits={"nodes": "2"})
    stand.settings = replace(stand.settings, terminate_first=frozenset({TerminateFirst.STATIC}))
    assert stand.provision()["replaced"] == 1
    assert len(stand.claims) == 2
    fewest = most = 2
    for _ in range(20):
        stand.wait(10)
        stand.live()
        stand.provision()
        stand.boot()
        stand.live()
        fewest, most = min(fewest, len(stand.alive)), max(most, len(stand.alive))
    assert (fewest, most) == (1, 2)
    assert {claim.metadata.labels.get("team") for claim in stand.claims} == {"web"}


def test_drift_to_a_dearer_type_says_what_it_costs_more(world: World) -> None:
    """Nobody asks whether drift pays, so the bill must not rise unseen."""
    stand = _drifted(world, replicas=1)
    stand.provision()
    assert "DriftCostsMore" not in stand.told("NodeClaim")
    world = World(seed=4)
    stand = _stand(world, _static(replicas=1, budgets=[]))
    _run(stand)
    (old,) = stand.claims
    pool = world.cluster.node_pools["base"]
    larger = builders.node_pool(requirements=["karpenter.k8s.aws/instance-size=4xlarge"]).spec.template
    world.cluster.api.update(pool.model_copy(update={"spec": pool.spec.model_copy(update={"template": larger})}))
    stand.live()
    assert stand.provision()["replaced"] == 1
    assert "RequirementsDrifted" in stand.messages("DriftCostsMore")[old.metadata.name]
    assert "/h more" in stand.messages("DriftCostsMore")[old.metadata.name]


def test_observe_mode_replaces_no_drifted_node(world: World) -> None:
    """No mark, no claim."""
    stand = _drifted(world)
    before = dict(world.cluster.node_claims)
    stand.observing().provision()
    assert dict(world.cluster.node_claims) == before


@pytest.mark.soak
def test_a_crash_while_drifted_nodes_are_replaced_costs_time_alone(pytestconfig: pytest.Config) -> None:
    """One node, one replacement, whatever write the run is killed after; none is bought for nothing that stays."""

    def told(fuse: Fuse) -> Stand:
        stand = _drifted(World(seed=9), replicas=1)
        stand.gateways = fuse.protect(stand.world.gateways)
        _ring(stand, fuse)
        return stand

    undisturbed = Fuse()
    told(undisturbed)
    for after in crashes(undisturbed.writes, pytestconfig):
        stand = told(Fuse(after))
        assert len(stand.alive) == len(stand.claims) == 1, after
        assert stand.claim.metadata.labels.get("team") == "web", after
