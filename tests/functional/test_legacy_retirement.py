"""Nodes of a Provisioner go when they are empty, too old or have drifted, as Karpenter v0.31 retired them."""

from typing import Any

import pytest
from msgspec.structs import replace

from joinery.decisions.lifecycle.state.drift import drift_noted
from simulator import builders
from simulator.world import World
from tests.functional.older import DAY, OLD_NAME, XLARGE, beta, emptied, empty_since, stored, tick, v31
from tests.functional.stand import APART, Stand


@pytest.fixture
def old(world: World) -> Stand:
    """A cluster of v0.31 whose nodes go thirty seconds after they are empty, and after ten days."""
    return v31(Stand(world), ttlSecondsAfterEmpty=30, ttlSecondsUntilExpired=10 * DAY)


def _changed(stand: Stand, kind: str, **spec: Any) -> None:
    """Somebody edits the object."""
    document = stored(stand, kind)
    stand.world.cluster.add_document({**document, "spec": {**document["spec"], **spec}})


# --- emptiness ---


def test_an_empty_node_says_since_when_and_goes_after_its_time(old: Stand) -> None:
    """The annotation comes with the last pod's end; thirty seconds later the node is retired."""
    old.pods(1)
    old.settle()
    assert empty_since(old) == [None]
    old.wait(60)
    emptied(old)
    old.live()
    noted = empty_since(old)
    assert noted == [old.world.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")]
    old.wait(20)
    assert old.consolidate()["commands"] == 0
    old.live()
    assert empty_since(old) == noted
    old.wait(20)
    assert old.consolidate()["commands"] == 1
    tick(old)
    assert old.alive == []


def test_a_pod_takes_the_annotation_away(old: Stand) -> None:
    """The node is not empty any more, and its time begins anew with the next end."""
    old.pods(1)
    old.settle()
    emptied(old)
    old.live()
    (node,) = old.world.cluster.nodes.values()
    old.world.cluster.add(builders.pod("late", node=node.metadata.name))
    old.live()
    assert empty_since(old) == [None]


def test_all_empty_nodes_go_at_once(old: Stand) -> None:
    """There were no budgets."""
    old.pods(9)
    old.settle()
    assert len(old.alive) >= 3
    emptied(old)
    old.live()
    old.wait(60)
    old.live()
    old.consolidate()
    tick(old)
    assert old.alive == []


@pytest.mark.parametrize(("spec", "left"), [({"consolidation": {"enabled": True}}, 0), ({}, 1)])
def test_consolidation_decides_where_no_time_is_said(world: World, spec: dict[str, Any], left: int) -> None:
    """With neither, an empty node stays until it expires; and no annotation is written in either case."""
    stand = v31(Stand(world), **spec)
    stand.pods(1)
    stand.settle()
    emptied(stand)
    tick(stand, 2)
    assert empty_since(stand) == [None]
    stand.wait(3600)
    stand.live()
    stand.consolidate()
    tick(stand)
    assert len(stand.alive) == left


def test_do_not_evict_is_heeded(world: World) -> None:
    """The older name of ``do-not-disrupt`` on pods."""
    stand = v31(Stand(world), consolidation={"enabled": True})
    stand.pods(1, annotations={"karpenter.sh/do-not-evict": "true"})
    stand.grow_old(3600)
    (pod,) = stand.world.cluster.snapshot().pods
    assert pod.metadata.annotations["karpenter.sh/do-not-disrupt"] == "true"


def test_do_not_consolidate_is_heeded_for_all_that_may_be_left_undone(old: Stand) -> None:
    """The older name of ``do-not-disrupt`` on nodes: one that is empty stays too, until nobody asks for that."""
    old.pods(1)
    old.settle()
    (node,) = old.world.cluster.nodes.values()
    asking = {**node.metadata.annotations, "karpenter.sh/do-not-consolidate": "true"}
    old.world.cluster.add(replace(node, metadata=replace(node.metadata, annotations=asking)))
    emptied(old)
    old.live()
    old.wait(60)
    assert old.consolidate()["commands"] == 0
    (node,) = old.world.cluster.nodes.values()
    silent = {key: value for key, value in node.metadata.annotations.items() if key not in asking}
    old.world.cluster.add(replace(node, metadata=replace(node.metadata, annotations=silent)))
    old.live()
    old.wait(60)
    assert old.consolidate()["commands"] == 1


# --- expiry and drift ---


def test_a_node_expires_when_its_provisioner_says_so(old: Stand) -> None:
    """After ten days."""
    old.pods(1)
    old.settle()
    old.wait(9 * DAY)
    assert old.expire() == {"expired": 0}
    old.wait(DAY)
    assert old.expire() == {"expired": 1}


def _three_too_old(world: World, **spec: Any) -> Stand:
    stand = v31(Stand(world), ttlSecondsUntilExpired=10 * DAY, **spec)
    stand.pods(3, labels={"app": "web"}, affinity=APART)
    stand.grow_old(10 * DAY)
    return stand


def test_old_nodes_do_not_go_all_at_once(world: World) -> None:
    """v0.31 replaced one after another."""
    assert _three_too_old(world).expire() == {"expired": 1, "waiting": 2}


def test_old_nodes_go_all_at_once_where_the_provisioner_says_so(world: World) -> None:
    """As from Karpenter v1.0 on."""
    stand = _three_too_old(world)
    document = stored(stand, "Provisioner")
    metadata = {**document["metadata"], "annotations": {"joinery.dev/expiration-obeys-budgets": "false"}}
    world.cluster.add_document({**document, "metadata": metadata})
    assert stand.expire() == {"expired": 3}


def test_a_budget_of_v1beta1_keeps_old_nodes(world: World) -> None:
    """From v0.34 to v0.37 budgets bound expiry."""
    node_class, pool = beta()
    pool["spec"]["disruption"] |= {"expireAfter": "240h", "budgets": [{"nodes": "0"}]}
    for document in (node_class, pool):
        world.cluster.add_document(document)
    stand = Stand(world)
    stand.live()
    stand.pods(1)
    stand.grow_old(10 * DAY)
    assert stand.expire() == {"expired": 0, "waiting": 1}


@pytest.mark.parametrize("key", ["karpenter.sh/do-not-evict", "karpenter.sh/do-not-disrupt"])
def test_an_old_node_stays_for_a_pod_that_must_not_be_evicted(old: Stand, key: str) -> None:
    """It was no candidate up to v0.37. From v1.0 on it is given up, and waits for the pod with a taint."""
    old.pods(1, annotations={key: "true"})
    old.grow_old(10 * DAY)
    assert old.expire() == {"expired": 0, "waiting": 1}
    assert "must not be disrupted" in old.messages("DisruptionBlocked")["default"]
    emptied(old)
    assert old.expire() == {"expired": 1}


def test_a_changed_expiry_holds_for_nodes_that_are_there(old: Stand) -> None:
    """It was never drift: the nodes stay until their new time."""
    old.pods(1)
    old.settle()
    _changed(old, "Provisioner", ttlSecondsUntilExpired=2 * DAY)
    old.live()
    assert drift_noted(old.claim) is None
    old.wait(2 * DAY)
    assert old.expire() == {"expired": 1}


def test_without_an_expiry_a_node_never_expires(world: World) -> None:
    """The 720 hours of NodePools are not a Provisioner's."""
    stand = v31(Stand(world))
    stand.pods(1)
    stand.settle()
    stand.wait(100 * DAY)
    assert stand.expire() == {"expired": 0}


def test_a_changed_provisioner_drifts_its_nodes(old: Stand) -> None:
    """Labels of its nodes are what they were made with."""
    old.pods(1)
    old.settle()
    _changed(old, "Provisioner", labels={"team": "new"})
    old.live()
    drift = drift_noted(old.claim)
    assert drift is not None
    assert drift.reason == "NodePoolDrifted"


def test_a_changed_template_drifts_its_nodes(old: Stand) -> None:
    """User data cannot change on an instance that runs."""
    old.pods(1)
    old.settle()
    _changed(old, "AWSNodeTemplate", userData="echo new")
    old.live()
    drift = drift_noted(old.claim)
    assert drift is not None
    assert drift.reason == "NodeClassDrift"


# --- nodes that v0.31 made ---


def _machine(**metadata: Any) -> dict[str, Any]:
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": "2026-08-24T00:00:00Z"}
        for kind in ("MachineLaunched", "MachineRegistered", "MachineInitialized")
    ]
    return {
        "apiVersion": "karpenter.sh/v1alpha5", "kind": "Machine",
        "metadata": {
            "name": "default-x", "labels": {OLD_NAME: "default"}, "finalizers": ["karpenter.sh/termination"],
            "creationTimestamp": "2026-08-24T00:00:00Z", **metadata,
        },
        "spec": {"requirements": [XLARGE], "machineTemplateRef": {"name": "default"}},
        "status": {"providerID": "", "conditions": conditions},
    }  # fmt: skip


@pytest.fixture
def made_by_v31(old: Stand) -> Stand:
    """A node of v0.31: its Machine is what Joinery's NodeClaim was until now."""
    old.pods(1)
    old.settle()
    claim = old.claim
    document = _machine()
    document["status"] |= {"providerID": claim.status.provider_id, "nodeName": claim.status.node_name}
    old.world.cluster.add(claim.model_copy(update={"metadata": claim.metadata.model_copy(update={"finalizers": []})}))
    old.world.cluster.remove(claim)
    old.world.cluster.add_document(document)
    return old


def test_a_machine_is_adopted_as_it_is(made_by_v31: Stand) -> None:
    """No second claim is made for its node, and nothing is replaced."""
    made_by_v31.live()
    (claim,) = made_by_v31.world.cluster.snapshot().node_claims
    assert claim.stored_as == ("karpenter.sh/v1alpha5", "Machine")
    assert (made_by_v31.claims, len(made_by_v31.alive)) == ([], 1)
    shown = {one["type"] for one in stored(made_by_v31, "Machine", "default-x")["status"]["conditions"]}
    assert {"MachineLaunched", "MachineRegistered", "MachineInitialized"} <= shown


def test_a_machine_expires_and_ends_with_its_instance(made_by_v31: Stand) -> None:
    """By its Provisioner's time; the Machine goes when the instance is gone."""
    made_by_v31.live()
    made_by_v31.wait(10 * DAY)
    assert made_by_v31.expire() == {"expired": 1}
    emptied(made_by_v31)
    tick(made_by_v31)
    assert made_by_v31.alive == []
    assert made_by_v31.world.cluster.snapshot().node_claims == ()


def test_an_empty_machine_goes(made_by_v31: Stand) -> None:
    """Emptiness and its annotation concern nodes of either kind of claim."""
    made_by_v31.live()
    emptied(made_by_v31)
    made_by_v31.live()
    assert None not in empty_since(made_by_v31)
    made_by_v31.wait(60)
    made_by_v31.live()
    made_by_v31.consolidate()
    tick(made_by_v31)
    assert made_by_v31.alive == []
