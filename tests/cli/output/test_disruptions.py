"""A decision about nodes in print: the JSON byte for byte, the table line for line."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from joinery.decisions.disruption.decision import (
    CurvePoint,
    DecidedCommand,
    DisruptionDecision,
    Rejection,
    RejectionCause,
    StayingNode,
)
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.objections import Objection, ObjectionCode
from joinery_cli.output.disruptions_json import disruptions_document
from joinery_cli.output.disruptions_table import print_disruptions
from joinery_cli.output.json import write
from joinery_cli.view.disruption_groups import view
from joinery_cli.view.disruption_view import DisruptionView, Fate
from simulator.builders import EPOCH
from tests.cli.disruptions import DISRUPTIONS, PRICE, PROBLEM, SMALL_PRICE, SOLD
from tests.cli.packings import PRICES

GOLDEN = Path(__file__).parent / "golden"


def _seen(**changes: Any) -> DisruptionView:
    return view(PROBLEM, replace(DISRUPTIONS, **changes), SOLD, PRICES, seconds=0.31)


def _printed(capsys: pytest.CaptureFixture[str], **changes: Any) -> str:
    print_disruptions(_seen(**changes))
    return capsys.readouterr().out


def test_where_a_budget_keeps_nodes_the_best_is_that_of_later_rounds(capsys: pytest.CaptureFixture[str]) -> None:
    """Five times the best that can be reached now would be a bad decision, and is none."""
    kept = StayingNode("claim-3", Objection(ObjectionCode.BUDGET, "one at a time"))
    assert "above the best that budgets allow in the end" in " ".join(_printed(capsys, staying=(kept,)).split())


def test_the_document_is_stable_byte_for_byte(capsys: pytest.CaptureFixture[str]) -> None:
    """Keys in the contract's order, launches as a plan has them, prices to the millionth."""
    write(disruptions_document(DISRUPTIONS, PRICES, now=EPOCH, seconds=0.31234))
    assert capsys.readouterr().out == (GOLDEN / "disrupt.json").read_text()


@pytest.mark.parametrize(("golden", "with_pods"), [("disrupt.txt", False), ("disrupt-pods.txt", True)])
def test_the_table_tells_command_by_command(
    capsys: pytest.CaptureFixture[str], golden: str, *, with_pods: bool
) -> None:
    """What goes, what comes, where pods move, what is held, and last what it all comes to."""
    print_disruptions(_seen(), with_pods=with_pods)
    assert capsys.readouterr().out == (GOLDEN / golden).read_text()


def test_nothing_to_do_is_said_with_its_proof(capsys: pytest.CaptureFixture[str]) -> None:
    """An empty table would look like a failure."""
    whole = 3 * PRICE
    printed = _printed(capsys, commands=(), staying=(), after=whole, moves=0.0, lower_bound=whole, gap=0.0)
    assert printed.splitlines()[:3] == [
        "Nothing to do: every node stays",
        "$0.6954/h, about $508 a month",
        "Proven lower bound $0.6954/h: nothing cheaper can be reached",
    ]


def test_a_node_that_is_leaving_is_told_to_be_in_the_bill(capsys: pytest.CaptureFixture[str]) -> None:
    """Else whoever adds up what is left would wonder at the sum."""
    why = Objection(ObjectionCode.LEAVING, "it is leaving already")
    leaving = tuple(StayingNode(f"claim-{number}", why) for number in (1, 3))
    assert "1 node is leaving already, and is still counted\n" in _printed(capsys, commands=(), staying=leaving[:1])
    assert "2 nodes are leaving already, and are still counted\n" in _printed(capsys, commands=(), staying=leaving)


def test_a_node_that_goes_is_not_held_as_well() -> None:
    """It is held from one reason and goes for another; nodes that go and that are held are all nodes together."""
    used_up = Objection(ObjectionCode.POD_DISRUPTION_BUDGET, "its budget is used up")
    also = StayingNode("claim-1", used_up, DisruptionReason.UNDERUTILIZED)
    assert _seen(staying=(*DISRUPTIONS.staying, also)).staying == _seen().staying


def test_a_decision_without_a_bound_claims_none(capsys: pytest.CaptureFixture[str]) -> None:
    """Where nothing is proven, nothing is said."""
    assert "bound" not in _printed(capsys, lower_bound=0.0, gap=0.0)


def test_what_is_dearer_is_called_so(capsys: pytest.CaptureFixture[str]) -> None:
    """Drift may make the bill rise, and never does so unsaid."""
    drift = replace(DISRUPTIONS.commands[1], reason=DisruptionReason.DRIFTED, savings=-0.1)
    printed = _printed(capsys, commands=(drift,), after=3 * PRICE + 0.1)
    assert "1  Drifted: costs $0.1000/h more\n" in printed
    assert "3 evictions count as $0.0300, which never pays for itself" in printed
    assert "$0.6954/h becomes $0.7954/h: costs $0.1000/h more, about $73 a month (14.4%)" in printed


def test_the_cluster_is_seen_before_and_after() -> None:
    """Retired nodes are gone, bought ones are there, and each pod is where its command moves it."""
    seen = _seen()
    assert [(node.name, node.fate) for node in seen.before] == [
        ("node-2", Fate.GOES), ("node-1", Fate.GOES), ("node-3", Fate.RECEIVES), ("node-4", Fate.STAYS),
    ]  # fmt: skip
    assert {node.name: node.filled.pods for node in seen.after} == {"node-3": 3, "default-1": 1, "node-4": 1}
    bought = next(node for node in seen.after if node.fate is Fate.BOUGHT)
    assert (bought.instance_type, bought.price, bought.alternatives) == ("m7a.large", SMALL_PRICE, 1)
    assert next(node for node in seen.before if node.name == "node-4").price is None


def test_a_pod_that_moves_twice_is_followed() -> None:
    """A later command may retire the node that an earlier one moved a pod to."""
    first, second = DISRUPTIONS.commands
    again = DecidedCommand(
        reason=DisruptionReason.UNDERUTILIZED,
        message="again",
        retire=("claim-3",),
        existing=(replace(second.existing[0], node="node-2", node_claim="claim-2"),),
        pods=second.existing[0].pods,
    )
    seen = _seen(commands=(second, again))
    assert {(route.source, route.target) for route in seen.commands[1].routes} == {("node-3", "node-2")}
    assert [node.filled.pods for node in seen.commands[1].retired] == [3]


def test_many_commands_end_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """A large cluster's decision must not scroll away what matters; --pods tells them all."""
    many = tuple(replace(DISRUPTIONS.commands[0], retire=(f"claim-{n}",)) for n in range(30))
    printed = _printed(capsys, commands=many)
    assert "and 10 more commands: 0 nodes retired; saves $2.3180/h; --pods lists them" in printed
    print_disruptions(_seen(commands=many), with_pods=True)
    assert "30  Empty" in capsys.readouterr().out


def test_the_table_fits_eighty_columns(capsys: pytest.CaptureFixture[str]) -> None:
    """Also with long reasons; a line is longer only where names are."""
    held = tuple(
        StayingNode(f"claim-{n}", Objection(ObjectionCode.BUDGET, "NodePool default: " + "only so many at once, " * 9))
        for n in (1, 2)
    )
    printed = _printed(capsys, staying=held)
    assert [line for line in printed.splitlines() if len(line) > 80] == []


def test_what_a_command_says_is_printed_whatever_brackets_it_has(capsys: pytest.CaptureFixture[str]) -> None:
    """Messages and names: neither is markup, nor are two lines or two names together."""
    said = "its pods fit [in eu-central-1a, or [bold]in eu-central-1b[/bold], " * 4 + "eu-central-1c]"
    held = tuple(StayingNode(name, Objection(ObjectionCode.BUDGET, said)) for name in ("[x]", "[/y]"))
    commands = (replace(DISRUPTIONS.commands[0], message=said),)
    printed = " ".join(_printed(capsys, commands=commands, staying=held).split())
    assert printed.count(said) == 2
    assert "[/y], [x]" in printed


def test_an_empty_cluster_is_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    """No nodes, no prices, no curve."""
    nothing = replace(PROBLEM.packing.snapshot, nodes=(), node_claims=(), pods=())
    problem = replace(PROBLEM, packing=replace(PROBLEM.packing, snapshot=nothing))
    print_disruptions(
        view(problem, DisruptionDecision(curve=(CurvePoint(0, 0.0, is_chosen=True),)), SOLD, PRICES, seconds=0)
    )
    assert capsys.readouterr().out.startswith(
        "Nothing to do: there is no node with a NodeClaim of an EC2NodeClass\n$0/h: "
    )


def test_new_nodes_of_one_kind_share_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Their names are made for this decision; those that go are named one by one."""
    command = DISRUPTIONS.commands[1]
    launches = tuple(replace(command.launches[0], name=f"default-{number}", pods=()) for number in range(100, 140))
    several = replace(command, launches=(*command.launches, *launches))
    lines = [" ".join(line.split()) for line in _printed(capsys, commands=(several,)).splitlines()]
    assert "+ 41 nodes m7a.large +1 us-east-1a on-demand 1 pod 31% 4.7519" in lines
    print_disruptions(_seen(commands=(several,)), with_pods=True)
    assert "default-139" in capsys.readouterr().out


def test_a_command_that_breaks_a_rule_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """By name and rule: somebody should report it."""
    why = Objection(ObjectionCode.NO_PLACE, "pod shop/web-1 has no place")
    mistake = Rejection(DISRUPTIONS.commands[0], RejectionCause.MISTAKE, why)
    printed = " ".join(_printed(capsys, mistakes=(mistake,)).split())
    assert "breaks a rule by Joinery's own check: pod shop/web-1 has no place; please report this" in printed
    document = disruptions_document(replace(DISRUPTIONS, mistakes=(mistake,)), PRICES, now=EPOCH, seconds=0.3)
    assert document["refused"] == [{"retire": mistake.command.retire, "reason": "pod shop/web-1 has no place"}]
