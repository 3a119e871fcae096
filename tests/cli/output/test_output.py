"""A packing in print: the JSON byte for byte, the table line for line."""

from dataclasses import replace
from pathlib import Path

import pytest

from joinery.decisions.scheduling.packing import Packing, Unplaced
from joinery.decisions.scheduling.reason import Reason, ReasonCode, Subject
from joinery.objects.karpenter.labels import ZONE
from joinery.objects.karpenter.meta import Requirement
from joinery_cli.output.json import plan_document, write
from joinery_cli.output.table import print_plan
from joinery_cli.view.costs import Costs
from joinery_cli.view.plan_groups import view
from simulator.builders import EPOCH, pod
from tests.cli.packings import COSTS, LAUNCH, PACKING, PRICES, PROBLEM

GOLDEN = Path(__file__).parent / "golden"


def _golden(name: str, printed: str) -> None:
    assert printed == (GOLDEN / name).read_text()


def test_the_document_is_stable_byte_for_byte(capsys: pytest.CaptureFixture[str]) -> None:
    """Keys in the contract's order, labels sorted, quantities as Kubernetes writes them, prices to the millionth."""
    write(plan_document(PACKING, COSTS, PRICES, now=EPOCH, seconds=0.31234))
    _golden("plan.json", capsys.readouterr().out)


def test_the_table_groups_what_is_alike(capsys: pytest.CaptureFixture[str]) -> None:
    """Launches of one kind are one line, pods with the same reasons one entry with a count."""
    print_plan(view(PROBLEM, PACKING, COSTS, PRICES, seconds=0.31))
    _golden("plan.txt", capsys.readouterr().out)


def test_nothing_pending_is_said_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    """An empty table would look like a failure."""
    print_plan(view(PROBLEM, Packing(), Costs(), PRICES, seconds=0.01))
    assert capsys.readouterr().out == "Nothing is pending.\n"


def test_a_bound_is_never_rounded_above_the_cost() -> None:
    """Rounding to the millionth goes down for the bound, so that it stays one."""
    cost = plan_document(Packing(launches=(LAUNCH,), lower_bound=0.05655), Costs(), PRICES, now=EPOCH, seconds=0)[
        "cost"
    ]
    assert (cost["hourly"], cost["gap"]) == (0.05655, 0.0)
    assert cost["lowerBound"] == pytest.approx(0.05655, abs=1e-6)
    assert cost["lowerBound"] <= cost["hourly"]


def test_a_bound_of_next_to_nothing_is_no_measure(capsys: pytest.CaptureFixture[str]) -> None:
    """Where all might have been reserved, how far a plan is above that tells nobody anything."""
    print_plan(view(PROBLEM, replace(PACKING, lower_bound=1e-8), COSTS, PRICES, seconds=0.31))
    assert "lower bound $0.0000/h\n" in capsys.readouterr().out


def test_the_table_fits_eighty_columns(capsys: pytest.CaptureFixture[str]) -> None:
    """Also with a device, long names, long reasons and a line for every pod."""
    launch = replace(
        LAUNCH,
        node_pool="general-purpose-for-everybody-else",
        offering=replace(LAUNCH.offering, instance_type="u7in-16tb.224xlarge", zone="ap-southeast-1a"),
        requests={**LAUNCH.requests, "nvidia.com/gpu": 1},
    )
    asked = {
        "nvidia.com/gpu": "1",
        "vpc.amazonaws.com/pod-eni": "1",
        "ephemeral-storage": "9Gi",
        "hugepages-2Mi": "2Mi",
    }
    pods = [pod("web-1", cpu="1", requests=asked, owner="web"), *PROBLEM.snapshot.pods[1:]]
    problem = replace(PROBLEM, snapshot=replace(PROBLEM.snapshot, pods=tuple(pods)))
    reason = Reason(
        ReasonCode.RESOURCES, "of 731 instance types that it allows, " * 4, Subject.node_pool("general-purpose")
    )
    packing = replace(PACKING, launches=(launch, LAUNCH), unplaced=(Unplaced("default/big-1", (reason,)),))
    print_plan(view(problem, packing, COSTS, PRICES, seconds=0.31), with_pods=True)
    printed = capsys.readouterr().out
    assert [line for line in printed.splitlines() if len(line) > 80] == []
    assert "u7in-16tb.224xlarge" in printed


def test_every_pod_has_a_line_that_says_where_it_goes(capsys: pytest.CaptureFixture[str]) -> None:
    """New nodes by their type and zone, nodes there are, nodes on their way, and the pods that stay pending."""
    print_plan(view(PROBLEM, PACKING, COSTS, PRICES, seconds=0.31), with_pods=True)
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    for said in (
        "default/web-1 default-1 new m7a.large us-east-1a",
        "default/api-1 ip-10-0-1-7 there already us-east-1a",
        "default/late default-p0q1 launching us-east-1a",
        "default/big-1 - pending",
    ):
        assert said in lines


def test_where_nothing_waits_there_is_no_table_of_pods(capsys: pytest.CaptureFixture[str]) -> None:
    """A heading above nothing looks as if something had been lost."""
    print_plan(view(PROBLEM, Packing(), COSTS, PRICES, seconds=0.31), with_pods=True)
    assert capsys.readouterr().out == "Nothing is pending.\n"


def test_a_local_zone_is_named_whole(capsys: pytest.CaptureFixture[str]) -> None:
    """Its name is longer than others; ``1 zones`` said nothing."""
    launch = replace(LAUNCH, offering=replace(LAUNCH.offering, zone="us-east-1-bos-1a"))
    print_plan(view(PROBLEM, replace(PACKING, launches=(launch,)), COSTS, PRICES, seconds=0.31))
    assert " us-east-1-bos-1a " in capsys.readouterr().out


def test_a_launch_that_may_choose_its_zone_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """The zone of the cheapest offering is not where the node has to come."""
    zones = Requirement(key=ZONE, operator="In", values=["us-east-1a", "us-east-1b", "us-east-1c"])
    launch = replace(LAUNCH, requirements=(*LAUNCH.requirements, zones))
    print_plan(view(PROBLEM, replace(PACKING, launches=(launch,)), COSTS, PRICES, seconds=0.31))
    assert "any of 3 zones" in capsys.readouterr().out


LISTED = "In [eu-central-1a, eu-central-1b, eu-central-1c] and [bold]nowhere[/bold] else \\[red] is there [/] room, "


def test_what_is_said_is_printed_whatever_brackets_it_has(capsys: pytest.CaptureFixture[str]) -> None:
    """``[eu-central-1a,`` at the end of one line and ``eu-central-1c]`` in the next were a tag, and gone."""
    reason = Reason(ReasonCode.RESOURCES, LISTED * 4, Subject.node_pool("[a] [/a]"))
    packing = replace(PACKING, launches=(replace(LAUNCH, node_pool="[dim]"),), unplaced=(Unplaced("a/[b]", (reason,)),))
    print_plan(view(PROBLEM, packing, COSTS, PRICES, seconds=0.31), with_pods=True)
    printed = capsys.readouterr().out
    assert " ".join(f"NodePool [a] [/a]: {LISTED * 4}".split()) in " ".join(printed.split())
    for said in ("[dim]", "a/[b]"):
        assert said in printed
