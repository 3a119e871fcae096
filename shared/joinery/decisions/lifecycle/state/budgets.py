"""Disruption budgets and rates: how many nodes of a NodePool may be disrupted now, for a given reason.

The rules are Karpenter's (NodePool `MustGetAllowedDisruptions`, disruption `BuildDisruptionBudgetMapping`). Of the
budgets that are for the reason and whose window is open, the strictest counts. What is already disrupted, whatever the
cause, uses it up. A budget that cannot be read closes the pool for every reason: someone meant to limit something.

Budgets bind what Joinery chooses to do: drift, emptiness, consolidation. They do not bind what happens to a node
(interruption, expiration) nor what a person asks for (deleting a node, scaling a static pool down). Repair they bind if
they name it: a node that is broken uses no budget up by that, only by going.

A NodePool may have a rate besides (``joinery.dev/disruption-rate``). Budgets bound how many nodes are disrupted at
once; a rate bounds how many are in any hour, so that small nodes that go quickly do not all go within minutes. It is
for every reason, and counts what Joinery disrupts of its own will (``objects.annotations.recent_disruptions``).
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from joinery.objects.annotations.recent_disruptions import retirements
from joinery.objects.karpenter.cron import window
from joinery.objects.karpenter.disruption import MOST_REMEMBERED, DisruptionReason, rate_of
from joinery.objects.karpenter.labels import DISRUPTION_RATE
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodepool import Budget, NodePool
from joinery.objects.snapshot.nodes import NodeView
from joinery.objects.wording import rfc3339

#: What is allowed where no budget is in force (Karpenter: `math.MaxInt32`).
UNLIMITED = 2**31 - 1
#: How many ends of windows are looked at before a pool counts as closed for good: those of a day's hourly budget.
_WINDOWS = 24


@dataclass(frozen=True, slots=True)
class PoolNodes:
    """The nodes of one NodePool as its budgets count them.

    ``total``: the initialised ones whose instance is not being terminated; what a percentage is of. ``disrupted``:
    those of them that are going, are chosen to go, or are not ready. ``leaving``: those that are going, or chosen to.
    """

    total: int = 0
    disrupted: int = 0
    leaving: int = 0


@dataclass(frozen=True, slots=True)
class Allowance:
    """How many more nodes may be disrupted, and ``why`` not more, as a sentence about the NodePool."""

    allowed: int
    why: str


def pool_nodes(views: Iterable[NodeView]) -> Mapping[str, PoolNodes]:
    """The counts by the name of the NodePool. Nodes that are not ours count nowhere."""
    totals: dict[str, int] = defaultdict(int)
    disrupted: dict[str, int] = defaultdict(int)
    leaving: dict[str, int] = defaultdict(int)
    for view in views:
        if view.claim and view.is_initialized and not view.is_terminating:
            totals[view.pool] += 1
            disrupted[view.pool] += view.is_leaving or not view.is_ready
            leaving[view.pool] += view.is_leaving
    return {pool: PoolNodes(total, disrupted[pool], leaving[pool]) for pool, total in totals.items()}


def allowed_by_budgets(pool: NodePool, reason: DisruptionReason, nodes: PoolNodes, now: datetime) -> Allowance:
    """How many more of the pool's nodes may be disrupted now for the reason. ``now`` in UTC."""
    limits: list[tuple[int, Budget]] = []
    is_repair = reason is DisruptionReason.UNHEALTHY
    for budget in pool.spec.disruption.budgets:
        if is_repair and reason.value not in (budget.reasons or ()):
            continue
        try:
            is_in_force = _is_open(budget, now)
            limit = _limit(budget, nodes.total)
        except ValueError as error:
            return Allowance(0, f"it has a budget that cannot be read, which closes it: {error}")
        if is_in_force and (budget.reasons is None or reason.value in budget.reasons):
            limits.append((limit, budget))
    if not limits:
        return Allowance(UNLIMITED, f"no budget limits disruption for {reason.value} now")
    limit, strictest = min(limits, key=lambda entry: entry[0])
    used = nodes.leaving if is_repair else nodes.disrupted
    are = f"{'is' if used == 1 else 'are'} leaving{'' if is_repair else ' or not ready'}"
    why = f"the budget {_words(strictest)} allows {limit} of {nodes.total} nodes, and {used} {are}"
    return Allowance(max(0, limit - used), why)


def budgets_open_at(pool: NodePool, reason: DisruptionReason, nodes: PoolNodes, now: datetime) -> datetime | None:
    """When the pool's budgets let more of its nodes be disrupted for the reason than now, while all nodes stay as they
    are: at the end of a window. None where none of the next ends lets more go. ``now`` in UTC.
    """
    allowed, at = allowed_by_budgets(pool, reason, nodes, now).allowed, now
    for _ in range(_WINDOWS):
        ends = [closes for budget in pool.spec.disruption.budgets if (closes := _closes(budget, at))]
        if not ends:
            return None
        at = min(ends)
        if allowed_by_budgets(pool, reason, nodes, at).allowed > allowed:
            return at
    return None


def _closes(budget: Budget, now: datetime) -> datetime | None:
    try:
        return window(budget.schedule, budget.duration).closes(now) if budget.schedule and budget.duration else None
    except ValueError:
        return None


def allowance(
    pool: NodePool, reason: DisruptionReason, nodes: PoolNodes, claims: Iterable[NodeClaim], now: datetime
) -> Allowance:
    """How many more nodes of the pool may be disrupted now for the reason, by budgets and rate.

    ``claims``: all of ours. ``now`` in UTC. A rate that cannot be read closes the pool, as a budget does.
    """
    within = allowed_by_budgets(pool, reason, nodes, now)
    text = pool.metadata.annotations.get(DISRUPTION_RATE)
    if text is None:
        return within
    try:
        rate = rate_of(text)
        lately = retirements(pool, claims, now)
    except ValueError as error:
        return Allowance(0, f"it has a rate that cannot be read, which closes it: {error}")
    limit = min(rate.limit(nodes.total), MOST_REMEMBERED)
    left = max(0, limit - len(lately))
    if left >= within.allowed:
        return within
    why = f"the rate {text.strip()} allows {left} more nodes now: {len(lately)} were disrupted in that time"
    if left == 0 and limit:
        again = lately[len(lately) - limit].at + rate.length
        why = f"{why}, and the next may be at {rfc3339(again)}"
    return Allowance(left, why)


def _limit(budget: Budget, total: int) -> int:
    """How many nodes the budget lets be disrupted at once; percentages are rounded up.

    Raises ``ValueError`` for a number of more digits than Python reads: the CRD's schema takes any.
    """
    percent = budget.nodes.removesuffix("%")
    try:
        number = int(percent)
    except ValueError as error:
        raise ValueError(f"nodes: {len(percent)} digits are too many for a number") from error
    return math.ceil(total * number / 100) if percent != budget.nodes else number


def _is_open(budget: Budget, now: datetime) -> bool:
    """Whether the budget is in force: always without a schedule, else in its window.

    Raises ``ValueError`` for a schedule or a duration that cannot be read.
    """
    if budget.schedule is None and budget.duration is None:
        return True
    if budget.schedule is None or budget.duration is None:
        raise ValueError("'schedule' and 'duration' must be given together")
    return window(budget.schedule, budget.duration).is_open(now)


def _words(budget: Budget) -> str:
    window = f" (from {budget.schedule} for {budget.duration})" if budget.schedule else ""
    reasons = f" for {', '.join(budget.reasons)}" if budget.reasons else ""
    return f"{budget.nodes}{reasons}{window}"
