"""Consolidatable: a claim says when its node has been quiet for as long as its NodePool asks for.

The rule is Karpenter's (nodeclaim/disruption, Consolidation): True once ``consolidateAfter`` has passed since pods last
came or went, as the claim has noted it (``lifecycle.conditions.pod_tracking``) or they say themselves, or since the
node was initialised. Otherwise it is absent. The condition is for people and for a Karpenter that takes over. Decisions
do not read it: they work it out from the snapshot (``disruption.candidates``), and so never act upon one that is out of
date.
"""

from datetime import timedelta

from joinery.decisions.lifecycle.state.cluster import ClusterState
from joinery.objects.karpenter import duration
from joinery.objects.karpenter.conditions import drop, true
from joinery.objects.karpenter.labels import NODE_POOL
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.snapshot.claims import INITIALIZED, observed, with_condition, with_status
from joinery.objects.snapshot.pod_events import quiet_since

CONSOLIDATABLE = "Consolidatable"


def with_consolidatable(state: ClusterState, claim: NodeClaim) -> NodeClaim:
    """The claim with the condition as it should be now."""
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
