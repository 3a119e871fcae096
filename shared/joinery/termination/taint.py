"""Marking a node that is about to go: no new pods, and no more traffic from outside."""

from msgspec.structs import replace

from joinery.apis.core import Node, Taint
from joinery.apis.labels import DISRUPTED_TAINT, EXCLUDE_FROM_LOAD_BALANCERS, NO_SCHEDULE

DISRUPTED = Taint(key=DISRUPTED_TAINT, effect=NO_SCHEDULE)


def is_disrupted(node: Node) -> bool:
    """Whether the node carries the taint; key and effect count."""
    return any(taint.key == DISRUPTED_TAINT and taint.effect == NO_SCHEDULE for taint in node.spec.taints)


def disrupted(node: Node) -> Node:
    """The node as it should be while it goes (Karpenter `Terminator.Taint`)."""
    kept = node.spec.taints if is_disrupted(node) else [t for t in node.spec.taints if t.key != DISRUPTED_TAINT]
    taints = kept if is_disrupted(node) else [*kept, DISRUPTED]
    labels = {**node.metadata.labels, EXCLUDE_FROM_LOAD_BALANCERS: "karpenter"}
    return replace(node, metadata=replace(node.metadata, labels=labels), spec=replace(node.spec, taints=taints))
