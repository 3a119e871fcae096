"""What an idle tick of the lifecycle function costs in a large cluster: time, bytes and memory.

    python -m tools.bench.snapshot [--size NODES PODS]

A real API server (``KUBEBUILDER_ASSETS``) holds the cluster. A process of its own plays the function: its first read is
a cold one. Then it writes what lifecycle would, until there is nothing left to write. Every further read is a warm tick
five seconds later, in which only kubelets and a few pods have reported. ``tick`` is a read and lifecycle's decision
about it, by the clock; ``MB`` is what all answers took on the wire.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools.bench.frame import show
from tools.bench.large_cluster import LargeCluster
from tools.controlplane.assets import MissingBinaryError
from tools.controlplane.plane import ControlPlane, running
from tools.template import ROOT

if TYPE_CHECKING:
    from joinery.decisions.lifecycle.decision import LifecycleDecision
    from joinery.gateways.kubernetes.adapter import KubernetesCluster
    from joinery.objects.snapshot.pod_events import Digests
    from joinery.objects.snapshot.snapshot import Snapshot

SIZES = ((1000, 30_000), (5000, 100_000))
TICKS = 9
TICK_SECONDS = 5
WATCHED = ("/api/v1/pods", "/api/v1/nodes", "/apis/karpenter.sh/v1/nodeclaims")
MANIFESTS = ROOT / "manifests"
MIB = 1024  # getrusage counts KiB
_AT_ONCE = 2000
#: How often lifecycle runs until it has nothing to do: conditions, tags, and a look at both.
_ROUNDS = 4


@dataclass(frozen=True)
class Tick:
    """One tick, in seconds by the clock.

    ``processor``, ``thought``: what the read and the decision took of the function's processor. ``megabytes``: read in
    it. ``peak``: what memory the process has had so far at most, in MiB.
    """

    read: float
    decided: float
    processor: float
    thought: float
    megabytes: float
    peak: float
    pods: int


def ticks() -> None:
    """Be the function: one tick for every line of the standard input."""
    from joinery.gateways.kubernetes.adapter import KubernetesCluster
    from joinery.gateways.kubernetes.auth import from_kubeconfig
    from joinery.gateways.kubernetes.transport import Transport
    from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
    from joinery.objects.snapshot.pod_events import Digests

    transport = Transport(from_kubeconfig(sys.argv[-1]))
    moment = datetime(2026, 11, 21, 13, tzinfo=UTC)
    cluster = KubernetesCluster(transport, now=lambda: moment, node_class=EC2NodeClass, log=_complain)
    digests = Digests()
    for number, _ in enumerate(sys.stdin):
        before, begun, processor = cluster.bytes_read, time.perf_counter(), time.process_time()
        snapshot = cluster.snapshot()
        read, thought = time.perf_counter(), time.process_time()
        _decision(snapshot, digests)
        decided, ended = time.perf_counter(), time.process_time()
        times = [read - begun, decided - read, thought - processor, ended - thought]
        size = (cluster.bytes_read - before) / 1e6
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MIB
        if not number:
            _bring_to_rest(cluster)
        print(json.dumps([*times, size, peak, len(snapshot.pods)]), flush=True)


def _decision(snapshot: "Snapshot", digests: "Digests | None" = None) -> "LifecycleDecision":
    """Without a list of instances, so that nothing is terminated or found to be garbage."""
    from joinery.decisions.lifecycle.decision import decide
    from joinery.decisions.lifecycle.state.cluster import state_of

    return decide(
        state_of(snapshot, None, digests=digests), {item.metadata.name: item.status for item in snapshot.node_classes}
    )


def _bring_to_rest(cluster: "KubernetesCluster") -> None:
    """Write what lifecycle would to claims and pools that it has never seen; the cloud takes every tag."""
    from joinery.objects.actions import UpdateClaim, UpdatePool

    for _ in range(_ROUNDS):
        decision = _decision(cluster.snapshot())
        chains = [*decision.readiness, *(chain for step in decision.steps for chain in (step.commands, step.tagging))]
        commands = [command for chain in chains for command in chain]
        for command in commands:
            if isinstance(command, UpdateClaim):
                cluster.update_node_claim(command.before, command.after)
            elif isinstance(command, UpdatePool):
                cluster.update_node_pool(command.before, command.after)
        if not commands:
            return
    raise SystemExit(f"the cluster does not come to rest: {sorted({type(command).__name__ for command in commands})}")


def _complain(line: str) -> None:
    print(line, file=sys.stderr)


def measure(plane: ControlPlane, cluster: LargeCluster) -> list[Tick]:
    """The ticks of one function, the cold one first."""
    _store(plane, cluster.documents())
    for path in WATCHED:  # what was put into etcd is in the API server's caches
        plane.wait(f"{plane.server}{path}?limit=1")
    command = [sys.executable, "-m", "tools.bench.snapshot", "--ticks", str(plane.kubeconfig())]
    taken = []
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as function:
        assert function.stdin is not None
        assert function.stdout is not None
        for number in range(TICKS + 1):
            if number:
                _store(plane, cluster.changes(number, TICK_SECONDS))
                time.sleep(1)
            function.stdin.write("\n")
            function.stdin.flush()
            taken.append(Tick(*json.loads(function.stdout.readline())))
        function.stdin.close()
    return taken


def _store(plane: ControlPlane, documents: Iterable[tuple[str, Any]]) -> None:
    left = iter(documents)
    while some := dict(islice(left, _AT_ONCE)):
        plane.store(some)


def row(cluster: LargeCluster, taken: list[Tick]) -> list[str]:
    """The cold read, and the median of the warm ticks."""
    cold, warm = taken[0], taken[1:]
    read, decided, processor, thought = (
        1000 * statistics.median(getattr(tick, name) for tick in warm)
        for name in ("read", "decided", "processor", "thought")
    )
    slowest = 1000 * max(tick.read for tick in warm)
    return [
        str(cluster.nodes), str(cold.pods), f"{cold.read:.1f}", f"{cold.megabytes:.1f}", f"{read + decided:.0f}",
        f"{read:.0f}", f"{slowest:.0f}", f"{processor:.0f}", f"{thought:.0f}",
        f"{max(tick.megabytes for tick in warm):.2f}", f"{taken[-1].peak:.0f}",
    ]  # fmt: skip


_HEADINGS = (
    "nodes", "pods", "cold s", "cold MB", "tick ms", "read ms", "at most", "cpu ms", "decide", "MB", "peak MiB",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--size", type=int, nargs=2, metavar=("NODES", "PODS"), action="append")
    parser.add_argument("--ticks", metavar="KUBECONFIG", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.ticks:
        return ticks()
    rows = []
    for nodes, pods in given.size or SIZES:
        cluster = LargeCluster(nodes, pods)
        try:
            with (
                tempfile.TemporaryDirectory() as folder,
                running(Path(folder) / "plane", schedules=False, controls=False) as plane,
            ):
                plane.kubectl("apply", "--server-side", "-f", str(MANIFESTS / "crds"))
                plane.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=20s")
                rows.append(row(cluster, measure(plane, cluster)))
        except MissingBinaryError as error:
            return print(f"NOT MEASURED: {error}")
    return show(_HEADINGS, rows)


if __name__ == "__main__":
    main()
