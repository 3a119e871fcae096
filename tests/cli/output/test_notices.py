"""What a person hears beside a plan: warnings and notes, told apart as data, the same wherever a plan is printed."""

from typing import Any

import pytest

from joinery.objects.wording import MOST_PUBLIC
from joinery_cli.notices import warnings_of
from joinery_cli.sources import SAMPLE
from tests.cli.conftest import NOW, Outcome, Run, Write, pod_document

DEPLOYMENT = {
    "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
    "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": pod_document(priorityClassName="urgent")["spec"]},
    },
}  # fmt: skip
SAID = [
    {"severity": "note", "message": "planned as well: 1 pod of 1 workload: Deployment default/web (1)"},
    {
        "severity": "warning",
        "message": "PriorityClass urgent is not in the files: 1 pod planned with the default priority",
    },
]


@pytest.fixture
def plan(run: Run, cluster: str, write: Write) -> Any:
    """``plan(form, document, ...)``: the plan of these objects beside a NodePool, printed in that form."""

    def call(form: str, *documents: dict[str, Any]) -> Outcome:
        files = write("files.json", {"apiVersion": "v1", "kind": "List", "items": list(documents)})
        return run("plan", "--now", NOW, "--catalog", str(SAMPLE), "-f", cluster, "-f", files, "-o", form)

    return call


def _lines(notices: list[dict[str, str]]) -> list[str]:
    return [f"{notice['severity']}: {notice['message']}" for notice in notices]


@pytest.mark.parametrize("form", ["table", "json", "html"])
def test_standard_error_has_every_notice_with_its_severity(plan: Any, form: str) -> None:
    """What was done with the files is a note; what may have to be mended is a warning."""
    assert plan(form, DEPLOYMENT).err.splitlines() == _lines(SAID)


def test_the_document_has_the_same_notices_as_data(plan: Any) -> None:
    """A script may fail on warnings and not on notes; nothing to say is an empty list."""
    assert plan("json", DEPLOYMENT).document["notices"] == SAID
    assert plan("json", pod_document()).document["notices"] == []


def test_the_page_has_the_same_notices_warnings_first(plan: Any) -> None:
    """Open where there is a warning, folded where there are notes alone, absent where there is nothing."""
    page = plan("html", DEPLOYMENT).out
    assert '<details class="notices" open="open"><summary>1 warning, 1 note</summary>' in page
    assert page.index("PriorityClass urgent") < page.index("planned as well: 1 pod")
    assert '<details class="notices"><summary>1 note' in plan("html", pod_document(schedulerName="volcano")).out
    assert '<details class="notices"' not in plan("html", pod_document()).out


def test_pods_of_another_scheduler_are_counted_and_named(plan: Any) -> None:
    """They are planned like all that wait in a file, by rules that may not be their scheduler's."""
    pods = [pod_document(f"train-{number}", schedulerName="volcano") for number in range(5)]
    outcome = plan("json", *pods, pod_document(schedulerName="default-scheduler"))
    assert outcome.err.splitlines() == [
        "note: 5 pods wait for another scheduler (default/train-0, default/train-1, default/train-2 and 2 more; "
        "schedulerName volcano): planned by the rules of kube-scheduler, which may not be that scheduler's"
    ]
    assert sum(len(launch["pods"]) for launch in outcome.document["launch"]) == 6


def test_pods_that_another_scheduler_holds_or_has_placed_are_not_counted_with_them(plan: Any) -> None:
    """A gated pod is told as gated, and a bound one needs no word."""
    held = pod_document("held", schedulerName="volcano", schedulingGates=[{"name": "a"}])
    bound = pod_document("bound", schedulerName="volcano", nodeName="n")
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    assert [notice["message"].split(" (")[0] for notice in plan("json", held, bound, node).document["notices"]] == [
        "1 pod is gated"
    ]


def test_who_writes_a_list_of_thousands_is_not_answered_with_thousands_of_lines() -> None:
    """One pod with 3,000 spreads that spread nothing wrote 465 KB. Doubts about others are told all the same."""
    doubts = [("web", f"{number} is wrong") for number in range(3000)]
    told = [notice.message for notice in warnings_of([*doubts, ("api", "x" * 5000)], "pods of ")]
    assert (told[0], told[10]) == ("pods of web: 0 is wrong", "pods of web: 2,990 more such warnings")
    assert len(told) == 12
    assert len(told[11]) == MOST_PUBLIC


@pytest.mark.parametrize(
    ("annotations", "spec", "why"),
    [
        (
            {"karpenter.sh/do-not-disrupt": "true"},
            {"minAvailable": 0},
            "karpenter.sh/do-not-disrupt forbids the eviction",
        ),
        ({}, {"maxUnavailable": 0}, "no eviction is ever allowed by keep"),
    ],
)
def test_a_pod_that_stays_with_its_leaving_node_is_told_with_the_reason(
    plan: Any, annotations: dict[str, str], spec: dict[str, Any], why: str
) -> None:
    """It was the only pod of the file, and the plan said that nothing is pending."""
    budget = {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "keep"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec}, "status": {"disruptionsAllowed": 0},
    }  # fmt: skip
    leaving = {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "old", "deletionTimestamp": "2025-12-31T23:59:00Z"},
        "status": {"allocatable": {"cpu": "2", "memory": "4Gi", "pods": "10"}},
    }  # fmt: skip
    document = pod_document(nodeName="old")
    document["metadata"] |= {"labels": {"app": "web"}, "annotations": annotations}
    document["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    outcome = plan("json", document, budget, leaving)
    told = f"note: 1 pod of a node that is leaving is not planned elsewhere (default/web): {why}"
    assert told in outcome.err.splitlines()
    assert outcome.document["launch"] == []
    free = {**document, "metadata": {**document["metadata"], "annotations": {}}}
    assert len(plan("json", free, leaving).document["launch"]) == 1
