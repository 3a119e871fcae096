"""Somebody who copies the commands of a page into a shell, while a cluster with Joinery lives on."""

import os
import subprocess
from datetime import timedelta
from pathlib import Path

from joinery.decisions.installation.requests import StackRequest
from joinery.decisions.installation.starter import documents
from joinery.objects.karpenter.conditions import READY, is_true
from joinery.objects.kubernetes.references import collection
from simulator.world import CLUSTER
from tests.controlplane.story import Cluster
from tools.controlplane.assets import binary
from tools.controlplane.plane import ControlPlane
from tools.template import ROOT

TICK = timedelta(seconds=20)


def start(cluster: Cluster) -> None:
    """What `StarterNodePool=true` makes; it is ready when the page goes on."""
    given = {"ClusterName": CLUSTER, "StarterNodePool": "true", "NodeRole": "nodes"}
    asked = StackRequest(kind="Create", type="", name="Connection", stack="", id="", url="", properties=given)
    for document in documents(asked):
        cluster.admin.request("POST", collection(document["kind"]), document)
    cluster.send("lifecycle", "joinery-lifecycle.fifo", {"bell": "lifecycle"}, "schedule")
    cluster.until(
        lambda seen: seen.node_pools and all(is_true(pool.status.conditions, READY) for pool in seen.node_pools)
    )


class Reader:
    """Somebody who copies commands into a shell, while the cluster lives on."""

    def __init__(self, folder: Path, plane: ControlPlane, cluster: Cluster) -> None:
        self._folder, self._cluster = folder, cluster
        for name in ("examples", ".venv"):
            (folder / name).symlink_to(ROOT / name)
        path = f"{binary('kubectl').parent}:{os.environ['PATH']}"
        self._environment = {**os.environ, "KUBECONFIG": str(plane.kubeconfig()), "PATH": path}

    def run(self, command: str) -> str:
        """What the command prints, when it has ended."""
        process = subprocess.Popen(
            command, shell=True, cwd=self._folder, env=self._environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        try:
            if " wait " in command or " rollout status " in command:
                self._cluster.until(lambda _: self._has_ended(process))
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
        assert process.returncode == 0, f"{command}: {err}"
        return out

    def _has_ended(self, process: "subprocess.Popen[str]") -> bool:
        """Whether it has; else time passes, and the schedule has disruption look at the nodes."""
        if process.poll() is not None:
            return True
        clock = self._cluster.world.clock
        if not self._cluster.look().pods:
            clock.move_to(clock.now() + TICK)
            self._cluster.send("disruption", "joinery-disruption.fifo", {"bell": "disruption"}, "schedule")
        return False
