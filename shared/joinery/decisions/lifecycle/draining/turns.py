"""In which order nodes are drained: a run may not have the time for all of them, and none may wait for ever.

First those that EC2 takes, because they have two minutes, and those whose deadline comes. Then the drains
whose last attempt is the longest ago: one that the last run had no time for comes before those that it tried.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from joinery.decisions.lifecycle.draining.stall import stall_in
from joinery.decisions.lifecycle.state.cluster import ClusterState
from joinery.objects.karpenter.labels import INTERRUPTED_AT, TERMINATION_TIMESTAMP
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Node
from joinery.objects.snapshot.claims import moment

#: How soon a deadline counts as near.
_NEAR = timedelta(minutes=5)
_NEVER = datetime.min.replace(tzinfo=UTC)


def in_turn(owners: Iterable[NodeClaim | Node], state: ClusterState) -> list[NodeClaim | Node]:
    """The claims and Nodes that are being deleted, in the order in which their next step is carried out."""
    return sorted(
        owners, key=lambda owner: (not _is_urgent(owner, state.snapshot.now), _asked(owner, state.snapshot.now))
    )


def _is_urgent(owner: NodeClaim | Node, now: datetime) -> bool:
    annotations = owner.metadata.annotations
    deadline = moment(annotations.get(TERMINATION_TIMESTAMP, ""))
    return INTERRUPTED_AT in annotations or (deadline is not None and deadline - now < _NEAR)


def _asked(owner: NodeClaim | Node, now: datetime) -> datetime:
    """When its pods were asked to go last."""
    stall = stall_in(owner.metadata.annotations, now)
    return stall.asked if stall else _NEVER
