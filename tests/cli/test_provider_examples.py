"""The examples that Karpenter's provider for AWS publishes (v1.15.1): each is planned, or refused for a reason."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from joinery.gateways.ec2.launch.userdata import user_data_problem
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from joinery_cli.sources import SAMPLE
from tests.cli.conftest import NOW, Outcome, outcome_of
from tools.template import ROOT

FOLDER = ROOT / "tests" / "data" / "provider-examples"
NODES = sorted((FOLDER / "v1").glob("*.yaml"))
WORKLOADS = sorted((FOLDER / "workloads").glob("*.yaml"))
INFLATE = FOLDER / "workloads" / "inflate.yaml"
#: What serves any workload: the examples' own NodePools are each for some.
ANYTHING = ROOT / "tests" / "data" / "any-node.yaml"
#: Why the others are refused. Karpenter's own definitions take neither that group nor, of a pod, that field.
REFUSED = {
    "windows-custom-userdata.yaml": "nodeClassRef.group: 'karpenter.k8s.aws/v1' will not do",
    **dict.fromkeys(
        ("arm64.yaml", "disruption-budget.yaml", "gpu-amd.yaml", "gpu-nvidia.yaml"),
        "securityContext.allowPrivilegedEscalation: no such field",
    ),
}


def planned(*files: Path) -> Outcome:
    """What `joinery plan` says of the files, with the catalogue that the stand-in sells from."""
    given = [text for path in files for text in ("-f", str(path))]
    return outcome_of(["plan", *given, "--catalog", str(SAMPLE), "--now", NOW, "-o", "json"])


def documents(path: Path) -> list[dict[str, Any]]:
    """The objects of a file."""
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


def test_they_are_all_there() -> None:
    """Twenty-two of nodes, eleven of workloads."""
    assert (len(NODES), len(WORKLOADS)) == (22, 11)


@pytest.mark.parametrize("path", NODES, ids=lambda path: path.stem)
def test_an_example_of_nodes_gets_a_pod_its_node_or_says_why_not(path: Path) -> None:
    """With the pod of the examples' own `inflate`."""
    done = planned(path, INFLATE)
    if reason := REFUSED.get(path.name):
        assert (done.status != 0, reason in done.err) == (True, True), done.err
        return
    plan = msgspec.json.decode(done.out)
    pools = {one["metadata"]["name"] for one in documents(path) if one["kind"] == "NodePool"}
    assert [launch["nodePool"] in pools for launch in plan["launch"]] == [True], done.err
    assert plan["unschedulable"] == []


@pytest.mark.parametrize("path", NODES, ids=lambda path: path.stem)
def test_a_class_of_an_example_has_user_data_that_boot(path: Path) -> None:
    """Scripts, TOML, MIME and PowerShell as their families take them."""
    for document in documents(path):
        if document["kind"] == EC2NodeClass.kind:
            assert user_data_problem(EC2NodeClass.model_validate(document).spec) is None


@pytest.mark.parametrize("path", WORKLOADS, ids=lambda path: path.stem)
def test_an_example_of_a_workload_gets_its_nodes_or_says_why_not(path: Path, tmp_path: Path) -> None:
    """Of those that are to be scaled by hand, two replicas."""
    scaled = tmp_path / path.name
    scaled.write_text(path.read_text().replace("replicas: 0", "replicas: 2"))
    done = planned(ANYTHING, scaled)
    if reason := REFUSED.get(path.name):
        assert reason in done.err
        return
    plan = msgspec.json.decode(done.out)
    assert plan["launch"], done.err
    assert plan["unschedulable"] == []
