"""Initialization: a registered node becomes fit for the pods that it was bought for.

It is fit when its kubelet is ready, the taints of booting and the user's startup taints are gone, and the resources
that were asked for have appeared (the device plugin of a GPU takes a minute). From then on plans go by what the node
says of itself, and no longer by its claim. Initialization is never undone (Karpenter nodeclaim/lifecycle,
Initialization).
"""

from msgspec.structs import replace

from joinery.decisions.lifecycle.state.cluster import ClusterState, is_ready
from joinery.objects.karpenter.conditions import true, unknown
from joinery.objects.karpenter.labels import INITIALIZED as INITIALIZED_LABEL
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Node
from joinery.objects.kubernetes.quantity import amount, amounts
from joinery.objects.snapshot.claims import INITIALIZED, observed, with_condition
from joinery.objects.snapshot.nodes import is_ephemeral


def initialize(state: ClusterState, claim: NodeClaim, node: Node | None) -> tuple[NodeClaim, Node | None]:
    """The claim with the condition ``Initialized``, and its node with the label if it is fit."""
    at = observed(claim, state.snapshot.now)
    if node is None:
        return with_condition(claim, unknown(INITIALIZED, "NodeNotFound", "the node is not registered", at)), None
    missing = not_yet(claim, node)
    if missing is not None:
        return with_condition(claim, unknown(INITIALIZED, *missing, at)), node
    labels = {**node.metadata.labels, INITIALIZED_LABEL: "true"}
    fit = replace(node, metadata=replace(node.metadata, labels=labels))
    return with_condition(claim, true(INITIALIZED, at)), fit


def not_yet(claim: NodeClaim, node: Node) -> tuple[str, str] | None:
    """Reason and message of the first check that fails; None for a node that is fit."""
    if not is_ready(node):
        return "NodeNotReady", "the kubelet is not ready"
    startup = {(taint.key, taint.effect) for taint in claim.spec.startup_taints}
    for taint in node.spec.taints:
        if (taint.key, taint.effect) in startup:
            return "StartupTaintsExist", f"the startup taint {taint.key} is still there"
    for taint in node.spec.taints:
        if is_ephemeral(taint):
            return "KnownEphemeralTaintsExist", f"the taint {taint.key} is still there"
    absent = _absent_resources(claim, node)
    return ("ResourceNotRegistered", f"no {', '.join(absent)} yet") if absent else None


def _absent_resources(claim: NodeClaim, node: Node) -> list[str]:
    has = amounts(node.status.allocatable)
    requests = claim.spec.resources.requests
    return sorted(name for name, text in requests.items() if amount(name, text) > 0 and has.get(name, 0) <= 0)
