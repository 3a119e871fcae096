"""``joinery disrupt --explain NODE``: why a node stays or goes, and what its pods cost to move."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from joinery.decisions.disruption.decision import StayingNode
from joinery.decisions.disruption.problem import DisruptionOptions, DisruptionProblem
from joinery.objects.errors import ConfigurationError
from joinery.objects.karpenter.conditions import true
from joinery.objects.objections import Objection, ObjectionCode
from joinery.objects.snapshot.claims import observed, with_condition
from joinery_cli.explained_nodes import explanation_document, lines, nodes_meant
from joinery_cli.page.disruptions import page
from joinery_cli.view.disruption_groups import view
from joinery_cli.view.disruption_view import NodeExplanation, explain
from simulator.builders import EPOCH, node, node_claim, node_pool, owner, pod
from tests.cli.disruptions import DISRUPTIONS, PROBLEM, SOLD
from tests.cli.packings import PRICES

GOLDEN = Path(__file__).parent / "golden"


def _explained(name: str, problem: DisruptionProblem = PROBLEM, **changes: Any) -> NodeExplanation:
    seen = view(problem, replace(DISRUPTIONS, **changes), SOLD, PRICES, seconds=0.31)
    return explain(name, problem, seen)


def _text(*arguments: Any, **changes: Any) -> str:
    return "\n".join(lines(_explained(*arguments, **changes)))


def _sentences(*arguments: Any, **changes: Any) -> str:
    """The same, however its lines are broken."""
    return " ".join(_text(*arguments, **changes).split())


def _with(*objects: Any, **changes: Any) -> DisruptionProblem:
    """The problem with more pods, and other fields of its snapshot."""
    snapshot = PROBLEM.packing.snapshot
    snapshot = replace(snapshot, pods=(*snapshot.pods, *objects), **changes)
    return replace(PROBLEM, packing=replace(PROBLEM.packing, snapshot=snapshot))


def test_explanations_read_as_written() -> None:
    """One that goes, one that receives, one that is held by two rules, and one whose pods are dear."""
    important = pod("ledger", cpu="500m", memory="1Gi", node="node-3", priority=2**26)
    problem = replace(_with(important), replicas={"ReplicaSet default/web": 3})
    texts = [_text(f"node-{number}", problem) for number in (1, 2, 3, 4)]
    assert "\n\n".join(texts) + "\n" == (GOLDEN / "explain-nodes.txt").read_text()


def test_a_node_is_meant_by_its_own_name_or_its_claims() -> None:
    """People know Nodes, and commands name NodeClaims; each node is explained once."""
    assert nodes_meant(["node-2", "claim-2", "claim-1"], PROBLEM) == ("node-2", "node-1")


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("nod", "; near it are claim-1"),
        ("node-22", "; near it is node-2"),
        ("xyz", ""),
    ],
)
def test_an_unknown_name_is_told_with_near_ones(asked: str, told: str) -> None:
    """In one line, before anything is decided."""
    with pytest.raises(ConfigurationError, match=f"--explain {asked}: there is no such node") as raised:
        nodes_meant([asked], PROBLEM)
    assert str(raised.value).startswith(f"--explain {asked}: there is no such node")
    assert bool(told) == ("near it" in str(raised.value))


def test_a_node_of_nobodys_is_not_ours_to_disrupt() -> None:
    """It has no NodeClaim, and so nothing is known of what its moves are worth."""
    nodes = (*PROBLEM.packing.snapshot.nodes, node("other", node_pool="", instance_type=""))
    said = _text("other", _with(pod("there", node="other"), nodes=nodes))
    assert said.startswith("other stays\n  no known instance type")
    assert "It has no NodeClaim of an EC2NodeClass, so it is not Joinery's to disrupt." in said
    assert "would need another node" not in said


def test_pods_that_cannot_be_priced_are_not_told_in_part() -> None:
    """Whoever reads that a DaemonSet's pod ends with the node would think that it has no other."""
    agent = pod("agent-other", node="other", owner=owner("DaemonSet", "agent"))
    nodes = (*PROBLEM.packing.snapshot.nodes, node("other", node_pool="", instance_type=""))
    assert "would end with it" not in _text("other", _with(agent, pod("there", node="other"), nodes=nodes))


def test_a_node_that_is_leaving_is_not_said_to_stay() -> None:
    """Nor what would have to take its place."""
    leaving = StayingNode("claim-3", Objection(ObjectionCode.LEAVING, "it is leaving already"))
    said = _sentences("node-3", commands=(), staying=(leaving,))
    assert said.startswith("node-3 is leaving already m7a.xlarge")
    assert "It goes, whatever is decided here." in said
    assert "stays" not in said
    assert "repaid" not in said


def test_a_node_that_stays_says_that_it_has_drifted_or_expired() -> None:
    """After a new image the question is which nodes still lag, whatever keeps them."""
    old = node_claim("claim-3", node="node-3", expire_after="1m", created=EPOCH)
    drifted = with_condition(old, true("Drifted", observed(old, EPOCH)).model_copy(update={"reason": "AMIDrift"}))
    staying = StayingNode("claim-3", Objection(ObjectionCode.NOMINATED, "pods are nominated to it"))
    problem = _with(node_claims=(drifted,), now=EPOCH + timedelta(hours=1))
    said = _sentences("node-3", problem, commands=(), staying=(staying,))
    assert "has drifted (AMIDrift) has expired: it goes for its age, whatever is decided here" in said


def test_pods_of_two_workloads_from_one_node_share_a_line() -> None:
    """One command empties one node, whoever owns its pods."""
    other = pod("api-1", cpu="100m", memory="128Mi", node="node-1", owner=owner("ReplicaSet", "api"))
    command = DISRUPTIONS.commands[1]
    placements = (replace(command.existing[0], pods=("default/api-1", "default/web-1")), *command.existing[1:])
    changed = replace(command, existing=placements, pods=(*command.pods, "default/api-1"))
    said = _text("node-3", _with(other), commands=(changed,))
    assert said.count("takes from node-1 with command 1") == 1
    assert "default/api-1, default/web-1" in said


def test_a_node_of_a_static_pool_is_not_consolidated() -> None:
    """That its pool keeps a number of nodes is the reason, not a rule that holds it."""
    said = _sentences("node-3", _with(node_pools=(node_pool(replicas=4),)), commands=(), staying=())
    assert "NodePool default is static: it keeps a number of nodes, and is not consolidated." in said
    assert "repaid" not in said


def test_a_node_whose_moves_are_never_repaid_says_so() -> None:
    """Even if all of its price were saved."""
    dear = replace(PROBLEM, options=DisruptionOptions(move_price=0.5))
    said = _sentences("node-1", dear, commands=(), staying=())
    assert "No rule holds it. No command that retires it saves enough to repay its moves." in said
    assert "Even if nothing were bought for them, they are repaid not before 6 h 28 min; it has to be" in said


def test_without_a_price_moves_count_as_nothing() -> None:
    """--move-price 0 asks what the cluster could cost."""
    assert "Its moves count as nothing." in _text("node-1", replace(PROBLEM, options=DisruptionOptions(move_price=0)))


def test_what_makes_a_move_cheaper_has_its_sign_before_the_dollar() -> None:
    """As people write money that comes off a price."""
    claims = tuple(node_claim(f"claim-{n}", node=f"node-{n}", expire_after="1m", created=EPOCH) for n in (1, 2, 3))
    expired = _with(node_claims=claims, now=EPOCH + timedelta(hours=1))
    assert "its node has expired, and it is evicted anyway -$0.0100" in _sentences("node-1", expired)


def test_a_price_that_cannot_be_read_is_told_with_its_pod() -> None:
    """Someone meant another price, and the node is held for it."""
    wrong = pod("odd", node="node-3", annotations={"joinery.dev/disruption-price": "much"})
    said = _text("node-3", _with(wrong))
    assert "pod default/odd has the annotation joinery.dev/disruption-price" in said


def test_a_price_of_the_pods_own_says_where_it_is_from() -> None:
    """Whoever wonders about a dollar finds the annotation."""
    dear = pod("ledger", node="node-3", annotations={"joinery.dev/disruption-price": "1.00"})
    said = _sentences("node-3", _with(dear))
    assert "default/ledger $1.0000 the pod's annotation joinery.dev/disruption-price says so $1.0000" in said


def test_many_workloads_end_in_one_line() -> None:
    """The dearest are told, the others summed up."""
    more = (
        pod(f"svc-{number}-0", cpu="10m", node="node-1", owner=owner("ReplicaSet", f"svc-{number}"))
        for number in range(20)
    )
    said = _text("node-1", _with(*more))
    assert "9 more pods" in said


def test_the_document_has_the_parts_of_every_price() -> None:
    """For scripts: which node, its fate, what holds it, and each pod with its price."""
    document = explanation_document(_explained("node-1"))
    assert list(document) == [
        "node", "nodeClaim", "nodePool", "instanceType", "zone", "capacityType", "price", "use", "fate", "command",
        "held", "movePrice", "paybackSeconds", "moves",
    ]  # fmt: skip
    assert (document["fate"], document["command"], document["movePrice"]) == ("goes", 2, 0.03)
    assert document["moves"][0] == {
        "pod": "default/web-1",
        "price": 0.01,
        "parts": [{"cause": "Eviction", "price": 0.01, "message": "it is evicted"}],
    }
    held = explanation_document(_explained("node-4"))["held"]
    assert [entry["code"] for entry in held] == ["Pod", "Unpriced"]


def test_the_page_has_the_same_lines() -> None:
    """Below what is held, escaped as all else."""
    seen = view(PROBLEM, DISRUPTIONS, SOLD, PRICES, seconds=0.31)
    text = page(replace(seen, explanations=(explain("node-1", PROBLEM, seen),)))
    assert "<h3>node-1 goes, with command 2 (Underutilized)</h3>" in text
    assert "3 pods would need another node" in text
