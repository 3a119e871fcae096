"""``joinery plan`` and ``joinery disrupt`` without files: the current kubeconfig's cluster, read and never written."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec

from joinery_cli.sources import SAMPLE
from simulator.builders import node, node_claim, node_class, node_pool, pod
from tests.controlplane.objects import connect, documents, get, install, put, sweep, uninstall
from tools.controlplane.plane import ControlPlane

LEGACY = Path(__file__).parents[1] / "controlplane" / "legacy-crds.yaml"


def test_without_files_the_kubeconfigs_cluster_is_planned(joinery_api_server: ControlPlane) -> None:
    """Only pods that the scheduler has marked count, and the plan is that of their NodePool."""
    transport = connect(joinery_api_server)
    sweep(transport)
    put(transport, node_class(), node_pool(), pod("marked"), pod("fresh", unschedulable=False))
    try:
        done = _plan(joinery_api_server.kubeconfig())
    finally:
        sweep(transport)
    assert done.returncode == 0, done.stderr
    document = msgspec.json.decode(done.stdout)
    assert [launch["pods"] for launch in document["launch"]] == [["default/marked"]]


def test_provisioners_are_read_where_they_are_installed(joinery_api_server: ControlPlane) -> None:
    """An older Karpenter's cluster can be planned before it moves; elsewhere their absence is no error."""
    transport = connect(joinery_api_server)
    sweep(transport)
    install(joinery_api_server, LEGACY)
    path = "/apis/karpenter.sh/v1alpha5/provisioners"
    requirement = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m5.large"]}
    good: dict[str, Any] = {"providerRef": {"name": "default"}, "requirements": [requirement]}
    bad: dict[str, Any] = {"providerRef": {}}
    for name, spec in (("good", good), ("bad", bad)):
        document = {"metadata": {"name": name}, "apiVersion": "karpenter.sh/v1alpha5", "kind": "Provisioner"}
        transport.request("POST", path, {**document, "spec": spec})
    put(transport, node_class(), pod("web"))
    try:
        done = _plan(joinery_api_server.kubeconfig())
    finally:
        uninstall(transport, *documents(LEGACY))
        sweep(transport)
    assert done.returncode == 0, done.stderr
    assert [launch["nodePool"] for launch in msgspec.json.decode(done.stdout)["launch"]] == ["good"]
    assert b"warning: NodePool bad: spec.providerRef: needs the name of an AWSNodeTemplate" in done.stderr


def test_without_files_the_nodes_of_the_kubeconfigs_cluster_are_judged(joinery_api_server: ControlPlane) -> None:
    """An empty one would go; its Node and NodeClaim are there afterwards as they were."""
    transport = connect(joinery_api_server)
    sweep(transport)
    used, empty = ((node(name), node_claim(f"claim-{name}", node=name)) for name in ("used", "empty"))
    pool = node_pool(requirements=["karpenter.sh/capacity-type=on-demand"], budgets=[{"nodes": "100%"}])
    put(transport, node_class(), pool, *used, *empty, pod("web", cpu="3500m", memory="12Gi", node="used", owner="web"))
    before = [get(transport, one) for one in empty]
    try:
        done = _run("disrupt", joinery_api_server.kubeconfig())
        after = [get(transport, one) for one in empty]
    finally:
        sweep(transport)
    assert done.returncode == 0, done.stderr
    document = msgspec.json.decode(done.stdout)
    assert ["claim-empty"] in [command["retire"] for command in document["commands"]]
    assert after == before


def test_a_kubeconfig_that_is_not_there_is_bad_input(tmp_path: Path) -> None:
    """One line, exit status 2."""
    done = _plan(tmp_path / "absent")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode().startswith(f"joinery: kubeconfig {tmp_path / 'absent'}: No such file or directory")


def _plan(kubeconfig: Path) -> "subprocess.CompletedProcess[bytes]":
    return _run("plan", kubeconfig)


def _run(name: str, kubeconfig: Path) -> "subprocess.CompletedProcess[bytes]":
    command = [str(Path(sys.executable).with_name("joinery")), name, "-o", "json", "--catalog", str(SAMPLE)]
    return subprocess.run(command, env={**os.environ, "KUBECONFIG": str(kubeconfig)}, capture_output=True, check=False)
