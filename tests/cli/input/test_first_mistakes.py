"""What a newcomer's own files get wrong first, and what the answer says to do about it."""

import pytest
import yaml

from joinery_cli.sources import SAMPLE
from tests.cli.conftest import CLUSTER, NOW, Run, Write, pod_document

PLAN = ("plan", "--catalog", str(SAMPLE), "--now", NOW)


@pytest.mark.parametrize(
    ("written", "meant"),
    [("128Mb", "128M"), ("8GiB", "8Gi"), ("1.5 Gi", "1.5Gi"), ("100GB", "100G"), ("64kb", "64k"), ("64KiB", "64Ki")],
)
def test_a_unit_as_others_write_it_is_asked_about(run: Run, write: Write, written: str, meant: str) -> None:
    """Half of all first files have one."""
    pod = pod_document()
    pod["spec"]["containers"][0]["resources"]["requests"]["memory"] = written
    outcome = run(*PLAN, "-f", write("cluster.yaml", CLUSTER), "-f", write("pod.json", pod))
    assert outcome.status == 2
    assert f"requests.memory: '{written}' is not a quantity (is it {meant}?): write" in outcome.err


def test_the_policy_of_v1beta1_is_asked_about_in_v1(run: Run, write: Write) -> None:
    """It was renamed, and its examples are everywhere."""
    pool = CLUSTER.replace(
        "spec:\n  template", "spec:\n  disruption: {consolidationPolicy: WhenUnderutilized}\n  template"
    )
    assert "; is it WhenEmptyOrUnderutilized?" in run(*PLAN, "-f", write("cluster.yaml", pool)).err


def test_mistakes_stand_in_the_order_of_the_lines(run: Run, write: Write) -> None:
    """Whoever mends them goes through the file once."""
    wrong = CLUSTER.replace(
        "role: nodes", "role: nodes\n  blockDeviceMappings:\n  - ebs:\n      volumeSize: 100GB\n      encrypted: 3"
    )
    lines = run(*PLAN, "-f", write("cluster.yaml", wrong)).err.splitlines()
    numbers = [int(line.split(":")[2]) for line in lines]
    assert len(numbers) == 2
    assert numbers == sorted(numbers)


def test_claims_of_a_file_can_be_created(run: Run, write: Write) -> None:
    """Its NodePool has no UID, and an API server refuses an owner without one."""
    printed = run(*PLAN, "-f", write("cluster.yaml", CLUSTER), write("pod.json", pod_document()), "-o", "yaml").out
    claims = [*yaml.safe_load_all(printed)]
    assert claims
    assert not [claim for claim in claims if "ownerReferences" in claim["metadata"]]


def test_a_node_of_a_managed_node_group_says_whether_it_is_spot(run: Run, write: Write) -> None:
    """By EKS's own label; a third of the nodes looked as if they were of no capacity type."""
    labels = {
        "node.kubernetes.io/instance-type": "m5.large",
        "topology.kubernetes.io/zone": "us-east-1a",
        "eks.amazonaws.com/nodegroup": "workers",
        "eks.amazonaws.com/capacityType": "SPOT",
    }
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "worker", "labels": labels}, "status": {}}
    seen = run("top", "--catalog", str(SAMPLE), "--now", NOW, "-f", write("node.json", node), "-o", "wide").out
    assert next(line.split() for line in seen.splitlines() if line.startswith("worker"))[5] == "spot"
    assert "100% spot" in seen


def test_a_part_of_a_family_names_all_that_begin_so(run: Run) -> None:
    """``m7`` is none, and ``m7i`` was only one of them."""
    assert "is it m7a, m7g, m7gd, m7i" in run("catalog", "--catalog", str(SAMPLE), "--family", "m7").err
