"""Limits of NodePools that leave no room for what would save most: what is possible within them is done instead."""

import pytest

from joinery.decisions.disruption.decide import decide
from joinery.decisions.disruption.decision import DisruptionDecision
from joinery.decisions.disruption.validation.verified import violations_of
from joinery.objects.karpenter.labels import NODE_POOL
from simulator import builders
from tests.unit.decisions.disruption.clusters import Cluster, on

#: 4 vCPUs and 16 GiB for $0.40/h, and half of that for half the price.
TYPES = tuple(
    builders.instance_type(name, price=price, spot=None) for name, price in (("m7a.xlarge", 0.40), ("m7a.large", 0.20))
)


def _full() -> Cluster:
    """A cluster whose NodePool may buy nothing more."""
    return Cluster(pools=[builders.node_pool(budgets=[{"nodes": "100%"}], limits={"cpu": "0"})], types=TYPES)


def _decided(cluster: Cluster) -> DisruptionDecision:
    problem = cluster.problem()
    decision = decide(problem)
    assert not violations_of(problem.packing, decision.commands)
    assert not decision.mistakes
    return decision


def test_where_nothing_may_be_bought_pods_move_to_room_that_is_there() -> None:
    """A small node for both pods would save $0.60/h; one node for both saves $0.40/h."""
    cluster = _full()
    for name in ("a", "b"):
        cluster.machine(name, [on(f"p-{name}", name, cpu="900m")])
    (command,) = _decided(cluster).commands
    assert not command.launches
    assert command.savings == pytest.approx(0.40)


def test_what_one_nodepool_may_not_buy_does_not_keep_another_one_from_buying() -> None:
    """The pod that is tied to the full one keeps its node, which takes a second pod; the third gets a small node."""
    cluster = _full()
    cluster.pools.append(builders.node_pool("other", budgets=[{"nodes": "100%"}]))
    cluster.machine("bound", [on("p-bound", "bound", cpu="1", node_selector={NODE_POOL: "default"})])
    for name in ("a", "b"):
        cluster.machine(name, [on(f"p-{name}", name, cpu="1800m")])
    decision = _decided(cluster)
    assert decision.after == pytest.approx(0.60)
