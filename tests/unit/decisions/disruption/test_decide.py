"""Which nodes are worth their price: what goes, what comes, and what stays and why."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinery.decisions.disruption.decide import decide
from joinery.decisions.disruption.decision import DisruptionDecision
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.decisions.disruption.validation.verified import violations_of
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.karpenter.labels import ZONE
from joinery.objects.objections import ObjectionCode
from joinery.objects.snapshot.offerings import InstanceType
from simulator import builders
from simulator.clock import START
from tests.properties import examples
from tests.unit.decisions.disruption.clusters import Cluster, annotated, on, resized

#: 4 vCPUs and 16 GiB for $0.40/h, and half of that for half the price.
LARGE = builders.instance_type("m7a.xlarge", price=0.40, spot=None)
SMALL = builders.instance_type("m7a.large", price=0.20, spot=None)
UNLIMITED = [{"nodes": "100%"}]


def _cluster(*types: InstanceType, **disruption: Any) -> Cluster:
    pool = builders.node_pool(**{"budgets": UNLIMITED, **disruption})
    return Cluster(pools=[pool], types=types or (LARGE, SMALL))


def _retired(decision: DisruptionDecision) -> set[str]:
    return {name for command in decision.commands for name in command.retire}


def _held(decision: DisruptionDecision, code: ObjectionCode) -> set[str]:
    return {held.node_claim for held in decision.staying if held.objection.code is code}


def test_an_empty_node_goes() -> None:
    """It costs something and is for nobody."""
    cluster = _cluster()
    cluster.machine("used", [on(f"p{n}", "used", cpu="1") for n in range(3)])
    cluster.machine("idle")
    decision = decide(cluster.problem())
    assert [(command.reason, command.retire) for command in decision.commands] == [
        (DisruptionReason.EMPTY, ("claim-idle",))
    ]
    assert decision.after == pytest.approx(0.40)


def test_pods_move_to_room_that_is_paid_for() -> None:
    """One node is enough for both, and nothing is bought."""
    cluster = _cluster()
    for name in ("a", "b"):
        cluster.machine(name, [on(f"p-{name}", name, cpu="1")])
    (command,) = decide(cluster.problem()).commands
    assert (command.reason, command.launches) == (DisruptionReason.UNDERUTILIZED, ())
    assert len(command.retire) == len(command.existing) == len(command.pods) == 1


def test_a_large_node_becomes_a_small_one() -> None:
    """Its pod needs no more."""
    cluster = _cluster()
    cluster.machine("n", [on("p", cpu="1")])
    (command,) = decide(cluster.problem()).commands
    assert [launch.offering.instance_type for launch in command.launches] == ["m7a.large"]
    assert command.savings == pytest.approx(0.20)


def test_a_pod_that_its_node_has_given_more_moves_with_what_it_asks_for() -> None:
    """It is made anew, and nothing has been given to it there."""
    cluster = _cluster()
    cluster.machine("n", [resized(on("p", cpu="1"), cpu="3")])
    (command,) = decide(cluster.problem()).commands
    assert [launch.offering.instance_type for launch in command.launches] == ["m7a.large"]


def test_moves_that_do_not_repay_themselves_are_not_made() -> None:
    """A cent saved an hour is less than the dollar that the move counts as."""
    cluster = _cluster()
    cluster.machine("n", [on("p", cpu="1")])
    decision = decide(cluster.problem(move_price=1.0))
    assert not decision.commands
    assert _held(decision, ObjectionCode.NOT_WORTH_IT) == {"claim-n"}
    assert decision.after == decision.before == pytest.approx(0.40)


def test_what_may_not_be_disrupted_stays_and_takes_the_others() -> None:
    """The pod that must stay is company for the one that may go."""
    cluster = _cluster()
    cluster.machine("kept", [on("dear", "kept", cpu="1", annotations={"karpenter.sh/do-not-disrupt": "true"})])
    cluster.machine("other", [on("p", "other", cpu="1")])
    decision = decide(cluster.problem())
    assert _retired(decision) == {"claim-other"}
    assert _held(decision, ObjectionCode.POD) == {"claim-kept"}


def test_a_budget_of_none_closes_its_nodepool() -> None:
    """And says so of every node."""
    cluster = _cluster(budgets=[{"nodes": "0"}])
    for name in ("a", "b"):
        cluster.machine(name, [on(f"p-{name}", name, cpu="1")])
    decision = decide(cluster.problem())
    assert not decision.commands
    assert _held(decision, ObjectionCode.BUDGET) == {"claim-a", "claim-b"}


def test_a_small_budget_is_used_although_more_nodes_together_would_save_more() -> None:
    """Four nodes for two would take a budget of four; one goes by itself."""
    cluster = _cluster(LARGE, budgets=[{"nodes": "1"}])
    for name in "abcd":
        cluster.machine(name, [on(f"p-{name}-{n}", name, cpu="900m") for n in range(2)])
    decision = decide(cluster.problem())
    assert len(_retired(decision)) == 1
    assert len(_retired(decide(cluster.problem(ignore_budgets=True)))) == 2


def test_a_spread_over_zones_is_kept_by_every_command() -> None:
    """Pods stay in their zones, so the commands may be carried out in any number."""
    cluster = _cluster()
    app = {"app": "web"}
    over_zones = {"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    spread = [{**over_zones, "labelSelector": {"matchLabels": app}}]
    for zone in builders.ZONES[:2]:
        for number in range(2):
            name = f"{zone}-{number}"
            cluster.machine(name, [on(f"p-{name}", name, cpu="1", labels=app, spread=spread)], zone=zone)
    problem = cluster.problem()
    decision = decide(problem)
    assert len(_retired(decision)) == 2
    _assert_right(problem, decision)


def test_a_drifted_node_goes_although_its_successor_saves_nothing() -> None:
    """It is replaced by the like, and the reason says why."""
    cluster = _cluster(LARGE, consolidateAfter="Never")
    cluster.machine("n", [on("p", cpu="3")], drifted=True)
    (command,) = decide(cluster.problem()).commands
    assert (command.reason, command.retire) == (DisruptionReason.DRIFTED, ("claim-n",))
    assert command.savings == pytest.approx(0.0)


@pytest.mark.parametrize("budget", ["1", "2"])
def test_a_budget_takes_the_longest_drifted_nodes_first(budget: str) -> None:
    """As Karpenter does, and not those whose replacement saves most; nodes without pods come before all others."""
    cluster = _cluster(LARGE, consolidateAfter="Never", budgets=[{"nodes": budget}])
    cluster.machine("young", [on("p-young", "young", cpu="1")], drifted=START - timedelta(hours=1))
    cluster.machine("old", [on("p-old", "old", cpu="3500m")], drifted=START - timedelta(hours=9))
    cluster.machine("older", [on("p-older", "older", cpu="3500m")], drifted=START - timedelta(hours=10))
    expected = [{"claim-older"}, {"claim-older", "claim-old"}][int(budget) - 1]
    assert _retired(decide(cluster.problem())) == expected
    cluster.machine("idle", drifted=START)
    assert "claim-idle" in _retired(decide(cluster.problem()))


def test_the_owner_of_a_pod_may_ask_for_more_than_it_saves() -> None:
    """His price keeps the node."""
    cluster = _cluster()
    cluster.machine("n", [on("p", cpu="1", annotations={"joinery.dev/disruption-price": "5"})])
    assert not decide(cluster.problem()).commands


def test_a_nodepool_may_wait_longer_for_its_money() -> None:
    """A day to repay a move of a dollar is enough."""
    cluster = _cluster()
    cluster.pools = [annotated(cluster.pools[0], {"joinery.dev/payback": "24h"})]
    cluster.machine("n", [on("p", cpu="1")])
    assert _retired(decide(cluster.problem(move_price=1.0))) == {"claim-n"}


@st.composite
def _any(draw: st.DrawFn) -> Cluster:
    """Up to six nodes with up to three pods each, which all fit there."""
    cluster = _cluster()
    for index in range(draw(st.integers(1, 6))):
        name = f"n{index}"
        sizes = draw(st.lists(st.sampled_from(["250m", "500m", "1"]), max_size=3))
        cluster.machine(name, [on(f"{name}-{number}", name, cpu=size) for number, size in enumerate(sizes)])
    return cluster


def _assert_right(problem: DisruptionProblem, decision: DisruptionDecision) -> None:
    """After every prefix of the commands all rules hold, and each is worth its moves."""
    for prefix in range(1, len(decision.commands) + 1):
        assert not violations_of(problem.packing, decision.commands[:prefix])
    for command in decision.commands:
        assert command.savings >= command.move_price - 1e-6 or command.reason is DisruptionReason.DRIFTED


@given(cluster=_any(), price=st.sampled_from([0.0, 0.01, 0.05]))
@examples(15)
def test_every_decision_is_right_cheaper_and_above_its_bound(cluster: Cluster, price: float) -> None:
    """For any cluster and any price of moves."""
    problem = cluster.problem(move_price=price)
    decision = decide(problem)
    _assert_right(problem, decision)
    moves = sum(command.move_price for command in decision.commands)
    assert decision.lower_bound - 1e-6 <= decision.after + moves <= decision.before + 1e-6


@given(cluster=_any())
@examples(10)
def test_the_order_of_objects_makes_no_difference(cluster: Cluster) -> None:
    """One cluster gives one decision, however it is listed."""
    _assert_order_is_nothing(cluster)


def test_the_order_of_pods_decides_no_tie() -> None:
    """Of two nodes, either of which may take the other's pods, the same one always goes."""
    cluster = _cluster()
    cluster.machine("n0", [on("n0-0", "n0", cpu="1"), on("n0-1", "n0", cpu="500m")])
    cluster.machine("n1", [on("n1-0", "n1", cpu="500m"), on("n1-1", "n1", cpu="500m")])
    cluster.machine("n2", [])
    _assert_order_is_nothing(cluster)


def _assert_order_is_nothing(cluster: Cluster) -> None:
    problem = cluster.problem()
    snapshot = problem.packing.snapshot
    mirrored = replace(
        snapshot, nodes=snapshot.nodes[::-1], pods=snapshot.pods[::-1], node_claims=snapshot.node_claims[::-1]
    )
    other = replace(problem, packing=replace(problem.packing, snapshot=mirrored))
    assert decide(problem).commands == decide(other).commands
