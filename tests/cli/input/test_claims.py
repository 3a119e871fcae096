"""Volume claims whose StorageClass is not in the files: what they are taken for."""

from typing import Any

import pytest

from joinery_cli.sources import SAMPLE
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


@pytest.mark.parametrize(
    ("binding", "reference"),
    [
        ("WaitForFirstConsumer", {"claimRef": {"namespace": "default", "name": "data-db-0"}}),
        ("Immediate", {}),
        (None, {}),
    ],
)
def test_a_claim_of_files_gets_the_volume_that_waits_for_it(
    run: Run, cluster: str, write: Write, binding: str | None, reference: dict[str, Any]
) -> None:
    """As the PV controller binds them: one reserved for it, or one that is free if its class waits for no pod, or is
    but a name.
    """
    terms = [{"matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-east-1c"]}]}]
    common = {"storageClassName": "kept", "accessModes": ["ReadWriteOnce"]}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "restored"},
        "spec": {
            **common,
            **reference,
            "capacity": {"storage": "50Gi"},
            "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
        },
    }
    kept = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "kept"},
        "provisioner": "ebs.csi.aws.com",
        "volumeBindingMode": binding,
    }
    template = {"metadata": {"labels": {"app": "db"}}, "spec": pod_document("db")["spec"]}
    claim = {"metadata": {"name": "data"}, "spec": {**common, "resources": {"requests": {"storage": "50Gi"}}}}
    workload = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db"},
        "spec": {
            "serviceName": "db",
            "selector": {"matchLabels": {"app": "db"}},
            "template": template,
            "volumeClaimTemplates": [claim],
        },
    }
    items = [volume, workload, *([kept] if binding else [])]
    files = write("files.json", {"apiVersion": "v1", "kind": "List", "items": items})
    outcome = run("plan", "--now", NOW, "--catalog", str(SAMPLE), "-o", "json", "-f", cluster, "-f", files)
    (launch,) = outcome.document["launch"]
    assert (launch["pods"], launch["offering"]["zone"]) == (["default/db-0"], "us-east-1c")
    assert "StorageClass" not in outcome.err


@pytest.mark.parametrize(("owners", "placed"), [([], 1), ([{"kind": "Pod", "name": "other", "uid": "u"}], 0)])
def test_an_ephemeral_volume_s_claim_without_an_owner_is_its_pod_s(
    run: Run, cluster: str, write: Write, owners: list[dict[str, str]], placed: int
) -> None:
    """Exports lose owners; one that is somebody else's keeps the pod pending, as in a cluster."""
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "c", "resources": {"requests": {"storage": "1Gi"}}}
    owned = [{"apiVersion": "v1", "controller": True, **owner} for owner in owners]
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "a-scratch", "ownerReferences": owned},
        "spec": spec,
    }
    pod = pod_document("a", volumes=[{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}])
    files = write("files.json", {"apiVersion": "v1", "kind": "List", "items": [claim, pod]})
    outcome = run("plan", "--now", NOW, "--catalog", str(SAMPLE), "-o", "json", "-f", cluster, "-f", files)
    assert (len(outcome.document["unschedulable"]), "names no owner" in outcome.err) == (1 - placed, bool(placed))
