"""``joinery disrupt``: from files to a decision about nodes that others rely on."""

import gzip
import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
import yaml

from joinery_cli.sources import SAMPLE
from simulator.builders import node, node_claim, node_class, node_pool, pod
from simulator.kubernetes.resources import encode
from tests.cli.conftest import Run, Write, pod_document
from tools.template import ROOT

NOW = "2026-08-25T00:00:00Z"
"""Long after the nodes came."""
DISRUPT = ("disrupt", "--now", NOW, "--catalog", str(SAMPLE))
JSON = (*DISRUPT, "-o", "json")
PRICE = 0.23184
"""$/h of an m7a.xlarge on demand, as the sample has it."""


def listed(*objects: Any) -> dict[str, Any]:
    """The objects as ``kubectl get -o json`` prints them."""
    return {"apiVersion": "v1", "kind": "List", "items": [msgspec.json.decode(encode(one)) for one in objects]}


def cluster_of(used: Sequence[str], empty: Sequence[str], *, budget: str = "100%") -> dict[str, Any]:
    """A NodePool of m7a.xlarge whose ``used`` nodes are full, and whose ``empty`` ones run nothing."""
    only = ["node.kubernetes.io/instance-type=m7a.xlarge", "karpenter.sh/capacity-type=on-demand"]
    pool = node_pool(requirements=only, budgets=[{"nodes": budget}])
    nodes = [one for name in (*used, *empty) for one in (node(name), node_claim(f"claim-{name}", node=name))]
    pods = [pod(f"on-{name}", cpu="3500m", memory="12Gi", node=name, owner="web") for name in used]
    return listed(node_class(), pool, *nodes, *pods)


@pytest.fixture
def halved(write: Write) -> str:
    """Two nodes with pods, and two without."""
    return write("cluster.json", cluster_of(("a", "b"), ("c", "d")))


def test_empty_nodes_are_deleted_within_the_contract(run: Run, halved: str) -> None:
    """Every key of the contract is there, in its order; what the nodes cost is no longer paid."""
    document = run(*JSON, "-f", halved).document
    assert list(document) == [
        "apiVersion", "kind", "now", "commands", "held", "refused", "cost", "moves", "curve", "catalogue", "notices",
        "solver",
    ]  # fmt: skip
    assert (document["apiVersion"], document["kind"], document["now"]) == ("joinery.dev/v1", "DisruptionPlan", NOW)
    for command in document["commands"]:
        assert list(command) == [
            "reason", "message", "retire", "launch", "existing", "pods", "savings", "movePrice",
        ]  # fmt: skip
        assert (command["reason"], command["launch"], command["pods"]) == ("Empty", [], [])
    assert sorted(name for command in document["commands"] for name in command["retire"]) == ["claim-c", "claim-d"]
    cost = document["cost"]
    assert cost["before"] == pytest.approx(4 * PRICE)
    assert cost["after"] == pytest.approx(2 * PRICE)
    assert cost["lowerBound"] <= cost["after"]
    assert document["moves"] == {"pods": 0, "price": 0.0, "hourly": 0.0}
    assert set(document["solver"]) == {"method", "seconds", "limit"}


def test_the_bound_is_of_nodes_and_moves_together(run: Run, write: Write) -> None:
    """So no point of the curve is below it, and the text has the figures of the document."""
    nodes = [one for n in range(6) for one in (node(f"n{n}"), node_claim(f"claim-n{n}", node=f"n{n}"))]
    pods = [
        pod(f"on-n{n}-{m}", cpu="700m", memory="1Gi", node=f"n{n}", owner="web") for n in range(6) for m in range(3)
    ]
    files = write("cluster.json", listed(node_class(), node_pool(budgets=[{"nodes": "100%"}]), *nodes, *pods))
    document = run(*JSON, "-f", files).document
    cost, curve = document["cost"], document["curve"]
    reached = cost["after"] + document["moves"]["hourly"]
    assert cost["after"] < cost["lowerBound"] <= reached
    assert cost["gap"] == pytest.approx(reached / cost["lowerBound"] - 1, abs=1e-4)
    assert len(curve) > 1
    assert all(point["hourly"] + point["moves"] >= cost["lowerBound"] for point in curve)
    said = f"${reached:.4f}/h with the evictions spread over 1 h; proven lower bound ${cost['lowerBound']:.4f}/h"
    assert said in " ".join(run(*DISRUPT, "-f", files).out.split())


def test_budgets_hold_nodes_and_may_be_ignored(run: Run, write: Write) -> None:
    """What a budget keeps is named with its rule; a person may ask what could be done without budgets."""
    files = write("cluster.json", cluster_of(("a", "b"), ("c", "d"), budget="1"))
    document = run(*JSON, "-f", files).document
    assert [name for command in document["commands"] for name in command["retire"]] == ["claim-c"]
    (held,) = [held for held in document["held"] if held["nodeClaim"] == "claim-d"]
    assert list(held) == ["nodeClaim", "reason", "code", "disruption", "until"]
    assert held["code"] == "Budget"
    assert "the budget 1 allows 1 of 4 nodes" in held["reason"]
    cost = document["cost"]
    reached = pytest.approx(cost["after"] + document["moves"]["hourly"], abs=1e-4)
    assert cost["lowerBound"] < cost["withinBudgets"]["lowerBound"] == reached
    assert cost["withinBudgets"]["gap"] == 0
    said = "of the difference to later decisions: nothing cheaper is allowed now"
    assert said in " ".join(run(*DISRUPT, "-f", files).out.split())
    ignoring = run(*JSON, "-f", files, "--ignore-budgets").document
    assert sorted(name for command in ignoring["commands"] for name in command["retire"]) == ["claim-c", "claim-d"]
    assert "withinBudgets" not in ignoring["cost"]


def test_nodes_have_their_price_without_their_node_class(run: Run, write: Write) -> None:
    """``kubectl get nodes,nodeclaims,nodepools,pods``: they all stay, and what they cost is known all the same."""
    cluster = cluster_of(("a", "b"), ("c",))
    cluster["items"] = [one for one in cluster["items"] if one["kind"] != "EC2NodeClass"]
    document = run(*JSON, "-f", write("cluster.json", cluster)).document
    assert document["commands"] == []
    assert {held["reason"] for held in document["held"]} == {
        "its NodePool default has no instance types to choose from"
    }
    assert (document["cost"]["before"], document["cost"]["after"]) == pytest.approx((3 * PRICE, 3 * PRICE))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--move-price", "-1"), "--move-price -1: must be a number of dollars, 0 or more"),
        (("--move-price", "nan"), "--move-price nan: must be a number of dollars, 0 or more"),
        (("--payback", "soon"), "--payback soon: must be a duration of more than 0, such as 30m or 1h30m"),
        (("--payback", "Never"), "--payback Never: must be a duration of more than 0, such as 30m or 1h30m"),
        (("--payback", "0s"), "--payback 0s: must be a duration of more than 0, such as 30m or 1h30m"),
        (("--time-limit", "0"), "--time-limit 0: must be more than 0 seconds"),
        (
            ("--terminate-first", "scarce,always"),
            "--terminate-first scarce,always: 'always' is neither off nor one of static, reserved, scarce",
        ),
    ],
)
def test_a_bad_option_is_told_in_a_line(run: Run, halved: str, arguments: Sequence[str], told: str) -> None:
    """The option, what was written, and what it must be; nothing is printed."""
    outcome = run(*JSON, "-f", halved, *arguments)
    assert (outcome.status, outcome.out, outcome.err) == (2, "", f"joinery: {told}\n")


@pytest.mark.parametrize("arguments", [("--move-price", "0"), ("--payback", "1h30m"), ("--payback", "90s")])
def test_prices_of_moves_and_times_of_payback_are_taken(run: Run, halved: str, arguments: Sequence[str]) -> None:
    """Zero dollars ask what the cluster could cost; durations are Karpenter's."""
    assert run(*JSON, "-f", halved, *arguments).status == 0


@pytest.mark.parametrize(("where", "commands"), [("off", 0), ("static,reserved", 0), ("scarce", 1)])
def test_what_the_stack_does_where_there_is_no_room_for_both_may_be_asked(
    run: Run, write: Write, where: str, commands: int
) -> None:
    """A drifted node of the only type that its NodePool allows, of which EC2 has no more."""
    catalogue = json.loads(gzip.decompress(SAMPLE.read_bytes()))
    catalogue["offerings"] = [
        offering | {"available": offering["instanceType"] != "m7a.xlarge"} for offering in catalogue["offerings"]
    ]
    only = ["node.kubernetes.io/instance-type=m7a.xlarge", "karpenter.sh/capacity-type=on-demand"]
    objects = listed(
        node_class(),
        node_pool(requirements=only),
        node("old"),
        node_claim("claim-old", node="old", conditions=("Launched", "Registered", "Initialized", "Drifted")),
        pod("p", cpu="3500m", node="old", owner="web"),
    )
    files = ("--catalog", write("catalog.json", catalogue), "-f", write("cluster.json", objects))
    document = run("disrupt", "--now", NOW, "-o", "json", *files, "--terminate-first", where).document
    assert [command["retire"] for command in document["commands"]] == [["claim-old"]] * commands
    assert all("ends first, because there is no room for both" in it["message"] for it in document["commands"])


def test_a_node_is_explained_in_every_form(run: Run, halved: str) -> None:
    """In the document as data, and as lines below the table and on the page; by its own name or its claim's."""
    (explained,) = run(*JSON, "-f", halved, "--explain", "claim-c").document["explanations"]
    assert (explained["node"], explained["nodeClaim"], explained["fate"]) == ("c", "claim-c", "goes")
    heading = f"c goes, with command {explained['command']} (Empty)"
    assert heading in run(*DISRUPT, "-f", halved, "--explain", "c").out
    assert heading in run(*DISRUPT, "-f", halved, "--explain", "c", "-o", "html").out
    assert "explanations" not in run(*JSON, "-f", halved).document


def test_what_a_function_would_write_is_printed_as_yaml(run: Run) -> None:
    """Of a node that goes its taint, of its claim the mark; and whole what comes in its place, which says so."""
    example = str(ROOT / "examples" / "consolidation.yaml")
    text = run(*DISRUPT, "-f", example, "-o", "yaml").out
    assert [line.split(":")[0] for line in text.splitlines() if line.startswith("#")] == [
        "# Command 1, Empty", "# Command 2, Underutilized", "# Command 3, Underutilized",
    ]  # fmt: skip
    empty, mark, *_, report, report_mark, comes, web, web_mark = yaml.safe_load_all(text)
    assert empty == {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "node-empty"},
        "spec": {"taints": [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]},
    }
    assert (report["metadata"]["name"], web["metadata"]["name"]) == ("node-report", "node-web")
    for one in (mark, report_mark, web_mark):
        assert one["metadata"].keys() == {"name", "annotations"}
        assert one["status"]["conditions"][-1]["type"] == "DisruptionReason"
    record = json.loads(comes["metadata"]["annotations"]["joinery.dev/replaces"])
    assert record["candidates"] == [report_mark["metadata"]["name"]]
    assert comes["spec"]["requirements"]


def test_an_unknown_node_is_told_in_a_line(run: Run, halved: str) -> None:
    """With nodes that may have been meant."""
    outcome = run(*JSON, "-f", halved, "--explain", "claim-e")
    line = outcome.err.splitlines()[-1]
    assert (outcome.status, outcome.out) == (2, "")
    assert line == "joinery: --explain claim-e: there is no such node; near it are claim-b, claim-c, claim-d"


def test_help_names_every_option(run: Run) -> None:
    """With what it is for, in the words of the decision."""
    outcome = run("disrupt", "--help")
    assert outcome.status == 0
    for said in (
        "--move-price",
        "--payback",
        "--ignore-budgets",
        "--terminate-first",
        "--explain",
        "--pods",
        "--output",
    ):
        assert said in outcome.out


def test_claims_without_their_nodes_are_told_what_is_lacking(run: Run, write: Write) -> None:
    """``kubectl get nodeclaims,nodepools -o json`` alone: nobody has told them to leave."""
    objects = [node_pool(), node_class(), node_claim("lonely", node="ip-10-0-1-7")]
    outcome = run(*DISRUPT, "-f", write("claims.json", listed(*objects)))
    assert outcome.status == 0
    assert "warning: 1 NodeClaim has a Node that is not in the files (lonely): nothing is decided" in outcome.err
    assert "leaving already" not in outcome.out


def test_pods_that_wait_are_another_commands_business(run: Run, halved: str, write: Write) -> None:
    """Whoever misses them here is told where to look."""
    outcome = run(*JSON, "-f", halved, "-f", write("pod.json", pod_document("waits")))
    told = "1 pod waits for a node: joinery plan says which they get"
    assert f"note: {told}" in outcome.err.splitlines()
    assert {"severity": "note", "message": told} in outcome.document["notices"]


@pytest.mark.parametrize(("owner", "is_lost"), [(None, True), ("web", False)])
def test_a_pod_that_nobody_makes_again_is_told(run: Run, write: Write, owner: str | None, is_lost: bool) -> None:
    """Its eviction is its end, whatever node the decision has for it."""
    document = cluster_of((), ("a", "b"))
    pods = [pod(f"on-{name}", cpu="100m", memory="128Mi", node=name, owner=owner) for name in "ab"]
    document["items"] += listed(*pods)["items"]
    for one in document["items"]:
        one["metadata"]["uid"] = f"uid-of-{one['metadata']['name']}"
    outcome = run(*JSON, "-f", write("cluster.json", document))
    (evicted,) = (one for command in outcome.document["commands"] for one in command["pods"])
    said = f"1 pod has no controller that would make it again after the eviction ({evicted})"
    assert (said in outcome.err) is is_lost
    assert any(said in notice["message"] for notice in outcome.document["notices"]) is is_lost


def test_a_node_that_has_expired_is_told_to_go_for_its_age(run: Run, write: Write) -> None:
    """The decision keeps it, and expiration does not."""
    document = cluster_of(("a", "b"), ())
    for one in document["items"]:
        if one["metadata"]["name"] == "claim-b":
            one["metadata"]["creationTimestamp"] = "2026-07-01T00:00:00Z"
    said = "note: 1 node has expired (b): it goes for its age, whatever is decided here"
    assert said in run(*JSON, "-f", write("cluster.json", document)).err


def test_a_drifted_node_of_a_static_pool_is_told_to_be_replaced_elsewhere(run: Run, write: Write) -> None:
    """The decision has no command for it, and it is not there for good."""
    drifted = node_claim("claim-b", node="b", conditions=("Launched", "Registered", "Initialized", "Drifted"))
    document = listed(
        node_class(), node_pool(replicas=2), node("a"), node_claim("claim-a", node="a"), node("b"), drifted
    )
    said = (
        "note: 1 node of static NodePools has drifted (b): it is replaced one for one, which this decision does not "
        "show"
    )
    assert said in run(*JSON, "-f", write("cluster.json", document)).err
