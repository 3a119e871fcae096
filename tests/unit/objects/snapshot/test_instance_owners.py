"""Whose an instance is, where provider IDs do not say it."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from joinery.objects.karpenter.meta import with_metadata
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Node
from joinery.objects.snapshot.instance_owners import copies, lost_provider_ids
from joinery.objects.snapshot.instances import INSTANCE_CLAIM_TAG, Instance
from joinery.objects.snapshot.replicas import static_pools
from joinery.objects.snapshot.snapshot import Snapshot
from simulator import builders
from simulator.clock import START

ID = "aws:///us-east-1a/i-node-1"


def _claim(name: str, *, provider_id: str = ID, age: int = 1, **given: Any) -> NodeClaim:
    claim = builders.node_claim(name, provider_id=provider_id, created=START - timedelta(hours=age), **given)
    return with_metadata(claim, uid=f"uid-{name}")


def _node(owner: str = "") -> Node:
    node = builders.node("node-1", provider_id=ID)
    owners = [builders.owner("NodeClaim", owner, uid=f"uid-{owner}")] if owner else []
    return replace(node, metadata=replace(node.metadata, owner_references=owners))


def _instance(name: str = "", state: str = "running") -> Instance:
    tags = {INSTANCE_CLAIM_TAG: name} if name else {}
    return Instance("i-node-1", "m7a.xlarge", "us-east-1a", "spot", state, START, tags=tags)


def test_a_node_or_a_tag_says_which_instance_a_claim_has_lost() -> None:
    """Either is enough. A claim that has said it all along, and one that nothing speaks of, are left out."""
    lost, other = _claim("lost", provider_id=""), _claim("other", provider_id="")
    assert lost_provider_ids([lost, other], [_node(owner="lost")]) == {"lost": ID}
    assert lost_provider_ids([lost, other], [_node()], [_instance("lost")]) == {"lost": ID}
    assert lost_provider_ids([_claim("lost")], [_node(owner="lost")], [_instance("lost")]) == {}


def test_no_claim_gets_an_instance_that_another_has_or_that_serves_nobody() -> None:
    """What has ended, or is stopped, would be given up at once."""
    lost = _claim("lost", provider_id="")
    assert lost_provider_ids([lost, _claim("has it")], [_node(owner="lost")], [_instance("lost")]) == {}
    assert lost_provider_ids([lost], [], [_instance("lost", "stopped")]) == {}


@pytest.mark.parametrize(
    ("node", "instance", "right"),
    [
        (_node(owner="older"), _instance("younger"), "younger"),
        (_node(owner="younger"), _instance(), "younger"),
        (_node(), _instance(), "older"),
        (_node(owner="gone"), _instance("gone"), "older"),
    ],
)
def test_of_two_claims_the_tag_the_node_and_then_age_decide(node: Node, instance: Instance, right: str) -> None:
    """The tag is written once, when the instance has joined."""
    claims = [_claim("younger", age=1), _claim("older", age=2), _claim("alone", provider_id="aws:///us-east-1a/i-2")]
    assert copies(claims, [node], [instance]) == {"older", "younger"} - {right}


def test_a_copy_is_no_node_and_its_deletion_is_not_its_owners() -> None:
    """Its room would count twice, and the node would take no pods any more."""
    snapshot = Snapshot(
        now=START, node_claims=(_claim("owner", age=2), _claim("copy", deleted=START)), nodes=(_node(),)
    )
    assert [(view.name, view.claim, view.is_leaving) for view in snapshot.views] == [("node-1", "owner", False)]


def test_a_copy_is_no_replica() -> None:
    """A static NodePool would give up a node for it."""
    claims, pool = (_claim("owner", age=2), _claim("copy")), builders.node_pool(replicas=1)
    (static,) = static_pools(Snapshot(now=START, node_pools=(pool,), node_claims=claims, nodes=(_node(),))).values()
    assert ([claim.metadata.name for claim in static.staying], static.lacking) == (["owner"], 0)


def test_a_claim_that_has_lost_its_provider_id_is_its_node() -> None:
    """It is no second node on its way."""
    snapshot = Snapshot(now=START, node_claims=(_claim("owner", provider_id=""),), nodes=(_node(owner="owner"),))
    assert [(view.name, view.claim) for view in snapshot.views] == [("node-1", "owner")]
