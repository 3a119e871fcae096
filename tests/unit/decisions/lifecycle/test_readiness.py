"""May a NodePool be used?"""

from typing import Any

import pytest

from joinery.decisions.lifecycle.pools.readiness import readiness
from joinery.objects.actions import Announce, Command, Reject, UpdateClass, UpdatePool
from joinery.objects.karpenter.conditions import find
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from joinery.objects.karpenter.labels import NODE_POOL_HASH
from joinery.objects.karpenter.meta import Condition
from joinery.objects.karpenter.nodeclass import DEFAULT_KIND, NodeClass
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.snapshot.snapshot import Invalid, Snapshot
from simulator import builders
from simulator.clock import START


def _commands(pool: NodePool, *classes: NodeClass, **rest: Any) -> list[Command]:
    snapshot = Snapshot(now=START, node_pools=(pool,), node_classes=classes, **rest)
    found = {node_class.metadata.name: builders.node_class().status for node_class in classes}
    return [command for chain in readiness(snapshot, found) for command in chain]


def _pool(pool: NodePool, *classes: EC2NodeClass, **rest: Any) -> NodePool:
    return next((c.after for c in _commands(pool, *classes, **rest) if isinstance(c, UpdatePool)), pool)


def test_a_valid_pool_of_a_ready_class_is_ready() -> None:
    """The class is looked at first, so both are ready after one run."""
    found = _commands(builders.node_pool(ready=False), builders.node_class(ready=False))
    assert [type(command) for command in found] == [UpdateClass, UpdatePool]
    pool = _pool(builders.node_pool(ready=False), builders.node_class(ready=False))
    ready = find(pool.status.conditions, "Ready")
    assert ready is not None
    assert ready.status == "True"


def _terminating() -> EC2NodeClass:
    node_class = builders.node_class()
    changes = {"deletion_timestamp": START, "finalizers": [DEFAULT_KIND.finalizer, "example.com/hold"]}
    going = node_class.metadata.model_copy(update=changes)
    return node_class.model_copy(update={"metadata": going})


@pytest.mark.parametrize(
    ("classes", "reason"),
    [((), "NodeClassNotFound"), ((_terminating(),), "NodeClassTerminating")],
)
def test_a_pool_says_what_is_wrong_with_its_class(classes: tuple[EC2NodeClass, ...], reason: str) -> None:
    """Users look at the pool, and should not have to guess."""
    found = find(_pool(builders.node_pool(), *classes).status.conditions, "NodeClassReady")
    assert found is not None
    assert (found.status, found.reason) == ("False", reason)


def test_a_pool_repeats_the_beginning_of_what_a_class_says() -> None:
    """The API server refuses longer messages than 32,768 characters, and others may have written that of the class."""
    node_class = builders.node_class()
    generation = node_class.metadata.generation
    said = Condition(type="Ready", status="False", reason="Odd", message="no " * 20_000, observed_generation=generation)
    status = node_class.status.model_copy(update={"conditions": [said]})
    odd = node_class.model_copy(update={"status": status})
    snapshot = Snapshot(now=START, node_pools=(builders.node_pool(),), node_classes=(odd,))
    commands = [command for chain in readiness(snapshot, {}) for command in chain]
    (pool,) = [command.after for command in commands if isinstance(command, UpdatePool)]
    found = find(pool.status.conditions, "NodeClassReady")
    assert found is not None
    assert (found.reason, found.message[:6], len(found.message)) == ("Odd", "no no ", 1024)


def test_a_pool_counts_its_nodes() -> None:
    """Those that stay; every resource that limits may name is there even for an empty pool."""
    claims = (builders.node_claim("a"), builders.node_claim("b"), builders.node_claim("c", deleted=START))
    pool = _pool(builders.node_pool(), builders.node_class(), node_claims=claims)
    assert (pool.status.nodes, pool.status.resources["cpu"], pool.status.resources["nodes"]) == (2, "8", "2")
    empty = _pool(builders.node_pool(), builders.node_class())
    assert {
        key: empty.status.resources[key] for key in ("cpu", "memory", "pods", "ephemeral-storage", "nodes")
    } == dict.fromkeys(("cpu", "memory", "pods", "ephemeral-storage", "nodes"), "0")


def test_a_node_counts_as_its_claim_expects_until_it_is_initialized_and_then_as_it_is() -> None:
    """As it counts against ``limits`` (Karpenter nodepool/counter)."""
    claim = builders.node_claim("a", node="node-1")
    for initialized, pods in ((False, "110"), (True, "29")):
        nodes = (builders.node("node-1", pods=29, initialized=initialized),)
        pool = _pool(builders.node_pool(), builders.node_class(), node_claims=(claim,), nodes=nodes)
        assert pool.status.resources["pods"] == pods


def test_pools_and_classes_carry_the_hash_of_their_template() -> None:
    """What a claim was made from is compared with these."""
    found = _commands(builders.node_pool(), builders.node_class())
    assert [
        DEFAULT_KIND.hash_annotation in c.after.metadata.annotations for c in found if isinstance(c, UpdateClass)
    ] == [True]
    assert [NODE_POOL_HASH in c.after.metadata.annotations for c in found if isinstance(c, UpdatePool)] == [True]


def test_what_is_settled_is_not_written_again() -> None:
    """A status that is written every five seconds would wake every watcher."""
    node_class = next(
        c.after for c in _commands(builders.node_pool(), builders.node_class()) if isinstance(c, UpdateClass)
    )
    assert _commands(_pool(builders.node_pool(), builders.node_class()), node_class) == []


def test_a_resource_that_does_not_parse_is_told_so() -> None:
    """It takes no part, and the other pools go on."""
    found = _commands(
        builders.node_pool(), builders.node_class(), invalid=(Invalid("NodePool", "broken", "spec.weight: too large"),)
    )
    assert found[0] == Reject("NodePool", "broken", "spec.weight: too large")
    assert any(isinstance(command, UpdatePool) for command in found)


def test_a_pool_names_what_is_wrong_with_a_class_that_does_not_parse() -> None:
    """That class exists: saying that it does not would send its owner looking elsewhere."""
    pool = _pool(builders.node_pool(), invalid=(Invalid("EC2NodeClass", "default", "spec.role: too short"),))
    found = find(pool.status.conditions, "NodeClassReady")
    assert found is not None
    assert (found.status, found.message) == ("False", "EC2NodeClass default is invalid: spec.role: too short")


def test_pools_of_another_providers_classes_are_left_alone() -> None:
    """Two controllers that write one status would do so for ever."""
    document = builders.node_pool(ready=False).to_wire()
    document["spec"]["template"]["spec"]["nodeClassRef"] = {"group": "example.com", "kind": "Rack", "name": "default"}
    assert not any(isinstance(c, UpdatePool) for c in _commands(NodePool.model_validate(document)))


def test_a_class_that_is_deleted_outlives_its_claims() -> None:
    """An instance cannot be understood without its class; then only other people's finalizers stay."""
    used = _commands(builders.node_pool(), _terminating(), node_claims=(builders.node_claim(),))
    (kept,) = [command.after for command in used if isinstance(command, UpdateClass)]
    assert DEFAULT_KIND.finalizer in kept.metadata.finalizers
    assert [c.reason for c in used if isinstance(c, Announce)] == ["WaitingOnNodeClaimTermination"]
    unread = _commands(builders.node_pool(), _terminating(), invalid=(Invalid("NodeClaim", "newer", "spec: unknown"),))
    assert [DEFAULT_KIND.finalizer in c.after.metadata.finalizers for c in unread if isinstance(c, UpdateClass)] == [
        True
    ]
    unused = _commands(builders.node_pool(), _terminating())
    (let_go,) = [command.after for command in unused if isinstance(command, UpdateClass)]
    assert let_go.metadata.finalizers == ["example.com/hold"]
    assert not any(isinstance(command, Announce) for command in unused)


def test_a_pool_is_no_longer_told_that_its_disruption_does_not_act() -> None:
    """An older version had said so."""
    outlived = Condition(type="joinery.dev/DisruptionNotSupported", status="True", reason="NotSupportedYet")
    pool = builders.node_pool(consolidationPolicy="WhenEmpty")
    told = pool.model_copy(update={"status": pool.status.model_copy(update={"conditions": [outlived]})})
    after = _pool(told, builders.node_class())
    assert find(after.status.conditions, outlived.type) is None
