"""ProvisioningRequests in files: their pods are planned as a gang."""

import json
from typing import Any

import pytest

from joinery.objects.autoscaling.provisioningrequest import ATOMIC, CHECK
from joinery_cli.sources import SAMPLE
from tests.cli.conftest import NOW, Run, Write

PLAN = ("plan", "--now", NOW, "-o", "json", "--catalog", str(SAMPLE))
CONTAINER = {"name": "main", "resources": {"requests": {"cpu": "3", "memory": "4Gi"}}}


def _template(cpu: str = "3") -> dict[str, Any]:
    container = {**CONTAINER, "resources": {"requests": {"cpu": cpu, "memory": "4Gi"}}}
    metadata = {"name": "worker", "namespace": "ml"}
    return {
        "apiVersion": "v1", "kind": "PodTemplate", "metadata": metadata,
        "template": {"spec": {"containers": [container]}},
    }  # fmt: skip


def _request(count: int = 3, *, of: str = ATOMIC, **parameters: str) -> dict[str, Any]:
    spec = {
        "provisioningClassName": of,
        "podSets": [{"podTemplateRef": {"name": "worker"}, "count": count}],
        "parameters": parameters,
    }
    metadata = {"name": "train", "namespace": "ml"}
    return {"apiVersion": "autoscaling.x-k8s.io/v1", "kind": "ProvisioningRequest", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize(("cpu", "placed"), [("3", 3), ("3000", 0)])
def test_the_pods_of_a_request_are_planned_together(
    run: Run, cluster: str, write: Write, cpu: str, placed: int
) -> None:
    """Or none of them, and the reason names the request."""
    files = (write("t.json", _template(cpu)), write("r.json", _request()))
    made = json.loads(run(*PLAN, "-f", cluster, *files).out)
    names = [f"ml/provisioning-request-train-0-{number}" for number in (1, 2, 3)]
    there = [pod for node in made["launch"] for pod in node["pods"] if pod in names]
    assert len(there) == placed
    if not placed:
        assert "ProvisioningRequest ml/train places 3 pods together" in json.dumps(made)


def test_a_request_without_its_template_is_named(run: Run, cluster: str, write: Write) -> None:
    """With what is missing."""
    err = run(*PLAN, "-f", cluster, write("r.json", _request())).err
    assert "warning: ProvisioningRequest ml/train gets no nodes: podtemplates 'worker' not found" in err


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            _request(of="best-effort-atomic-scaleup.autoscaling.x-k8s.io"),
            "warning: ProvisioningRequest ml/train: spec.provisioningClassName: is "
            f"'best-effort-atomic-scaleup.autoscaling.x-k8s.io', of which nobody knows; is it {ATOMIC}?",
        ),
        (_request(of="check-capacity"), f"'check-capacity', of which nobody knows; is it {CHECK}?"),
        (
            _request(of="queued-provisioning.gke.io"),
            "note: ProvisioningRequest ml/train: spec.provisioningClassName: is 'queued-provisioning.gke.io', which is "
            f"left to others: Joinery serves {ATOMIC} and {CHECK}",
        ),
        (
            _request(of=CHECK, processorInstance="b"),
            "note: ProvisioningRequest ml/train is left to another: its spec.parameters.processorInstance is 'b'",
        ),
        (
            _request(ValidUntilSeconds="1h"),
            "warning: ProvisioningRequest ml/train: spec.parameters.ValidUntilSeconds: must be a whole number of "
            "seconds, is '1h', so the request ends 7 days after its creation",
        ),
        (
            _request(validUntilSecond="60"),
            "spec.parameters.validUntilSecond: no such parameter; is it ValidUntilSeconds?",
        ),
        (_request(of=CHECK, noRetry="yes"), "spec.parameters.noRetry: must be true or false, is 'yes'"),
        (_request(of=CHECK, partialCapacityCheck="true"), "spec.parameters.partialCapacityCheck: is not carried out"),
    ],
)
def test_what_of_a_request_counts_for_nothing_is_said(
    run: Run, cluster: str, write: Write, asked: dict[str, Any], said: str
) -> None:
    """In one line, with the object and its field."""
    outcome = run(*PLAN, "-f", cluster, write("t.json", _template()), write("r.json", asked))
    (line,) = [line for line in outcome.err.splitlines() if said in line]
    assert "ProvisioningRequest ml/train" in line
    assert outcome.status == 0


def test_a_request_that_has_lasted_long_enough_is_bought_nothing(run: Run, cluster: str, write: Write) -> None:
    """A door would write Failed, Expired."""
    asked = _request(ValidUntilSeconds="600")
    asked["metadata"]["creationTimestamp"] = "2020-01-01T00:00:00Z"
    outcome = run(*PLAN, "-f", cluster, write("t.json", _template()), write("r.json", asked))
    assert "provisioning-request" not in outcome.out
    assert "note: ProvisioningRequest ml/train gets no nodes: it ended 600 s after its creation" in outcome.err


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (1, "note: {}: there is room for all of its pods"),
        (3, "warning: {}: 1 of 3 pods have room on nodes that there are"),
    ],
)
def test_a_check_is_carried_out_and_buys_nothing(run: Run, cluster: str, write: Write, count: int, said: str) -> None:
    """On the nodes of the files, beside the pods that wait."""
    node = {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {"kubernetes.io/os": "linux"}},
        "status": {
            "allocatable": {"cpu": "4", "memory": "16Gi", "pods": "50"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }  # fmt: skip
    template, asked = write("t.json", _template()), write("r.json", _request(count, of=CHECK))
    outcome = run(*PLAN, "-f", cluster, write("n.json", node), template, asked)
    assert said.format("ProvisioningRequest ml/train") in outcome.err
    assert "provisioning-request" not in json.dumps(json.loads(outcome.out)["launch"])
