"""Pods whose rules would make too much work are left out with the rule, number and bound; others are planned."""

from collections.abc import Iterable
from typing import Any

import pytest

from joinery.decisions.scheduling.constraints.work_bounds import MOST_LOOKS, MOST_TRIES, within_bounds
from joinery.decisions.scheduling.firstfit.workspace import Workspace
from joinery.decisions.scheduling.reason import ReasonCode
from joinery.decisions.scheduling.solve import solve
from joinery.objects.karpenter.labels import HOSTNAME, ZONE
from joinery.objects.kubernetes.core import Pod
from simulator.builders import instance_type, node_pool, pod
from tests.unit.decisions.verification.plans import problem

TYPES = (instance_type("m7a.large"),)
BYSTANDER = pod("bystander")


def _spreads(number: int, when: str = "ScheduleAnyway") -> list[dict[str, Any]]:
    selector = {"matchLabels": {"app": "web"}}
    return [
        {"maxSkew": 1 + skew, "topologyKey": ZONE, "whenUnsatisfiable": when, "labelSelector": selector}
        for skew in range(number)
    ]


def _repelling(name: str, **fields: Any) -> Pod:
    others = {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": [name]}]}
    term = {"labelSelector": others, "topologyKey": HOSTNAME}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return pod(name, labels={"app": name}, affinity=apart, **fields)


def _workspace(pods: Iterable[Pod]) -> Workspace:
    return Workspace(problem(node_pool(), *pods, types=TYPES))


@pytest.mark.parametrize("when", ["ScheduleAnyway", "DoNotSchedule"])
def test_a_pod_with_too_many_rules_is_left_out_and_says_which(when: str) -> None:
    """Each try asks all of its rules, so they multiply. Pods of others are planned."""
    plan = solve(problem(node_pool(), BYSTANDER, pod("web", spread=_spreads(60, when)), types=TYPES))
    [left] = plan.unplaced
    [reason] = left.reasons
    figures = dict(reason.figures)
    assert (left.pod, reason.code) == ("default/web", ReasonCode.TOO_MUCH)
    assert figures["rules"] == 60
    assert int(figures["tries"]) > int(figures["most"]) == MOST_TRIES
    assert plan.launches


def test_as_many_rules_as_people_write_are_planned() -> None:
    """Forty preferences of nodes and twenty spreads are more than any known workload has."""
    preferred = [
        {"weight": 1, "preference": {"matchExpressions": [{"key": f"key-{n}", "operator": "Exists"}]}}
        for n in range(40)
    ]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    assert not solve(problem(node_pool(), pod("web", affinity=affinity, spread=_spreads(20)), types=TYPES)).unplaced


def test_the_more_workloads_there_are_the_fewer_rules_each_may_have() -> None:
    """All of them together make so much work; what people write is never too much."""
    pods = [pod(f"web-{number}", cpu=f"{100 + number}m", spread=_spreads(30)) for number in range(1000)]
    classes = _workspace(pods).classes
    assert all(pod_class.problems for pod_class in classes)
    assert not any(pod_class.problems for pod_class in within_bounds(_workspace(pods[:100]).classes, ()))


def test_rules_that_look_at_few_workloads_come_first() -> None:
    """Of equal priority; what is left over is for those whose rules look at more."""
    wide = [_repelling(f"app-{number}") for number in range(9)]
    urgent = _repelling("urgent", priority=5)
    narrow = pod("narrow", labels={"app": "narrow"}, spread=_spreads(1, "DoNotSchedule"))
    classes = _workspace([*wide, urgent, narrow]).classes
    left = {
        pod_class.name: dict(pod_class.problems[0].figures)
        for pod_class in within_bounds(classes, (), most_looks=30)
        if pod_class.problems
    }
    assert len(left) == 7
    assert all(name.startswith("default/app-") for name in left)
    assert all(figures["looks"] == 10 for figures in left.values())


def test_hundreds_of_workloads_that_all_keep_apart_are_within_bounds() -> None:
    """The bound is on what all rules select, and is for thousands."""
    classes = _workspace([_repelling(f"app-{number}") for number in range(300)]).classes
    assert MOST_LOOKS > 300 * 300
    assert not any(pod_class.problems for pod_class in classes)
