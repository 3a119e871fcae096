"""What was refused for a claim, as the claim says it: a condition as long as that lasts (``joinery.objects.refusals``).

Its type is in our own domain, and it is no part of ``Ready``.
"""

from joinery.decisions.lifecycle.state.cluster import ClusterState
from joinery.objects.actions import (
    Ask,
    Change,
    DeleteClaim,
    DeleteNode,
    RebootInstance,
    TagInstance,
    TerminateInstance,
    UpdateClaim,
    UpdateNode,
)
from joinery.objects.karpenter.conditions import drop, true
from joinery.objects.karpenter.labels import OWN_GROUP
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.snapshot.claims import observed, with_condition, with_status
from joinery.objects.snapshot.instances import instance_id

REFUSED = f"{OWN_GROUP}/Refused"
_OF_NODES, _OF_INSTANCES = (UpdateNode, DeleteNode), (TerminateInstance, RebootInstance, TagInstance)


def with_refused(state: ClusterState, claim: NodeClaim) -> NodeClaim:
    """The claim with the condition as it is now.

    One that cannot be written to stays as it is: all that is to be done for it would wait for that.
    """
    name, nodes = claim.metadata.name, [node.metadata.name for node in state.nodes_of(claim)]
    if state.refused(UpdateClaim, name):
        return claim
    asked: list[tuple[type[Change | Ask], str]]
    asked = [(Ask, name), (DeleteClaim, name), *((change, node) for node in nodes for change in _OF_NODES)]
    asked += [(change, instance_id(claim.status.provider_id)) for change in _OF_INSTANCES]
    found = [refusal for change, subject in asked for refusal in state.refused(change, subject)]
    if not found:
        kept = drop(claim.status.conditions, REFUSED)
        return claim if kept == claim.status.conditions else with_status(claim, conditions=kept)
    first = min(found, key=lambda refusal: refusal.since)
    condition = true(REFUSED, observed(claim, state.snapshot.now))
    said = {"reason": first.command, "message": f"{first.request}: {first.message}"}
    return with_condition(claim, condition.model_copy(update=said))
