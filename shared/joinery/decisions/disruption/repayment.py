"""Repayment: a node that Joinery has just launched is not consolidated before it has paid for itself.

Each command repays its moves by itself. What it bought must also be kept for as long as that takes, or the moves were
paid for nothing: prices of spot change by the minute, pods come and end, and a run that decides again sees a node that
is as good as any other. So a new node is kept from consolidation while it has pods:

- **Bought by a command to save money**: until the command's savings are worth its moves, by what both were when it was
  decided (``objects.annotations.purchases``). Prices that change later make it neither sooner nor later.
- **Bought for anything else**: for pods that waited, or in place of a node that had drifted, expired or was
  interrupted. Nothing was to be saved, so nothing says when it has paid. It stays until it has cost as much as moving
  its pods away would count as. A node that is kept for so long and then given up costs at most twice what the best
  choice would have cost, with knowledge of how long its pods stay (the ski rental problem).

Both end with the NodePool's payback time at the latest. The time runs from the node's initialisation: before, no pod
runs on it. An empty node may go at once, and so may a drifted one. Nodes that another controller launched have nothing
to repay.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from joinery.objects.annotations.disruption import BoughtFor, purchase_of
from joinery.objects.karpenter.labels import LAUNCH_TOKEN
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.snapshot.claims import INITIALIZED
from joinery.objects.wording import rfc3339


@dataclass(frozen=True, slots=True)
class Repayment:
    """``until``: when the node has paid for itself. ``message``: why only then, as a sentence about the node."""

    until: datetime
    message: str


def repayment(
    claim: NodeClaim, *, price: float, move_price: float, payback: timedelta, now: datetime
) -> Repayment | None:
    """When the claim's node has paid for itself, which may be past; None for one that Joinery did not launch.

    ``price``: of the node, $/h. ``move_price``: dollars for moving its pods away.
    """
    since = _working_since(claim)
    if LAUNCH_TOKEN not in claim.metadata.annotations or since is None:
        return None
    purchase = purchase_of(claim)
    # Whoever writes a moment that is still to come has another clock, or none.
    until = min(since, now) + (purchase or BoughtFor(price, move_price)).repaid_within(payback)
    at = rfc3339(until)
    if purchase is None:
        rule = f"it costs ${price:.4f}/h, and until {at} less in all than moving its pods counts as (${move_price:.4f})"
        return Repayment(until, f"Joinery launched it lately: {rule}")
    bought = f"it was bought to save ${purchase.savings:.4f}/h, and moves that count as ${purchase.move_price:.4f}"
    return Repayment(until, f"{bought} are repaid at {at}")


def _working_since(claim: NodeClaim) -> datetime | None:
    condition = claim.condition(INITIALIZED)
    since = condition.last_transition_time if condition else None
    return since or claim.metadata.creation_timestamp
