"""Values that nobody means, on one node: it is held or it goes, and the nodes of others go as ever."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from joinery.decisions.disruption.decide import decide
from joinery.decisions.disruption.decision import DisruptionDecision
from joinery.objects.karpenter.labels import EVICTION_RATE, LAUNCH_TOKEN
from joinery.objects.snapshot.claims import with_status
from simulator import builders
from simulator.clock import START
from tests.unit.decisions.disruption.clusters import Cluster, on

UNLIMITED = [{"nodes": "100%"}]
#: The last moment of Kubernetes' times.
LAST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)


def _beside_an_empty_node(nodes: str = "100%", **pool: Any) -> Cluster:
    """A NodePool with an empty node, and another one named odd, for the nodes that a test is about."""
    odd = builders.node_pool("odd", budgets=[{"nodes": nodes}], **pool)
    cluster = Cluster(pools=[builders.node_pool(budgets=UNLIMITED), odd])
    cluster.machine("empty")
    return cluster


def _goes(decision: DisruptionDecision, claim: str) -> bool:
    return any(claim in command.retire for command in decision.commands)


@pytest.mark.parametrize("field", ["the last pod event", "its initialisation"])
def test_a_node_that_is_quiet_since_a_time_to_come_is_looked_at_later(field: str) -> None:
    """No moment can be computed from the last one that there is."""
    cluster = _beside_an_empty_node(consolidate_after="1h")
    cluster.machine("n", pool="odd", quiet=START - LAST)
    if field == "the last pod event":
        cluster.claims[-1] = with_status(cluster.claims[-1], last_pod_event_time=LAST)
    decision = decide(cluster.problem())
    assert _goes(decision, "claim-empty")
    (held,) = decision.staying
    assert (held.node_claim, held.objection.until) == ("claim-n", START + timedelta(hours=1))


def test_a_node_that_was_ready_at_a_time_to_come_has_still_to_pay_for_itself() -> None:
    """Its pods came long ago, so nothing else holds it."""
    cluster = _beside_an_empty_node()
    pods = [on("p", cpu="100m")]
    cluster.machine("n", pods, pool="odd", quiet=START - LAST, annotations={LAUNCH_TOKEN: "claim-n"})
    cluster.claims[-1] = with_status(cluster.claims[-1], last_pod_event_time=START - timedelta(days=1))
    decision = decide(cluster.problem())
    assert _goes(decision, "claim-empty")
    (held,) = decision.staying
    assert held.objection.until is not None
    assert START < held.objection.until <= START + timedelta(hours=1)


def test_a_budget_of_more_digits_than_a_number_has_stops_nobody_else() -> None:
    """The schema of the CRD takes any number of digits."""
    cluster = _beside_an_empty_node("9" * 5000)
    cluster.machine("n", pool="odd")
    decision = decide(cluster.problem())
    assert _goes(decision, "claim-empty")
    (held,) = decision.staying
    assert "NodePool odd: it has a budget that cannot be read, which closes it" in held.objection.message


@pytest.mark.parametrize("seconds", [10**14, 2**63 - 1])
def test_a_pod_whose_deadline_never_comes_does_not_end_soon(seconds: int) -> None:
    """No file is refused for it."""
    cluster = _beside_an_empty_node()
    job = on("p", started=START, restart_policy="Never", active_deadline_seconds=seconds)
    cluster.machine("n", [job], pool="odd")
    assert _goes(decide(cluster.problem()), "claim-empty")


def test_a_pod_whose_eviction_rate_cannot_be_read_keeps_its_own_node_alone() -> None:
    """The pods of two pools would share what is bought for them."""
    cluster = Cluster(pools=[builders.node_pool(name, budgets=UNLIMITED) for name in ("default", "odd")])
    for name, pool, annotations in (("n", "default", {}), ("m", "default", {}), ("x", "odd", {EVICTION_RATE: "soon"})):
        cluster.machine(name, [on(f"p-{name}", name, cpu="300m", annotations=annotations)], pool=pool)
    decision = decide(cluster.problem())
    assert _goes(decision, "claim-n") or _goes(decision, "claim-m")
    assert "joinery.dev/eviction-rate" in next(
        h.objection.message for h in decision.staying if h.node_claim == "claim-x"
    )
