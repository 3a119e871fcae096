"""Emptiness as Karpenter v0.31 noted it: on the Node, as the annotation ``karpenter.sh/emptiness-timestamp``.

A node of a Provisioner with ``ttlSecondsAfterEmpty`` carries since when it has had no pods but those that come with
every node, and loses the annotation with its first pod. People and tools of such a cluster read it. A moment that is
there counts on, ours or an older controller's (``objects.snapshot.pod_events``); what cannot be read is written anew.
"""

from msgspec.structs import replace

from joinery.decisions.lifecycle.state.cluster import ClusterState
from joinery.objects.karpenter.labels import EMPTY_SINCE, NODE_POOL
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Node
from joinery.objects.snapshot.claims import INITIALIZED
from joinery.objects.snapshot.pod_events import empty_since, is_empty


def with_emptiness(state: ClusterState, claim: NodeClaim, node: Node | None) -> Node | None:
    """The node with the annotation as it should be."""
    pool = state.snapshot.pools_by_name.get(claim.metadata.labels.get(NODE_POOL, ""))
    if node is None or pool is None or not pool.notes_emptiness or not claim.is_true(INITIALIZED):
        return node
    annotations = node.metadata.annotations
    if is_empty(state.pods_on(node)):
        if empty_since(annotations) is not None:
            return node
        annotations = {**annotations, EMPTY_SINCE: state.snapshot.now.strftime("%Y-%m-%dT%H:%M:%SZ")}
    elif EMPTY_SINCE in annotations:
        annotations = {key: value for key, value in annotations.items() if key != EMPTY_SINCE}
    else:
        return node
    return replace(node, metadata=replace(node.metadata, annotations=annotations))
