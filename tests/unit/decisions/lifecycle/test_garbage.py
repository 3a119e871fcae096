"""Instances that no claim knows."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from joinery.decisions.lifecycle.garbage import unknown_instances
from joinery.decisions.lifecycle.launching.fleet_groups import fleet_groups
from joinery.decisions.lifecycle.state.cluster import state_of
from joinery.objects.actions import TerminateInstance
from joinery.objects.karpenter.labels import LAUNCH_TOKEN, MANAGED_BY, NODE_POOL
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Node
from joinery.objects.snapshot.instances import INSTANCE_CLAIM_TAG, Instance
from joinery.objects.snapshot.snapshot import Invalid, Snapshot
from simulator import builders
from simulator.clock import START


def _instance(name: str = "lost", *, age: int = 31, state: str = "running", pool: str = "default") -> Instance:
    launched: datetime = START - timedelta(seconds=age)
    tags = {NODE_POOL: pool}
    return Instance(f"i-{name}", "m7a.large", "us-east-1a", "spot", state, launched, tags=tags)


def _collected(instances: Iterable[Instance], *claims: NodeClaim, nodes: tuple[Node, ...] = ()) -> list[str]:
    world = state_of(Snapshot(now=START, node_claims=claims, nodes=nodes), instances)
    return [type(command).__name__ for chain in unknown_instances(world) for command in chain]


def test_an_instance_that_no_claim_knows_is_terminated() -> None:
    """It would cost money for ever."""
    assert _collected([_instance()]) == ["TerminateInstance"]


def test_an_instance_of_an_older_karpenter_is_left_to_it() -> None:
    """Its Machine is read only where legacy objects are acted on."""
    older = replace(_instance(), tags={NODE_POOL: "default", MANAGED_BY: "joinery"})
    assert _collected([older]) == []


def _collected_beside(unread: Invalid, *instances: Instance) -> list[str]:
    world = state_of(Snapshot(now=START, invalid=(unread,)), instances)
    commands = (command for chain in unknown_instances(world) for command in chain)
    return [command.instance_id for command in commands if isinstance(command, TerminateInstance)]


def test_a_claim_that_cannot_be_read_keeps_its_instance_and_no_other() -> None:
    """It has pods on it, whatever a newer version wrote into its claim; elsewhere leaks are collected as ever."""
    known = Invalid("NodeClaim", "newer", "spec: unknown", provider_id="aws:///us-east-1a/i-lost", node_pool="default")
    assert _collected_beside(known, _instance(), _instance("other")) == ["i-other"]
    tagged = replace(_instance(), tags={NODE_POOL: "default", INSTANCE_CLAIM_TAG: "newer"})
    named = Invalid("NodeClaim", "newer", "spec: unknown", created=START - timedelta(hours=1))
    assert _collected_beside(named, tagged, _instance("other")) == ["i-other"]


def test_a_claim_that_cannot_be_read_waits_for_its_instance_as_long_as_any_other() -> None:
    """Five minutes, and in its own pool: then what nobody knows there is a leak again."""
    waiting = Invalid("NodeClaim", "newer", "spec: unknown", node_pool="default", created=START - timedelta(minutes=4))
    assert _collected_beside(waiting, _instance(), _instance("other", pool="other")) == ["i-other"]
    late = replace(waiting, created=START - timedelta(minutes=5))
    assert _collected_beside(late, _instance()) == ["i-lost"]


def test_the_instance_of_another_providers_claim_is_not_unknown() -> None:
    """EKS Auto Mode keeps claims of the same kind."""
    theirs = builders.foreign(builders.node_claim(node="lost"))
    assert _collected([_instance()], theirs) == []


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
    """EC2 accepted the launch and whoever asked was stopped: the claim will find it by its token.

    One that another call has launched is not waited for, although it is of the same pool.
    """
    waiting = builders.node_claim(conditions=())
    (group,) = fleet_groups([waiting], [waiting])
    awaited = replace(_instance(), tags={NODE_POOL: "default", LAUNCH_TOKEN: group.token})
    assert _collected([awaited], waiting) == []
    assert _collected([awaited, _instance("leak")], waiting) == ["TerminateInstance"]


def test_a_claim_that_goes_waits_for_nothing() -> None:
    """It was given up, and what EC2 still gave it is a leak."""
    assert _collected([_instance()], builders.node_claim(conditions=(), deleted=START)) == ["TerminateInstance"]
