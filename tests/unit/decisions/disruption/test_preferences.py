"""What pods prefer is kept by consolidation as well as it is now, or better."""

from dataclasses import replace
from typing import Any

import pytest

from joinery.decisions.disruption.decide import decide
from joinery.decisions.disruption.decision import DecidedCommand
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.decisions.disruption.validation.preferences import agreeable
from joinery.decisions.scheduling.packing import ExistingPlacement
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.karpenter.labels import HOSTNAME, ZONE
from simulator import builders
from tests.unit.decisions.disruption.clusters import Cluster, on, resized

APP = {"app": "web"}
HERE, THERE = builders.ZONES[:2]
NEIGHBOUR = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": APP}}


def _two_nodes(**pod: Any) -> Cluster:
    """A pod in one zone, its twins in another, where there is room for it; nodes are sold in that other zone only."""
    pool = builders.node_pool(
        budgets=[{"nodes": "100%"}], requirements=[{"key": ZONE, "operator": "In", "values": [THERE]}]
    )
    cluster = Cluster(pools=[pool], types=(builders.instance_type("m7a.xlarge", price=0.40, spot=None),))
    cluster.machine("here", [on("p", "here", cpu="100m", labels=APP, **pod)], zone=HERE)
    cluster.machine("there", [on(f"q{n}", "there", cpu="700m", labels=APP) for n in range(4)], zone=THERE)
    return cluster


def _prefers(zone: str) -> dict[str, Any]:
    expression = {"key": ZONE, "operator": "In", "values": [zone]}
    term = {"weight": 10, "preference": {"matchExpressions": [expression]}}
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}


def _side(kind: str) -> dict[str, Any]:
    term = {"weight": 1, "podAffinityTerm": NEIGHBOUR}
    return {kind: {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}


def _spread() -> list[dict[str, Any]]:
    return [
        {
            "topologyKey": ZONE,
            "maxSkew": 1,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": APP},
        }
    ]


def _moved(problem: DisruptionProblem, reason: DisruptionReason = DisruptionReason.UNDERUTILIZED) -> DecidedCommand:
    """The command that puts the one pod with the others."""
    there = ExistingPlacement("there", "claim-there", ("default/p",))
    return DecidedCommand(reason=reason, message="", retire=("claim-here",), existing=(there,), pods=("default/p",))


def _is_agreeable(cluster: Cluster) -> bool:
    problem = cluster.problem()
    return bool(agreeable(problem.packing, [_moved(problem)]).commands)


@pytest.mark.parametrize(
    "pod",
    [{"affinity": _prefers(HERE)}, {"affinity": _side("podAntiAffinity")}],
    ids=["node affinity", "anti-affinity"],
)
def test_a_pod_does_not_move_to_where_less_of_what_it_prefers_holds(pod: dict[str, Any]) -> None:
    """It has its way where it is."""
    assert not _is_agreeable(_two_nodes(**pod))


def test_nor_does_a_pod_whose_node_has_given_it_more_than_it_asks_for() -> None:
    """Nothing is given to it there, so it looks like another pod."""
    cluster = _two_nodes(affinity=_prefers(HERE))
    cluster.pods[0] = resized(cluster.pods[0], cpu="200m")
    assert not _is_agreeable(cluster)


@pytest.mark.parametrize(
    "pod",
    [{"affinity": _prefers(THERE)}, {"affinity": _prefers("nowhere")}, {"affinity": _side("podAffinity")}, {}],
    ids=["granted there", "granted nowhere", "neighbours there", "nothing preferred"],
)
def test_a_pod_moves_where_it_loses_nothing(pod: dict[str, Any]) -> None:
    """What does not hold now is no reason to stay."""
    assert _is_agreeable(_two_nodes(**pod))


def test_a_spread_that_would_be_nice_to_have_gets_no_worse() -> None:
    """One in each of two zones is even; two and none is not."""
    cluster = Cluster(pools=[builders.node_pool(budgets=[{"nodes": "100%"}])])
    cluster.machine("here", [on("p", "here", cpu="100m", labels=APP, spread=_spread())], zone=HERE)
    cluster.machine("there", [on("q", "there", cpu="100m", labels=APP, spread=_spread())], zone=THERE)
    cluster.machine(
        "other", [on("r", "other", cpu="3", annotations={"karpenter.sh/do-not-disrupt": "true"})], zone=HERE
    )
    assert not _is_agreeable(cluster)


def test_a_taint_that_prefers_no_pods_keeps_them_away() -> None:
    """The node that the pod would leave has no such taint."""
    cluster = Cluster(pools=[builders.node_pool(budgets=[{"nodes": "100%"}])])
    cluster.machine("here", [on("p", "here", cpu="100m")])
    cluster.machine(
        "there", [on("q", "there", cpu="1")], node={"taints": [{"key": "slow", "effect": "PreferNoSchedule"}]}
    )
    assert not _is_agreeable(cluster)


def test_drifted_nodes_go_whatever_pods_prefer() -> None:
    """They must."""
    problem = _two_nodes(affinity=_prefers(HERE)).problem()
    command = _moved(problem, DisruptionReason.DRIFTED)
    assert agreeable(problem.packing, [command]).commands == (command,)


def test_who_says_that_preferences_do_not_count_saves_the_money() -> None:
    """Karpenter's PREFERENCE_POLICY Ignore. Otherwise the other four pods move, which is dearer."""
    problem = _two_nodes(affinity=_prefers(HERE)).problem()
    assert [command.retire for command in decide(problem).commands] == [("claim-there",)]
    ignoring = replace(problem.packing, options=replace(problem.packing.options, respect_preferences=False))
    assert [command.retire for command in decide(replace(problem, packing=ignoring)).commands] == [("claim-here",)]


def test_what_takes_nothing_from_pods_goes_beside_what_does() -> None:
    """Only the command at fault is left out, and the order of the others stays."""
    cluster = _two_nodes(affinity=_prefers(HERE))
    cluster.machine("third", [on("r", "third", cpu="100m")], zone=HERE)
    problem = cluster.problem()
    there = ExistingPlacement("there", "claim-there", ("default/r",))
    other = replace(_moved(problem), retire=("claim-third",), existing=(there,), pods=("default/r",))
    judged = agreeable(problem.packing, [_moved(problem), other])
    assert judged.commands == (other,)
    assert [str(one.objection) for one in judged.rejected] == [
        "pods like default/p would keep less of what they prefer"
    ]
