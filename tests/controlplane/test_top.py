"""``joinery top`` on a real API server: it is read with the kubeconfig, as a person does, and nothing is written."""

import os
import subprocess
import sys

from joinery.objects.karpenter.labels import PAUSED
from joinery.objects.karpenter.meta import with_metadata
from simulator import builders
from tests.controlplane import objects
from tools.controlplane.plane import ControlPlane


def _top(plane: ControlPlane) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-m", "joinery_cli", "top", "-o", "wide"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "KUBECONFIG": str(plane.kubeconfig())},
    )
    assert done.returncode == 0, done.stderr
    return [" ".join(line.split()) for line in done.stdout.splitlines()]


def test_it_shows_pods_gangs_and_room_that_wait_pauses_and_nodes(control_plane: ControlPlane) -> None:
    """The pod as the real scheduler has marked it, the gang that it has not tried, and what a buffer lacks."""
    objects.install(control_plane, *objects.MANIFEST_FILES)
    transport = objects.connect(control_plane)
    member = builders.pod("train-1", scheduling_group={"podGroupName": "train"}, unschedulable=False)
    objects.put(
        transport,
        builders.node_class(),
        builders.node_pool(requirements=["node.kubernetes.io/instance-type=m7a.large"], limits={"cpu": "6"}),
        with_metadata(builders.node_pool("nights"), annotations={PAUSED: "true"}),
        builders.node("ip-10-0-1-7", instance_type="m7a.large", provider_id="aws:///us-east-1a/i-1"),
        builders.pod("web-1", cpu="1", unschedulable=False),
        builders.pod_group("train", minimum=4),
        member,
        builders.pod_template("chunk", cpu="1500m"),
        builders.capacity_buffer("spare", template="chunk", replicas=2),
    )
    control_plane.kubectl("wait", "pod/web-1", "--for=condition=PodScheduled=false", "--timeout=30s")
    lines = _top(control_plane)
    assert any("pods wait" in line and "room for 2 is lacking, " in line for line in lines), lines
    assert any("default/spare (headroom)" in line for line in lines), lines
    assert any("PodGroup default/train places 4 pods together, and 1 of them exists" in line for line in lines), lines
    assert any("default/web" in line and "m7a.large" in line for line in lines), lines
    assert "now NodePool nights: is paused until somebody resumes it" in lines
    assert any(line.startswith("ip-10-0-1-7 - ") for line in lines), lines
    objects.sweep(transport)
