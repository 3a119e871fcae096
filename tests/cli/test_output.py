"""A packing in print: the JSON byte for byte, the table line for line."""

from dataclasses import replace
from pathlib import Path

import pytest

from joinery.apis.meta import Requirement, Taint
from joinery.cli.output_json import plan_document, write
from joinery.cli.output_table import print_plan
from joinery.scheduling.packing import ExistingPlacement, Launch, Packing, PlacedOffering, Reason, Relaxed, Unplaced
from simulator.builders import EPOCH

GOLDEN = Path(__file__).parent / "golden"
GIB = 2**30

LAUNCH = Launch(
    name="default-1",
    node_pool="default",
    requirements=(
        Requirement(key="kubernetes.io/arch", operator="In", values=["amd64"]),
        Requirement(
            key="node.kubernetes.io/instance-type", operator="In", values=["m7a.large", "m7a.xlarge"], min_values=2
        ),
        Requirement(key="karpenter.sh/capacity-type", operator="Exists"),
    ),
    labels={"team": "web", "app": "shop"},
    taints=(Taint(key="team", value="web", effect="NoSchedule"),),
    startup_taints=(Taint(key="cni", effect="NoExecute"),),
    requests={"cpu": 1900, "memory": 4 * GIB, "pods": 3},
    instance_types=("m7a.large", "m7a.xlarge"),
    offering=PlacedOffering("m7a.large", "us-east-1a", "spot", 0.05655),
    pods=("default/web-1", "default/web-2"),
)
PACKING = Packing(
    existing=(
        ExistingPlacement("ip-10-0-1-7", "default-x2k9", ("default/api-1", "default/api-2", "shop/api", "shop/web")),
        ExistingPlacement("", "default-p0q1", ("default/late",)),
    ),
    launches=(LAUNCH, replace(LAUNCH, name="default-2", pods=("default/web-3",))),
    unplaced=(
        Unplaced(
            "default/big-1", (Reason("TooSmall", "12 instance types have too little memory", "NodePool default"),)
        ),
        Unplaced(
            "default/big-2", (Reason("TooSmall", "12 instance types have too little memory", "NodePool default"),)
        ),
        Unplaced("default/odd", (Reason("Operator", "operator [Resembles] of a is unknown"),)),
    ),
    relaxed=(Relaxed("default/web-1", ("preferred node affinity: zone In us-east-1b",)),),
    lower_bound=0.1,
)


def _golden(name: str, printed: str) -> None:
    assert printed == (GOLDEN / name).read_text()


def test_the_document_is_stable_byte_for_byte(capsys: pytest.CaptureFixture[str]) -> None:
    """Keys in the contract's order, labels sorted, quantities as Kubernetes writes them, prices to the millionth."""
    write(plan_document(PACKING, now=EPOCH, seconds=0.31234))
    _golden("plan.json", capsys.readouterr().out)


def test_the_table_groups_what_is_alike(capsys: pytest.CaptureFixture[str]) -> None:
    """Launches of one kind are one line, pods with the same reasons one entry with a count."""
    print_plan(PACKING, room={("default", "m7a.large"): {"cpu": 1930, "memory": 7 * GIB}}, seconds=0.31)
    _golden("plan.txt", capsys.readouterr().out)


def test_nothing_pending_is_said_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    """An empty table would look like a failure."""
    print_plan(Packing(), room={}, seconds=0.01)
    assert capsys.readouterr().out == "Nothing is pending.\n"


def test_a_bound_is_never_rounded_above_the_cost() -> None:
    """Rounding to the millionth goes down for the bound, so that it stays one."""
    cost = plan_document(Packing(launches=(LAUNCH,), lower_bound=0.05655), now=EPOCH, seconds=0)["cost"]
    assert cost == {"hourly": 0.05655, "lowerBound": pytest.approx(0.05655, abs=1e-6), "gap": 0.0}
    assert cost["lowerBound"] <= cost["hourly"]
