"""``joinery plan --commitments``: what is paid for already, from a file, and what a plan says of it."""

from typing import Any

import msgspec
import pytest

from joinery.objects.karpenter.labels import ZONE
from joinery_cli.sources import SAMPLE
from simulator.builders import node, node_claim, node_class, node_pool, pod
from simulator.kubernetes.resources import encode
from tests.cli.conftest import NOW, Run, Write, pod_document

PLAN = ("plan", "-o", "json", "--now", NOW)
XLARGE = {"name": "ri", "instanceType": "m7a.xlarge", "count": 1, "zone": "us-east-1a"}


@pytest.fixture
def files(cluster: str, write: Write) -> tuple[str, ...]:
    """A NodePool of two types on demand, and a pod for the smaller one."""
    return cluster, write("pod.json", pod_document())


def owned(write: Write, **given: Any) -> tuple[str, str]:
    """The option, with a file of these fields."""
    return "--commitments", write("owned.json", given)


def test_what_is_paid_for_is_used_first_and_the_plan_says_both_prices(
    run: Run, write: Write, files: tuple[str, ...]
) -> None:
    """The larger node costs nothing more; beside that the plan has its price by the list."""
    arguments = (*files, *owned(write, reservedInstances=[XLARGE]))
    document = run(*PLAN, *arguments).document
    (launch,) = document["launch"]
    assert (launch["offering"]["instanceType"], launch["offering"]["zone"]) == ("m7a.xlarge", "us-east-1a")
    cost = document["cost"]
    assert cost["commitments"] == {"paid": 0.0, "covered": cost["hourly"], "idle": {"ri": 0.0}}
    assert (cost["lowerBound"], cost["gap"]) == (0.0, 0.0)
    out = run("plan", "--now", NOW, *arguments).out
    assert "Paid: $0.0000/h, because commitments cover $0.23" in out
    assert "Paid" in run("plan", "-o", "html", "--now", NOW, *arguments).out


def test_a_savings_plan_of_a_family_and_a_discount(run: Run, write: Write, files: tuple[str, ...]) -> None:
    """A plan of another family covers nothing; what is used elsewhere is not there; all prices are lower."""
    usual = run(*PLAN, *files).document["cost"]["hourly"]
    covering = {"name": "m7", "family": "m7a", "commitment": 1.0, "discount": 0.5}
    cost = run(*PLAN, *files, *owned(write, savingsPlans=[covering], discount=0.1)).document["cost"]
    assert (cost["hourly"], cost["list"]) == (round(0.9 * usual, 6), usual)
    assert cost["commitments"]["paid"] == 0.0
    assert cost["commitments"]["idle"]["m7"] == pytest.approx(1.0 - usual / 2)
    taken = run(*PLAN, *files, *owned(write, savingsPlans=[{**covering, "usedElsewhere": 1}]))
    assert "nothing is left of m7 for this cluster" in taken.err
    assert taken.document["cost"]["commitments"]["covered"] == 0
    other = run(*PLAN, *files, *owned(write, savingsPlans=[{**covering, "family": "c7a"}])).document["cost"]
    assert (other["hourly"], other["commitments"]["paid"]) == (usual, usual)


def test_what_has_ended_is_named(run: Run, write: Write, files: tuple[str, ...]) -> None:
    """Else a plan without it looks as if nobody had read the file."""
    ended = {**XLARGE, "end": "2020-01-01T00:00:00Z"}
    taken = run(*PLAN, *files, *owned(write, reservedInstances=[ended]))
    assert "ri ended at 2020-01-01T00:00:00Z, so it counts no more" in taken.err
    lasting = run(*PLAN, *files, *owned(write, reservedInstances=[{**XLARGE, "end": "2099-01-01T00:00:00"}]))
    assert "ended" not in lasting.err


def test_reserved_instances_of_a_region_are_for_all_sizes(run: Run, write: Write, files: tuple[str, ...]) -> None:
    """One of four cores pays for a node of two, twice; not if it says that its size is not flexible."""
    anywhere = {"name": "ri", "instanceType": "m7a.2xlarge", "count": 1}
    idle = run(*PLAN, *files, *owned(write, reservedInstances=[anywhere])).document["cost"]["commitments"]["idle"]
    assert idle == {"ri": 0.75}
    rigid = {**anywhere, "sizeFlexible": False}
    cost = run(*PLAN, *files, *owned(write, reservedInstances=[rigid])).document["cost"]["commitments"]
    assert (cost["covered"], cost["idle"]) == (0.0, {"ri": 1.0})


def test_the_record_of_a_decision_says_what_it_counted(run: Run, write: Write, files: tuple[str, ...]) -> None:
    """So that it can be made again, and says list and paid price again."""
    record = {"kind": "List", "items": [], "joinery": {"commitments": {"reservedInstances": [XLARGE], "read": NOW}}}
    cost = run(*PLAN, *files, "--commitments", write("record.json", record)).document["cost"]
    assert (cost["commitments"]["paid"], cost["commitments"]["covered"]) == (0.0, cost["hourly"])


def test_what_has_ended_pays_for_nothing(run: Run, write: Write, files: tuple[str, ...]) -> None:
    """To the second, as AWS bills."""
    ends = {**XLARGE, "end": "2026-01-01T00:00:00Z"}
    before, after = (
        run("plan", "-o", "json", "--now", now, *files, *owned(write, reservedInstances=[ends])).document["cost"]
        for now in ("2025-12-31T23:59:59Z", "2026-01-01T00:00:00Z")
    )
    assert before["commitments"]["paid"] == 0.0
    assert "commitments" not in after


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ([], "owned.json: must be a map"),
        ({"savingPlans": []}, "owned.json: has no field savingPlans; is it savingsPlans?"),
        ({"discount": 1}, "discount: must be a share, from 0 to less than 1"),
        ({"savingsPlans": {}}, "") ,
        ({"savingsPlans": 3}, "savingsPlans: must be a list"),
        ({"savingsPlans": [{"name": "a", "commitment": 1}]}, "savingsPlans[0]: must have either rates or a discount"),
        ({"savingsPlans": [{"name": "a", "discount": 0.1}]}, "savingsPlans[0].commitment: is missing"),
        ({"savingsPlans": [{"commitment": 1, "discount": 0.1}]}, "savingsPlans[0].name: is missing"),
        (
            {"savingsPlans": [{"name": "a", "commitment": 1, "discount": 0.1, "family": "m7q"}]},
            "savingsPlans[0].family: the catalogue has no m7q",
        ),
        (
            {"savingsPlans": [{"name": "a", "commitment": 1, "rates": {"m7a.large": -1}}]},
            "savingsPlans[0].rates.m7a.large: must be a number, 0 or more",
        ),
        ({"reservedInstances": [{**XLARGE, "instanceType": "m7a.xlarg"}]}, "has no m7a.xlarg; is it m7a.xlarge?"),
        ({"reservedInstances": [{**XLARGE, "zone": "us-east-1x"}]}, "zone: the catalogue has no us-east-1x"),
        ({"reservedInstances": [{**XLARGE, "count": "2"}]}, "reservedInstances[0].count: must be a number"),
        ({"reservedInstances": [{**XLARGE, "sizeFlexible": True}]}, "reservedInstances[0].sizeFlexible: must be"),
        ({"reservedInstances": [{**XLARGE, "end": "soon"}]}, "reservedInstances[0].end: must be a moment such as"),
        ({"kind": "List", "joinery": {"options": {}}}, "owned.json: the decision counted no commitments"),
        ({"reservedInstances": [XLARGE, XLARGE]}, "owned.json: two commitments are called ri"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_the_file_is_one_line(
    run: Run, write: Write, files: tuple[str, ...], given: Any, problem: str
) -> None:
    """It names the file and the field."""
    ended = run(*PLAN, *files, "--commitments", write("owned.json", given))
    assert ended.status == (2 if problem else 0)
    assert problem in ended.err
    assert "Traceback" not in ended.err


def test_a_decision_about_nodes_goes_by_what_they_add_to_the_bill(run: Run, write: Write) -> None:
    """Of two nodes that are there one is paid for, and the other is the bill."""
    nodes = [one for name in "ab" for one in (node(name), node_claim(f"claim-{name}", node=name))]
    pods = [pod(f"on-{name}", cpu="3500m", memory="12Gi", node=name, owner="web") for name in "ab"]
    only = ["node.kubernetes.io/instance-type=m7a.xlarge"]
    items = [node_class(), node_pool(requirements=only), *nodes, *pods]
    files = write("all.json", {"kind": "List", "items": [msgspec.json.decode(encode(one)) for one in items]})
    given = owned(write, reservedInstances=[{**XLARGE, "zone": nodes[0].metadata.labels[ZONE]}])
    ended = run("disrupt", "-o", "json", "--now", "2026-08-25T00:00:00Z", "--catalog", str(SAMPLE), files, *given)
    usual = run("disrupt", "-o", "json", "--now", "2026-08-25T00:00:00Z", "--catalog", str(SAMPLE), files)
    before = usual.document["cost"]["before"]
    assert ended.document["cost"]["before"] == pytest.approx(before / 2, abs=1e-5)
    assert f"commitments cover ${before / 2:.4f}/h of ${before:.4f}/h that the on-demand nodes cost" in ended.err
