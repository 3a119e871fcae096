"""A cluster of several NodePools, each with limits of its own: who may go at which hour of the week."""

from datetime import UTC, datetime
from typing import Any

import pytest

from joinery.decisions.disruption.candidates import candidates
from joinery.decisions.disruption.decision import DecidedCommand
from joinery.decisions.disruption.validation.budget_check import admit
from joinery.objects.karpenter.disruption import DisruptionReason
from simulator import builders
from tests.unit.decisions.disruption.clusters import Cluster, on

EMPTY, UNDERUTILIZED = _BOTH = (DisruptionReason.EMPTY, DisruptionReason.UNDERUTILIZED)
IN_OFFICE_HOURS = [{"nodes": "0", "reasons": ["Underutilized"], "schedule": "0 9 * * mon-fri", "duration": "8h"}]
AT_NIGHT = [{"nodes": "0", "schedule": "0 20 * * *", "duration": "6h"}]
POOLS: dict[str, dict[str, Any]] = {
    "general": {"budgets": [{"nodes": "10%"}]},
    "batch": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "5m", "budgets": [{"nodes": "2"}]},
    "steady": {"consolidateAfter": "Never", "budgets": [{"nodes": "10%"}]},
    "office": {"budgets": [{"nodes": "40%"}, *IN_OFFICE_HOURS]},
    "night": {"consolidateAfter": "10m", "budgets": [{"nodes": "15%"}, *AT_NIGHT]},
}
#: Twelve nodes in each pool, of which three are empty.
USED, IDLE = range(9), range(9, 12)
MONDAY_NOON = datetime(2026, 8, 24, 12, 0, tzinfo=UTC)
MONDAY_EVENING = datetime(2026, 8, 24, 21, 0, tzinfo=UTC)
SATURDAY_NOON = datetime(2026, 8, 29, 12, 0, tzinfo=UTC)


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    """Five pools of twelve nodes."""
    made = Cluster(pools=[builders.node_pool(name, **disruption) for name, disruption in POOLS.items()])
    for pool in POOLS:
        for number in (*USED, *IDLE):
            name = f"{pool}-{number}"
            made.machine(name, [on(f"pod-{name}", name)] if number in USED else [], pool=pool)
    return made


def test_policies_say_which_nodes_are_looked_at(cluster: Cluster) -> None:
    """Nine with pods and three without, unless the policy leaves some of them."""
    judged = candidates(cluster.problem(now=MONDAY_NOON))
    counted = {
        pool: [sum(reason in c.reasons for c in judged.candidates if c.view.pool == pool) for reason in _BOTH]
        for pool in POOLS
    }
    assert counted == {"general": [3, 9], "batch": [3, 0], "steady": [0, 0], "office": [3, 9], "night": [3, 9]}


@pytest.mark.parametrize(
    ("now", "office", "night"),
    [(MONDAY_NOON, [3, 0], [2, 0]), (MONDAY_EVENING, [3, 2], [0, 0]), (SATURDAY_NOON, [3, 2], [2, 0])],
    ids=["Monday noon", "Monday evening", "Saturday noon"],
)
def test_budgets_say_how_many_go_at_which_hour(
    cluster: Cluster, now: datetime, office: list[int], night: list[int]
) -> None:
    """Each node by itself, the empty ones first: windows close for all reasons, or for one."""
    problem = cluster.problem(now=now)
    judged = candidates(problem)
    commands = [
        DecidedCommand(reason=reason, message="", retire=(candidate.claim.metadata.name,))
        for reason in _BOTH
        for candidate in judged.candidates
        if reason in candidate.reasons
    ]
    pool_of = {candidate.claim.metadata.name: candidate.view.pool for candidate in judged.candidates}
    admitted = admit(commands, problem, judged.nodes).commands
    counted = {
        pool: [sum(c.reason is reason and pool_of[c.retire[0]] == pool for c in admitted) for reason in _BOTH]
        for pool in POOLS
    }
    assert counted == {"general": [2, 0], "batch": [2, 0], "steady": [0, 0], "office": office, "night": night}
