"""Pod tracking: a claim notes when pods last came to its node or went from it (``objects.snapshot.pod_events``).

It is noted from the difference of two snapshots, at most once in ten seconds, or in a tenth of the NodePool's
``consolidateAfter`` where that is longer: whoever asks in between takes a change that is not noted for one of this
moment. Where nobody asks, because the pool's nodes are never consolidated, nothing is noted.
"""

from datetime import timedelta

from joinery.decisions.lifecycle.state.cluster import ClusterState
from joinery.objects.karpenter import duration
from joinery.objects.karpenter.conditions import true
from joinery.objects.karpenter.labels import NODE_POOL
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.kubernetes.core import Node
from joinery.objects.snapshot.claims import INITIALIZED, observed, with_condition, with_status
from joinery.objects.snapshot.pod_events import PODS_SEEN

#: How often a claim is written to at most (Karpenter nodeclaim/podevents, `dedupeTimeout`).
SHORTEST_INTERVAL = timedelta(seconds=10)


def tracked(state: ClusterState, claim: NodeClaim, node: Node | None) -> NodeClaim:
    """The claim with what its node's pods did since they were last looked at."""
    pool = state.snapshot.pools_by_name.get(claim.metadata.labels.get(NODE_POOL, ""))
    interval = _interval(pool)
    if interval is None or node is None or not claim.is_true(INITIALIZED):
        return claim
    now, seen = state.snapshot.now, claim.condition(PODS_SEEN)
    current = state.digests.of(node.metadata.name, state.pods_on(node))
    if seen is not None and seen.message == current:
        return claim
    at = claim.status.last_pod_event_time
    if seen is not None and at is not None and now - at < interval:
        return claim
    # Whoever looks for the first time has seen nothing happen: another controller's moment counts on.
    moment = at if seen is None else now.replace(microsecond=0)
    condition = true(PODS_SEEN, observed(claim, now)).model_copy(update={"reason": "PodsSeen", "message": current})
    return with_condition(with_status(claim, last_pod_event_time=moment), condition)


def _interval(pool: NodePool | None) -> timedelta | None:
    """How often changes are noted; None for never."""
    if pool is None or pool.is_static:
        return None
    quiet = duration.parse(pool.spec.disruption.consolidate_after)
    return None if quiet is None else max(SHORTEST_INTERVAL, quiet / 10)
