"""What a DisruptionPlan must not do, said of documents that do it."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.tools.consolidation.clusters import catalogue, cluster, launch, machine, plan, pod, pool
from tools.consolidation.contract import violations
from tools.consolidation.contract.budgets import is_open
from tools.consolidation.documents import name_of

Document = dict[str, Any]


def _found(document: Document, objects: list[Document] | None = None) -> list[str]:
    return list(violations(objects or cluster(), document, catalogue()))


def _with_pool(**disruption: Any) -> list[Document]:
    return [pool(**disruption), *cluster()[1:]]


def _with_pod(**annotations: str) -> list[Document]:
    return [item for item in cluster() if name_of(item) != "a"] + [pod("a", "n1", **annotations)]


def test_a_right_document_is_not_objected_to() -> None:
    """It moves every pod of its nodes once, and its sums are right."""
    assert _found(plan()) == []


def test_a_missing_part_is_named() -> None:
    """Nothing else is said of a document that cannot be read."""
    document = plan()
    del document["curve"]
    del document["commands"][1]["savings"]
    assert _found(document) == ["the document has no curve", "command 1 has no savings"]


def test_a_forgotten_pod_is_named() -> None:
    """It would be evicted, and nobody has looked for a place."""
    document = plan()
    document["commands"][1]["existing"] = []
    assert _found(document) == ["command 1 (Underutilized): default/a must move and is not in existing and launch"]


def test_a_pod_that_no_eviction_ends_needs_no_place_where_drift_takes_its_node() -> None:
    """It runs until the node's time is over."""
    document = plan()
    document["commands"][1] |= {"reason": "Drifted", "existing": []}
    objects = _with_pod(**{"karpenter.sh/do-not-disrupt": "true"})
    claim = next(item for item in objects if item["kind"] == "NodeClaim" and name_of(item) == "c1")
    claim["status"]["conditions"].append({"type": "Drifted", "status": "True"})
    missing = "command 1 (Drifted): default/a must move and is not in existing and launch"
    assert missing in _found(document, objects)
    claim["spec"]["terminationGracePeriod"] = "1h"
    assert _found(document, objects) == []


def test_a_pod_must_not_have_two_places() -> None:
    """A bound for one of them is no use."""
    document = plan()
    document["commands"][1]["launch"][0]["pods"] = ["default/a", "default/b"]
    assert _found(document) == ["command 1 (Underutilized): default/a is in existing and launch and is there twice"]


def test_pods_go_to_nodes_that_stay() -> None:
    """A later command must not retire what an earlier one filled."""
    document = plan()
    document["commands"][1]["existing"][0] |= {"node": "n3", "nodeClaim": "c3"}
    assert "command 1 (Underutilized): pods go to node 'n3', whose claim c3 is retired too" in _found(document)


def test_sums_are_worked_out_again() -> None:
    """Savings by the catalogue's prices, the cost by the savings."""
    document = plan()
    document["commands"][1]["savings"] = 0.15
    assert _found(document) == [
        "command 1 (Underutilized): savings are 0.15, and the prices say 0.200000 - 0.100000 = 0.100000",
        "cost.after is 0.3, and before less the savings is 0.250000",
    ]


def test_a_command_must_repay_its_moves() -> None:
    """0.1 $/h for an hour is less than 0.2 $."""
    document = plan()
    document["commands"][1]["movePrice"] = document["moves"]["price"] = 0.2
    document["cost"]["gap"] = 0.6667
    assert _found(document) == [
        "command 1 (Underutilized): saves 0.100000 $ within the payback time, and its moves are priced at 0.200000 $"
    ]


def test_a_node_is_not_replaced_by_one_like_it() -> None:
    """Keeping it costs the same and moves nothing."""
    document = plan()
    alike = launch("default-1", "default/b")
    alike["offering"] |= {"instanceType": "c5.xlarge", "zone": "us-east-1a", "price": 0.2}
    document["commands"][1]["launch"] = [alike]
    assert any("which is what it retires" in one for one in _found(document))


@pytest.mark.parametrize(("asked", "is_objected"), [("1Gi", True), ("2Gi", False)])
def test_it_is_where_the_pods_of_both_would_not_fit(asked: str, *, is_objected: bool) -> None:
    """Small pods leave a node, for room elsewhere, so that large ones have one like it."""
    document = plan()
    alike = launch("default-1", "default/b") | {"requests": {"cpu": "3", "memory": "6Gi", "pods": "2"}}
    alike["offering"] |= {"instanceType": "c5.xlarge", "zone": "us-east-1a", "price": 0.2}
    document["commands"][1]["launch"] = [alike]
    objects = cluster()
    for item in objects:
        if item["kind"] == "Pod":
            item["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "500m", "memory": asked}}
        elif item["kind"] == "Node":
            item["status"]["allocatable"] = {"cpu": "3920m", "memory": "7Gi", "pods": "58"}
    assert any("which is what it retires" in one for one in _found(document, objects)) is is_objected


def test_the_curve_falls_and_holds_the_chosen_point() -> None:
    """More evictions that buy nothing are no point of it."""
    document = plan()
    document["curve"] = [{"pods": 0, "hourly": 0.4}, {"pods": 3, "hourly": 0.5}]
    assert _found(document) == [
        "the curve does not contain the chosen point, 0.3 $/h for 2 evictions",
        "the curve rises to 0.5 $/h at 3 evictions",
    ]


@pytest.mark.parametrize(
    ("disruption", "objection"),
    [
        ({"consolidateAfter": "Never"}, "claim c1: its NodePool has consolidateAfter Never"),
        ({"consolidateAfter": "2400h"}, "claim c1: its consolidateAfter has not passed"),
        (
            {"consolidationPolicy": "WhenEmpty"},
            "claim c1: its NodePool's consolidationPolicy is WhenEmpty, and it runs 2",
        ),
        ({"budgets": [{"nodes": "1"}]}, "2 nodes of NodePool default are disrupted, and its budgets allow 1"),
        ({"budgets": [{"nodes": "34%"}, {"nodes": "0", "reasons": ["Underutilized"]}]}, "its budgets allow 0"),
    ],
)
def test_a_node_pool_has_a_say(disruption: Document, objection: str) -> None:
    """Its policy, its patience, and its budgets."""
    assert any(objection in one for one in _found(plan(), _with_pool(**disruption)))


def test_budgets_may_be_ignored() -> None:
    """For asking what the cluster could cost."""
    objects = _with_pool(budgets=[{"nodes": "0"}])
    assert list(violations(objects, plan(), catalogue(), ignores_budgets=True)) == []


@pytest.mark.parametrize(("value", "is_protected"), [("true", True), ("2400h", True), ("1h", False), ("maybe", False)])
def test_a_protected_pod_keeps_its_node(value: str, *, is_protected: bool) -> None:
    """``do-not-disrupt`` is ``true`` or a duration since the pod began."""
    objects = _with_pod(**{"karpenter.sh/do-not-disrupt": value})
    assert any("do-not-disrupt" in one for one in _found(plan(), objects)) is is_protected


def test_a_used_up_disruption_budget_keeps_a_node() -> None:
    """The eviction would be refused."""
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "app"}}}
    metadata = {"name": "app", "namespace": "default"}
    budget = {"kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec, "status": {"disruptionsAllowed": 0}}
    assert any("PodDisruptionBudget app" in one for one in _found(plan(), [*cluster(), budget]))
    budget["status"] = {"disruptionsAllowed": 1}
    assert _found(plan(), [*cluster(), budget]) == []


def test_a_node_that_is_going_uses_a_budget_up() -> None:
    """Whoever has disrupted it."""
    going = machine(4)
    going[1]["metadata"]["deletionTimestamp"] = "2026-01-01T11:59:00Z"
    objects = [*_with_pool(budgets=[{"nodes": "2"}]), *going]
    assert any("3 nodes of NodePool default are disrupted" in one for one in _found(plan(), objects))


@pytest.mark.parametrize(
    ("schedule", "duration", "expected"),
    [
        ("0 9 * * mon-fri", "8h", True),
        ("0 9 * * mon-fri", "3h", False),
        ("0 9 * * sat,sun", "8h", False),
        ("@daily", "24h", True),
        ("*/15 * * * *", "1m", True),
        ("30 11 1 * sat", "1h", True),
        ("0 20 * * *", "6h", False),
    ],
)
def test_windows_are_open_for_their_duration(schedule: str, duration: str, *, expected: bool) -> None:
    """On Thursday, the first of January, at noon. The moment at which a window ends is outside."""
    budget = {"nodes": "0", "schedule": schedule, "duration": duration}
    assert is_open(budget, datetime(2026, 1, 1, 12, tzinfo=UTC)) is expected
