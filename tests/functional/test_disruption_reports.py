"""What people are told of decisions about disruption: Events on the nodes and NodePools that they are about."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from joinery.controllers.disruption import DisruptionController
from joinery.decisions.disruption.decision import Balance, DisruptionDecision, StayingNode
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.decisions.scheduling.solve import Stopwatch
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.objections import Objection, ObjectionCode
from simulator import builders
from simulator.world import World
from tests.functional.deciding import Retiring
from tests.functional.disrupting import meanwhile, running
from tests.functional.stand import Stand


@pytest.fixture
def stand(world: World) -> Stand:
    """A cluster whose nodes may go as soon as they are there."""
    stand = Stand(world, new_nodes_repay=False).with_defaults()
    stand.rung()
    return stand


def test_people_are_told_why_nodes_stay(stand: Stand, counted: Callable[[], dict[str, float]]) -> None:
    """Rules of nodes on the nodes, those of NodePools once on the pool, and nothing of what passes by itself. That a
    node is worth its price is reported once in a quarter of an hour.
    """
    codes = (
        ObjectionCode.POD,
        ObjectionCode.NOT_WORTH_IT,
        ObjectionCode.BUDGET,
        ObjectionCode.BUDGET,
        ObjectionCode.LEAVING,
    )
    claims = running(stand, len(codes))

    def holding(problem: DisruptionProblem, *, stopwatch: Stopwatch) -> DisruptionDecision:
        named = zip(claims, codes, strict=True)
        return DisruptionDecision(
            staying=tuple(
                StayingNode(claim.metadata.name, Objection(code, f"because of {code}")) for claim, code in named
            )
        )

    before = len(stand.world.cluster.events)
    stand.consolidate(holding)
    # One held by its pod, and two by a budget. The others pass by themselves, or nothing speaks for disrupting them.
    assert counted()["joinery_nodes_held"] == 3
    for _ in range(15):
        stand.wait(60)
        stand.consolidate(holding)
    told = {(event.reason, event.kind, event.message) for event in stand.world.cluster.events[before:]}
    assert told == {
        ("DisruptionBlocked", "NodeClaim", "because of Pod"),
        ("DisruptionBlocked", "Node", "because of Pod"),
        ("Unconsolidatable", "NodeClaim", "because of NotWorthIt"),
        ("Unconsolidatable", "Node", "because of NotWorthIt"),
        ("DisruptionBlocked", "NodePool", "because of Budget"),
    }
    worth = [event for event in stand.world.cluster.events[before:] if event.reason == "Unconsolidatable"]
    assert {event.kind for event in worth[:2]} == {"Node", "NodeClaim"}
    assert len(worth) <= 4


class Agreed:
    """What ``Retiring`` decides, and a Balanced NodePool agrees to it."""

    def __init__(self, *claims: NodeClaim) -> None:
        self._retiring = Retiring(*(claim.metadata.name for claim in claims))

    def __call__(self, problem: DisruptionProblem, *, stopwatch: Stopwatch) -> DisruptionDecision:
        decision = self._retiring(problem, stopwatch=stopwatch)
        balances = (Balance("default", 0.5, 0.25),)
        return replace(decision, commands=tuple(replace(it, balances=balances) for it in decision.commands))


SCORE = "NodePool default is Balanced, and agrees: 50.0% of its cost saved for 25.0% of its disruption, a score of 2.00"


def test_a_balanced_node_pool_says_that_it_agrees(stand: Stand) -> None:
    """On the node that goes, with the score (Karpenter)."""
    (old,) = running(stand, owner="web")
    stand.consolidate(Agreed(old))
    assert stand.messages("ConsolidationApproved") == {old.metadata.name: SCORE, old.status.node_name: SCORE}


def test_it_says_so_itself_where_several_nodes_go_together(stand: Stand) -> None:
    """The score is of all of them, and is told once."""
    stand.world.cluster.add(builders.node_pool(budgets=[{"nodes": "100%"}]))
    stand.consolidate(Agreed(*running(stand, 2, owner="web")))
    assert stand.messages("ConsolidationApproved") == {"default": SCORE}


def test_nobody_agrees_where_nothing_begins(stand: Stand) -> None:
    """``observe`` mode tells what would be done, and that is all."""
    (old,) = running(stand, owner="web")
    stand.observing().consolidate(Agreed(old))
    assert stand.event_reasons() & {"Observed", "ConsolidationApproved"} == {"Observed"}


def test_a_node_that_was_to_go_says_what_changed_before_it_did(stand: Stand) -> None:
    """With Karpenter's word for it, and ours."""
    (old,) = running(stand, owner="web")
    node = old.status.node_name
    late = builders.pod("late", cpu="100m", node=node, phase="Running", owner="web")
    meanwhile(stand, lambda: stand.world.cluster.add(late)).consolidate(Retiring(old.metadata.name))
    text = "churn: pod default/late has come to one of its nodes"
    assert stand.messages("ConsolidationRejected") == {old.metadata.name: text, node: text}
    assert not stand.event_reasons() & {"ConsolidationCandidate", "ConsolidationApproved"}


def test_the_log_says_once_what_holds_nodes_and_again_what_has_changed(
    stand: Stand, capsys: pytest.CaptureFixture[str]
) -> None:
    """In most clusters most nodes are held in every run, once a minute."""
    names = [claim.metadata.name for claim in running(stand, 2)]
    decided = [names, names, names[:1], names[:1]]

    def holding(problem: DisruptionProblem, *, stopwatch: Stopwatch) -> DisruptionDecision:
        return DisruptionDecision(
            staying=tuple(StayingNode(name, Objection(ObjectionCode.POD, "its pod")) for name in decided.pop(0))
        )

    controller = DisruptionController(stand.gateways, stand.settings, holding)
    capsys.readouterr()
    said = []
    while decided:
        controller.reconcile(stand.invocation())
        said.append(capsys.readouterr().out.count("nodes stay"))
    assert said == [1, 0, 1, 0]
