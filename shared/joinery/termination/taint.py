"""The taint and label of a node that is about to go: it gets no new pods, and no more traffic from load balancers."""

from msgspec.structs import replace

from joinery.apis.core import Node, Taint
from joinery.apis.labels import DISRUPTED_TAINT, EXCLUDE_FROM_LOAD_BALANCERS, NO_SCHEDULE

DISRUPTED = Taint(key=DISRUPTED_TAINT, effect=NO_SCHEDULE)


def is_disrupted(node: Node) -> bool:
    """Whether the node has the taint. Its value does not matter, only key and effect."""
    return any(taint.key == DISRUPTED_TAINT and taint.effect == NO_SCHEDULE for taint in node.spec.taints)


def disrupted(node: Node) -> Node:
    """The node with the taint and the label (Karpenter `Terminator.Taint`)."""
    taints = node.spec.taints
    if not is_disrupted(node):
        # A taint of the same key with another effect is replaced.
        taints = [*(taint for taint in taints if taint.key != DISRUPTED_TAINT), DISRUPTED]
    labels = {**node.metadata.labels, EXCLUDE_FROM_LOAD_BALANCERS: "karpenter"}
    return replace(node, metadata=replace(node.metadata, labels=labels), spec=replace(node.spec, taints=taints))
