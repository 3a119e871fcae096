"""A node that Joinery has just launched is not consolidated before it has paid for itself."""

from datetime import timedelta
from typing import Any

import pytest

from joinery.decisions.disruption.candidates import Candidates, candidates
from joinery.decisions.disruption.decide import decide
from joinery.decisions.disruption.decision import StayingNode
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.karpenter.labels import BOUGHT_FOR, LAUNCH_TOKEN, NEW_NODES_REPAY, PAYBACK
from joinery.objects.objections import ObjectionCode
from simulator import builders
from simulator.clock import START
from tests.unit.decisions.disruption.clusters import Cluster, annotated, on

MINUTE = timedelta(minutes=1)
UNLIMITED = [{"nodes": "100%"}]
OURS = {LAUNCH_TOKEN: "claim-n"}
#: $0.12 of moves for $0.36/h: repaid within 20 minutes.
BOUGHT = {**OURS, BOUGHT_FOR: '{"savings":0.36,"movePrice":0.12}'}


def _cluster(
    annotations: dict[str, str] | None, *, age: timedelta, pool: dict[str, str] | None = None, **disruption: Any
) -> Cluster:
    """A node of that age with two pods, which would have room on another one. Moving them counts as two cents."""
    cluster = Cluster(pools=[annotated(builders.node_pool(budgets=UNLIMITED, **disruption), pool or {})])
    cluster.machine("n", [on(f"p{i}", "n", cpu="500m") for i in range(2)], quiet=age, annotations=annotations)
    cluster.machine("room", [on("other", "room", cpu="2", annotations={"karpenter.sh/do-not-disrupt": "true"})])
    return cluster


def _held(judged: Candidates) -> StayingNode | None:
    return next((held for held in judged.staying if held.node_claim == "claim-n"), None)


def _is_held(problem: DisruptionProblem) -> bool:
    held = _held(candidates(problem))
    return held is not None and held.objection.code is ObjectionCode.NOT_REPAID


def test_what_a_command_bought_stays_until_its_savings_are_worth_its_moves() -> None:
    """Whatever moving the pods away would save: what has been paid for it is not thrown away."""
    problem = _cluster(BOUGHT, age=19 * MINUTE).problem()
    held = _held(candidates(problem))
    assert held is not None
    assert (held.objection.code, held.disruption) == (ObjectionCode.NOT_REPAID, DisruptionReason.UNDERUTILIZED)
    assert held.objection.until == START + MINUTE
    assert "saves $0.3600/h" in held.objection.message or "save $0.3600/h" in held.objection.message
    assert "claim-n" not in {name for command in decide(problem).commands for name in command.retire}


def test_from_then_on_it_is_a_node_like_any_other() -> None:
    """Twenty minutes after it was initialised."""
    problem = _cluster(BOUGHT, age=20 * MINUTE).problem()
    assert not _is_held(problem)
    assert "claim-n" in {name for command in decide(problem).commands for name in command.retire}


def test_a_node_for_pods_that_waited_stays_until_it_has_cost_what_moving_them_would() -> None:
    """Two cents at $0.40/h: three minutes. Nothing was to be saved, so nothing else says when it has paid."""
    held = _held(candidates(_cluster(OURS, age=2 * MINUTE).problem()))
    assert held is not None
    assert (held.objection.code, held.objection.until) == (ObjectionCode.NOT_REPAID, START + MINUTE)
    assert not _is_held(_cluster(OURS, age=3 * MINUTE).problem())


def test_no_node_stays_for_longer_than_the_payback_time() -> None:
    """Neither one whose command saved next to nothing, nor one with dear pods."""
    nothing = {**OURS, BOUGHT_FOR: '{"savings":0.0001,"movePrice":9}'}
    assert _is_held(_cluster(nothing, age=59 * MINUTE).problem())
    assert not _is_held(_cluster(nothing, age=60 * MINUTE).problem())
    short = {PAYBACK: "10m"}
    assert _is_held(_cluster(BOUGHT, age=9 * MINUTE, pool=short).problem())
    assert not _is_held(_cluster(BOUGHT, age=10 * MINUTE, pool=short).problem())


def test_a_node_that_another_controller_launched_is_not_held() -> None:
    """Nobody here has paid for it."""
    assert not _is_held(_cluster(None, age=MINUTE).problem())


def test_an_empty_node_goes_at_once() -> None:
    """Its pods have ended: nothing is moved, so nothing has been paid in vain by keeping it any longer."""
    cluster = _cluster(BOUGHT, age=MINUTE)
    cluster.pods = [pod for pod in cluster.pods if pod.spec.node_name != "n"]
    (command,) = [one for one in decide(cluster.problem()).commands if "claim-n" in one.retire]
    assert command.reason is DisruptionReason.EMPTY


def test_a_drifted_node_goes_all_the_same() -> None:
    """It is not what it should be, however much it has cost to get there."""
    cluster = Cluster(pools=[builders.node_pool(budgets=UNLIMITED)])
    cluster.machine("n", [on("p")], quiet=MINUTE, annotations=BOUGHT, drifted=True)
    judged = candidates(cluster.problem())
    assert judged.candidates[0].reasons == {DisruptionReason.DRIFTED}
    assert [(held.objection.code, held.disruption) for held in judged.staying] == [
        (ObjectionCode.NOT_REPAID, DisruptionReason.UNDERUTILIZED)
    ]


def test_the_policy_comes_first() -> None:
    """``WhenEmpty`` keeps it for good, and says more than a time that will have no consequence."""
    held = _held(candidates(_cluster(BOUGHT, age=MINUTE, consolidationPolicy="WhenEmpty").problem()))
    assert held is not None
    assert held.objection.code is ObjectionCode.POLICY


def test_a_node_pool_may_say_otherwise_and_so_may_the_stack() -> None:
    """The NodePool's word counts."""
    never, always = {NEW_NODES_REPAY: "false"}, {NEW_NODES_REPAY: "true"}
    assert not _is_held(_cluster(BOUGHT, age=MINUTE, pool=never).problem())
    assert not _is_held(_cluster(BOUGHT, age=MINUTE).problem(new_nodes_repay=False))
    assert _is_held(_cluster(BOUGHT, age=MINUTE, pool=always).problem(new_nodes_repay=False))


def test_a_word_that_cannot_be_read_keeps_the_nodes() -> None:
    """Somebody meant something."""
    held = _held(candidates(_cluster(BOUGHT, age=MINUTE, pool={NEW_NODES_REPAY: "maybe"}).problem()))
    assert held is not None
    assert held.objection.code is ObjectionCode.POLICY
    assert NEW_NODES_REPAY in held.objection.message


def test_where_moves_cost_nothing_nothing_has_to_be_repaid() -> None:
    """Who asks what the cluster could cost is not told what it costs to get there."""
    assert not _is_held(_cluster(BOUGHT, age=MINUTE).problem(move_price=0.0))


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"savings":0,"movePrice":1}', '{"savings":-1,"movePrice":1}', "x"])
def test_an_edited_record_stands_for_none(text: str) -> None:
    """Then the node counts as one for pods that waited."""
    assert _is_held(_cluster({**OURS, BOUGHT_FOR: text}, age=2 * MINUTE).problem())
    assert not _is_held(_cluster({**OURS, BOUGHT_FOR: text}, age=3 * MINUTE).problem())


def test_moves_that_counted_as_nothing_are_repaid_at_once() -> None:
    """Or as less than nothing, if somebody edits them so."""
    for price in ("0", "-5"):
        bought = {**OURS, BOUGHT_FOR: f'{{"savings":0.36,"movePrice":{price}}}'}
        assert not _is_held(_cluster(bought, age=timedelta()).problem())
