"""The taint and label of a node that is about to go: it gets no new pods, and no more traffic from load balancers."""

from msgspec.structs import replace

from joinery.objects.karpenter.labels import DISRUPTED_TAINT, EXCLUDE_FROM_LOAD_BALANCERS, NO_SCHEDULE
from joinery.objects.kubernetes.core import Node, Taint

DISRUPTED = Taint(key=DISRUPTED_TAINT, effect=NO_SCHEDULE)
#: The value of the label that says who has set it (Karpenter `Terminator.Taint`).
_EXCLUDED_BY = "karpenter"


def is_disrupted(node: Node) -> bool:
    """Whether the node has the taint. Its value does not matter, only key and effect."""
    return any(taint.key == DISRUPTED_TAINT and taint.effect == NO_SCHEDULE for taint in node.spec.taints)


def tainted(node: Node) -> Node:
    """The node with the taint alone: it gets no new pods, and those that it has serve on."""
    if is_disrupted(node):
        return node
    # A taint of the same key with another effect is replaced.
    taints = [*(taint for taint in node.spec.taints if taint.key != DISRUPTED_TAINT), DISRUPTED]
    return replace(node, spec=replace(node.spec, taints=taints))


def disrupted(node: Node) -> Node:
    """The node with the taint and the label (Karpenter `Terminator.Taint`)."""
    labels = {**node.metadata.labels, EXCLUDE_FROM_LOAD_BALANCERS: _EXCLUDED_BY}
    return replace(tainted(node), metadata=replace(node.metadata, labels=labels))


def undisrupted(node: Node) -> Node:
    """The node without the taint, and without the label unless somebody else has set it."""
    taints = [taint for taint in node.spec.taints if (taint.key, taint.effect) != (DISRUPTED_TAINT, NO_SCHEDULE)]
    ours = (EXCLUDE_FROM_LOAD_BALANCERS, _EXCLUDED_BY)
    labels = dict(item for item in node.metadata.labels.items() if item != ours)
    return replace(node, metadata=replace(node.metadata, labels=labels), spec=replace(node.spec, taints=taints))
