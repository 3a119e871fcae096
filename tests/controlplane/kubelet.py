"""The kubelets of a real control plane that has none, with nodes as EC2's instances register them.

A launched claim becomes a Node object, as its instance would register it: with the provider ID, the capacity, the
labels and taints of its user data, and the unregistered taint, which Joinery takes off. What follows is any kubelet's
work (``simulator.kwok.kubelets``).
"""

from collections.abc import Iterable
from datetime import datetime

import msgspec

from joinery.gateways.kubernetes.transport import Transport
from joinery.objects.karpenter import labels as keys
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes import core
from simulator.kubernetes import shapes
from simulator.kwok import kubelets
from tests.controlplane import objects

UNREGISTERED = core.Taint(key=keys.UNREGISTERED_TAINT, effect=keys.NO_EXECUTE)


class Kubelets(kubelets.Kubelets):
    """All kubelets at once. ``transport`` may do everything; ``at`` is what their timestamps say."""

    def __init__(self, transport: Transport, at: datetime) -> None:
        super().__init__(transport, lambda: at)

    def boot(self, claims: Iterable[NodeClaim]) -> list[core.Node]:
        """Register a Node for every launched claim that has none, and return those."""
        registered = {node.spec.provider_id for node in self.nodes()}
        fresh = [node_of(claim) for claim in claims if claim.status.provider_id not in {"", *registered}]
        for node in fresh:
            objects.put(self.transport, node)
            self._report(node)
        return fresh

    def _report(self, node: core.Node) -> None:
        """What a kubelet tells besides: images, addresses, versions;
        and that no CSI driver has registered, which Go prints as null.
        """
        status = shapes.printed("Node", msgspec.to_builtins(node))["status"]
        self.send("PATCH", f"/api/v1/nodes/{node.metadata.name}/status", {"status": status})
        drivers = {"metadata": {"name": node.metadata.name}, "spec": {"drivers": None}}
        self.send("POST", "/apis/storage.k8s.io/v1/csinodes", drivers)


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
