"""Instances that no claim knows."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from joinery.apis.core import Node
from joinery.apis.labels import NODE_POOL
from joinery.apis.nodeclaim import NodeClaim
from joinery.lifecycle.garbage import unknown_instances
from joinery.lifecycle.view import view
from joinery.state.instances import Instance
from joinery.state.snapshot import Invalid, Snapshot
from simulator import builders
from simulator.clock import START


def _instance(name: str = "lost", *, age: int = 31, state: str = "running", pool: str = "default") -> Instance:
    launched: datetime = START - timedelta(seconds=age)
    tags = {NODE_POOL: pool}
    return Instance(f"i-{name}", "m7a.large", "us-east-1a", "spot", state, launched, tags=tags)


def _collected(instances: Iterable[Instance], *claims: NodeClaim, nodes: tuple[Node, ...] = ()) -> list[str]:
    world = view(Snapshot(now=START, node_claims=claims, nodes=nodes), instances)
    return [type(command).__name__ for chain in unknown_instances(world) for command in chain]


def test_an_instance_that_no_claim_knows_is_terminated() -> None:
    """It would cost money for ever."""
    assert _collected([_instance()]) == ["TerminateInstance"]


def test_nothing_is_collected_while_a_claim_cannot_be_read() -> None:
    """It may be that claim's, with pods on it: a newer version wrote what this one does not understand."""
    unread = Snapshot(now=START, invalid=(Invalid("NodeClaim", "newer", "spec.requirements[0].operator: unknown"),))
    assert list(unknown_instances(view(unread, [_instance()]))) == []


def test_its_node_goes_with_it() -> None:
    """A Node without an instance would confuse everybody."""
    node = builders.node("lost")
    assert _collected([_instance()], nodes=(node,)) == ["TerminateInstance", "DeleteNode"]


def test_a_known_young_or_going_instance_is_left_alone() -> None:
    """Its claim may be written in the next moment, or EC2 is at it already."""
    known = builders.node_claim(node="lost")
    assert _collected([_instance()], known) == []
    assert _collected([_instance(age=30)]) == []
    assert _collected([_instance(state="shutting-down")]) == []


def test_an_instance_that_a_claim_is_waiting_for_is_left_alone() -> None:
    """EC2 accepted the launch and whoever asked was stopped: the claim will find it by its token."""
    waiting = builders.node_claim(conditions=())
    assert _collected([_instance()], waiting) == []
    assert _collected([_instance(pool="other")], waiting) == ["TerminateInstance"]


def test_a_claim_that_goes_waits_for_nothing() -> None:
    """It was given up, and what EC2 still gave it is a leak."""
    assert _collected([_instance()], builders.node_claim(conditions=(), deleted=START)) == ["TerminateInstance"]
