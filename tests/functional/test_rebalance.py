"""A rebalance recommendation, followed through the controllers: told, treated as a warning, or replaced first."""

from datetime import timedelta
from typing import Any

import pytest

from joinery.decisions.interruption.notice import Notice, NoticeKind
from joinery.gateways.doorbell.gateway import Bell
from joinery.objects.annotations.disruption import record_of
from joinery.objects.errors import ConfigurationError
from joinery.objects.karpenter.labels import INSTANCE_TYPE, INTERRUPTED_AT, REBALANCE, REBALANCE_RECOMMENDED_AT, ZONE
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.snapshot.claims import annotated
from simulator import builders
from simulator.latency import Killed
from simulator.world import World
from tests.functional.fuse import Fuse
from tests.functional.stand import APART, Stand


def _node_pool(annotation: str | None) -> NodePool:
    """One with this annotation, whose nodes hold the three pods."""
    pool = builders.node_pool(requirements=["karpenter.k8s.aws/instance-size=xlarge"])
    return _annotated(pool, annotation)


def _annotated(pool: NodePool, annotation: str | None) -> NodePool:
    annotations = {} if annotation is None else {REBALANCE: annotation}
    return pool.model_copy(update={"metadata": pool.metadata.model_copy(update={"annotations": annotations})})


def _running(world: World, mode: str = "off", *, pool: str | None = None, **given: Any) -> Stand:
    """Three pods that run on one spot node. ``pool``: the annotation of its NodePool."""
    stand = Stand(world, rebalance=mode, **given)
    world.cluster.add(builders.node_class(), _node_pool(pool))
    stand.live()
    stand.pods(3)
    stand.settle()
    stand.live()
    stand.rung()
    return stand


def _recommend(stand: Stand) -> None:
    stand.receive("interruption_rebalance_recommendation", stand.alive[0])


def _pool_of(claim: NodeClaim) -> tuple[str, str]:
    return claim.metadata.labels[INSTANCE_TYPE], claim.metadata.labels[ZONE]


def _finish(stand: Stand, seconds: int = 120) -> None:
    for _ in range(seconds // 10):
        stand.boot()
        stand.live()
        stand.provision()


def test_a_recommendation_is_only_told_unless_more_is_asked_for(world: World) -> None:
    """The default: it may come hours before an interruption, or without one."""
    stand = _running(world)
    _recommend(stand)
    assert "SpotRebalanceRecommendation" in stand.event_reasons("NodeClaim") & stand.event_reasons("Node")
    assert not stand.claim.is_deleting
    assert not world.unavailable.at(world.clock.now())
    assert stand.rung() == set()


def test_drain_treats_it_as_a_warning(world: World) -> None:
    """Marked, deleted, replaced, and not in the pool that EC2 is about to need."""
    stand = _running(world, "drain")
    (old,) = stand.claims
    _recommend(stand)
    assert INTERRUPTED_AT in stand.claim.metadata.annotations
    assert stand.claim.is_deleting
    assert stand.rung() == {Bell.PROVISIONING, Bell.LIFECYCLE}
    stand.provision()
    (new,) = [claim for claim in stand.claims if not claim.is_deleting]
    assert _pool_of(new) != _pool_of(old)


@pytest.mark.parametrize("mode", ["drain", "replace"])
def test_a_recommendation_that_is_days_old_costs_no_node(world: World, mode: str) -> None:
    """A person sends a dead letter again. EC2 repeats what still holds."""
    stand = _running(world, mode)
    (old,) = stand.claims
    sent = world.clock.now() - timedelta(days=3)
    stand.notify(Notice(NoticeKind.REBALANCE_RECOMMENDATION, (stand.alive[0],), at=sent))
    assert "SpotRebalanceRecommendation" in stand.event_reasons("NodeClaim")
    stand.provision()
    stand.live()
    assert stand.claims == [old]


def test_a_recommendation_is_as_old_as_its_message(world: World) -> None:
    """Its queue may have had to deliver it again. Ten minutes after it was sent nothing is begun."""
    stand = _running(world, "replace")
    sent = world.clock.now() - timedelta(minutes=8)
    stand.notify(Notice(NoticeKind.REBALANCE_RECOMMENDATION, (stand.alive[0],), at=sent))
    stand.wait(150)
    stand.provision()
    assert len(stand.claims) == 1


def test_a_recommendation_that_is_said_to_come_tomorrow_costs_no_node(world: World) -> None:
    """Somebody edited the annotation. Until then its node would be replaced again and again."""
    stand = _running(world, "replace")
    tomorrow = (world.clock.now() + timedelta(days=1)).isoformat()
    world.cluster.api.update(annotated(stand.claim, {REBALANCE_RECOMMENDED_AT: tomorrow}))
    stand.provision()
    assert len(stand.claims) == 1


@pytest.mark.parametrize(
    ("setting", "annotation", "goes"),
    [("off", "drain", True), ("drain", "off", False), ("drain", None, True), ("drain", "sure", False)],
)
def test_the_nodepool_has_the_last_word(world: World, setting: str, annotation: str | None, goes: bool) -> None:
    """By annotation. A word that is none keeps its nodes."""
    stand = _running(world, setting)
    (pool,) = world.cluster.node_pools.values()
    world.cluster.api.update(_annotated(pool, annotation))
    _recommend(stand)
    assert stand.claim.is_deleting == goes


def test_a_nodepool_with_a_word_that_is_none_says_so(world: World) -> None:
    """It is not used until that is put right."""
    stand = Stand(world)
    world.cluster.add(builders.node_class(), _node_pool("sure"))
    stand.live()
    (pool,) = world.cluster.node_pools.values()
    (valid,) = [condition for condition in pool.status.conditions if condition.type == "ValidationSucceeded"]
    assert valid.message == "metadata.annotations[joinery.dev/rebalance]: 'sure' is none of off, drain, replace"


def test_a_nodepool_that_cannot_be_read_keeps_its_nodes(world: World) -> None:
    """Its annotation may have said so."""
    stand = _running(world, "drain")
    fuse = Fuse(failing="cluster.node_pool", error=ConfigurationError("invalid"))
    _recommend(Stand(world, gateways=fuse.protect(world.gateways), rebalance="drain"))
    assert not stand.claim.is_deleting
    assert "SpotRebalanceRecommendation" in stand.event_reasons("NodeClaim")


def test_replace_keeps_the_node_until_its_replacement_is_initialised(world: World) -> None:
    """There is time, so its pods lose nothing."""
    stand = _running(world, pool="replace")
    (old,) = stand.claims
    _recommend(stand)
    assert Bell.PROVISIONING in stand.rung()
    assert not stand.claim.is_deleting
    stand.provision()
    (new,) = [claim for claim in stand.claims if claim.metadata.name != old.metadata.name]
    assert _pool_of(new) != _pool_of(old)
    stand.live()
    assert not any(claim.is_deleting for claim in stand.claims)
    assert "Evicted" not in stand.event_reasons("Pod")
    _finish(stand)
    assert [claim.metadata.name for claim in stand.claims] == [new.metadata.name]
    assert len(stand.alive) == 1


def test_a_second_recommendation_starts_no_second_command(world: World) -> None:
    """Messages come twice, and provisioning runs often."""
    stand = _running(world, pool="replace")
    _recommend(stand)
    stand.provision()
    _recommend(stand)
    stand.provision()
    assert len(stand.claims) == 2


def test_an_old_recommendation_is_not_acted_upon(world: World) -> None:
    """EC2 repeats what still holds; a command that was rolled back is not started for ever."""
    stand = _running(world, pool="replace")
    _recommend(stand)
    stand.wait(600)
    stand.provision()
    assert len(stand.claims) == 1


def test_a_replacement_that_the_caps_forbid_leaves_the_node_alone(world: World) -> None:
    """Nothing is drained for a recommendation without its replacement."""
    stand = _running(world, pool="replace")
    _recommend(stand)
    capped = Stand(world, max_launches=0)
    capped.provision()
    stand.live()
    (claim,) = stand.claims
    assert record_of(claim) is None
    assert not claim.is_deleting


def test_the_caps_bind_all_replacements_of_a_run_together(world: World) -> None:
    """They bound each command by itself, so a run bought as many nodes as were recommended."""
    stand = Stand(world, rebalance="replace")
    world.cluster.add(builders.node_class(), _node_pool(None))
    stand.live()
    stand.pods(2, labels={"app": "web"}, affinity=APART)
    stand.settle()
    stand.live()
    assert len(stand.alive) == 2
    for instance in stand.alive:
        stand.receive("interruption_rebalance_recommendation", instance)
    capped = Stand(world, max_launches=1)
    capped.provision()
    assert len(stand.claims) == 3
    capped.provision()
    assert len(stand.claims) == 4


def test_a_warning_that_follows_does_not_wait_for_the_replacement(world: World) -> None:
    """EC2 takes the instance after all."""
    stand = _running(world, pool="replace")
    (old,) = stand.claims
    _recommend(stand)
    stand.provision()
    stand.receive("interruption_spot_warning", stand.alive[0])
    assert world.cluster.node_claims[old.metadata.name].is_deleting
    stand.provision()
    assert len([claim for claim in stand.claims if not claim.is_deleting]) == 1
    _finish(stand)
    assert len(stand.alive) == 1


@pytest.mark.parametrize("after", range(1, 8))
def test_a_run_that_is_killed_while_it_starts_the_replacement_is_made_good(world: World, after: int) -> None:
    """After any write there is one node in the end, and its pods have a place."""
    stand = _running(world, pool="replace")
    _recommend(stand)
    fuse = Fuse(after)
    victim = Stand(world, gateways=fuse.protect(world.gateways))
    try:
        victim.provision()
    except Killed:
        fuse.replace()
    stand.wait(90)
    _finish(stand, 900)
    assert len(stand.alive) == 1
    assert not any(claim.is_deleting for claim in stand.claims)


@pytest.mark.parametrize("mode", ["off", "replace", "drain"])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["recommended first", "warned first"])
def test_a_recommendation_in_the_batch_of_a_warning_costs_the_warning_nothing(
    world: World, mode: str, order: tuple[int, int]
) -> None:
    """EC2 may send both at once. Either writes the claim, which goes with the warning's mark."""
    stand = _running(world, mode)
    (instance,) = stand.alive
    notices = [Notice(kind, (instance,)) for kind in (NoticeKind.REBALANCE_RECOMMENDATION, NoticeKind.SPOT_INTERRUPTED)]
    stand.notify(*(notices[number] for number in order))
    assert stand.claim.is_deleting
    assert INTERRUPTED_AT in stand.claim.metadata.annotations
