"""``joinery kwok`` on a terminal: what each function decides, line by line, and the demo."""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec
from rich.console import Console

from joinery.gateways.kubernetes.transport import MERGE_PATCH, Transport
from joinery.objects.errors import ConflictError, NotFoundError, UnavailableError
from joinery.objects.karpenter.labels import NODE_POOL
from joinery.objects.kubernetes.core import Node
from joinery.objects.snapshot.snapshot import Snapshot
from joinery_cli.notices import working
from simulator.doors.doors import Call
from simulator.kwok.cloud import price_of
from simulator.kwok.installing import install
from simulator.kwok.world import Live, real_time

_NAMESPACES, _NAMESPACE = "/api/v1/namespaces", "joinery-demo"
_DEPLOYMENTS = f"/apis/apps/v1/namespaces/{_NAMESPACE}/deployments"
_PODS = 20
#: Commands that are one of many, or that nobody waits for.
_UNSAID = {"Tolerate", "TagInstance", "UpdatePool", "UpdateClass", "UpdateNode"}
#: Seconds between two turns, and until a step of the demo has failed.
_TURN, _PATIENCE = 0.2, 180.0
_DEPLOYMENT: dict[str, Any] = {
    "metadata": {"name": "inflate"},
    "spec": {
        "replicas": _PODS,
        "selector": {"matchLabels": {"app": "inflate"}},
        "template": {
            "metadata": {"labels": {"app": "inflate"}},
            "spec": {
                "terminationGracePeriodSeconds": 0,
                "containers": [
                    {
                        "name": "inflate",
                        "image": "registry.k8s.io/pause:3.10",
                        "resources": {"requests": {"cpu": "900m", "memory": "1Gi"}},
                    }
                ],
                # Not on the machine that runs the cluster itself.
                "nodeSelector": {NODE_POOL: "default"},
            },
        },
    },
}


def play(transport: Transport, settings: str) -> None:
    """Work until Ctrl-C."""
    console = Console(highlight=False)
    live = _opened(transport, settings, console)
    console.print("Scale something up: its pods get nodes. Ctrl-C ends this.")
    with live.doors.open(), suppress(KeyboardInterrupt):
        while True:
            live.step()
            time.sleep(_TURN)


def show_demo(transport: Transport, settings: str) -> None:
    """Pods come, become fewer, and go. Raises ``UnavailableError`` if something takes too long."""
    console = Console(highlight=False)
    # Or nobody would see a node go within the hour that it must run for its price.
    live = _opened(transport, f"NewNodesRepay=false; {settings}", console)
    with suppress(ConflictError):
        transport.request("POST", _NAMESPACES, {"metadata": {"name": _NAMESPACE}})
    with live.doors.open():
        try:
            console.print(f"\n[bold]{_PODS} pods of a Deployment come")
            with suppress(ConflictError):
                transport.request("POST", _DEPLOYMENTS, _DEPLOYMENT)
            _summary(console, _until(live, "its pods run", lambda seen: _run(seen, _PODS)))
            console.print(f"\n[bold]It is scaled down to {_PODS // 4}")
            _scale(transport, _PODS // 4)
            fewer = _until(live, "its pods are gone", lambda seen: _run(seen, _PODS // 4))
            price = _price(fewer)
            _summary(
                console,
                _until(live, "cheaper nodes", lambda seen: _price(seen) < price and _run(seen, _PODS // 4)),
            )
        finally:
            console.print("\n[bold]It is deleted")
            with suppress(NotFoundError):
                transport.request("DELETE", f"{_NAMESPACES}/{_NAMESPACE}")
            _summary(console, _until(live, "its nodes are gone", lambda seen: not _ours(seen)))


def _opened(transport: Transport, settings: str, console: Console) -> Live:
    with working("looking at the cluster"):
        created = [*install(transport)]
        live = Live(transport, real_time, settings)
    for one in created:
        console.print(f"created {one}", markup=False)
    live.doors.when_called.append(lambda call: _tell(console, call))
    return live


def _tell(console: Console, call: Call) -> None:
    """The decisions of one run, and how it failed."""
    lines = []
    for line in call.log.splitlines():
        entry = msgspec.json.decode(line)
        what = str(entry.get("command") or entry.get("node_claim") or "")
        if what and what.partition(" ")[0] not in _UNSAID and entry.get("message") in ("decided", "claim written"):
            lines.append(f"{what}: {entry.get('reason', '')}")
        elif "nodes stay" in str(entry.get("message")) or "node stays" in str(entry.get("message")):
            lines.append(f"{entry['message']}: {entry.get('reason', '')}")
    if call.error:
        lines.append(f"failed: {call.error}")
    for line in lines:
        console.print(f"{call.at:%H:%M:%S} {call.door:13} {line}", markup=False, soft_wrap=True)


def _until(live: Live, what: str, is_true: Callable[[Snapshot], bool]) -> Snapshot:
    ends = time.monotonic() + _PATIENCE
    while not is_true(seen := live.step()):
        if time.monotonic() > ends:
            raise UnavailableError(f"after {_PATIENCE:.0f} seconds still not so: {what}")
        time.sleep(_TURN)
    return seen


def _run(seen: Snapshot, pods: int) -> bool:
    there = [pod for pod in seen.pods if pod.metadata.namespace == _NAMESPACE]
    return len(there) == pods and all(pod.status.phase == "Running" for pod in there)


def _scale(transport: Transport, replicas: int) -> None:
    scale = {"spec": {"replicas": replicas}}
    transport.request("PATCH", f"{_DEPLOYMENTS}/inflate", scale, content_type=MERGE_PATCH)


def _ours(seen: Snapshot) -> list[Node]:
    return [node for node in seen.nodes if price_of(node) is not None]


def _price(seen: Snapshot) -> float:
    return sum(price_of(node) or 0.0 for node in _ours(seen))


def _summary(console: Console, seen: Snapshot) -> None:
    pods = sum(pod.metadata.namespace == _NAMESPACE for pod in seen.pods)
    console.print(f"-> {pods} pods on {len(_ours(seen))} nodes of {_price(seen):.4f} $/h", style="green")
