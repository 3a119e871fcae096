"""Nodes that are old enough are replaced and retired."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest

from joinery.controllers.acting.lease import LEASE
from joinery.gateways.doorbell.gateway import Bell
from joinery.objects.errors import DeniedError, UnavailableError
from joinery.objects.karpenter.labels import DISRUPTION, EXPIRATION_OBEYS_BUDGETS, NODE_POOL, RETIRED_FOR
from joinery.objects.karpenter.meta import with_metadata
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.snapshot.claims import INSTANCE_TERMINATING
from simulator import builders
from simulator.world import World
from tests.functional.disrupting import disrupt
from tests.functional.fuse import Fuse
from tests.functional.overtaken import Overtaken
from tests.functional.stand import APART, Stand
from tests.unit.decisions.disruption.clusters import annotated

DAY = 24 * 3600


def test_an_old_node_is_replaced_before_it_is_drained(stand: Stand) -> None:
    """Thirty days after it was made; its pods count as pending from then on."""
    stand.pods(3)
    stand.settle()
    stand.wait(30 * DAY)
    stand.rung()
    assert stand.expire() == {"expired": 1}
    assert stand.rung() == {Bell.PROVISIONING, Bell.LIFECYCLE}
    stand.live()
    assert "Evicted" not in stand.event_reasons("Pod")
    assert stand.provision()["launched"] == 1
    stand.live()
    assert "Evicted" in stand.event_reasons("Pod")


def test_an_expired_claim_is_marked_before_it_is_deleted(stand: Stand) -> None:
    """The mark is what keeps its pods where they are until they have another place."""
    stand.pods(1)
    stand.settle()
    stand.wait(30 * DAY)
    stand.expire()
    assert stand.claim.metadata.annotations[RETIRED_FOR] == "Expired"
    assert stand.claim.is_deleting


def test_a_young_node_is_left_alone(stand: Stand) -> None:
    """The minute's run writes nothing and wakes nobody."""
    stand.pods(1)
    stand.settle()
    stand.wait(29 * DAY)
    stand.rung()
    assert (stand.expire(), stand.rung()) == ({"expired": 0}, set())


def test_expiration_reads_no_pods(stand: Stand) -> None:
    """How old a claim is, and when its reservation ends, is written on claims and classes."""
    fuse = Fuse()
    stand.gateways = fuse.protect(stand.gateways)
    stand.expire()
    assert fuse.calls == ["cluster.claims_snapshot"]


def test_a_node_is_expired_once(stand: Stand) -> None:
    """While it drains, the next minutes have nothing to do."""
    stand.pods(1)
    stand.settle()
    stand.wait(30 * DAY)
    stand.expire()
    assert stand.expire() == {"expired": 0}


# --- within budgets, where that is asked for ---


def _old(
    world: World, annotation: str | None = "true", *, grace: str | None = None, age: int = 30 * DAY, **settings: Any
) -> Stand:
    """Three nodes of that age in seconds, of a NodePool that lets one of them be disrupted at a time.

    They expire after thirty days.
    """
    stand = Stand(world, **settings)
    budgets = [{"nodes": "1"}]
    pool = builders.node_pool(budgets=budgets, expire_after="720h", termination_grace_period=grace)
    world.cluster.add(
        builders.node_class(), annotated(pool, {EXPIRATION_OBEYS_BUDGETS: annotation} if annotation else {})
    )
    stand.live()
    stand.pods(3, labels={"app": "web"}, affinity=APART)
    stand.grow_old(age)
    return stand


def _older(stand: Stand, claim: NodeClaim) -> None:
    """The claim was made an hour before it was."""
    created = claim.metadata.creation_timestamp
    assert created is not None
    stand.world.cluster.add(with_metadata(claim, creation_timestamp=created - timedelta(hours=1)))


def _move(stand: Stand, pool: str) -> NodeClaim:
    """The first of the nodes becomes one of a NodePool of that name, which has nothing to say about budgets."""
    (default,) = stand.world.cluster.node_pools.values()
    metadata = default.metadata.model_copy(update={"name": pool, "annotations": {}})
    stand.world.cluster.add(default.model_copy(update={"metadata": metadata}))
    first = stand.claims[0]
    labels = {**first.metadata.labels, NODE_POOL: pool}
    stand.world.cluster.api.update(with_metadata(first, labels=labels))
    stand.rung()
    return first


def _going(stand: Stand) -> int:
    """How many nodes are going as budgets count them: not those whose instance is being ended (Karpenter)."""
    return sum(claim.is_deleting and not claim.is_true(INSTANCE_TERMINATING) for claim in stand.claims)


def test_expired_nodes_may_wait_for_budgets(world: World, counted: Callable[[], dict[str, float]]) -> None:
    """One at a time, and the NodePool says who waits for what."""
    stand = _old(world)
    old = {claim.metadata.name for claim in stand.claims}
    assert stand.expire() == {"expired": 1, "waiting": 2}
    assert (_going(stand), counted()["joinery_expirations_waiting_total"]) == (1, 2)
    assert "DisruptionBlocked" in stand.event_reasons("NodePool")
    assert stand.expire() == {"expired": 0, "waiting": 2}
    for _ in range(60):
        stand.provision()
        stand.boot()
        stand.live()
        stand.bind()
        stand.wait(10)
        stand.expire()
        assert _going(stand) <= 1
        if not old & {claim.metadata.name for claim in stand.claims}:
            return
    raise AssertionError("some nodes have not expired")


def test_the_stack_may_ask_for_all_node_pools_and_a_node_pool_may_differ(world: World) -> None:
    """The NodePool's word counts."""
    assert _old(world, None, expiration_obeys_budgets=True).expire() == {"expired": 1, "waiting": 2}


def test_a_node_pool_may_let_its_nodes_expire_whatever_the_stack_asks_for(world: World) -> None:
    """As Karpenter does."""
    assert _old(world, "false", expiration_obeys_budgets=True).expire() == {"expired": 3}


def test_expiry_waits_for_the_grace_period_at_most(world: World) -> None:
    """It is the deadline that the claim itself has."""
    stand = _old(world, grace="1h")
    assert stand.expire() == {"expired": 1, "waiting": 2}
    stand.wait(3600)
    assert stand.expire() == {"expired": 2}


def test_expiry_within_budgets_is_stopped_with_all_voluntary_disruption(world: World) -> None:
    """Whoever stops everything in an incident means it."""
    stand = _old(world)
    (pool,) = world.cluster.node_pools.values()
    world.cluster.add(annotated(pool, {**pool.metadata.annotations, DISRUPTION: "stop"}))
    assert stand.expire() == {"expired": 0, "waiting": 3}


def test_a_budget_is_not_exceeded_together_with_another_run(world: World) -> None:
    """Disruption takes a node of the pool between what expiration read and what it does."""
    stand = _old(world)
    first = stand.claims[0]
    overtaken = Overtaken(world.cluster, "acquire_lease", lambda: disrupt(stand, first, with_replacements=False))
    stand.gateways = replace(stand.gateways, cluster=cast("Any", overtaken))
    assert stand.expire() == {"expired": 0, "waiting": 3}


def test_nodes_that_expire_while_the_budgets_are_looked_at_wait_for_the_next_run(world: World) -> None:
    """The budgets were asked about those that had expired before. Nodes of one launch expire in the same second."""
    stand = _old(world, age=30 * DAY - 60)
    _older(stand, stand.claims[0])
    overtaken = Overtaken(world.cluster, "acquire_lease", lambda: stand.wait(120))
    stand.gateways = replace(stand.gateways, cluster=cast("Any", overtaken))
    assert stand.expire() == {"expired": 1, "waiting": 2}


@pytest.mark.parametrize(("grace", "expired"), [(None, 0), ("1h", 3)])
def test_nodes_of_a_pool_that_no_model_fits_wait_where_the_stack_asks_for_it(
    world: World, grace: str | None, expired: int
) -> None:
    """Nobody knows what its budgets allow, so they wait for their deadline."""
    stand = _old(world, None, grace=grace, age=30 * DAY + 3600, expiration_obeys_budgets=True)
    (pool,) = world.cluster.node_pools.values()
    document = pool.to_wire()
    document["spec"]["disruption"]["budgets"] = [{"nodes": "one"}]
    world.cluster.remove(pool)
    world.cluster.add_document(document)
    waiting = {} if expired else {"waiting": 3}
    assert stand.expire() == {"expired": expired, **waiting}


def test_expired_nodes_wait_while_another_run_decides(world: World) -> None:
    """The next minute brings the next run."""
    stand = _old(world)
    world.cluster.acquire_lease(LEASE, holder="provisioning/call-0", seconds=90)
    assert stand.expire() == {"expired": 0}
    assert _going(stand) == 0


def test_nodes_that_expire_at_once_are_replaced_although_the_others_cannot_be_read(world: World) -> None:
    """Their claims are retired before the cluster is read for the budgets of others, and nobody else rings for them."""
    stand = _old(world)
    first = _move(stand, "careless")
    fuse = Fuse(failing="cluster.snapshot", error=UnavailableError("busy"))
    stand.gateways = fuse.protect(stand.gateways)
    with pytest.raises(UnavailableError, match="busy"):
        stand.expire()
    assert [claim.metadata.name for claim in stand.claims if claim.is_deleting] == [first.metadata.name]
    assert stand.rung() == {Bell.PROVISIONING, Bell.LIFECYCLE}


@pytest.mark.parametrize("error", [UnavailableError("busy"), DeniedError("not yours")])
def test_a_node_pool_that_cannot_be_read_keeps_its_own_expired_nodes_alone(world: World, error: Exception) -> None:
    """Whether they wait for its budgets is not known; those of other NodePools do not wait for that answer."""
    stand = _old(world, "false")
    first = _move(stand, "other")
    fuse = Fuse(failing="cluster.node_pool", error=error, about=lambda name: name == "other")
    stand.gateways = fuse.protect(stand.gateways)
    with pytest.raises(type(error)):
        stand.expire()
    assert {claim.metadata.name for claim in stand.claims if not claim.is_deleting} == {first.metadata.name}
    assert stand.rung() >= {Bell.PROVISIONING, Bell.LIFECYCLE}
