"""ProvisioningRequests in files: their pods are planned as a gang."""

import json
from typing import Any

import pytest

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


def _request(count: int = 3) -> dict[str, Any]:
    spec = {
        "provisioningClassName": "best-effort-atomic-scale-up.autoscaling.x-k8s.io",
        "podSets": [{"podTemplateRef": {"name": "worker"}, "count": count}],
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
