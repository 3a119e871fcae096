"""Pods that were resized in place are moved as their owner's template makes them anew."""

from typing import Any

import pytest
from msgspec.structs import replace

from joinery.decisions.disruption.decide import decide
from joinery.decisions.disruption.decision import DecidedCommand
from joinery.decisions.scheduling.solve import solve
from joinery.decisions.verification.verify import verify
from joinery.objects.annotations.plans import needs, remembered
from joinery.objects.karpenter.labels import DO_NOT_DISRUPT, INTERRUPTED_AT
from joinery.objects.kubernetes.core import Condition, ObjectMeta, PodTemplateSpec
from joinery.objects.kubernetes.workloads import Workload, WorkloadSpec
from simulator import builders
from simulator.clock import START
from tests.unit.decisions.disruption.clusters import Cluster, on, resized


def _cluster(lives: str, asks: str, **machine: Any) -> Cluster:
    """A node whose pod has other requests than its ReplicaSet's template, and one with 2 of its 4 cores free."""
    pod = on("p", cpu=lives)
    pools = [builders.node_pool(budgets=[{"nodes": "100%"}], requirements=["karpenter.sh/capacity-type=on-demand"])]
    cluster = Cluster(pools=pools)
    cluster.machine("n", [pod], **machine)
    cluster.machine("other", [on("big", "other", cpu="2", annotations={DO_NOT_DISRUPT: "true"})])
    template = PodTemplateSpec(spec=on("p", cpu=asks).spec)
    meta = ObjectMeta(name="web-1", namespace="default")
    cluster.more["replica_sets"] = (Workload(metadata=meta, spec=WorkloadSpec(template=template)),)
    return cluster


def _command(cluster: Cluster) -> DecidedCommand | None:
    commands = decide(cluster.problem()).commands
    return next((command for command in commands if "claim-n" in command.retire), None)


def test_a_pod_that_needs_more_when_it_is_made_anew_is_not_moved_where_only_the_old_one_fits() -> None:
    """It would not fit there, a node would be bought for it, and that one would be consolidated again."""
    assert _command(_cluster("1", "3")) is None


@pytest.mark.parametrize(("lives", "asks"), [("3", "1"), ("1", "1")])
def test_one_that_needs_less_is(lives: str, asks: str) -> None:
    """The room that it will need is there."""
    command = _command(_cluster(lives, asks))
    assert command is not None
    assert [placement.node for placement in command.existing] == ["other"]


def test_a_drifted_node_is_replaced_by_one_that_holds_its_successor() -> None:
    """Drift is no saving, so the node goes all the same."""
    command = _command(_cluster("1", "3", drifted=True))
    assert command is not None
    assert [launch.requests["cpu"] for launch in command.launches] == [3000]


@pytest.mark.parametrize(
    ("reason", "asks", "goes"),
    [("Deferred", "1", False), ("Deferred", "2", True), ("Infeasible", "1", True), ("", "1", True)],
)
def test_a_pod_whose_resize_waits_for_room_stays_where_it_would_be_made_anew_with_less(
    reason: str, asks: str, goes: bool
) -> None:
    """Consolidation would make smaller what somebody made larger. Drift and the like do not wait for that."""
    cluster = _cluster("2", asks)
    given = resized(cluster.pods[0], cpu="1")
    waiting = [Condition(type="PodResizePending", status="True", reason=reason)] if reason else []
    cluster.pods[0] = replace(given, status=replace(given.status, conditions=[*given.status.conditions, *waiting]))
    assert (_command(cluster) is not None) == goes


@pytest.mark.parametrize("given", [{"deleted": START}, {"annotations": {INTERRUPTED_AT: START.isoformat()}}])
def test_so_is_one_that_goes_for_any_other_reason(given: dict[str, Any]) -> None:
    """It has expired, is repaired, or EC2 takes it. The check of the plan knows the successor too."""
    problem = _cluster("1", "3", **given).problem().packing
    packing = solve(problem)
    assert [launch.requests["cpu"] for launch in packing.launches] == [3000]
    assert not verify(problem, packing)


def test_the_node_that_is_bought_is_for_the_pod_that_will_come() -> None:
    """The claim remembers what that one needs, or its place would be nobody's."""
    snapshot = _cluster("1", "3").problem().packing.snapshot
    pods = {pod.key: snapshot.successor(pod) for pod in snapshot.pods}
    comes = needs(on("q", node="", cpu="3"))
    assert any(comes in text for text in remembered(["default/p"], pods).values())
