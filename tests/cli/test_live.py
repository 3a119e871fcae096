"""``joinery plan`` without files: the cluster of the current kubeconfig, read and never written."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec

from joinery.cli.sources import SAMPLE
from simulator.builders import node_class, node_pool, pod
from tests.controlplane.objects import connect, put, sweep
from tools.controlplane.plane import ControlPlane


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


def test_a_kubeconfig_that_is_not_there_is_bad_input(tmp_path: Path) -> None:
    """One line, exit status 2."""
    done = _plan(tmp_path / "absent")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode().startswith(f"joinery: kubeconfig {tmp_path / 'absent'}: ")


def _plan(kubeconfig: Path) -> "subprocess.CompletedProcess[bytes]":
    command = [str(Path(sys.executable).with_name("joinery")), "plan", "-o", "json", "--catalog", str(SAMPLE)]
    return subprocess.run(command, env={**os.environ, "KUBECONFIG": str(kubeconfig)}, capture_output=True, check=False)
