"""DaemonSets that files leave out: it is said, and ``--daemons eks`` plans with those of every cluster of EKS."""

from typing import Any

import pytest

from joinery.objects.kubernetes.quantity import amount
from joinery_cli.sources import SAMPLE
from simulator.builders import node, node_class, node_pool, pod
from tests.cli.conftest import CLUSTER, NOW, Run, Write, pod_document
from tests.cli.input.test_partial_exports import listed

PLAN = ("plan", "--now", NOW, "-o", "json", "--catalog", str(SAMPLE))
TOLD = "warning: the files have no DaemonSet: nodes are planned as if none ran on them"
#: The cluster of other tests without its DaemonSet.
BARE = "---\n".join(one for one in CLUSTER.split("---\n") if "DaemonSet" not in one)


def requested(launch: dict[str, Any], resource: str) -> int:
    """What pods and daemons ask for of a new node."""
    return amount(resource, launch["requests"][resource])


@pytest.mark.parametrize("command", ["plan", "disrupt"])
def test_files_without_a_daemon_set_are_told_so(run: Run, write: Write, command: str) -> None:
    """Manifests of a workload, or ``kubectl get pods,nodes``: in either case a node has less room than is planned."""
    path = write("all.json", listed(node_class(), node_pool(), node("a"), pod("b", node="a", owner="b")))
    options = (command, "--now", NOW, "--catalog", str(SAMPLE), "-f", path)
    assert TOLD in run(*options).err
    assert TOLD not in run(*options, "--daemons", "eks").err


def test_files_with_a_daemon_set_or_without_any_pod_lack_none(run: Run, write: Write) -> None:
    """Whoever gives one knows of them; NodePools alone are asked about in other ways."""
    assert TOLD not in run(*PLAN, "-f", write("a.yaml", CLUSTER), write("p.json", pod_document())).err
    assert TOLD not in run(*PLAN, "-f", write("b.yaml", BARE)).err


def test_the_daemon_sets_of_eks_take_their_room_of_each_new_node(run: Run, write: Write) -> None:
    """By the add-ons' manifests 180m and 104Mi on Linux, and a place each among the pods."""
    outcome = run(*PLAN, "-f", write("a.yaml", BARE), write("p.json", pod_document()), "--daemons", "eks")
    (launch,) = outcome.document["launch"]
    assert requested(launch, "cpu") == 500 + 180
    assert requested(launch, "memory") == (512 + 104) * 2**20
    assert requested(launch, "pods") == 1 + 3
    assert outcome.document["notices"][0] == {
        "severity": "note",
        "message": "planned on each node as well, as EKS's add-ons: aws-node (cpu 50m), kube-proxy (cpu 100m), "
        "ebs-csi-node (cpu 30m, memory 104Mi)",
    }


def test_a_daemon_set_of_the_files_counts_instead_of_the_add_ons(run: Run, write: Write) -> None:
    """Its requests may be set in the add-on's configuration."""
    own = {
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "kube-proxy", "namespace": "kube-system"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {
            "containers": [{"name": "main", "resources": {"requests": {"cpu": "300m"}}}]}}},
    }  # fmt: skip
    files = (write("a.yaml", BARE), write("own.json", own), write("p.json", pod_document()))
    outcome = run(*PLAN, "-f", *files, "--daemons", "eks")
    assert requested(outcome.document["launch"][0], "cpu") == 500 + 300 + 80
    assert "kube-proxy" not in outcome.err


def test_a_cluster_has_daemon_sets_of_its_own(run: Run) -> None:
    """Nothing is added to what is read of it."""
    outcome = run("plan", "--daemons", "eks")
    assert (outcome.status, outcome.err) == (
        2,
        "joinery: --daemons eks: is for files; a cluster's own DaemonSets are read with it\n",
    )
