"""Volume claims whose StorageClass is not in the files: what they are taken for."""

import pytest

from joinery.cli.sources import SAMPLE
from tests.cli.conftest import NOW, Run, Write, pod_document

EBS = "1 volume claim taken as EBS volume, made in the zone of its pod's node"


@pytest.mark.parametrize(
    ("modes", "taken"),
    [
        (["ReadWriteMany"], "1 volume claim taken as EFS, a file system for nodes of all zones"),
        (["ReadWriteOnce"], EBS),
    ],
)
def test_a_claim_that_many_nodes_share_is_no_disk(
    run: Run, cluster: str, write: Write, modes: list[str], taken: str
) -> None:
    """Its pods would all be in the zone of the first of them, whatever their spread says."""
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data"},
        "spec": {"accessModes": modes, "storageClassName": "c", "resources": {"requests": {"storage": "1Gi"}}},
    }
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    label = {"app": "a"}
    spread = {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": label},
    }
    pods = [pod_document(name, volumes=volumes, topologySpreadConstraints=[spread]) for name in ("a", "b")]
    for pod in pods:
        pod["metadata"]["labels"] = label
    files = write("files.json", {"apiVersion": "v1", "kind": "List", "items": [claim, *pods]})
    outcome = run("plan", "--now", NOW, "--catalog", str(SAMPLE), "-o", "json", "-f", cluster, "-f", files)
    assert f"note: StorageClass c is not in the files: {taken}\n" in outcome.err
    zones = {launch["offering"]["zone"] for launch in outcome.document["launch"]}
    assert len(zones) == (2 if modes == ["ReadWriteMany"] else 1)
