"""Demotion: a node whose capacity reservation has ended becomes an on-demand node.

The rule is that of Karpenter for AWS, capacityreservation/capacitytype. EC2 does not stop an instance because its
reservation was cancelled or has run out; from then on it bills it as on-demand. Its labels have to say so, because
plans go by them. The opposite does not happen: an on-demand instance never becomes part of a reservation that plans
count.
"""

from msgspec.structs import replace

from joinery.decisions.lifecycle.state.cluster import ClusterState
from joinery.objects.karpenter.labels import CAPACITY_TYPE, ON_DEMAND, RESERVATION_LABELS, RESERVED
from joinery.objects.karpenter.meta import with_metadata
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Node


def demoted(state: ClusterState, claim: NodeClaim, node: Node | None) -> tuple[NodeClaim, Node | None]:
    """The claim and its node, relabelled if the instance was reserved and is on-demand now."""
    instance = state.instance_of(claim)
    if claim.metadata.labels.get(CAPACITY_TYPE) != RESERVED or instance is None or instance.capacity_type != ON_DEMAND:
        return claim, node
    after = with_metadata(claim, labels=_on_demand(claim.metadata.labels))
    if node is None:
        return after, None
    return after, replace(node, metadata=replace(node.metadata, labels=_on_demand(node.metadata.labels)))


def _on_demand(labels: dict[str, str]) -> dict[str, str]:
    kept = {key: value for key, value in labels.items() if key not in RESERVATION_LABELS}
    return {**kept, CAPACITY_TYPE: ON_DEMAND}
