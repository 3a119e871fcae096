"""Budgets of NodePools (Karpenter, ``spec.disruption.budgets``): never exceeded, whatever is carried out first."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta

from tools.consolidation.contract.cluster import Cluster, go_duration, is_leaving, pool_name
from tools.consolidation.documents import Document, is_true

_WORDS = {
    "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}  # fmt: skip
_NAMES = {
    name: str(number)
    for names, first in (("jan feb mar apr may jun jul aug sep oct nov dec", 1), ("sun mon tue wed thu fri sat", 0))
    for number, name in enumerate(names.split(), first)
}
_MINUTE = timedelta(minutes=1)


def violations(cluster: Cluster, plan: Document) -> Iterator[str]:
    """Commands begin in their order, and none of them has ended before the last has begun."""
    used = _disrupted_before(cluster)
    totals = Counter(pool_name(claim) for claim in cluster.claims.values() if is_true(claim, "Initialized"))
    for number, command in enumerate(plan["commands"]):
        claims = [cluster.claims[name] for name in command["retire"] if name in cluster.claims]
        for pool, count in Counter(pool_name(claim) for claim in claims).items():
            used[pool] += count
            limit = _limit(cluster, pool, command["reason"], totals[pool])
            if limit is not None and used[pool] > limit:
                what = f"command {number} ({command['reason']})"
                yield f"{what}: {used[pool]} nodes of NodePool {pool} are disrupted, and its budgets allow {limit}"


def _disrupted_before(cluster: Cluster) -> dict[str, int]:
    used: dict[str, int] = defaultdict(int)
    for name, claim in cluster.claims.items():
        node = cluster.node_of(name)
        if is_true(claim, "Initialized"):
            used[pool_name(claim)] += is_leaving(claim) or node is None or not is_true(node, "Ready")
    return used


def _limit(cluster: Cluster, pool: str, reason: str, total: int) -> int | None:
    """How many of the pool's nodes may be disrupted at once for the reason; None for any number."""
    if pool not in cluster.pools:
        return 0
    default = [{"nodes": "10%"}]
    budgets = cluster.pools[pool]["spec"].get("disruption", {}).get("budgets", default)
    binding = [
        _nodes(budget["nodes"], total)
        for budget in budgets
        if reason in budget.get("reasons", [reason]) and is_open(budget, cluster.now)
    ]
    return min(binding, default=None)


def _nodes(text: str, total: int) -> int:
    return math.ceil(total * int(text[:-1]) / 100) if text.endswith("%") else int(text)


def is_open(budget: Document, now: datetime) -> bool:
    """Whether a budget is in force: in the ``duration`` after any minute of its ``schedule``, or always without one.

    Every minute is tried, which is slow and cannot be wrong.
    """
    if "schedule" not in budget:
        return True
    minute = now.replace(second=0, microsecond=0)
    oldest = now - (go_duration(budget["duration"]) or timedelta(0))
    while minute > oldest:
        if _is_due(budget["schedule"], minute):
            return True
        minute -= _MINUTE
    return False


def _is_due(schedule: str, minute: datetime) -> bool:
    """Whether a cron expression in UTC names the minute."""
    fields = _WORDS.get(schedule, schedule).lower().split()
    numbers = (minute.minute, minute.hour, minute.day, minute.month, minute.isoweekday() % 7)
    spans = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
    fits = [
        any(number in _numbers(part, *span) for part in field.split(","))
        for field, number, span in zip(fields, numbers, spans, strict=True)
    ]
    # Where both are restricted, the day of the month or the weekday is enough (crontab(5)).
    both = all(fields[index][0] not in "*?" for index in (2, 4))
    is_day = fits[2] or fits[4] if both else fits[2] and fits[4]
    return is_day and fits[0] and fits[1] and fits[3]


def _numbers(part: str, least: int, greatest: int) -> range:
    span, _, step = part.partition("/")
    first, _, last = span.partition("-")
    if span in ("*", "?"):
        return range(least, greatest + 1, int(step or 1))
    begin, end = (int(_NAMES.get(text, text)) for text in (first, last or first))
    return range(begin, (greatest if step and not last else end) + 1, int(step or 1))
