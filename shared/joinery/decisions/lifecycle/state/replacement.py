"""Replacement before drain: how long a node that goes keeps its pods while their next node is being launched.

Provisioning counts the pods of a leaving claim as pending, and buys what they need. Once EC2 has accepted that launch
it marks the claim, and lifecycle may start the drain. A node that is lost is drained after fifteen seconds anyway: a
spot instance has two minutes left, and a pod that is evicted before its next node is there is still better off than one
that is killed. A node that is retired though nothing forces us, as for its age, keeps its pods until the mark, or until
its deadline comes (``objects.annotations.drain_start``).
"""

from collections.abc import Collection, Iterable, Iterator
from datetime import datetime

from joinery.decisions.scheduling.packing import Packing
from joinery.objects.actions import UpdateClaim
from joinery.objects.annotations.disruption import ends_first
from joinery.objects.annotations.drain_start import drains_at
from joinery.objects.karpenter.labels import REPLACEMENT_LAUNCHED
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Pod
from joinery.objects.snapshot.claims import annotated, awaits_launch, leaving_since
from joinery.objects.snapshot.pods import is_reschedulable
from joinery.objects.snapshot.snapshot import Snapshot


def may_drain(claim: NodeClaim, pods: Iterable[Pod], now: datetime) -> bool:
    """Whether the pods of a leaving claim may be asked to go. ``pods``: those on its node."""
    if REPLACEMENT_LAUNCHED in claim.metadata.annotations or leaving_since(claim) is None or ends_first(claim):
        return True
    at = drains_at(claim, pods)
    return at is not None and now >= at


def replaced(
    snapshot: Snapshot, packing: Packing, failed: Collection[str], served: Collection[str] = ()
) -> tuple[UpdateClaim, ...]:
    """Mark every leaving claim whose pods all have a place: EC2 accepted the launch, or there is room elsewhere.

    ``failed`` are the pods of launches that EC2 did not accept, ``served`` the names of claims that this run launched.
    A claim that was written before and waits for its launch still is a plan, and no place.
    """
    without_place = {unplaced.pod for unplaced in packing.unplaced} | set(failed)
    unlaunched = {claim.metadata.name for claim in snapshot.managed_claims if awaits_launch(claim)} - set(served)
    without_place |= {pod for place in packing.existing if place.node_claim in unlaunched for pod in place.pods}
    marked = [
        claim
        for claim in snapshot.managed_claims
        if leaving_since(claim) is not None
        and REPLACEMENT_LAUNCHED not in claim.metadata.annotations
        and without_place.isdisjoint(_moving(snapshot, claim.status.node_name))
    ]
    text = "the replacement of its node is launching"
    at = {REPLACEMENT_LAUNCHED: snapshot.now.isoformat()}
    return tuple(UpdateClaim(claim, annotated(claim, at), text) for claim in marked)


def _moving(snapshot: Snapshot, node: str) -> Iterator[str]:
    """The pods of the node (namespace/name) that need another place."""
    group = snapshot.pod_groups.by_node.get(node)
    for pod in group.pods if group else ():
        if pod.spec.node_name and is_reschedulable(pod):
            yield pod.key
