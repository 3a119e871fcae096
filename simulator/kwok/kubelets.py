"""The kubelets of nodes that no machine runs: at every ``tick`` they do on an API server what kubelets do all the time.

Nodes become ready and renew their leases, pods that were bound run, pods that were deleted end.
"""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any

import msgspec
from msgspec.structs import replace

from joinery.gateways.kubernetes import lists
from joinery.gateways.kubernetes.transport import MERGE_PATCH, Transport
from joinery.objects.errors import ConflictError, NotFoundError
from joinery.objects.kubernetes import core
from joinery.objects.wording import rfc3339
from simulator.kubernetes import shapes

NOT_READY = "node.kubernetes.io/not-ready"
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
#: A kubelet's own default (KubeletConfiguration ``nodeLeaseDurationSeconds``, of which it takes a quarter).
_RENEWED_EVERY = timedelta(seconds=10)


class Kubelets:
    """All kubelets at once. ``transport`` may do everything. ``plays``: whether a node is one of theirs."""

    def __init__(
        self, transport: Transport, now: Callable[[], datetime], plays: Callable[[core.Node], bool] = lambda _: True
    ) -> None:
        self.transport = transport
        self._now = now
        self._plays = plays
        self._renewed: dict[str, datetime] = {}

    def tick(self) -> int:
        """Everything that kubelets would have done by now. Returns how many objects changed."""
        nodes = [node for node in self.nodes() if self._plays(node)]
        names = {node.metadata.name for node in nodes}
        pods = lists.read(self.transport, "/api/v1/pods", core.Pod).objects
        bound = [pod for pod in pods if pod.spec.node_name in names]
        ending = [pod for pod in bound if pod.metadata.deletion_timestamp is not None]
        starting = [pod for pod in bound if pod.metadata.deletion_timestamp is None and pod.status.phase == "Pending"]
        waiting = [node for node in nodes if any(taint.key == NOT_READY for taint in node.spec.taints)]
        self._renew(names)
        return sum([*map(self._ready, waiting), *map(self._end, ending), *map(self._run, starting)])

    def nodes(self) -> tuple[core.Node, ...]:
        """All nodes, theirs or not."""
        return lists.read(self.transport, "/api/v1/nodes", core.Node).objects

    def _renew(self, names: Iterable[str]) -> None:
        """Without a lease that is renewed, the node controller finds a node dead after forty seconds."""
        now = self._now()
        for name in names:
            if name in self._renewed and now - self._renewed[name] < _RENEWED_EVERY:
                continue
            self._renewed[name] = now
            spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": f"{now:%Y-%m-%dT%H:%M:%S.%fZ}"}
            if not self.send("PATCH", f"{_LEASES}/{name}", {"spec": spec}):
                self.send("POST", _LEASES, {"metadata": {"name": name}, "spec": spec})

    def _ready(self, node: core.Node) -> bool:
        kept = [taint for taint in node.spec.taints if taint.key != NOT_READY]
        patch = {
            "metadata": {"resourceVersion": node.metadata.resource_version},
            "spec": {"taints": msgspec.to_builtins(kept)},
        }
        return self.send("PATCH", f"/api/v1/nodes/{node.metadata.name}", patch)

    def _run(self, pod: core.Pod) -> bool:
        at = rfc3339(self._now())
        conditions = [
            msgspec.to_builtins(condition) for condition in pod.status.conditions if condition.type == "PodScheduled"
        ]
        ready = [
            {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": at}
            for kind in ("PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready")
        ]
        running = shapes.printed("Pod", msgspec.to_builtins(replace(pod, status=core.PodStatus(phase="Running"))))
        containers = running["status"]["containerStatuses"]
        status = {
            "phase": "Running",
            "startTime": at,
            "conditions": conditions + ready,
            "containerStatuses": containers,
        }
        return self.send("PATCH", f"{_path(pod)}/status", {"status": status})

    def _end(self, pod: core.Pod) -> bool:
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod.metadata.uid}}
        return self.send("DELETE", _path(pod), options)

    def send(self, method: str, path: str, body: Any) -> bool:
        """Whether the write was made: somebody else may have been faster, and the next tick looks again."""
        try:
            self.transport.request(
                method, path, body, content_type=MERGE_PATCH if method == "PATCH" else "application/json"
            )
        except (ConflictError, NotFoundError):
            return False
        return True


def _path(pod: core.Pod) -> str:
    return f"/api/v1/namespaces/{pod.metadata.namespace}/pods/{pod.metadata.name}"
