"""Drifted nodes with a ``terminationGracePeriod``, and pods on them that no eviction ends."""

from collections.abc import Sequence

import pytest

from joinery.decisions.disruption.decide import decide
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.karpenter.labels import DO_NOT_DISRUPT
from joinery.objects.kubernetes.core import Pod, PodDisruptionBudget
from joinery.objects.objections import ObjectionCode
from simulator import builders
from simulator.clock import START
from tests.unit.decisions.disruption.clusters import Cluster, on

LABELS = {"app": "web"}
PROTECTED = {DO_NOT_DISRUPT: "true"}
NOWHERE = {"team": "gone"}
TWO = (builders.pdb("one", labels=LABELS, allowed=1), builders.pdb("two", labels=LABELS, allowed=1))
NEVER = (builders.pdb("never", labels=LABELS, max_unavailable=0),)


def _drifted(*pods: Pod, budgets: Sequence[PodDisruptionBudget] = (), period: str | None = "1h") -> Cluster:
    pool = builders.node_pool(budgets=[{"nodes": "100%"}], consolidateAfter="Never")
    cluster = Cluster(pools=[pool], budgets=list(budgets))
    cluster.machine("n", pods, drifted=True, termination_grace_period=period)
    return cluster


@pytest.mark.parametrize(
    ("pod", "budgets"),
    [
        (on("p", annotations=PROTECTED), ()),
        (on("p", annotations=PROTECTED, node_selector=NOWHERE), ()),
        (on("p", labels=LABELS), TWO),
        (on("p", labels=LABELS), NEVER),
    ],
)
def test_they_do_not_keep_their_node(pod: Pod, budgets: Sequence[PodDisruptionBudget]) -> None:
    """They end with its time, and are planned then. So nothing is bought for them before (Karpenter)."""
    (command,) = decide(_drifted(pod, budgets=budgets).problem()).commands
    assert (command.reason, command.retire) == (DisruptionReason.DRIFTED, ("claim-n",))
    assert not command.launches


@pytest.mark.parametrize(("annotations", "budgets"), [(PROTECTED, ()), ({}, TWO), ({}, NEVER)])
def test_a_pod_of_a_statefulset_that_ends_already_holds_out_no_longer(
    annotations: dict[str, str], budgets: Sequence[PodDisruptionBudget]
) -> None:
    """Nobody has to evict it, and its successor needs a place."""
    owner = builders.owner("StatefulSet", "db")
    pod = on("db-0", owner=owner, deleted=START, labels=LABELS, annotations=annotations, cpu="1")
    (command,) = decide(_drifted(pod, budgets=budgets).problem()).commands
    assert [launch.pods for launch in command.launches] == [("default/db-0",)]


@pytest.mark.parametrize("budgets", [TWO, NEVER])
def test_a_pod_that_tolerates_the_taint_of_nodes_that_go_has_no_budget(budgets: Sequence[PodDisruptionBudget]) -> None:
    """It is not evicted but ends with the node, whatever budgets say (Karpenter `pdb.Limits.IsFullyBlocked`)."""
    pod = on("p", labels=LABELS, cpu="1", tolerations=[{"operator": "Exists"}])
    (command,) = decide(_drifted(pod, budgets=budgets, period=None).problem()).commands
    assert [launch.pods for launch in command.launches] == [("default/p",)]


def test_a_place_is_found_for_the_others() -> None:
    """Before their node goes, as ever."""
    (command,) = decide(_drifted(on("p", annotations=PROTECTED), on("q", cpu="1")).problem()).commands
    assert [launch.pods for launch in command.launches] == [("default/q",)]


def test_without_that_time_they_keep_it() -> None:
    """Nothing would ever end them."""
    decision = decide(_drifted(on("p", annotations=PROTECTED), period=None).problem())
    assert not decision.commands
    assert [held.objection.code for held in decision.staying if held.disruption is DisruptionReason.DRIFTED] == [
        ObjectionCode.POD
    ]


def test_pods_that_may_be_evicted_and_have_no_other_place_keep_it() -> None:
    """They would wait for ever."""
    decision = decide(_drifted(on("p", node_selector=NOWHERE)).problem())
    assert not decision.commands
    assert ObjectionCode.NO_PLACE in {held.objection.code for held in decision.staying}
