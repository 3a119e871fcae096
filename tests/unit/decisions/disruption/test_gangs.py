"""Consolidation leaves a gang that runs its minimum."""

from typing import Any

import pytest

from joinery.decisions.disruption.decide import decide
from joinery.decisions.disruption.decision import DisruptionDecision
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.objections import ObjectionCode
from simulator import builders
from tests.unit.decisions.disruption.clusters import Cluster, on

TRAIN: dict[str, Any] = {"scheduling_group": {"podGroupName": "train"}}


def _cluster(count: int, minimum: int, **machine: Any) -> Cluster:
    """So many nodes with a small worker each, of which two nodes would hold all."""
    cluster = Cluster(pools=[builders.node_pool(budgets=[{"nodes": "100%"}])])
    for number in range(count):
        cluster.machine(
            f"n{number}", [on(f"train-{number}", f"n{number}", cpu="900m", labels={"app": "train"}, **TRAIN)], **machine
        )
    cluster.more["scheduling_groups"] = (builders.pod_group(minimum=minimum),)
    return cluster


def _moved(decision: DisruptionDecision) -> int:
    return sum(len(command.pods) for command in decision.commands)


def test_pods_whose_pod_group_is_gone_stay_where_they_run() -> None:
    """Their scheduler binds none of them anew. Where it does not serve the kind, they are as all others."""
    cluster = _cluster(4, 4)
    cluster.more["scheduling_groups"] = ()
    problem = cluster.problem()
    assert _moved(decide(problem)) == 0
    assert {str(one.objection) for one in decide(problem).staying} == {
        "PodGroup default/train is not there (podgroups.scheduling.k8s.io), which says how many pods are placed "
        "together: its scheduler would bind none of its pods anew"
    }
    cluster.more["unserved"] = frozenset({"scheduling_groups"})
    assert _moved(decide(cluster.problem())) == 4


@pytest.mark.parametrize(("minimum", "moved"), [(4, 0), (3, 1), (2, 2), (1, 4)])
def test_no_more_pods_are_moved_than_a_gang_can_spare(minimum: int, moved: int) -> None:
    """Of four on nodes of which one would hold all."""
    problem = _cluster(4, minimum).problem()
    assert _moved(decide(problem)) == moved
    staying = {one.objection.code for one in decide(problem).staying}
    assert (ObjectionCode.GANG in staying) is (minimum > 1)


def test_a_disruption_budget_of_the_pods_counts_in_place_of_the_gang() -> None:
    """Their owner has said how many may go at a time."""
    cluster = _cluster(4, 4)
    cluster.budgets.append(builders.pdb("train", labels={"app": "train"}, allowed=1))
    codes = {one.objection.code for one in decide(cluster.problem()).staying}
    assert ObjectionCode.GANG not in codes


@pytest.mark.parametrize("mode", ["PodGroup", {"all": {}}])
@pytest.mark.parametrize("minimum", [1, 2])
def test_a_group_that_goes_as_a_whole_is_left_alone(minimum: int, mode: str | dict[str, Any]) -> None:
    """It could spare some by its minimum, and a budget of its pods would let one go. In Kubernetes 1.36 and 1.37."""
    cluster = _cluster(4, minimum)
    cluster.more["scheduling_groups"] = (builders.pod_group(minimum=minimum, disruptionMode=mode),)
    cluster.budgets.append(builders.pdb("train", labels={"app": "train"}, allowed=1))
    decision = decide(cluster.problem())
    assert _moved(decision) == 0
    assert {str(one.objection) for one in decision.staying} == {
        "PodGroup default/train is disrupted as a whole (disruptionMode), and 1 of its pods would move"
    }


@pytest.mark.parametrize("mode", ["Pod", {"single": {}}])
def test_a_group_whose_pods_go_one_by_one_spares_what_its_minimum_leaves(mode: str | dict[str, Any]) -> None:
    """What the API server fills in: a word in Kubernetes 1.36, an object in 1.37."""
    cluster = _cluster(4, 2)
    cluster.more["scheduling_groups"] = (builders.pod_group(minimum=2, disruptionMode=mode),)
    assert _moved(decide(cluster.problem()))


def test_drift_goes_on_within_its_budgets() -> None:
    """A node that must go takes its gang's pod along."""
    commands = decide(_cluster(4, 4, drifted=True).problem()).commands
    assert {command.reason for command in commands} == {DisruptionReason.DRIFTED}
