"""Pods that wait, or have to leave, and have room on nodes that are there count as if they were bound."""

import json
from datetime import timedelta

from joinery.decisions.disruption.decide import decide
from joinery.decisions.lifecycle.disrupting.started_commands import LONGEST_DRAIN_AWAITED
from joinery.objects.annotations.disruption import CommandRecord, Replaces, encoded
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.karpenter.labels import DISRUPTION_COMMAND, PLANNED_PODS, REPLACES
from joinery.objects.objections import ObjectionCode
from simulator import builders
from simulator.clock import START
from tests.unit.decisions.disruption.clusters import Cluster, on

#: 4 vCPUs at $0.40/h.
TYPE = builders.instance_type("m7a.xlarge", price=0.40, spot=None)


def _cluster() -> Cluster:
    return Cluster(pools=[builders.node_pool(budgets=[{"nodes": "100%"}])], types=(TYPE,))


def _waiting(cpu: str, name: str = "late") -> Cluster:
    cluster = _cluster()
    cluster.pods.append(builders.pod(name, cpu=cpu, owner="web-1"))
    return cluster


def test_an_empty_node_that_a_waiting_pod_fits_on_stays() -> None:
    """It is bought anew otherwise."""
    cluster = _waiting("2")
    cluster.machine("idle")
    decision = decide(cluster.problem())
    assert not decision.commands
    (held,) = decision.staying
    assert (held.node_claim, held.objection.code) == ("claim-idle", ObjectionCode.NOMINATED)
    assert "default/late" in held.objection.message


def test_room_that_a_waiting_pod_needs_is_no_room_for_pods_that_move() -> None:
    """One node for both pods would save nothing: the third pod would need another."""
    cluster = _waiting("2500m")
    for name in "ab":
        cluster.machine(name, [on(f"p-{name}", name, cpu="1")])
    assert not decide(cluster.problem()).commands


def test_a_pod_that_needs_a_new_node_keeps_nobody() -> None:
    """It is provisioning's, whatever becomes of the others."""
    cluster = _waiting("3500m")
    cluster.machine("used", [on("p", "used", cpu="1")])
    cluster.machine("other", [on("q", "other", cpu="1")])
    (command,) = decide(cluster.problem()).commands
    assert len(command.retire) == 1
    assert not command.launches


def _leaving(cpu: str) -> Cluster:
    """A node is being drained, and its pod has not left it yet."""
    cluster = _cluster()
    cluster.machine("going", [on("leaver", "going", cpu=cpu)], deleted=START)
    return cluster


def test_an_empty_node_that_a_pod_of_a_leaving_node_fits_on_stays() -> None:
    """The drain takes a minute or two, and provisioning has found the pod a place there."""
    cluster = _leaving("2")
    cluster.machine("idle")
    decision = decide(cluster.problem())
    assert not decision.commands
    held = next(held for held in decision.staying if held.node_claim == "claim-idle")
    assert (held.objection.code, held.objection.message) == (
        ObjectionCode.NOMINATED,
        "pod default/leaver has to leave its node, and has room on it",
    )


def test_no_node_is_kept_for_a_pod_that_has_not_left_in_minutes() -> None:
    """A budget may keep it for days, and what it needs is bought when it leaves."""
    cluster = _leaving("2")
    cluster.machine("idle")
    late = START + LONGEST_DRAIN_AWAITED
    assert not decide(cluster.problem(now=late - timedelta(seconds=1))).commands
    assert [command.retire for command in decide(cluster.problem(now=late)).commands] == [("claim-idle",)]


def test_room_that_a_pod_of_a_leaving_node_needs_is_no_room_for_pods_that_move() -> None:
    """One node for the others would save nothing: the pod that leaves would need another (Karpenter: pods of deleting
    nodes are part of each simulation).
    """
    cluster = _leaving("2500m")
    for name in "ab":
        cluster.machine(name, [on(f"p-{name}", name, cpu="1")])
    assert not decide(cluster.problem()).commands


def test_room_that_a_command_counts_on_is_no_room_for_the_next_one() -> None:
    """Its node goes once what was bought for another pod of it is ready, and this pod has its place on one of them."""
    cluster = _cluster()
    record = CommandRecord(
        id="c", reason=DisruptionReason.DRIFTED, started=START, deadline=START, candidates=("claim-old",),
        replacements=("new",),
    )  # fmt: skip
    mark = {DISRUPTION_COMMAND: encoded(record)}
    cluster.machine("old", [on("fits", "old", cpu="2500m"), on("bought-for", "old", cpu="1300m")], annotations=mark)
    link = {REPLACES: encoded(Replaces("c", ("claim-old",))), PLANNED_PODS: json.dumps(["default/bought-for"])}
    cluster.claims.append(builders.node_claim("new", conditions=["Launched"], annotations=link))
    for name in "ab":
        cluster.machine(name, [on(f"p-{name}", name, cpu="1")])
    assert not decide(cluster.problem()).commands


def test_a_workload_whose_rate_is_used_up_keeps_its_own_node_alone() -> None:
    """The nodes that would have shared a purchase with it go without it."""
    small = builders.instance_type("m7a.large", price=0.20, spot=None)
    cluster = Cluster(pools=[builders.node_pool(budgets=[{"nodes": "100%"}])], types=(TYPE, small))
    never = {"joinery.dev/eviction-rate": "0 pods per 1h"}
    for name in ("m", "n"):
        cluster.machine(name, [on(f"p-{name}", name, cpu="300m", owner="other-1")])
    cluster.machine("x", [on("p-x", "x", cpu="300m", annotations=never)])
    decision = decide(cluster.problem())
    assert {name for command in decision.commands for name in command.retire} == {"claim-m", "claim-n"}
    assert [held.objection.code for held in decision.staying if held.node_claim == "claim-x"] == [
        ObjectionCode.POD_DISRUPTION_BUDGET
    ]
