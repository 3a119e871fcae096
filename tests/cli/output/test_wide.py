"""``-o wide``: a line for each thing, and as many words in it as there are columns."""

import pytest

from joinery_cli.output.disruptions_table import print_disruptions
from joinery_cli.output.table import print_plan
from joinery_cli.output.top_lines import print_wide
from joinery_cli.sources import SAMPLE
from joinery_cli.view.disruption_groups import view as disruption_view
from joinery_cli.view.plan_groups import view
from joinery_cli.view.top_groups import top_view
from tests.cli.conftest import Run
from tests.cli.disruptions import DISRUPTIONS, SOLD
from tests.cli.disruptions import PROBLEM as OF_NODES
from tests.cli.packings import COSTS, PACKING, PRICES, PROBLEM


def _lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


def test_a_plan_has_pools_zones_and_workloads_of_every_node_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Also of the nodes that are there: their NodeClaim, type, and what comes to them."""
    print_plan(view(PROBLEM, PACKING, COSTS, PRICES, seconds=0.31), is_wide=True)
    lines = _lines(capsys)
    assert "1 default m7a.large 1 spot us-east-1a 2 1.9/1.9 4.0/7.3 0.0566 0.0566 default/web×2" in lines
    assert any(line.startswith("ip-10-0-1-7 default-x2k9 default ") for line in lines)
    assert any(line.startswith("- default-p0q1 default ") for line in lines), "a claim whose node is on its way"


def test_a_decision_has_each_node_with_what_becomes_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    """One that goes and one that comes with their command, one that stays with its rule in the rule's own words."""
    print_disruptions(disruption_view(OF_NODES, DISRUPTIONS, SOLD, PRICES, seconds=0.1), is_wide=True)
    lines = _lines(capsys)
    assert "node-2 claim-2 default m7a.xlarge us-east-1a on-demand 0 0.1/4.0 0.2/16.0 2% 0.2318 goes 1 Empty" in lines
    assert any(line.startswith("- default-1 default m7a.large+1 ") and " bought 2 " in line for line in lines)
    assert any(line.endswith("receives - NotWorthIt: its pods fit nowhere for less") for line in lines)


def test_top_prints_every_column_of_every_node_and_cuts_nothing_off(capsys: pytest.CaptureFixture[str]) -> None:
    """The sums, the pods that wait and what comes next stand above, whole."""
    seen = disruption_view(OF_NODES, DISRUPTIONS, SOLD, PRICES, seconds=0.1)
    print_wide(top_view(OF_NODES, PACKING, seen, source="blue"))
    lines = _lines(capsys)
    assert any(line.startswith("node-3 claim-3 default m7a.xlarge us-east-1a on-demand 0.2318 1 ") for line in lines)
    assert any(line.endswith("stays - NotWorthIt its pods fit nowhere for less") for line in lines)
    assert not [line for line in lines if "…" in line]


def test_the_catalogue_has_processor_devices_disks_network_and_zones(run: Run) -> None:
    """By what people choose a type."""
    lines = run("catalog", "--catalog", str(SAMPLE), "--family", "g6", "-o", "wide").out.splitlines()
    large = next(line.split() for line in lines if line.startswith("g6.12xlarge"))
    assert (large[1], large[5:8]) == ("amd64", ["GPU×4,efa×1", "3760", "40000"])
    assert large[-1].startswith("us-east-1a,us-east-1b")
