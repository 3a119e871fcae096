"""What a NodePool allows: its budgets, and its rate (``joinery.dev/disruption-rate``).

Budgets bound how many nodes are disrupted at once. A rate bounds how many are in any hour, so that small nodes that go
quickly do not all go within minutes. It is for every reason, and counts what Joinery disrupts of its own will
(``objects.annotations.recent_disruptions``).
"""

from collections.abc import Iterable
from datetime import datetime

from joinery.decisions.lifecycle.view.budgets import Allowance, PoolNodes, allowed
from joinery.objects.annotations.recent_disruptions import retirements
from joinery.objects.karpenter.disruption import MOST_REMEMBERED, DisruptionReason, rate_of
from joinery.objects.karpenter.labels import DISRUPTION_RATE
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.kubernetes.moments import rfc3339


def allowance(
    pool: NodePool, reason: DisruptionReason, nodes: PoolNodes, claims: Iterable[NodeClaim], now: datetime
) -> Allowance:
    """How many more nodes of the pool may be disrupted now for the reason, by budgets and rate.

    ``claims``: all of ours. ``now`` in UTC. A rate that cannot be read closes the pool, as a budget does.
    """
    by_budgets = allowed(pool, reason, nodes, now)
    text = pool.metadata.annotations.get(DISRUPTION_RATE)
    if text is None:
        return by_budgets
    try:
        rate = rate_of(text)
        lately = retirements(pool, claims, now)
    except ValueError as error:
        return Allowance(0, f"it has a rate that cannot be read, which closes it: {error}")
    limit = min(rate.limit(nodes.total), MOST_REMEMBERED)
    left = max(0, limit - len(lately))
    if left >= by_budgets.allowed:
        return by_budgets
    why = f"the rate {text.strip()} allows {left} more nodes now: {len(lately)} were disrupted in that time"
    if left == 0 and limit:
        again = lately[len(lately) - limit].at + rate.length
        why = f"{why}, and the next may be at {rfc3339(again)}"
    return Allowance(left, why)
