"""What the status of NodeOverlays says: whether each can be used, and whether it is in conflict with another.

The conditions are those of Karpenter nodeoverlay (core 1.15.0). An overlay that is not Ready counts nowhere.
"""

from collections.abc import Iterator

from joinery.decisions.scheduling.pools.overlays import MATCHES_NOTHING, Overlaid, Types, overlaid
from joinery.objects.actions import UpdateOverlay
from joinery.objects.karpenter.conditions import (
    NODE_OVERLAY_DEPENDENTS,
    VALID,
    Observation,
    false,
    put,
    true,
    with_ready,
)
from joinery.objects.karpenter.meta import Condition
from joinery.objects.karpenter.nodeoverlay import NodeOverlay
from joinery.objects.snapshot.snapshot import Snapshot


def overlay_statuses(snapshot: Snapshot, types: Types) -> Iterator[tuple[UpdateOverlay]]:
    """A chain for each NodeOverlay whose status changes. ``types``: by name of the node class."""
    changed = overlaid(types, snapshot)
    for before in snapshot.node_overlays:
        at = Observation(now=snapshot.now, generation=before.metadata.generation)
        conditions = with_ready(put(before.status.conditions, _valid(before, changed, at)), NODE_OVERLAY_DEPENDENTS, at)
        if conditions != before.status.conditions:
            status = before.status.model_copy(update={"conditions": conditions})
            after = before.model_copy(update={"status": status})
            why = next(condition.message for condition in conditions if condition.type == VALID)
            yield (UpdateOverlay(before, after, why or "it counts"),)


def _valid(overlay: NodeOverlay, changed: Overlaid, at: Observation) -> Condition:
    name = overlay.metadata.name
    if name in changed.invalid:
        return false(VALID, "RuntimeValidation", changed.invalid[name], at)
    if name in changed.conflicts:
        return false(VALID, "Conflict", "conflict with another overlay", at)
    return true(VALID, at, MATCHES_NOTHING if name in changed.unmatched else "")
