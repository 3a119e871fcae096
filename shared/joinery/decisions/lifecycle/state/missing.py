"""Missing: a claim notes since when EC2 knows nothing of its instance, because no single answer proves anything.

EC2 lists late what it has launched, and may leave out what runs (EC2 API "Eventual consistency"). So an instance is
gone when EC2 says that it is terminated, or when EC2 has known nothing of it for five minutes, long after its launch,
and its kubelet is silent (``ClusterState.is_gone``). While its Node is Ready nothing is noted: it lives.
"""

from joinery.decisions.lifecycle.state.cluster import ClusterState, is_ready
from joinery.objects.karpenter.conditions import drop, true
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.snapshot.claims import INSTANCE_MISSING, may_be_unlisted, observed, with_condition, with_status


def with_missing(state: ClusterState, claim: NodeClaim) -> NodeClaim:
    """The claim with the condition as it is now; as it was where EC2 could not be asked."""
    now = state.snapshot.now
    if not state.are_instances_known or not claim.status.provider_id:
        return claim
    is_alive = any(map(is_ready, state.nodes_of(claim)))
    if state.is_missing(claim) and not is_alive and not may_be_unlisted(claim, now):
        return with_condition(claim, true(INSTANCE_MISSING, observed(claim, now)))
    if claim.condition(INSTANCE_MISSING) is None:
        return claim
    return with_status(claim, conditions=drop(claim.status.conditions, INSTANCE_MISSING))
