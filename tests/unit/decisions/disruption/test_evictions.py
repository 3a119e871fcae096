"""The eviction API's whole rule, as all who ask about evictions know it."""

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from joinery.decisions.disruption.candidates import candidates
from joinery.decisions.lifecycle.state.disruption_check import DisruptionCheck
from joinery.decisions.scheduling.constraints.budgets import Coverage
from joinery.decisions.scheduling.firstfit.pending import pending
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.karpenter.labels import INTERRUPTED_AT
from joinery.objects.kubernetes.core import Condition, Pod, PodDisruptionBudget
from joinery.objects.objections import ObjectionCode
from simulator import builders
from simulator.clock import START
from tests.unit.decisions.disruption.clusters import Cluster, on

LABELS = {"app": "web"}
HEALTHY: dict[str, Any] = {"current_healthy": 2, "desired_healthy": 2}


def _budget(name: str = "web", **given: Any) -> PodDisruptionBudget:
    return builders.pdb(name, labels=LABELS, **given)


def _unready(phase: str = "Running") -> Pod:
    pod = on("p", labels=LABELS, cpu="1", phase=phase)
    return replace(pod, status=replace(pod.status, conditions=[Condition(type="Ready", status="False")]))


GRANTED = [
    pytest.param(_unready(), [_budget(**HEALTHY)], id="not ready, and the others suffice"),
    pytest.param(_unready(), [_budget(max_unavailable=0, **HEALTHY)], id="not ready, and no other could go"),
    pytest.param(_unready("Pending"), [_budget("a"), _budget("b")], id="not begun, and two budgets"),
]
REFUSED = [
    pytest.param(_unready(), [_budget(current_healthy=1, desired_healthy=2)], id="the others do not suffice"),
    pytest.param(_unready(), [_budget()], id="nobody has to be healthy"),
    pytest.param(_unready(), [_budget("a", **HEALTHY), _budget("b", **HEALTHY)], id="two budgets"),
]


def _cluster(pod: Pod, budgets: Sequence[PodDisruptionBudget]) -> Cluster:
    cluster = Cluster(budgets=list(budgets))
    cluster.machine("n", [pod])
    return cluster


def _goes(pod: Pod, budgets: Sequence[PodDisruptionBudget]) -> tuple[bool, bool]:
    """Whether its node is a candidate, and whether a command for it stays as it is."""
    cluster = _cluster(pod, budgets)
    problem = cluster.problem()
    judged = candidates(problem)
    look = DisruptionCheck(problem.packing.snapshot)
    assert {held.objection.code for held in judged.staying} <= {ObjectionCode.POD_DISRUPTION_BUDGET}
    return bool(judged.candidates), look.objection(cluster.claims, DisruptionReason.UNDERUTILIZED) is None


@pytest.mark.parametrize(("pod", "budgets"), GRANTED)
def test_a_node_goes_whose_pods_would_be_evicted(pod: Pod, budgets: Sequence[PodDisruptionBudget]) -> None:
    """When it is chosen, and when its command is looked at again: no pod may turn unready and roll it back."""
    assert _goes(pod, budgets) == (True, True)


@pytest.mark.parametrize(("pod", "budgets"), REFUSED)
def test_a_node_stays_whose_pods_would_not(pod: Pod, budgets: Sequence[PodDisruptionBudget]) -> None:
    """The eviction API would refuse one of its evictions."""
    assert _goes(pod, budgets) == (False, False)


@pytest.mark.parametrize(("pod", "budgets"), GRANTED)
def test_its_pods_are_planned_when_it_goes_for_another_reason(pod: Pod, budgets: Sequence[PodDisruptionBudget]) -> None:
    """They will be evicted, so they need another place."""
    cluster = _cluster(pod, budgets)
    cluster.claims = [builders.node_claim("claim-n", node="n", annotations={INTERRUPTED_AT: START.isoformat()})]
    problem = cluster.problem().packing
    assert [one.key for one in pending(problem, problem.snapshot.views)] == ["default/p"]


def test_a_budget_bears_no_more_pods_at_once_than_it_allows() -> None:
    """Those that it is not asked about do not count."""
    ready = [on(name, labels=LABELS) for name in ("a", "b")]
    budgets = Coverage([_budget(allowed=1, **HEALTHY)])
    assert [budgets.grants_all(pods) for pods in (ready, [ready[0], _unready()])] == [False, True]


def test_a_budget_that_lets_nobody_go_does_while_a_surge_brings_more_than_it_needs() -> None:
    """Its controller says so, of the spec as it is."""
    surging = _budget(allowed=1, max_unavailable=0, observed_generation=1)
    assert not Coverage([surging]).answer(on("a", labels=LABELS)).refusal
