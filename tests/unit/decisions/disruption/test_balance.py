"""``consolidationPolicy: Balanced``: what a command saves, against what it disturbs."""

from dataclasses import replace
from typing import Any

import pytest
from msgspec.structs import replace as with_fields

from joinery.decisions.disruption.candidates import candidates
from joinery.decisions.disruption.decide import decide
from joinery.decisions.disruption.decision import DecidedCommand
from joinery.decisions.disruption.validation.balance import Balances, approved
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.objections import ObjectionCode
from simulator import builders
from tests.unit.decisions.disruption.clusters import Cluster, on

UNDERUTILIZED = DisruptionReason.UNDERUTILIZED
#: Two nodes of the smaller type cost more than one of the larger, which holds as much.
SIZES = (("xlarge", 0.40), ("2xlarge", 0.50))
BALANCED = builders.node_pool(consolidationPolicy="Balanced")


def _cluster(*pods: int, pool: str = "default", cluster: Cluster | None = None, **node: Any) -> Cluster:
    """Nodes of $0.40/h, each with so many ordinary pods, named after the pool and their number."""
    made = cluster or Cluster(pools=[BALANCED])
    for index, count in enumerate(pods):
        name = f"{pool}-{index}"
        made.machine(name, [on(f"{name}-{i}", name) for i in range(count)], pool=pool, **node)
    return made


def _balances(cluster: Cluster) -> Balances:
    problem = cluster.problem()
    return Balances(problem, candidates(problem))


def _command(*nodes: str, savings: float, reason: DisruptionReason = UNDERUTILIZED) -> DecidedCommand:
    retire = tuple(f"claim-{node}" for node in nodes)
    return DecidedCommand(reason=reason, message="", retire=retire, savings=savings)


@pytest.mark.parametrize(
    ("savings", "score"),
    [(0.40, 2.0), (0.10, 0.5), (0.0999, 0.4995), (0.0, 0.0), (-0.2, 0.0)],
)
def test_the_score_is_the_share_of_cost_saved_over_the_share_of_disruption(savings: float, score: float) -> None:
    """One of four nodes of $1.60/h together, with 3 of 24: each node counts 1 beside its pods."""
    balances = _balances(_cluster(2, 6, 6, 6))
    (balance,) = balances.of(_command("default-0", savings=savings))
    assert balance.disturbance == pytest.approx(3 / 24)
    assert balance.score == pytest.approx(score)
    assert balance.is_approved == (score >= 0.5)


def test_half_is_enough() -> None:
    """1 / k, with k fixed at 2 (Karpenter)."""
    balances = _balances(_cluster(4, 4))
    assert balances.of(_command("default-0", savings=0.20))[0].score == pytest.approx(0.5)
    assert balances.objection(_command("default-0", savings=0.20)) is None


def test_an_empty_node_goes_although_the_optimiser_would_fill_it_by_a_move_that_is_not_approved() -> None:
    """It would stay for ever otherwise: the same move is refused in every decision."""
    small = builders.instance_type("m7a.large", price=0.30, spot=None)
    sold_out = replace(small, offerings=tuple(with_fields(offering, available=False) for offering in small.offerings))
    made = Cluster(pools=[BALANCED], types=(sold_out, builders.instance_type("m7a.xlarge", price=0.40, spot=None)))
    cluster = _cluster(7, cluster=made)
    for name in ("full", "fuller"):
        cluster.machine(name, [on(f"p-{name}", name, cpu="3600m")])
    cluster.machine("idle", instance_type="m7a.large", node={"cpu": "3500m"})
    decision = decide(cluster.problem(move_price=0.0))
    assert [(command.reason, command.retire) for command in decision.commands] == [
        (DisruptionReason.EMPTY, ("claim-idle",))
    ]
    codes = {node.node_claim: node.objection.code for node in decision.staying}
    assert codes["claim-default-0"] is ObjectionCode.POLICY


def test_a_command_that_disturbs_too_much_for_what_it_saves_is_held_with_its_figures() -> None:
    """All nodes of the command are, because it is one."""
    problem = _cluster(10, 0, 10, 0).problem()
    bad, good = _command("default-0", "default-2", savings=0.02), _command("default-1", savings=0.4)
    answer = approved([bad, good], problem, candidates(problem))
    (begins,) = answer.commands
    assert begins.retire == good.retire
    assert [str(balance) for balance in begins.balances] == [
        "25.0% of its cost saved for 4.2% of its disruption, a score of 6.00"
    ]
    (rejected,) = answer.rejected
    assert (rejected.command, rejected.objection.code) == (bad, ObjectionCode.POLICY)
    assert rejected.objection.message == (
        "NodePool default is Balanced: 1.2% of its cost saved for 91.7% of its disruption, a score of 0.01, "
        "and it takes 0.5"
    )


@pytest.mark.parametrize("policy", ["WhenEmpty", "WhenEmptyOrUnderutilized"])
def test_pools_of_other_policies_are_not_asked(policy: str) -> None:
    """Nor are static ones, which are not consolidated."""
    cluster = _cluster(10, 1, cluster=Cluster(pools=[builders.node_pool(consolidationPolicy=policy)]))
    assert _balances(cluster).of(_command("default-0", savings=0.001)) == ()


@pytest.mark.parametrize("reason", [DisruptionReason.EMPTY, DisruptionReason.DRIFTED])
def test_emptiness_and_drift_are_not_asked_about(reason: DisruptionReason) -> None:
    """Empty nodes go under every policy; drift is no matter of money."""
    cluster = _cluster(10, 1, drifted=reason is DisruptionReason.DRIFTED)
    assert _balances(cluster).objection(_command("default-0", savings=0.0, reason=reason)) is None


def test_a_command_across_pools_is_credited_by_price_and_every_balanced_pool_must_agree() -> None:
    """Half of the savings are each pool's: enough for the one with few pods, too little for the other."""
    pools = [BALANCED, builders.node_pool("other", consolidationPolicy="Balanced"), builders.node_pool("any")]
    cluster = _cluster(0, 9, cluster=Cluster(pools=pools))
    _cluster(9, 0, pool="other", cluster=cluster)
    _cluster(9, pool="any", cluster=cluster)
    balances = _balances(cluster)
    command = _command("default-1", "other-0", "any-0", savings=0.60)
    assert [balance.pool for balance in balances.of(command)] == ["default", "other"]
    assert [balance.savings for balance in balances.of(command)] == pytest.approx([0.25, 0.25])
    assert str(balances.objection(command)).startswith("NodePool default is Balanced")
    assert balances.objection(_command("default-1", "other-0", "any-0", savings=1.20)) is None


def test_nodes_that_are_no_candidates_are_part_of_the_pool() -> None:
    """Their price and their pods count, so a command is a smaller share; DaemonSets' pods count nowhere."""
    cluster = _cluster(3, 3)
    cluster.machine(
        "held",
        [on("h", "held"), on("agent", "held", owner=builders.owner("DaemonSet", "agent"))],
        node={"annotations": {"karpenter.sh/do-not-disrupt": "true"}},
    )
    (balance,) = _balances(cluster).of(_command("default-0", savings=0.12))
    assert [balance.savings, balance.disturbance] == pytest.approx([0.1, 4 / 10])


def test_where_nothing_of_a_pool_has_a_price_nothing_is_approved() -> None:
    """Totals of zero give a score of zero (Karpenter)."""
    cluster = _cluster(3, 3, instance_type="m1.small", drifted=True)
    (balance,) = _balances(cluster).of(_command("default-0", savings=0.12))
    assert (balance.score, balance.is_approved) == (0.0, False)


def test_nodes_that_go_along_with_a_drifted_one_are_asked_about() -> None:
    """Their pool would say no without it. The drifted node goes alone then."""
    types = tuple(builders.instance_type(f"m7a.{size}", price=price, spot=None) for size, price in SIZES)
    pool = builders.node_pool(consolidationPolicy="Balanced", budgets=[{"nodes": "100%"}])
    cluster = Cluster(pools=[pool], types=types)
    cluster.machine("old", [on("large", "old", cpu="3800m")], drifted=True)
    for number in range(3):
        name = f"n{number}"
        cluster.machine(name, [on(f"{name}-{index}", name, cpu="180m") for index in range(20)])
    commands = decide(cluster.problem(move_price=0.0)).commands
    assert [(command.reason, command.retire) for command in commands] == [(DisruptionReason.DRIFTED, ("claim-old",))]
