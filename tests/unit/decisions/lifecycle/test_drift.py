"""Drift: which claims are not what their NodePool and node class say today, and which of them are replaced now."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from joinery.decisions.disruption.static_drift import to_replace
from joinery.decisions.lifecycle.state.drift import INSTANCE_TYPE_NOT_FOUND, DriftDetector, with_drift
from joinery.objects.karpenter.conditions import Observation, false
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from joinery.objects.karpenter.hashing import HASH_VERSION, node_pool_hash
from joinery.objects.karpenter.labels import (
    ARCH,
    DO_NOT_DISRUPT,
    NODE_CLASS_HASH,
    NODE_CLASS_HASH_VERSION,
    NODE_POOL_HASH,
    NODE_POOL_HASH_VERSION,
)
from joinery.objects.karpenter.meta import with_metadata
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodeclass import Drift
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.snapshot.instances import Instance
from joinery.objects.snapshot.snapshot import Snapshot
from simulator import builders
from simulator.clock import START

TYPE, ZONE = "node.kubernetes.io/instance-type", "topology.kubernetes.io/zone"
CLASS = builders.node_class()
POOL = builders.node_pool(replicas=1)
STAMPS = {
    NODE_POOL_HASH: node_pool_hash(POOL),
    NODE_POOL_HASH_VERSION: HASH_VERSION,
    NODE_CLASS_HASH: CLASS.static_hash,
    NODE_CLASS_HASH_VERSION: HASH_VERSION,
}


def _claim(name: str = "c-1", *, stamps: dict[str, str] | None = None, **given: Any) -> NodeClaim:
    return builders.node_claim(name, node=f"n-{name}", annotations=STAMPS if stamps is None else stamps, **given)


def _reason(claim: NodeClaim, *, pool: NodePool = POOL, node_class: Any = CLASS) -> str:
    classes = (node_class,) if node_class else ()
    snapshot = Snapshot(now=START, node_pools=(pool,), node_classes=classes, node_claims=(claim,))
    drift = DriftDetector(snapshot).drift_of(claim)
    return drift.reason if drift else ""


def _requiring(key: str, operator: str, *values: str) -> NodePool:
    return builders.node_pool(replicas=1, requirements=[{"key": key, "operator": operator, "values": list(values)}])


@pytest.mark.parametrize(
    ("pool", "reason"),
    [
        (POOL, ""),
        (builders.node_pool(replicas=9, budgets=[{"nodes": "0"}], limits={"nodes": "20"}), ""),
        (builders.node_pool(replicas=1, labels={"team": "web"}), "NodePoolDrifted"),
        (builders.node_pool(replicas=1, annotations={"team": "web"}), "NodePoolDrifted"),
        (builders.node_pool(replicas=1, taints=[{"key": "a", "effect": "NoSchedule"}]), "NodePoolDrifted"),
        (builders.node_pool(replicas=1, startup_taints=[{"key": "a", "effect": "NoSchedule"}]), "NodePoolDrifted"),
        (builders.node_pool(replicas=1, node_class="other"), "NodePoolDrifted"),
        (builders.node_pool(replicas=1, expire_after="1h"), "NodePoolDrifted"),
        (builders.node_pool(replicas=1, termination_grace_period="1h"), "NodePoolDrifted"),
    ],
)
def test_a_template_that_changed_drifts_its_nodes(pool: NodePool, reason: str) -> None:
    """What only says how many nodes there are, or when they may go, does not."""
    assert _reason(_claim(), pool=pool) == reason


@pytest.mark.parametrize(
    ("pool", "reason"),
    [
        (_requiring(TYPE, "In", "m7a.xlarge", "m7a.large"), ""),
        (_requiring(TYPE, "In", "m7a.large"), "RequirementsDrifted"),
        (_requiring(TYPE, "NotIn", "m7a.xlarge"), "RequirementsDrifted"),
        (_requiring(ZONE, "Exists"), ""),
        (_requiring("team", "Exists"), "RequirementsDrifted"),
        (_requiring("team", "In", "web"), "RequirementsDrifted"),
        (_requiring("team", "NotIn", "web"), ""),
        (_requiring("team", "DoesNotExist"), ""),
        (_requiring(ZONE, "DoesNotExist"), "RequirementsDrifted"),
        (_requiring("failure-domain.beta.kubernetes.io/zone", "In", "us-east-1a"), ""),
        (_requiring("karpenter.k8s.aws/instance-cpu", "Gt", "3"), ""),
        (_requiring("karpenter.k8s.aws/instance-cpu", "Lt", "4"), "RequirementsDrifted"),
    ],
)
def test_labels_that_no_longer_satisfy_the_requirements_drift_a_node(pool: NodePool, reason: str) -> None:
    """A label that the claim lacks satisfies only what allows its absence."""
    assert _reason(_claim(labels={"karpenter.k8s.aws/instance-cpu": "4"}), pool=pool) == reason


def test_a_claim_with_an_instance_drifts_whatever_its_condition_launched_says() -> None:
    """Karpenter leaves such claims: they kept their nodes for ever."""
    claim = _claim(conditions=("Registered", "Initialized"), provider_id="aws:///us-east-1a/i-1")
    assert _reason(claim, pool=builders.node_pool(replicas=1, labels={"team": "web"})) == "NodePoolDrifted"


def test_a_node_class_that_changed_drifts_its_nodes() -> None:
    """Its hash says so; the NodePool's own drift is named first."""
    changed = builders.node_class(userData="echo hello")
    assert _reason(_claim(), node_class=changed) == "NodeClassDrift"
    both = builders.node_pool(replicas=1, labels={"team": "web"})
    assert _reason(_claim(), pool=both, node_class=changed) == "NodePoolDrifted"


@pytest.mark.parametrize(
    "claim",
    [
        _claim(stamps={}),
        _claim(stamps={**STAMPS, NODE_POOL_HASH_VERSION: "v3"}),
        _claim(stamps={key: value for key, value in STAMPS.items() if key != NODE_POOL_HASH}),
        _claim(conditions=()),
        _claim(node_pool="gone"),
    ],
    ids=["no hashes", "of another version", "no hash", "not launched", "no NodePool"],
)
def test_without_anything_to_compare_nothing_drifts(claim: NodeClaim) -> None:
    """What cannot be told is no reason to replace a node."""
    assert _reason(claim, pool=builders.node_pool(replicas=1, labels={"team": "web"})) == ""
    assert _reason(_claim(), node_class=None) == ""


def test_the_condition_comes_keeps_its_moment_and_goes() -> None:
    """A claim whose condition stays as it is is not written."""
    changed = builders.node_pool(replicas=1, labels={"team": "web"})
    snapshot = Snapshot(now=START, node_pools=(changed,), node_classes=(CLASS,))
    before = _claim()
    after = DriftDetector(snapshot).judged(before)
    condition = after.condition("Drifted")
    assert condition is not None
    assert (condition.status, condition.reason) == ("True", "NodePoolDrifted")
    assert "NodePool default" in condition.message
    later = DriftDetector(replace(snapshot, now=START + timedelta(hours=1)))
    assert later.judged(after) == after
    assert DriftDetector(replace(snapshot, node_pools=(POOL,))).judged(after) == before


# --- what the instance was made of ---


def _instance(**given: Any) -> Instance:
    """The instance of ``_claim()``, made as ``CLASS`` says."""
    made: dict[str, Any] = {
        "image_id": "ami-amd64",
        "subnet_id": "subnet-a",
        "security_groups": frozenset({"sg-nodes"}),
    }
    moment = START - timedelta(hours=1)
    return Instance("i-c-1", "m7a.xlarge", "us-east-1a", "on-demand", "running", moment, **{**made, **given})


def _dynamic(
    instance: Instance | None, *, node_class: EC2NodeClass = CLASS, claim: NodeClaim | None = None, arch: str = "amd64"
) -> str:
    claim = claim or _claim(provider_id="aws:///us-east-1a/i-c-1")
    claim = with_metadata(claim, labels={**claim.metadata.labels, ARCH: arch})
    snapshot = Snapshot(now=START, node_pools=(POOL,), node_classes=(node_class,), node_claims=(claim,))
    instances = {instance.instance_id: instance} if instance else {}
    drift = DriftDetector(snapshot, instances).drift_of(claim)
    return drift.reason if drift else ""


def _selecting(**status: Any) -> EC2NodeClass:
    return CLASS.model_copy(update={"status": CLASS.status.model_copy(update=status)})


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({}, ""),
        ({"image_id": "ami-older"}, "AMIDrift"),
        ({"security_groups": frozenset({"sg-other"})}, "SecurityGroupDrift"),
        ({"security_groups": frozenset({"sg-nodes", "sg-other"})}, "SecurityGroupDrift"),
        ({"subnet_id": "subnet-gone"}, "SubnetDrift"),
        ({"reservation": "cr-gone"}, "CapacityReservationDrift"),
        ({"placement_group_id": "pg-1", "placement_group": "rack"}, "PlacementGroupDrift"),
        ({"placement_group_id": "pg-1", "reservation": "cr-gone"}, "CapacityReservationDrift"),
        ({"placement_group_id": "pg-1", "subnet_id": "", "security_groups": frozenset()}, ""),
        ({"image_id": "ami-older", "subnet_id": "subnet-gone"}, "AMIDrift"),
        ({"image_id": "", "subnet_id": "", "security_groups": frozenset()}, ""),
    ],
)
def test_what_the_class_selects_now_is_compared_with_the_instance(given: dict[str, Any], reason: str) -> None:
    """The image first, as Karpenter reports it. What EC2 does not say is no difference."""
    assert _dynamic(_instance(**given)) == reason


@pytest.mark.parametrize(
    ("selector", "group", "reason"),
    [
        ({"id": "pg-1"}, ("pg-1", "rack"), ""),
        ({"name": "rack"}, ("pg-1", "rack"), ""),
        ({"id": "pg-2"}, ("pg-1", "rack"), "PlacementGroupDrift"),
        ({"name": "aisle"}, ("pg-1", "rack"), "PlacementGroupDrift"),
        ({"name": "rack"}, ("", ""), "PlacementGroupDrift"),
    ],
)
def test_an_instance_belongs_into_the_placement_group_of_its_class(
    selector: dict[str, str], group: tuple[str, str], reason: str
) -> None:
    """Whether the class names it by id or by name: EC2 says both of each instance."""
    node_class = builders.node_class(placementGroupSelector=selector)
    stamps = {**STAMPS, NODE_CLASS_HASH: node_class.static_hash}
    claim = _claim(stamps=stamps, provider_id="aws:///us-east-1a/i-c-1")
    instance = _instance(placement_group_id=group[0], placement_group=group[1])
    assert _dynamic(instance, node_class=node_class, claim=claim) == reason


def test_the_newest_image_that_fits_the_node_counts() -> None:
    """An image for another architecture, or one that the status lists later, is no reason to replace it."""
    newer = CLASS.status.amis[0].model_copy(update={"id": "ami-newer"})
    assert _dynamic(_instance(), node_class=_selecting(amis=[newer, *CLASS.status.amis])) == "AMIDrift"
    assert _dynamic(_instance(), node_class=_selecting(amis=[*CLASS.status.amis, newer])) == ""
    assert _dynamic(_instance(image_id="ami-arm64"), arch="arm64") == ""
    assert _dynamic(_instance(), arch="riscv64") == "AMIDrift"


def test_a_status_that_says_nothing_drifts_nobody() -> None:
    """Nobody has resolved the class yet, or EC2 could not be asked."""
    blank = _selecting(amis=[], subnets=[], security_groups=[])
    assert _dynamic(_instance(image_id="ami-older", subnet_id="subnet-gone"), node_class=blank) == ""


@pytest.mark.parametrize(("reason", "kept"), [("AMIDrift", "AMIDrift"), ("NodePoolDrifted", "")])
def test_while_the_instance_is_not_known_a_verdict_about_it_stays(reason: str, kept: str) -> None:
    """EC2 could not be asked, or has forgotten it. What needs no instance is judged all the same."""
    claim = with_drift(_claim(provider_id="aws:///us-east-1a/i-c-1"), Drift(reason, "as it was"), START)
    assert _dynamic(None, claim=claim) == kept
    assert _dynamic(_instance(), claim=claim) == ""


def test_what_disruption_has_noted_about_the_instance_type_stays() -> None:
    """Lifecycle does not read the catalogue. Other reasons of the node class come after it."""
    claim = with_drift(_claim(provider_id="aws:///us-east-1a/i-c-1"), Drift(INSTANCE_TYPE_NOT_FOUND, "gone"), START)
    assert _dynamic(_instance(image_id="ami-older"), claim=claim) == INSTANCE_TYPE_NOT_FOUND


# --- which are replaced now ---

DRIFTED = ("Launched", "Registered", "Initialized", "Drifted")


def _world(number: int, pool: NodePool, *pods: Any, drifted: int = 99, **fields: Any) -> Snapshot:
    names = [f"c-{index}" for index in range(number)]
    claims = [_claim(name, conditions=DRIFTED if index < drifted else DRIFTED[:3]) for index, name in enumerate(names)]
    nodes = [builders.node(f"n-{name}") for name in names]
    return Snapshot(
        now=START, node_pools=(pool,), node_claims=tuple(claims), nodes=tuple(nodes), pods=tuple(pods), **fields
    )


def _replaced(snapshot: Snapshot) -> list[str]:
    return [claim.metadata.name for claim in to_replace(snapshot).candidates]


def _blocked(snapshot: Snapshot) -> dict[str, str]:
    news = to_replace(snapshot).announcements
    assert all(one.reason == "DisruptionBlocked" for one in news)
    return {one.subject.metadata.name: one.message for one in news}


@pytest.mark.parametrize(("nodes", "count"), [("100%", 4), ("50%", 2), ("1", 1), ("0", 0)])
def test_budgets_bind_the_replacement_of_drifted_nodes(nodes: str, count: int) -> None:
    """By number or by share."""
    pool = builders.node_pool(replicas=4, budgets=[{"nodes": nodes, "reasons": ["Drifted"]}])
    assert len(_replaced(_world(4, pool))) == count


def test_a_budget_of_nothing_is_said_on_the_pool() -> None:
    """With the budget."""
    pool = builders.node_pool(replicas=2, budgets=[{"nodes": "0"}])
    assert _blocked(_world(2, pool)) == {
        "default": "drift: the budget 0 allows 0 of 2 nodes, and 0 are leaving or not ready"
    }


@pytest.mark.parametrize(("limit", "count"), [("2", 0), ("3", 1), ("9", 2)])
def test_the_limit_of_nodes_leaves_room_for_replacements_or_not(limit: str, count: int) -> None:
    """A replacement comes before its candidate goes."""
    pool = builders.node_pool(replicas=2, budgets=[{"nodes": "100%"}], limits={"nodes": limit})
    snapshot = _world(2, pool)
    assert len(_replaced(snapshot)) == count
    assert _blocked(snapshot) == ({} if count else {"default": "drift: limits.nodes has no room for replacements"})


@pytest.mark.parametrize("replicas", [1, 3, 0])
def test_a_pool_gets_its_size_first(replicas: int) -> None:
    """Neither while it lacks a node, nor while it has one too many."""
    assert _replaced(_world(2, builders.node_pool(replicas=replicas, budgets=[]))) == []


def test_a_pool_whose_new_nodes_do_not_register_keeps_the_ones_that_it_has() -> None:
    """A replacement would be in vain."""
    pool = builders.node_pool(replicas=2)
    failing = false("NodeRegistrationHealthy", "RegistrationFailed", "", Observation(now=START, generation=1))
    status = pool.status.model_copy(update={"conditions": [*pool.status.conditions, failing]})
    snapshot = _world(2, pool.model_copy(update={"status": status}))
    assert _replaced(snapshot) == []
    assert _blocked(snapshot) == {"default": "drift: its new nodes do not register"}


def test_nodes_without_pods_come_first() -> None:
    """Then the longest drifted."""
    pool = builders.node_pool(replicas=3, budgets=[{"nodes": "2"}])
    assert _replaced(_world(3, pool, builders.pod("web", node="n-c-0"))) == ["c-1", "c-2"]


@pytest.mark.parametrize(("period", "goes"), [(None, False), ("1h", True)])
def test_pods_that_must_not_be_disrupted_keep_their_node(period: str | None, goes: bool) -> None:
    """Unless the claim has a ``terminationGracePeriod``. The next one is taken in its place."""
    pool = builders.node_pool(replicas=2, budgets=[{"nodes": "2"}])
    guard = builders.pod("guard", node="n-c-0", annotations={DO_NOT_DISRUPT: "true"})
    snapshot = _world(2, pool, guard)
    claims = [
        claim.model_copy(update={"spec": claim.spec.model_copy(update={"termination_grace_period": period})})
        for claim in snapshot.node_claims
    ]
    snapshot = replace(snapshot, node_claims=tuple(claims))
    assert _replaced(snapshot) == (["c-1", "c-0"] if goes else ["c-1"])
    assert list(_blocked(snapshot)) == ([] if goes else ["c-0"])


def test_only_drifted_nodes_of_static_pools_are_replaced() -> None:
    """Dynamic ones are another decision's."""
    assert _replaced(_world(2, builders.node_pool(replicas=2, budgets=[]), drifted=1)) == ["c-0"]
    assert _replaced(_world(2, builders.node_pool(budgets=[]))) == []
