"""Pods that wait and have room on nodes that are there count as if they were bound."""

from joinery.disruption.decide import decide
from joinery.disruption.disruptions import HeldCode
from simulator import builders
from tests.unit.disruption.clusters import Cluster, on

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
    (held,) = decision.held
    assert (held.node_claim, held.code) == ("claim-idle", HeldCode.NOMINATED)
    assert "default/late" in held.message


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
    assert [held.code for held in decision.held if held.node_claim == "claim-x"] == [HeldCode.POD_DISRUPTION_BUDGET]
