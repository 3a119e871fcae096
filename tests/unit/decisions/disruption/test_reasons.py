"""A node may go for more than one reason: what budgets let it go for, and what needs no price."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from joinery.decisions.disruption.decide import decide
from joinery.decisions.disruption.decision import DisruptionDecision
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.objections import ObjectionCode
from joinery.objects.snapshot.offerings import Offering, Reservation
from simulator import builders
from simulator.clock import START
from tests.unit.decisions.disruption.clusters import Cluster, on

LARGE = builders.instance_type("m7a.xlarge", price=0.40, spot=None)
SMALL = builders.instance_type("m7a.large", price=0.20, spot=None)
ALL = {"nodes": "100%"}
EMPTY, DRIFTED = DisruptionReason.EMPTY, DisruptionReason.DRIFTED
UNDERUTILIZED = DisruptionReason.UNDERUTILIZED


def _cluster(*budgets: dict[str, Any], **disruption: Any) -> Cluster:
    pool = builders.node_pool(**{"budgets": [*budgets, ALL], **disruption})
    return Cluster(pools=[pool], types=(LARGE, SMALL))


def _none_for(reason: DisruptionReason, nodes: str = "0") -> dict[str, Any]:
    return {"nodes": nodes, "reasons": [reason.value]}


def _reasons(decision: DisruptionDecision) -> dict[str, DisruptionReason]:
    return {name: command.reason for command in decision.commands for name in command.retire}


def _held(decision: DisruptionDecision) -> set[tuple[str, ObjectionCode, DisruptionReason | None]]:
    return {(held.node_claim, held.objection.code, held.disruption) for held in decision.staying}


def test_a_command_for_drift_says_how_many_of_its_nodes_have_drifted() -> None:
    """Others go along, because their pods share what is bought; they would be taken for drifted ones."""
    cluster = _cluster()
    cluster.machine("old", [on("p", "old", cpu="800m")], drifted=True)
    cluster.machine("along", [on("q", "along", cpu="800m")])
    (command,) = decide(cluster.problem()).commands
    assert command.reason is DRIFTED
    assert command.message.startswith("2 nodes, 1 of them drifted, for a new one (m7a.large): saves $0.6000/h")


class TestBudgetsForOneReason:
    """A budget for one reason says nothing of the others (Karpenter NodePool, `disruption.budgets.reasons`)."""

    def test_a_drifted_node_that_nobody_needs_is_given_up_while_drift_is_closed(self) -> None:
        """Who closes drift by day does not mean to pay for idle nodes until the evening."""
        cluster = _cluster(_none_for(DRIFTED))
        cluster.machine("n", drifted=True)
        assert _reasons(decide(cluster.problem())) == {"claim-n": EMPTY}

    def test_a_drifted_node_is_consolidated_while_drift_is_closed(self) -> None:
        """Its pod needs half of it."""
        cluster = _cluster(_none_for(DRIFTED))
        cluster.machine("n", [on("p", cpu="1")], drifted=True)
        assert _reasons(decide(cluster.problem())) == {"claim-n": UNDERUTILIZED}

    def test_a_drifted_node_that_is_worth_its_price_stays_for_that_budget(self) -> None:
        """And it is said which."""
        cluster = _cluster(_none_for(DRIFTED))
        cluster.machine("n", [on("p", cpu="3")], drifted=True)
        decision = decide(cluster.problem())
        assert not decision.commands
        assert _held(decision) == {("claim-n", ObjectionCode.BUDGET, DRIFTED)}

    @pytest.mark.parametrize("closed", [EMPTY, UNDERUTILIZED])
    def test_a_drifted_node_goes_for_drift_while_consolidation_is_closed(self, closed: DisruptionReason) -> None:
        """One after another, as far as the budget for drift allows."""
        cluster = _cluster(_none_for(closed), _none_for(DRIFTED, "1"))
        for name in "abcd":
            pods = [on(f"p-{name}", name, cpu="3")] if closed is UNDERUTILIZED else []
            cluster.machine(name, pods, drifted=START - timedelta(hours=ord(name)))
        assert _reasons(decide(cluster.problem())) == {"claim-d": DRIFTED}

    def test_empty_nodes_that_have_drifted_use_the_budget_for_empty_ones(self) -> None:
        """Karpenter asks for emptiness first."""
        cluster = _cluster(_none_for(DRIFTED, "1"))
        for name in "abc":
            cluster.machine(name, drifted=True)
        assert _reasons(decide(cluster.problem())) == dict.fromkeys(("claim-a", "claim-b", "claim-c"), EMPTY)

    def test_an_empty_node_that_waits_for_a_drifted_one_stays_for_their_budget(self) -> None:
        """Either of them could go, and it is not true that it is worth its price."""
        cluster = _cluster({"nodes": "1"})
        cluster.machine("idle")
        cluster.machine("old", drifted=True)
        decision = decide(cluster.problem())
        assert _reasons(decision) == {"claim-old": EMPTY}
        assert _held(decision) == {("claim-idle", ObjectionCode.BUDGET, EMPTY)}


class TestEmptyNodesWithoutAPrice:
    """An empty node goes whatever it saves: nobody needs it."""

    def test_one_of_a_type_that_nobody_sells_any_more_goes(self) -> None:
        """It costs something all the same."""
        cluster = _cluster()
        cluster.machine("n", instance_type="x9.unknown")
        assert _reasons(decide(cluster.problem())) == {"claim-n": EMPTY}

    def test_one_in_a_reservation_goes(self) -> None:
        """The catalogue says that it costs next to nothing. Others may use its place."""
        cluster = _cluster(consolidationPolicy="WhenEmpty")
        cluster.machine("n", capacity_type="reserved")
        reserved = Offering(builders.ZONES[0], "reserved", 4e-8, reservation=Reservation("cr-1"))
        cluster.types = (replace(LARGE, offerings=(*LARGE.offerings, reserved)),)
        decision = decide(cluster.problem())
        assert _reasons(decision) == {"claim-n": EMPTY}
        assert decision.lower_bound <= decision.after + 1e-6

    def test_one_that_has_room_for_what_is_dearer_elsewhere_stays(self) -> None:
        """Pods of a node that costs something move there."""
        cluster = _cluster()
        cluster.machine("paid", [on("p", "paid", cpu="3")])
        cluster.machine("free", capacity_type="reserved")
        reserved = Offering(builders.ZONES[0], "reserved", 4e-8, reservation=Reservation("cr-1"))
        cluster.types = (replace(LARGE, offerings=(*LARGE.offerings, reserved)),)
        decision = decide(cluster.problem())
        assert _reasons(decision) == {"claim-paid": UNDERUTILIZED}
        assert decision.lower_bound <= decision.after + 0.01 + 1e-6
