"""What was bought for a gang that is still not whole goes back when its time is over.

Nodes of a gang are bought together, and may come apart all the same: EC2 has too few, an instance never joins, a pod is
deleted. What came is of no use then, and emptiness alone may leave it for as long as a NodePool's ``consolidateAfter``
says. So from ``TIME_TO_BE_WHOLE`` after its purchase on such a claim is given up, unless the plan can make the gang
whole by now: then the next purchase completes it.
"""

from collections.abc import Iterable, Iterator
from datetime import timedelta

from joinery.decisions.scheduling.packing import Packing, placed_pods
from joinery.objects.actions import Announce, Command, DeleteClaim
from joinery.objects.annotations.disruption import is_candidate, replaces_of
from joinery.objects.karpenter.labels import DO_NOT_DISRUPT, GANGS
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.snapshot.gangs import Gang
from joinery.objects.snapshot.nodes import NodeView
from joinery.objects.snapshot.pods import is_reschedulable
from joinery.objects.snapshot.snapshot import Snapshot

#: As long as a node may take to join (``lifecycle.joining.liveness.REGISTRATION_TIMEOUT``).
TIME_TO_BE_WHOLE = timedelta(minutes=15)


def given_back(snapshot: Snapshot, packing: Packing) -> Iterator[tuple[Command, ...]]:
    """The commands that give up what was bought for gangs which this plan, made from the snapshot, cannot make whole.

    Nodes stay that run other pods, that the plan puts pods on, or that somebody protects.
    """
    late = {
        claim.metadata.name: claim
        for claim in snapshot.managed_claims
        if GANGS in claim.metadata.annotations and _is_late(claim, snapshot)
    }
    incomplete = {str(gang): gang for gang in _incomplete(snapshot, packing)} if late else {}
    used = {placement.node_claim for placement in packing.existing}
    views = {view.claim: view for view in snapshot.views} if incomplete else {}
    for name, claim in late.items():
        left = [gang for gang in _gangs_of(claim) if gang in incomplete]
        if left and name not in used and _is_free(views.get(name)):
            minutes = int(TIME_TO_BE_WHOLE.total_seconds() // 60)
            text = f"{left[0]} is not whole {minutes} minutes after this was bought for it"
            yield Announce("GangIncomplete", text, claim), DeleteClaim(claim, text)


def useless(claims: Iterable[NodeClaim], snapshot: Snapshot, packing: Packing) -> Iterator[tuple[DeleteClaim]]:
    """The commands that give up claims that were written and are not launched yet: the API server refused others of
    their gang, and the plan that was made then, this one, has no place for it.
    """
    of_gangs = [claim for claim in claims if GANGS in claim.metadata.annotations]
    incomplete = {str(gang) for gang in _incomplete(snapshot, packing)} if of_gangs else set()
    used = {placement.node_claim for placement in packing.existing}
    for claim in of_gangs:
        if claim.metadata.name not in used and (left := incomplete.intersection(_gangs_of(claim))):
            yield (DeleteClaim(claim, f"{min(left)} cannot be made whole: others of its claims were refused"),)


def _gangs_of(claim: NodeClaim) -> list[str]:
    return claim.metadata.annotations[GANGS].split(", ")


def _is_late(claim: NodeClaim, snapshot: Snapshot) -> bool:
    created = claim.metadata.creation_timestamp
    is_kept = claim.is_deleting or is_candidate(claim) or replaces_of(claim) is not None
    return created is not None and snapshot.now - created >= TIME_TO_BE_WHOLE and not is_kept


def _incomplete(snapshot: Snapshot, packing: Packing) -> Iterator[Gang]:
    """The gangs of which pods wait, and that are not whole with those that the plan places."""
    placed = frozenset(placed_pods(packing.existing, packing.launches))
    waiting = placed.union(unplaced.pod for unplaced in packing.unplaced)
    for gang in snapshot.gangs.values():
        if not waiting.isdisjoint(gang.members) and not gang.is_whole(placed, waiting):
            yield gang


def _is_free(view: NodeView | None) -> bool:
    """Whether nothing runs there that would need another node, and nobody keeps it."""
    if view is None:
        return True
    return view.annotations.get(DO_NOT_DISRUPT) != "true" and not any(map(is_reschedulable, view.pods))
