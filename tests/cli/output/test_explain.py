"""``joinery plan --explain POD``: where a pod goes, rule by rule, and what else would have done."""

from pathlib import Path
from typing import Any

import pytest

from joinery_cli.sources import SAMPLE
from tests.cli.conftest import NOW, Run, Write, pod_document
from tools.template import ROOT

GOLDEN = Path(__file__).parent / "golden"
REAL = ROOT / "tests" / "data" / "real" / "cluster.json.gz"


def _explained(run: Run, *arguments: str) -> str:
    """What the table says after its totals."""
    outcome = run("plan", "--catalog", str(SAMPLE), "--now", NOW, *arguments)
    assert outcome.status == 0, outcome.err
    return outcome.out[outcome.out.index("Planned in") :].partition("\n\n")[2]


@pytest.mark.parametrize(
    ("name", "example", "pods"),
    [
        ("explain-spread", "spread.yaml", ("front-9", "cache-1")),
        ("explain-gpu", "gpu.yaml", ("default/train-1",)),
        ("explain-weighted", "weighted-pools.yaml", ("warehouse-1",)),
        ("explain-pending", "cluster.yaml", ("giant", "report")),
    ],
)
def test_an_explanation_reads_as_written(run: Run, name: str, example: str, pods: tuple[str, ...]) -> None:
    """Rule by rule, with what is left of instance types and nodes."""
    asked = [part for pod in pods for part in ("--explain", pod)]
    printed = _explained(run, "-f", str(ROOT / "examples" / example), *asked)
    golden = GOLDEN / f"{name}.txt"
    assert printed == golden.read_text(), f"{golden} differs; write it anew if that is meant"


def _explanations(run: Run, *arguments: str) -> list[Any]:
    outcome = run("plan", "--catalog", str(SAMPLE), "--now", NOW, "-o", "json", *arguments)
    assert outcome.status == 0, outcome.err
    explanations: list[Any] = outcome.document.get("explanations", [])
    return explanations


def test_every_pod_of_a_real_cluster_can_be_explained(run: Run) -> None:
    """Each rule leaves at most what the one before left, and the NodePool of a pod's own node would do for it."""
    file = ("-f", str(REAL))
    plan = run("plan", "--catalog", str(SAMPLE), "--now", NOW, "-o", "json", *file).document
    pool_of = {pod: launch["nodePool"] for launch in plan["launch"] for pod in launch["pods"]}
    assert pool_of
    explanations = _explanations(run, *file, *(part for pod in pool_of for part in ("--explain", pod)))
    assert [each["pod"] for each in explanations] == list(pool_of)
    for each in explanations:
        for candidates in (*each["nodePools"], each["existingNodes"], each["newNodes"]):
            left = [rule["left"] for rule in candidates["rules"]]
            assert left == sorted(left, reverse=True), (each["pod"], candidates)
        own = next(pool for pool in each["nodePools"] if pool["nodePool"] == pool_of[each["pod"]])
        assert own["offering"] is not None
        assert own["reasons"] == []


def test_a_pending_pod_has_its_reasons_as_data(run: Run) -> None:
    """Code, subject and figures, for scripts."""
    (giant,) = _explanations(run, "-f", str(ROOT / "examples" / "cluster.yaml"), "--explain", "giant")
    assert giant["node"] is None
    pool = next(pool for pool in giant["nodePools"] if pool["nodePool"] == "default")
    (reason,) = pool["reasons"]
    assert (reason["code"], reason["subject"]) == ("Resources", {"kind": "NodePool", "name": "default"})
    assert reason["figures"]["instance types"] > 0
    assert (pool["rules"][-1]["left"], pool["offering"]) == (0, None)


def test_nothing_is_explained_that_nobody_asks_for(run: Run, cluster: str, write: Write) -> None:
    """The document is the same as ever."""
    document = run("plan", "-f", cluster, "-f", write("pod.json", pod_document()), "-o", "json").document
    assert "explanations" not in document


def test_the_page_has_the_same_lines(run: Run) -> None:
    """Below the costs, escaped as all else."""
    spread = str(ROOT / "examples" / "spread.yaml")
    page = run("plan", "-f", spread, "--catalog", str(SAMPLE), "-o", "html", "--explain", "front-9").out
    assert "<h3>default/front-9 goes to new node default-5</h3>" in page
    assert "topology spread over topology.kubernetes.io/zone (maxSkew 1)" in page


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("web", "there is no such pod; pending are default/web-1, default/web-2"),
        ("default/wbe-1", "there is no such pod; pending"),
        ("db", "pod default/db is not pending: it is on node node-1; pending are"),
        ("same", "several pods have this name: default/same, other/same"),
    ],
)
def test_a_name_that_is_no_pending_pod_is_told_in_a_line(
    run: Run, cluster: str, write: Write, asked: str, told: str
) -> None:
    """With the pods that may have been meant, before any planning."""
    other = pod_document("same")
    other["metadata"]["namespace"] = "other"
    pods = [pod_document("web-1"), pod_document("web-2"), pod_document("db", nodeName="node-1"), pod_document("same")]
    files = [write(f"{number}.json", pod) for number, pod in enumerate((*pods, other))]
    outcome = run("plan", "-f", cluster, *files, "--explain", asked)
    assert outcome.status == 2
    line = outcome.err.strip().splitlines()[-1]
    assert line.startswith(f"joinery: --explain {asked}: {told}")
