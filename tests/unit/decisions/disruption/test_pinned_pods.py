"""Pods that belong to one node: those that come and go with it, and those that have no other place."""

from typing import Any

import pytest

from joinery.decisions.disruption.decide import decide
from joinery.decisions.scheduling.firstfit.pending import pending
from joinery.decisions.scheduling.solve import solve
from joinery.decisions.termination.drain import plan_drain
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.karpenter.labels import HOSTNAME, INTERRUPTED_AT
from joinery.objects.kubernetes.core import Pod
from joinery.objects.objections import ObjectionCode
from joinery.objects.snapshot.pods import is_pending
from simulator import builders
from simulator.clock import START
from tests.unit.decisions.disruption.clusters import Cluster, on

KRUISE = builders.owner("DaemonSet", "sensor", api_version="apps.kruise.io/v1alpha1")
AGENT = builders.owner("NodeAgent", "sensor", api_version="example.com/v1")


def _affinity(*terms: dict[str, Any]) -> dict[str, Any]:
    required = {"nodeSelectorTerms": list(terms)}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


def _in(kind: str, key: str, *values: str) -> dict[str, Any]:
    return {kind: [{"key": key, "operator": "In", "values": list(values)}]}


NAMED = _in("matchFields", "metadata.name", "n")
HOST: dict[str, Any] = {"node_selector": {HOSTNAME: "n"}}
WITH_ITS_NODE = [
    pytest.param(on("p", owner=KRUISE), id="of OpenKruise's DaemonSet"),
    pytest.param(on("p", owner=AGENT, **_affinity(NAMED)), id="pinned by name"),
    pytest.param(on("p", owner=AGENT, **_affinity(NAMED), **HOST), id="pinned by name and host"),
    pytest.param(on("p", owner=None, **_affinity(NAMED)), id="of nobody"),
    pytest.param(on("p", owner=None, annotations={"kubernetes.io/config.mirror": "0"}), id="a mirror"),
]
NOWHERE_ELSE = [
    pytest.param(on("p", cpu="1", **HOST), id="by host"),
    pytest.param(on("p", cpu="1", **_affinity(_in("matchExpressions", HOSTNAME, "n"))), id="by host affinity"),
    pytest.param(on("p", cpu="1", **_affinity(NAMED)), id="a ReplicaSet's whose template names the node"),
]


def _cluster(pod: Pod, **machine: Any) -> Cluster:
    """Its node, and another one that has room."""
    cluster = Cluster(pools=[builders.node_pool(budgets=[{"nodes": "100%"}])])
    cluster.machine("n", [pod], **machine)
    cluster.machine("other", [on("big", "other", cpu="2")])
    return cluster


@pytest.mark.parametrize("pod", WITH_ITS_NODE)
@pytest.mark.parametrize("drifted", [False, True])
def test_pods_that_belong_to_their_node_go_with_it(pod: Pod, drifted: bool) -> None:
    """It is empty but for them, as it is with a DaemonSet's."""
    commands = decide(_cluster(pod, drifted=drifted).problem()).commands
    (command,) = (command for command in commands if "claim-n" in command.retire)
    assert (command.retire, command.pods, command.launches) == (("claim-n",), (), ())


@pytest.mark.parametrize("pod", WITH_ITS_NODE)
def test_no_place_is_planned_for_them(pod: Pod) -> None:
    """Their node is lost, and they with it; they go after the pods that have another place."""
    cluster = _cluster(pod)
    cluster.claims[0] = builders.node_claim("claim-n", node="n", annotations={INTERRUPTED_AT: START.isoformat()})
    problem = cluster.problem().packing
    assert not pending(problem, problem.snapshot.views)
    assert pod not in plan_drain([pod, on("web")], now=START, deadline=None).evict


def test_no_node_is_bought_for_one_of_openkruise_that_waits() -> None:
    """It is made for a node that is there."""
    assert not is_pending(builders.pod("p", owner=KRUISE), only_marked=False)


@pytest.mark.parametrize("pod", NOWHERE_ELSE)
@pytest.mark.parametrize(("drifted", "reason"), [(False, None), (True, DisruptionReason.DRIFTED)])
def test_a_pod_that_nothing_else_can_hold_has_no_place(
    pod: Pod, drifted: bool, reason: DisruptionReason | None
) -> None:
    """That, and not what its move would save, is why its node stays."""
    decision = decide(_cluster(pod, drifted=drifted).problem())
    held = {held.node_claim: (held.objection.code, held.disruption) for held in decision.staying}
    assert held["claim-n"] == (ObjectionCode.NO_PLACE, reason)


def test_what_they_take_is_not_what_daemon_sets_will_still_take() -> None:
    """A node runs both."""
    cluster = Cluster()
    cluster.machine("n", [on("p", owner=KRUISE, cpu="500m")])
    cluster.pods.append(builders.pod("big", cpu="3200m", memory="1Gi"))
    cluster.more["daemon_sets"] = (builders.daemon_set("agent", cpu="500m"),)
    assert not solve(cluster.problem().packing).existing
