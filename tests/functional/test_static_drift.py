"""Drifted nodes of static NodePools."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from joinery.objects.errors import CapacityError
from joinery.objects.karpenter.labels import ZONE
from joinery.objects.policies import MinValuesPolicy, TerminateFirst
from simulator import builders
from simulator.world import World
from tests.functional.fuse import Fuse, crashes, wired
from tests.functional.stand import Stand
from tests.functional.static_pools import (
    XLARGE,
    after_drains,
    relabelled,
    rung_until_still,
    settled,
    static_pool,
    static_stand,
)


def _drifted(world: World, replicas: int = 3, budget: str = "1", **given: Any) -> Stand:
    stand = static_stand(world, static_pool(replicas=replicas, budgets=[{"nodes": budget}], **given))
    settled(stand)
    relabelled(stand, team="web")
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


def _ahead(stand: Stand, by: timedelta) -> Stand:
    """The same world as a function sees it whose clock is ahead."""

    def through(name: str, go: Callable[[], Any], _: Any = None) -> Any:
        answer = go()
        is_snapshot = name in ("cluster.snapshot", "cluster.claims_snapshot")
        return replace(answer, now=answer.now + by) if is_snapshot else answer

    return Stand(stand.world, gateways=wired(stand.gateways, through))


@pytest.mark.parametrize("minutes", [-5, 5])
def test_doors_whose_clocks_differ_by_minutes_buy_each_replacement_once(world: World, minutes: int) -> None:
    """A command that was rolled back for its beginning was started anew at once: six instances a minute, for good."""
    stand = _drifted(world, replicas=2)
    before = len(world.cloud.requests)
    other = _ahead(stand, timedelta(minutes=minutes))
    for _ in range(60):
        other.provision()
        stand.boot()
        stand.live()
    assert {claim.metadata.labels.get("team") for claim in stand.claims} == {"web"}
    assert len({request.token for request in world.cloud.requests[before:]}) == 2


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
    after_drains(stand)
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
    assert "DriftCostsMore" not in stand.event_reasons("NodeClaim")
    world = World(seed=4)
    stand = static_stand(world, static_pool(replicas=1, budgets=[]))
    settled(stand)
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

    def disturbed(fuse: Fuse) -> Stand:
        stand = _drifted(World(seed=9), replicas=1)
        stand.gateways = fuse.protect(stand.world.gateways)
        rung_until_still(stand, fuse)
        return stand

    undisturbed = Fuse()
    disturbed(undisturbed)
    for after in crashes(undisturbed.writes, pytestconfig):
        stand = disturbed(Fuse(after))
        assert len(stand.alive) == len(stand.claims) == 1, after
        assert stand.claim.metadata.labels.get("team") == "web", after


def test_replacements_keep_min_values_no_more_strictly_than_the_first_nodes(world: World) -> None:
    """A pool that got its nodes by BestEffort gets their replacements by it."""
    few = [XLARGE, {"key": "karpenter.k8s.aws/instance-size", "operator": "Exists", "minValues": 2}]
    stand = static_stand(world, static_pool(replicas=1, budgets=[{"nodes": "1"}], requirements=few))
    stand.settings = replace(stand.settings, min_values_policy=MinValuesPolicy.BEST_EFFORT)
    settled(stand)
    relabelled(stand, team="web")
    stand.live()
    assert stand.provision()["replaced"] == 1
