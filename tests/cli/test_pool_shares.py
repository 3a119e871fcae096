"""``joinery plan`` and ``disrupt`` with NodePools that have a share on demand."""

import pytest

from joinery_cli.sources import SAMPLE
from tests.cli.conftest import NOW, Run, Write
from tools.template import ROOT

FILES = [part for name in ("nodepool", "on-demand-nodes") for part in ("-f", str(ROOT / f"examples/tasks/{name}.yaml"))]
PLAN = ("plan", *FILES, "--catalog", str(SAMPLE), "--now", NOW)


def test_a_plan_says_how_far_a_share_holds_and_what_it_costs(run: Run) -> None:
    """In the table, on the page and as JSON; the price is that of the nodes that are bought."""
    table = " ".join(run(*PLAN, "--explain", "web-1").out.split())
    holds = "4 of 6 nodes are on demand, and joinery.dev/on-demand (2 + 30%) asks for 4"
    assert f"NodePool web: {holds}" in table
    assert f"Share on demand: {holds}" in table
    assert "Shares on demand cost about $0.1910/h, all of that: with them kept, nothing is cheaper" in table
    cost = run(*PLAN, "-o", "json").document["cost"]
    shares = cost["onDemandShares"]
    assert shares["nodePools"] == [{"nodePool": "web", "share": "2 + 30%", "nodes": 6, "onDemand": 4, "wanted": 4}]
    assert cost["hourly"] == pytest.approx(cost["byCapacityType"]["on-demand"] + cost["byCapacityType"]["spot"])
    assert 0 < shares["hourly"] < cost["hourly"]
    assert cost["lowerBound"] < cost["hourly"] == cost["keepingPreferences"]["lowerBound"]
    assert cost["keepingPreferences"]["kept"] == ["shares"]
    assert "web: 4 of 6 nodes" in run(*PLAN, "-o", "html").out


def test_a_share_that_cannot_be_kept_is_a_warning(run: Run, write: Write) -> None:
    """The NodePool allows spot alone."""
    text = (ROOT / "examples/tasks/on-demand-nodes.yaml").read_text().replace("[spot, on-demand]", "[spot]")
    nodepool = str(ROOT / "examples/tasks/nodepool.yaml")
    done = run("plan", "-f", nodepool, "-f", write("nodes.yaml", text), "--catalog", str(SAMPLE), "--now", NOW)
    assert done.status == 0
    assert "NodePool web: 0 of 6 nodes are on demand, and joinery.dev/on-demand (2 + 30%) asks for 4" in done.err
