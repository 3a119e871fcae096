"""Shares on demand of NodePools, through the doors."""

from collections import Counter

import pytest

from joinery.gateways.doorbell.gateway import Bell
from joinery.objects.karpenter.conditions import find
from joinery.objects.karpenter.labels import CAPACITY_TYPE, ON_DEMAND, ON_DEMAND_SHARE, SPOT
from joinery.objects.karpenter.meta import Requirement, with_metadata
from simulator.builders import pod
from simulator.world import World
from tests.functional.older import provisioner, template
from tests.functional.stand import APART, Stand
from tests.functional.static_pools import after_drains, relabelled, scaled, settled, static_pool, static_stand


def _asking(stand: Stand, share: str, name: str = "default") -> Stand:
    pool = stand.world.cluster.node_pools[name]
    stand.world.cluster.add(with_metadata(pool, annotations={ON_DEMAND_SHARE: share}))
    stand.live()
    return stand


def _alone(stand: Stand, count: int) -> None:
    """Pods each of which needs a node of its own."""
    stand.pods(count, labels={"app": "web"}, affinity=APART)


def _kinds(stand: Stand) -> dict[str, int]:
    return dict(Counter(claim.metadata.labels[CAPACITY_TYPE] for claim in stand.claims))


def _short(stand: Stand) -> tuple[str, str] | None:
    """What the NodePool's condition says of its share."""
    short = find(stand.world.cluster.node_pools["default"].status.conditions, "joinery.dev/OnDemandShareNotKept")
    return (short.reason, short.message) if short else None


@pytest.fixture
def stand(world: World) -> Stand:
    """A NodePool that allows both capacity types."""
    return Stand(world).with_defaults()


def test_nodes_are_launched_as_the_share_says(stand: Stand) -> None:
    """Two and half of the two others."""
    _asking(stand, "2 + 50%")
    _alone(stand, 4)
    stand.settle()
    assert _kinds(stand) == {ON_DEMAND: 3, SPOT: 1}
    assert stand.messages("OnDemandShareNotKept") == {}


def test_a_share_that_cannot_be_kept_is_said_of_the_node_pool(stand: Stand) -> None:
    """Its pods require spot. They get their nodes all the same."""
    _asking(stand, "1")
    stand.pods(1, node_selector={CAPACITY_TYPE: SPOT})
    stand.settle()
    assert _kinds(stand) == {SPOT: 1}
    assert stand.messages("OnDemandShareNotKept") == {
        "default": "0 of 1 node is on demand, and joinery.dev/on-demand (1) asks for 1: the pods of the others require "
        "spot, or there is no on-demand capacity for them"
    }


def test_a_short_share_is_a_condition_until_nodes_make_up_for_it(stand: Stand) -> None:
    """The annotation is new, and two nodes are on spot. The pool stays Ready, and no plan is asked for because of it.
    A third and a fourth node make up for it.
    """
    _alone(stand, 2)
    stand.settle()
    assert _kinds(stand) == {SPOT: 2}
    assert _short(stand) is None
    stand.rung()
    _asking(stand, "2")
    assert Bell.PROVISIONING not in stand.rung()
    assert _short(stand) == (
        "TooFewOnDemand", "0 of 2 nodes are on demand, and joinery.dev/on-demand (2) asks for 2"
    )  # fmt: skip
    assert find(stand.world.cluster.node_pools["default"].status.conditions, "Ready").status == "True"  # type: ignore[union-attr]
    stand.world.cluster.add(*(pod(f"more-{n}", labels={"app": "web"}, affinity=APART, cpu="900m") for n in (1, 2)))
    stand.settle()
    assert _kinds(stand) == {SPOT: 2, ON_DEMAND: 2}
    assert _short(stand) is None


@pytest.mark.parametrize("share", ["two", "101%", "2+", "-1", ""])
def test_a_node_pool_with_a_share_that_is_none_is_not_ready_and_says_which_annotation(stand: Stand, share: str) -> None:
    """Nothing is bought of it."""
    _asking(stand, share)
    stand.pods(1)
    stand.provision()
    assert stand.claims == []
    (said,) = (
        condition.message
        for condition in stand.world.cluster.node_pools["default"].status.conditions
        if condition.type == "ValidationSucceeded"
    )
    assert said == (
        f"metadata.annotations[joinery.dev/on-demand]: {share!r} is neither a number, such as 2, nor a percentage, "
        "such as 30%, nor both: 2 + 30%"
    )


def test_what_replaces_an_interrupted_node_keeps_the_share(stand: Stand) -> None:
    """The spot node goes, and what comes is on spot: one on demand is there."""
    _asking(stand, "1")
    _alone(stand, 2)
    stand.settle()
    (spot,) = (claim for claim in stand.claims if claim.metadata.labels[CAPACITY_TYPE] == SPOT)
    stand.receive("interruption_spot_warning", spot.status.provider_id.rpartition("/")[2])
    stand.provision()
    stand.boot()
    stand.live()
    staying = [one for one in stand.claims if one.metadata.name != spot.metadata.name]
    assert dict(Counter(one.metadata.labels[CAPACITY_TYPE] for one in staying)) == {ON_DEMAND: 1, SPOT: 1}


def test_a_provisioner_has_the_same_share(world: World) -> None:
    """Its annotation is that of the NodePool that it is read as."""
    stand = Stand(world)
    asking = provisioner(requirements=[{"key": CAPACITY_TYPE, "operator": "In", "values": [SPOT, ON_DEMAND]}])
    asking["metadata"]["annotations"] = {ON_DEMAND_SHARE: "2"}
    for document in (template(), asking):
        stand.world.cluster.add_document(document)
    stand.live()
    _alone(stand, 3)
    stand.settle()
    assert _kinds(stand) == {ON_DEMAND: 2, SPOT: 1}


def test_a_static_pool_keeps_its_share_as_it_grows_drifts_and_shrinks(world: World) -> None:
    """Of two replicas one is on demand, of six three, and of two the one that is needed stays."""
    stand = _asking(static_stand(world, static_pool(replicas=2, budgets=[{"nodes": "100%"}])), "50%", "base")
    settled(stand)
    assert _kinds(stand) == {ON_DEMAND: 1, SPOT: 1}
    scaled(stand, 6)
    settled(stand)
    assert _kinds(stand) == {ON_DEMAND: 3, SPOT: 3}
    relabelled(stand, team="web")
    stand.live()
    for _ in range(4):
        settled(stand)
        after_drains(stand)
    assert all("team" in claim.metadata.labels for claim in stand.claims)
    assert _kinds(stand) == {ON_DEMAND: 3, SPOT: 3}
    scaled(stand, 2)
    settled(stand)
    after_drains(stand)
    assert _kinds(stand) == {ON_DEMAND: 1, SPOT: 1}


def test_drifted_nodes_on_demand_wait_where_there_is_no_more_on_demand_capacity(world: World) -> None:
    """A static pool that has run out of it replaces nobody by spot that its share needs on demand."""
    stand = _asking(static_stand(world, static_pool(replicas=2, budgets=[{"nodes": "100%"}])), "1", "base")
    settled(stand)
    pool = stand.world.cluster.node_pools["base"]
    spot_alone = Requirement(key=CAPACITY_TYPE, operator="In", values=[SPOT])
    stand.world.cluster.api.update(pool.requiring([spot_alone]))
    stand.live()
    for _ in range(3):
        settled(stand)
        after_drains(stand)
    assert _kinds(stand) == {ON_DEMAND: 1, SPOT: 1}
    assert stand.messages("OnDemandShareNotKept")["base"].startswith("its drifted nodes are not replaced: 0 of 2")
