"""Liveness: a claim without an instance, or whose instance never joins the cluster, is given up.

The timeouts are those of Karpenter nodeclaim/lifecycle, Liveness. Both run from the claim's creation, since when its
conditions are Unknown. Giving up deletes the claim; its pods are planned anew.

A claim whose instance could only not be written to it is not given up for that (``lifecycle.step``): another instance
would be bought in its place, and could not be written either.

A claim whose Node has vanished gets the time of a new instance once more, from then on: it may be a metal one that
starts again. It costs no more than the instance's price, because its room does not count meanwhile
(``lifecycle.joining.membership``).
"""

from datetime import datetime, timedelta

from joinery.decisions.lifecycle.state.waiting import backoff_since
from joinery.objects.annotations.disruption import is_postponed
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.snapshot.claims import LAUNCHED, REGISTERED, is_launched

LAUNCH_TIMEOUT = timedelta(minutes=5)
REGISTRATION_TIMEOUT = timedelta(minutes=15)


def overdue(claim: NodeClaim, now: datetime) -> str | None:
    """Why the claim should be given up; None for one that still has time."""
    if claim.is_true(REGISTERED) or is_postponed(claim):
        return None
    if not is_launched(claim) and now - _since(claim, LAUNCHED, now) >= LAUNCH_TIMEOUT:
        return "launch timeout: EC2 gave it no instance within 5 minutes"
    if now - _since(claim, REGISTERED, now) < REGISTRATION_TIMEOUT:
        return None
    if claim.status.node_name:
        return f"its Node {claim.status.node_name} is gone and did not come back within 15 minutes"
    return "registration timeout: its instance did not join the cluster within 15 minutes"


def rest_of_boot(claim: NodeClaim, now: datetime) -> timedelta:
    """How long to wait before the next look whether the claim's instance has become a Ready node."""
    return backoff_since(_since(claim, LAUNCHED, now), now)


def _since(claim: NodeClaim, kind: str, now: datetime) -> datetime:
    condition = claim.condition(kind)
    return (condition and condition.last_transition_time) or claim.metadata.creation_timestamp or now
