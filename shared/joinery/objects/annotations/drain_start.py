"""When the drain of a claim that is leaving begins though nothing has replaced it.

A claim leaves because it is lost (EC2 takes its instance, a person deletes it), or because we retire it though nothing
forces us now: for its age, to save money, or for a change that EC2 has scheduled for later. Pods of the first kind are
drained soon, with or without a replacement: a pod that is moved late is better off than one that is killed. Pods of the
second kind run well where they are, so they stay until their next node is launched. Only a deadline ends that: the
claim's ``terminationGracePeriod``, or the start of the change.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from joinery.objects.karpenter import duration
from joinery.objects.karpenter.labels import INTERRUPTED_AT, RETIRED_FOR, TERMINATION_TIMESTAMP
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Pod
from joinery.objects.snapshot.claims import leaving_since, moment
from joinery.objects.snapshot.pods import own_grace

#: What a claim is retired for that goes before a change that EC2 has scheduled.
SCHEDULED_CHANGE = "scheduled_change"
#: How long the drain waits for the replacement to be launched.
LONGEST_WAIT_FOR_REPLACEMENT = timedelta(seconds=15)
#: How long before its deadline a node is drained without a replacement, beside the time that its pods take to end: as
#: long as EC2's warning for spot instances is.
LAST_CALL = timedelta(minutes=2)
#: What the API server gives a pod that does not say (Kubernetes `DefaultTerminationGracePeriodSeconds`).
USUAL_GRACE = timedelta(seconds=30)


def is_retired(claim: NodeClaim) -> bool:
    """Whether the claim is retired though nothing forces us. An interruption that comes later does."""
    annotations = claim.metadata.annotations
    return RETIRED_FOR in annotations and INTERRUPTED_AT not in annotations


def deadline(claim: NodeClaim) -> datetime | None:
    """By when the node of a claim that is being deleted must be gone; None if it has time.

    It follows from the deletion and the claim's grace period, and is stamped on the claim once, sooner if something
    presses. A stamp that is later is nobody's.
    """
    stamped = moment(claim.metadata.annotations.get(TERMINATION_TIMESTAMP, ""))
    period, deleted = claim.spec.termination_grace_period, claim.metadata.deletion_timestamp
    if period is None or deleted is None:
        return stamped
    latest = deleted + (duration.parse(period) or timedelta())
    return latest if stamped is None else min(stamped, latest)


def drains_at(claim: NodeClaim, pods: Iterable[Pod]) -> datetime | None:
    """When the drain begins without a replacement; None for never. ``pods``: those on the claim's node."""
    # A warning may have been on its way for a while. What replaces the node has been asked for since the deletion.
    since = claim.metadata.deletion_timestamp or leaving_since(claim)
    if since is None:
        return None
    soonest = since + LONGEST_WAIT_FOR_REPLACEMENT
    if not is_retired(claim):
        return soonest
    ends = deadline(claim)
    if ends is None:
        return None
    graces = map(own_grace, pods)
    longest = max((USUAL_GRACE if grace is None else grace for grace in graces), default=timedelta())
    return max(soonest, ends - LAST_CALL - longest)
