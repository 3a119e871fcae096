"""A decision about nodes ends with its time limit, and what must be done is done all the same."""

from dataclasses import replace
from itertools import count

import pytest

from joinery.decisions.disruption.candidates import candidates
from joinery.decisions.disruption.consolidation.choosing import (
    FEW_KINDS,
    MOST_KINDS,
    chosen,
    most_kinds,
    of_few_kinds,
)
from joinery.decisions.disruption.decide import decide
from joinery.decisions.disruption.decision import DisruptionDecision, RejectionCause
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.decisions.disruption.validation.verified import verified
from joinery.decisions.optimizer.effort import Effort
from joinery.decisions.scheduling.solve import GRACE, Stopwatch
from joinery.objects.objections import ObjectionCode
from simulator import builders
from tests.unit.decisions.disruption.clusters import Cluster, on

_LIMIT = 10.0


def _cluster() -> Cluster:
    """Two half-used nodes, an empty one, and one that has drifted."""
    types = tuple(builders.instance_type(name, price=price, spot=None) for name, price in _PRICES.items())
    cluster = Cluster(pools=[builders.node_pool(budgets=[{"nodes": "100%"}])], types=types)
    for name in "ab":
        cluster.machine(name, [on(f"p-{name}", name, cpu="1500m")])
    cluster.machine("empty")
    cluster.machine("old", [on("p-old", "old", cpu="3")], drifted=True)
    return cluster


_PRICES = {"m7a.large": 0.20, "m7a.xlarge": 0.40}


@pytest.mark.parametrize("late", [0.0, GRACE / 2, 60.0])
def test_empty_and_drifted_nodes_go_though_time_is_up(late: float) -> None:
    """Nothing has to be searched for them. Others may be held for that reason, and none as worth its price."""
    decision = _decided(_cluster().problem(), lambda: _LIMIT + late)
    assert {"claim-empty", "claim-old"} <= _retired(decision)
    assert {held.objection.code for held in decision.staying} <= {ObjectionCode.TIME_LIMIT}
    assert not decision.mistakes


def test_nothing_is_proven_once_time_is_up() -> None:
    """The bound says no more than that nodes of others cost what they cost."""
    assert _decided(_cluster().problem(), lambda: _LIMIT + GRACE / 2).lower_bound <= 0.0


def test_nobody_is_late_without_a_limit() -> None:
    """A decision that may take as long as it likes is the same at any moment."""
    problem = _cluster().problem()
    assert decide(problem, stopwatch=lambda: 1e9) == decide(problem)


def test_little_is_asked_after_the_time_limit() -> None:
    """Where every look at the stopwatch takes a second, a decision looks a few times more."""
    looks = count()
    _decided(_cluster().problem(), lambda: float(next(looks)))
    assert next(looks) < _LIMIT + 40


def test_a_pod_that_waits_and_was_not_tried_keeps_no_node() -> None:
    """Whoever makes thousands of them would keep all nodes."""
    cluster = _cluster()
    cluster.pods.append(builders.pod("late", cpu="1", owner="web-1"))
    assert "claim-empty" in _retired(_decided(cluster.problem(), lambda: _LIMIT + 2 * GRACE))


def test_candidates_with_kinds_of_pods_that_no_other_has_are_left_out() -> None:
    """As many as it takes; the others are decided about."""
    cluster = Cluster()
    for name in "abc":
        cluster.machine(name)
    judged = candidates(cluster.problem()).candidates
    common = frozenset({"web", "cart"})
    kinds = {"claim-a": common, "claim-b": common | {"x", "y", "z"}, "claim-c": common}
    few, others = of_few_kinds(judged, kinds, 4)
    assert [[one.claim.metadata.name for one in some] for some in (few, others)] == [
        ["claim-a", "claim-c"],
        ["claim-b"],
    ]
    assert of_few_kinds(judged, kinds, 5) == (judged, ())


def test_more_kinds_of_pods_are_looked_at_where_there_is_more_time() -> None:
    """But never more than there is memory for."""
    assert [most_kinds(limit) for limit in (0.0, 20.0, 1e6, None)] == [FEW_KINDS, 1_000, MOST_KINDS, MOST_KINDS]


def test_a_choice_among_few_kinds_is_made_once() -> None:
    """Where others are left out for want of time, what took so long is not done again with the same nodes."""
    cluster = Cluster()
    cluster.machine("few", [on("p-few", "few", cpu="1")])
    cluster.machine("many", [on(f"p-{kind}", "many", cpu=f"{kind}m") for kind in range(1, FEW_KINDS + 1)])
    problem = _limited(cluster.problem(), 1.0)
    judged, looks = candidates(problem), count()
    first = Effort.until(0.0, lambda: float(next(looks)), seed=0)
    begun = next(looks)
    choice = chosen(problem, judged, judged.candidates, first, Effort())
    assert [one.claim.metadata.name for one in choice.left_out] == ["claim-many"]
    assert next(looks) == begun + 1


def test_commands_that_do_not_hold_together_are_not_looked_at_apart_once_it_is_late() -> None:
    """Those without pods hold whatever the others do."""
    problem = _cluster().problem()
    empty, drifted = _decided(problem, lambda: _LIMIT + GRACE / 2).commands[:2]
    wrong = replace(drifted, existing=(), launches=())
    checked = verified(problem.packing, [empty, wrong], problem.packing.snapshot, is_late=lambda: True)
    assert {name for command in checked.commands for name in command.retire} == {"claim-empty"}
    assert {one.cause for one in checked.rejected} == {RejectionCause.TIME}


def _decided(problem: DisruptionProblem, stopwatch: Stopwatch) -> DisruptionDecision:
    return decide(_limited(problem), stopwatch=stopwatch)


def _limited(problem: DisruptionProblem, limit: float = _LIMIT) -> DisruptionProblem:
    packing = replace(problem.packing, options=replace(problem.packing.options, time_limit=limit))
    return replace(problem, packing=packing, options=replace(problem.options, time_limit=limit))


def _retired(decision: DisruptionDecision) -> set[str]:
    return {name for command in decision.commands for name in command.retire}
