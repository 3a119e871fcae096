"""What a Karpenter that was scaled down in the middle of a command has left behind."""

from datetime import timedelta

import pytest
from msgspec.structs import replace as changed

from joinery.objects.karpenter.labels import DISRUPTED_TAINT, EXCLUDE_FROM_LOAD_BALANCERS, INTERRUPTED_AT, NO_SCHEDULE
from joinery.objects.karpenter.meta import Condition
from joinery.objects.kubernetes.core import Node, Taint
from joinery.objects.snapshot.claims import annotated, with_condition
from tests.functional.stand import Stand

REASON = "DisruptionReason"


def _chosen(stand: Stand, *, with_condition_too: bool = True) -> None:
    """A node that Karpenter chose to consolidate."""
    stand.pods(1)
    stand.settle()
    stand.live()
    cluster, now = stand.world.cluster, stand.world.clock.now()
    taint = Taint(key=DISRUPTED_TAINT, effect=NO_SCHEDULE)
    node = _node(stand)
    cluster.api.update(changed(node, spec=changed(node.spec, taints=[*node.spec.taints, taint])))
    if with_condition_too:
        reason = Condition(type=REASON, status="True", reason="Underutilized", last_transition_time=now)
        cluster.update_node_claim(stand.claim, with_condition(stand.claim, reason))


def _node(stand: Stand) -> Node:
    (node,) = stand.world.cluster.nodes.values()
    return node


def _is_tainted(stand: Stand) -> bool:
    return DISRUPTED_TAINT in {taint.key for taint in _node(stand).spec.taints}


def test_a_node_whose_command_was_forgotten_takes_pods_again(stand: Stand) -> None:
    """It would cost money for ever and take none. Ten minutes are Karpenter's own limit for a command."""
    _chosen(stand)
    stand.wait(timedelta(minutes=10).total_seconds() - 1)
    stand.live()
    assert _is_tainted(stand)
    stand.wait(1)
    stand.live()
    assert (_is_tainted(stand), stand.claim.condition(REASON)) == (False, None)


def test_a_taint_without_a_command_goes_at_once(stand: Stand) -> None:
    """Karpenter sets the condition after the taint, so it was stopped in between."""
    _chosen(stand, with_condition_too=False)
    stand.live()
    assert not _is_tainted(stand)


@pytest.mark.parametrize(("value", "stays"), [("karpenter", False), ("somebody", True)])
def test_the_node_gets_traffic_again_unless_somebody_else_keeps_it_out(stand: Stand, value: str, stays: bool) -> None:
    """Termination's label has Karpenter's name for a value."""
    _chosen(stand, with_condition_too=False)
    node = _node(stand)
    labels = {**node.metadata.labels, EXCLUDE_FROM_LOAD_BALANCERS: value}
    stand.world.cluster.api.update(changed(node, metadata=changed(node.metadata, labels=labels)))
    stand.live()
    assert (EXCLUDE_FROM_LOAD_BALANCERS in _node(stand).metadata.labels) is stays


def test_a_node_that_ec2_takes_back_keeps_its_taint(stand: Stand) -> None:
    """Its claim is marked before it is deleted, and a run may come in between."""
    _chosen(stand, with_condition_too=False)
    marked = annotated(stand.claim, {INTERRUPTED_AT: stand.world.clock.now().isoformat()})
    stand.world.cluster.update_node_claim(stand.claim, marked)
    stand.wait(15 * 60)
    stand.live()
    assert _is_tainted(stand)
