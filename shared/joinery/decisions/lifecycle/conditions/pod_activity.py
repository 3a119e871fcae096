"""What a claim and its Node note about pods: when they last came or went, and whether the node is quiet, or empty.

**Last pod event** (``objects.snapshot.pod_events``). It is noted from the difference of two snapshots, at most once in
ten seconds, or in a tenth of the NodePool's ``consolidateAfter`` where that is longer: whoever asks in between takes a
change that is not noted for one of this moment. Where nobody asks, because the pool's nodes are never consolidated,
nothing is noted.

**Consolidatable.** The rule is Karpenter's (nodeclaim/disruption, Consolidation): True once ``consolidateAfter`` has
passed since pods last came or went, as the claim has noted it or they say themselves, or since the node was
initialised. Otherwise it is absent. The condition is for people and for a Karpenter that takes over. Decisions do not
read it: they work it out from the snapshot (``disruption.candidates``), and so never act upon one that is out of date.

**Emptiness as Karpenter v0.31 noted it**: on the Node, as the annotation ``karpenter.sh/emptiness-timestamp``. A node
of a Provisioner with ``ttlSecondsAfterEmpty`` carries since when it has had no pods but those that come with every
node, and loses the annotation with its first pod. People and tools of such a cluster read it. A moment that is there
counts on, ours or an older controller's; what cannot be read is written anew.
"""

from datetime import timedelta

from msgspec.structs import replace

from joinery.decisions.lifecycle.state.cluster import ClusterState
from joinery.objects.karpenter import duration
from joinery.objects.karpenter.conditions import drop, true
from joinery.objects.karpenter.labels import EMPTY_SINCE, NODE_POOL
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.kubernetes.core import Node
from joinery.objects.snapshot.claims import INITIALIZED, observed, with_condition, with_status
from joinery.objects.snapshot.pod_events import PODS_SEEN, empty_since, is_empty, quiet_since

CONSOLIDATABLE = "Consolidatable"
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
    condition = true(PODS_SEEN, observed(claim, now), current, reason="PodsSeen")
    return with_condition(with_status(claim, last_pod_event_time=moment), condition)


def _interval(pool: NodePool | None) -> timedelta | None:
    """How often changes are noted; None for never."""
    if pool is None or pool.is_static:
        return None
    quiet = duration.parse(pool.spec.disruption.consolidate_after)
    return None if quiet is None else max(SHORTEST_INTERVAL, quiet / 10)


def with_consolidatable(state: ClusterState, claim: NodeClaim) -> NodeClaim:
    """The claim with the condition ``Consolidatable`` as it should be now."""
    pool = state.snapshot.pools_by_name.get(claim.metadata.labels.get(NODE_POOL, ""))
    after = None if pool is None or pool.is_static else duration.parse(pool.spec.disruption.consolidate_after)
    if after is not None and _is_quiet(state, claim, after):
        if claim.is_true(CONSOLIDATABLE):
            return claim
        return with_condition(claim, true(CONSOLIDATABLE, observed(claim, state.snapshot.now)))
    if claim.condition(CONSOLIDATABLE) is None:
        return claim
    return with_status(claim, conditions=drop(claim.status.conditions, CONSOLIDATABLE))


def _is_quiet(state: ClusterState, claim: NodeClaim, after: timedelta) -> bool:
    initialized = claim.condition(INITIALIZED)
    if initialized is None or initialized.status != "True":
        return False
    now, noted = state.snapshot.now, claim.status.last_pod_event_time or initialized.last_transition_time
    if noted is None or now - noted < after or claim.is_true(CONSOLIDATABLE):
        return noted is not None and now - noted >= after
    # Pods that came before anybody looked say so themselves. That takes a while to ask, so it is not asked again.
    since = quiet_since(claim, (pod for node in state.nodes_of(claim) for pod in state.pods_on(node)), now)
    return since is not None and now - since >= after


def with_emptiness(state: ClusterState, claim: NodeClaim, node: Node | None) -> Node | None:
    """The node with the annotation of emptiness as it should be."""
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
