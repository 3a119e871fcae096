"""Replacement before drain: how long a node that goes keeps its pods while their next node is being launched.

Provisioning counts the pods of a leaving claim as pending, and buys what they need. Once EC2 has accepted that launch
it marks the claim, and lifecycle may start the drain. The drain starts anyway after fifteen seconds: a spot instance
has two minutes left, and a pod that is evicted before its next node is there is still better off than one that is
killed.
"""

from collections.abc import Collection
from datetime import datetime, timedelta

from joinery.apis.labels import REPLACEMENT_LAUNCHED
from joinery.apis.nodeclaim import NodeClaim
from joinery.commands import UpdateClaim
from joinery.scheduling.packing import Packing
from joinery.state.claims import annotated, leaving_since
from joinery.state.pods import is_reschedulable
from joinery.state.snapshot import Snapshot

#: How long the drain waits for the replacement to be launched.
LONGEST_WAIT_FOR_REPLACEMENT = timedelta(seconds=15)


def may_drain(claim: NodeClaim, now: datetime) -> bool:
    """Whether the pods of a leaving claim may be asked to go."""
    since = leaving_since(claim)
    return (
        REPLACEMENT_LAUNCHED in claim.metadata.annotations
        or since is None
        or now - since >= LONGEST_WAIT_FOR_REPLACEMENT
    )


def replaced(snapshot: Snapshot, packing: Packing, failed: Collection[str]) -> tuple[UpdateClaim, ...]:
    """Mark every leaving claim whose pods all have a place: EC2 accepted the launch, or there is room elsewhere.

    ``failed`` are the pods of launches that EC2 did not accept.
    """
    homeless = {unplaced.pod for unplaced in packing.unplaced} | set(failed)
    moving: dict[str, set[str]] = {}
    for pod in snapshot.pods:
        if pod.spec.node_name and is_reschedulable(pod):
            moving.setdefault(pod.spec.node_name, set()).add(pod.key)
    marked = [
        claim
        for claim in snapshot.managed_claims
        if leaving_since(claim) is not None
        and REPLACEMENT_LAUNCHED not in claim.metadata.annotations
        and not moving.get(claim.status.node_name, set()) & homeless
    ]
    text = "the replacement of its node is on its way"
    at = {REPLACEMENT_LAUNCHED: snapshot.now.isoformat()}
    return tuple(UpdateClaim(claim, annotated(claim, at), text) for claim in marked)
