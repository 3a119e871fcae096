"""The kubelets of a real control plane that has none: they register nodes, run pods and end them.

A launched claim becomes a Node object, as its instance would register it: with the provider ID, the capacity, the
labels and taints of its user data, and the unregistered taint, which Joinery takes off. Then, at every ``tick``, what
kubelets do all the time: nodes become ready, pods that were bound run, pods that were deleted end.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from joinery.gateways.kubernetes import lists
from joinery.gateways.kubernetes.transport import MERGE_PATCH, Transport
from joinery.objects.errors import ConflictError, NotFoundError
from joinery.objects.karpenter import labels as keys
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes import core
from simulator.kubernetes import shapes
from tests.controlplane import objects

NOT_READY = "node.kubernetes.io/not-ready"
UNREGISTERED = core.Taint(key=keys.UNREGISTERED_TAINT, effect=keys.NO_EXECUTE)


class Kubelets:
    """All kubelets at once. ``transport`` may do everything; ``at`` is what their timestamps say."""

    def __init__(self, transport: Transport, at: datetime) -> None:
        self._transport = transport
        self._at = at.strftime("%Y-%m-%dT%H:%M:%SZ")

    def boot(self, claims: Iterable[NodeClaim]) -> list[core.Node]:
        """Register a Node for every launched claim that has none, and return those."""
        registered = {node.spec.provider_id for node in self._nodes()}
        fresh = [node_of(claim) for claim in claims if claim.status.provider_id not in {"", *registered}]
        for node in fresh:
            objects.put(self._transport, node)
            self._report(node)
        return fresh

    def _report(self, node: core.Node) -> None:
        """What a kubelet tells besides: images, addresses, versions;
        and that no CSI driver has registered, which Go prints as null.
        """
        status = shapes.printed("Node", msgspec.to_builtins(node))["status"]
        self._send("PATCH", f"/api/v1/nodes/{node.metadata.name}/status", {"status": status})
        drivers = {"metadata": {"name": node.metadata.name}, "spec": {"drivers": None}}
        self._send("POST", "/apis/storage.k8s.io/v1/csinodes", drivers)

    def tick(self) -> int:
        """Everything that kubelets would have done by now. Returns how many objects changed."""
        nodes, pods = self._nodes(), lists.read(self._transport, "/api/v1/pods", core.Pod).objects
        waiting = [node for node in nodes if any(taint.key == NOT_READY for taint in node.spec.taints)]
        bound = [pod for pod in pods if pod.spec.node_name]
        ending = [pod for pod in bound if pod.metadata.deletion_timestamp is not None]
        starting = [pod for pod in bound if pod.metadata.deletion_timestamp is None and pod.status.phase == "Pending"]
        changed = [self._ready(node) for node in waiting]
        changed += [self._end(pod) for pod in ending]
        changed += [self._run(pod) for pod in starting]
        return sum(changed)

    def _nodes(self) -> tuple[core.Node, ...]:
        return lists.read(self._transport, "/api/v1/nodes", core.Node).objects

    def _ready(self, node: core.Node) -> bool:
        kept = [taint for taint in node.spec.taints if taint.key != NOT_READY]
        patch = {
            "metadata": {"resourceVersion": node.metadata.resource_version},
            "spec": {"taints": msgspec.to_builtins(kept)},
        }
        return self._send("PATCH", f"/api/v1/nodes/{node.metadata.name}", patch)

    def _run(self, pod: core.Pod) -> bool:
        conditions = [
            msgspec.to_builtins(condition) for condition in pod.status.conditions if condition.type == "PodScheduled"
        ]
        ready = [
            {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": self._at}
            for kind in ("PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready")
        ]
        running = shapes.printed("Pod", msgspec.to_builtins(replace(pod, status=core.PodStatus(phase="Running"))))
        containers = running["status"]["containerStatuses"]
        status = {
            "phase": "Running",
            "startTime": self._at,
            "conditions": conditions + ready,
            "containerStatuses": containers,
        }
        return self._send("PATCH", f"{_path(pod)}/status", {"status": status})

    def _end(self, pod: core.Pod) -> bool:
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod.metadata.uid}}
        return self._send("DELETE", _path(pod), options)

    def _send(self, method: str, path: str, body: Any) -> bool:
        try:
            self._transport.request(
                method, path, body, content_type=MERGE_PATCH if method == "PATCH" else "application/json"
            )
        except (ConflictError, NotFoundError):
            return False  # someone was faster; the next tick looks again
        return True


def node_of(claim: NodeClaim) -> core.Node:
    """The Node that the claim's instance registers.

    The claim must be launched: its labels and status say what EC2 gave.
    """
    instance = claim.status.provider_id.rpartition("/")[2]
    name = f"ip-{instance.removeprefix('i-')}.ec2.internal"
    taints = [
        core.Taint(key=taint.key, value=taint.value, effect=taint.effect)
        for taint in (*claim.spec.taints, *claim.spec.startup_taints)
    ]
    return core.Node(
        metadata=core.ObjectMeta(name=name, labels={keys.OS: "linux", **claim.metadata.labels, keys.HOSTNAME: name}),
        spec=core.NodeSpec(provider_id=claim.status.provider_id, taints=[*taints, UNREGISTERED]),
        status=core.NodeStatus(
            capacity=shapes.spelt(claim.status.capacity),
            allocatable=shapes.allocatable(claim.status.allocatable),
            conditions=[core.Condition(type="Ready", status="True", reason="KubeletReady")],
        ),
    )


def _path(pod: core.Pod) -> str:
    return f"/api/v1/namespaces/{pod.metadata.namespace}/pods/{pod.metadata.name}"
