"""Demotion: a node whose capacity reservation is gone lives on as an on-demand one, and says so (Karpenter for AWS, capacityreservation/capacitytype).

EC2 does not stop an instance because its reservation was cancelled or has run out; it bills it as on-demand. What the labels said of
it would be believed by every plan. Nothing is ever promoted: an instance that was bought is in no reservation that was counted.
"""

from msgspec.structs import replace

from joinery.apis.core import Node
from joinery.apis.labels import CAPACITY_TYPE, ON_DEMAND, RESERVATION_LABELS, RESERVED
from joinery.apis.nodeclaim import NodeClaim
from joinery.lifecycle.view import View
from joinery.state.claims import with_metadata


def demoted(view: View, claim: NodeClaim, node: Node | None) -> tuple[NodeClaim, Node | None]:
    """The claim and its node with the labels of what the instance is now."""
    instance = view.instance_of(claim)
    if claim.metadata.labels.get(CAPACITY_TYPE) != RESERVED or instance is None or instance.capacity_type != ON_DEMAND:
        return claim, node
    after = with_metadata(claim, labels=_bought(claim.metadata.labels))
    if node is None:
        return after, None
    return after, replace(node, metadata=replace(node.metadata, labels=_bought(node.metadata.labels)))


def _bought(labels: dict[str, str]) -> dict[str, str]:
    kept = {key: value for key, value in labels.items() if key not in RESERVATION_LABELS}
    return {**kept, CAPACITY_TYPE: ON_DEMAND}
