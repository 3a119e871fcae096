"""How long lifecycle waits: before it looks again at what is in progress, and for pods to be bound to a new node.

It looks ever less often, because the webhook wakes lifecycle at once when a node joins or becomes ready. If that
message is lost, the change is seen late by a quarter of the time that it took.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from joinery.objects.annotations.plans import planned_pods
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.snapshot.claims import INITIALIZED, REGISTERED, has_joined

#: How long the scheduler has once the node is fit: three of its longest back-offs (kube-scheduler
#: `podMaxBackoffSeconds`, 10 s). A pod may have to wait for pods of other nodes, because of affinity or a spread. So
#: the time of nodes that are on their way together ends together (``lifecycle.joining.steering``).
TIME_TO_BIND = timedelta(seconds=30)
#: When lifecycle looks again: the share of the time that has passed, and the longest time: the schedule wakes lifecycle
#: every minute.
_SHARE, _LONGEST = 0.25, timedelta(minutes=1)


def backoff_since(moment: datetime, now: datetime) -> timedelta:
    """How long to wait before the next look at what began at that moment."""
    return min(max(now - moment, timedelta()) * _SHARE, _LONGEST)


def true_since(claim: NodeClaim, kind: str) -> datetime | None:
    """Since when a condition is true; None if it is not."""
    condition = claim.condition(kind)
    return condition.last_transition_time if condition is not None and condition.status == "True" else None


def awaited_since(claims: Iterable[NodeClaim], now: datetime) -> datetime | None:
    """When the first of those claims was created whose pods are still to be bound; None if there are none.

    Their node is not fit yet, or has just become so. Nobody waits for a node that has vanished.
    """
    created = (claim.metadata.creation_timestamp for claim in claims if _is_awaited(claim, now))
    return min((at for at in created if at is not None), default=None)


def _is_awaited(claim: NodeClaim, now: datetime) -> bool:
    fit = true_since(claim, INITIALIZED)
    is_young = fit is None or now - fit < TIME_TO_BIND
    has_vanished = has_joined(claim) and not claim.is_true(REGISTERED)
    return is_young and not (has_vanished or claim.is_deleting) and bool(planned_pods(claim))
