"""Clusters in which rules and reasons come together as they seldom do: decisions are right all the same."""

from typing import Any

import pytest
from msgspec.structs import replace

from joinery.decisions.disruption.candidates import candidates
from joinery.decisions.disruption.consolidation.model import hourly
from joinery.decisions.disruption.decide import decide
from joinery.decisions.disruption.decision import DisruptionDecision
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.decisions.disruption.validation.verified import violations_of
from joinery.objects.karpenter.labels import HOSTNAME, NODE_POOL, ZONE
from joinery.objects.kubernetes.core import PersistentVolume, VolumeNodeAffinity
from joinery.objects.objections import ObjectionCode
from simulator import builders
from simulator.builders.defaults import as_struct
from tests.unit.decisions.disruption.clusters import Cluster, annotated, on

#: 4 vCPUs and 16 GiB for $0.40/h, and half of that for half the price.
LARGE = builders.instance_type("m7a.xlarge", price=0.40, spot=None)
SMALL = builders.instance_type("m7a.large", price=0.20, spot=None)


def _cluster(*types: Any, **pool: Any) -> Cluster:
    return Cluster(pools=[builders.node_pool(**{"budgets": [{"nodes": "100%"}], **pool})], types=types or (LARGE,))


def _assert_right(problem: DisruptionProblem, decision: DisruptionDecision) -> None:
    """Each command by itself and all of them together keep every rule, and nothing is cheaper than the bound."""
    assert not violations_of(problem.packing, decision.commands)
    assert not any(violations_of(problem.packing, [command]) for command in decision.commands)
    judged = {candidate.claim.metadata.name: candidate for candidate in candidates(problem).candidates}
    moves = sum(hourly(judged[name]) for command in decision.commands for name in command.retire)
    assert decision.lower_bound <= decision.after + moves + 1e-6


def test_a_spread_over_hosts_may_count_only_pods_that_are_nowhere() -> None:
    """It then limits nobody."""
    spread = [
        {
            "topologyKey": "kubernetes.io/hostname",
            "maxSkew": 1,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "another"}},
        }
    ]
    cluster = _cluster()
    for name in ("a", "b"):
        cluster.machine(name, [on(f"p-{name}", name, cpu="1", labels={"app": "web"}, spread=spread)])
    problem = cluster.problem()
    decision = decide(problem)
    assert len(decision.commands) == 1
    _assert_right(problem, decision)


def test_the_bound_counts_no_penalty_for_a_drifted_node_that_cannot_go() -> None:
    """Its pod fits on nothing that can be bought, so no state without the node can be reached."""
    cluster = _cluster(SMALL, LARGE, requirements=["node.kubernetes.io/instance-type=m7a.large"])
    cluster.machine("n", [on("p", cpu="3")], drifted=True)
    problem = cluster.problem()
    decision = decide(problem)
    assert not decision.commands
    _assert_right(problem, decision)


def _destinations(decision: DisruptionDecision) -> set[str]:
    return {placement.node for command in decision.commands for placement in command.existing}


def test_pods_that_tolerate_everything_do_not_move_to_nodes_that_may_not_receive() -> None:
    """A closed node has a taint, which they tolerate too; it may never become ready."""
    cluster = _cluster(SMALL, LARGE)
    cluster.machine("coming", node={"initialized": False})
    cluster.machine("n", [on("p", cpu="1", tolerations=[{"operator": "Exists"}])])
    assert not _destinations(decide(cluster.problem()))


def test_pods_do_not_move_to_a_claim_whose_node_is_on_its_way() -> None:
    """Nobody knows whether it comes."""
    cluster = _cluster(SMALL, LARGE)
    cluster.claims.append(builders.node_claim("claim-coming", conditions=["Launched"]))
    cluster.machine("n", [on("p", cpu="1")])
    assert not _destinations(decide(cluster.problem()))


def _retired(decision: DisruptionDecision) -> set[str]:
    return {name for command in decision.commands for name in command.retire}


def test_a_smaller_plan_is_compared_over_the_time_that_the_nodepool_waits_for_its_money() -> None:
    """Both nodes for a small one is more than the budget; one of them saves $0.40/h for one move of $1 a day."""
    cluster = _cluster(SMALL, LARGE, budgets=[{"nodes": "1"}])
    cluster.pools = [annotated(cluster.pools[0], {"joinery.dev/payback": "24h"})]
    for name in ("a", "b"):
        cluster.machine(name, [on(f"p-{name}", name, cpu="900m")])
    assert len(_retired(decide(cluster.problem(move_price=1.0)))) == 1


def test_a_drifted_node_goes_although_the_plan_without_it_looks_cheaper() -> None:
    """Beside it a spot node may not be replaced, so a plan that buys nothing is looked at too."""
    both = builders.instance_type("m7a.xlarge", price=0.40, spot=0.4), builders.instance_type("m7a.large", price=0.20)
    cluster = _cluster(*both)
    on_demand = ["karpenter.sh/capacity-type=on-demand"]
    cluster.pools.append(builders.node_pool("steady", requirements=on_demand, budgets=[{"nodes": "100%"}]))
    cluster.machine("spot", [on("p", "spot", cpu="1")], capacity_type="spot")
    cluster.machine(
        "drifted",
        [on("q", "drifted", cpu="3", memory="12Gi", node_selector={NODE_POOL: "steady"})],
        pool="steady",
        drifted=True,
    )
    assert "claim-drifted" in _retired(decide(cluster.problem(move_price=0.05)))


def test_a_drifted_node_goes_whatever_its_moves_count_as() -> None:
    """Its pod has a price of its own, which a few cents an hour never repay."""
    cluster = _cluster()
    cluster.machine("n", [on("p", cpu="3", annotations={"joinery.dev/disruption-price": "5000"})], drifted=True)
    assert _retired(decide(cluster.problem())) == {"claim-n"}


def test_a_nodepool_that_waits_for_no_money_has_a_decision_in_figures() -> None:
    """Its ordinary nodes stay, its drifted one goes, and the bound is a number."""
    cluster = _cluster(SMALL, LARGE)
    cluster.pools = [annotated(cluster.pools[0], {"joinery.dev/payback": "0s"})]
    cluster.machine("drifted", [on("p", "drifted", cpu="3")], drifted=True)
    cluster.machine("n", [on("q", cpu="1")])
    problem = cluster.problem()
    decision = decide(problem)
    assert _retired(decision) == {"claim-drifted"}
    _assert_right(problem, decision)


def test_the_bound_knows_pods_that_only_the_rules_of_others_count() -> None:
    """The model leaves them in their zone, for the sake of a pod that waits; the core may move them."""
    over_zones = {"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    spread = [{**over_zones, "labelSelector": {"matchLabels": {"app": "web"}}}]
    cluster = _cluster(SMALL, LARGE)
    cluster.machine(
        "n", [on("p", cpu="900m", labels={"app": "web"})], zone=builders.ZONES[0], instance_type="m7a.large"
    )
    stays = on("q", "big", cpu="1", annotations={"karpenter.sh/do-not-disrupt": "true"})
    cluster.machine("big", [stays], zone=builders.ZONES[1])
    cluster.pods.append(builders.pod("waits", cpu="100m", spread=spread, node_selector={ZONE: builders.ZONES[2]}))
    problem = cluster.problem(move_price=0.0)
    assert decide(problem).lower_bound == pytest.approx(0.40)


def test_what_needs_room_under_a_limit_comes_after_what_makes_it() -> None:
    """The first command for its moves would buy a third node where two are allowed; after the other it may."""
    cluster = _cluster(SMALL, LARGE, limits={"nodes": "2"})
    pinned = on("pinned", "far", cpu="1", node_selector={ZONE: builders.ZONES[2]})
    cluster.machine("far", [pinned], zone=builders.ZONES[2])
    cluster.machine("crowd", [on(f"p{number}", "crowd", cpu="500m") for number in range(3)])
    stays = on("q", "room", cpu="1", annotations={"karpenter.sh/do-not-disrupt": "true"})
    cluster.machine("room", [stays])
    problem = cluster.problem()
    decision = decide(problem)
    assert [command.retire for command in decision.commands] == [("claim-crowd",), ("claim-far",)]
    for prefix in (1, 2):
        assert not violations_of(problem.packing, decision.commands[:prefix])


def _on_the_disk_of(host: str) -> PersistentVolume:
    terms = [{"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [host]}]}]
    volume = builders.volume("disk")
    affinity = as_struct({"required": {"nodeSelectorTerms": terms}}, VolumeNodeAffinity)
    return replace(volume, spec=replace(volume.spec, csi=None, local={"path": "/data"}, node_affinity=affinity))


def test_an_ephemeral_volume_on_its_disk_keeps_no_drifted_node() -> None:
    """It ends with its pod. The next one's is made where that runs."""
    scratch = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "gp3"}}}}
    cluster = _cluster()
    cluster.machine("n", [on("p", cpu="1", volumes=[scratch])], drifted=True)
    cluster.more = {
        "volumes": (_on_the_disk_of("n"),),
        "volume_claims": (builders.volume_claim("p-scratch", volume="disk"),),
        "storage_classes": (builders.storage_class(),),
    }
    problem = cluster.problem()
    decision = decide(problem)
    assert [command.retire for command in decision.commands] == [("claim-n",)]
    _assert_right(problem, decision)


def test_without_a_free_volume_for_the_next_one_it_keeps_its_node() -> None:
    """Where nobody makes volumes, a pod that moves needs one that is free; one on another node will do."""
    scratch = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "local"}}}}
    cluster = _cluster()
    cluster.machine("n", [on("p", cpu="1", volumes=[scratch])], drifted=True)
    cluster.machine("other", [on("q", "other", cpu="2")])
    local = builders.storage_class("local", provisioner="kubernetes.io/no-provisioner")
    bound, free = _on_the_disk_of("n"), _on_the_disk_of("other")
    free = replace(
        free, metadata=replace(free.metadata, name="free"), spec=replace(free.spec, storage_class_name="local")
    )
    claim = builders.volume_claim("p-scratch", volume="disk", storage_class="local")
    for volumes, gone in (((bound,), []), ((bound, free), [("claim-n",)])):
        cluster.more = {"volumes": volumes, "volume_claims": (claim,), "storage_classes": (local,)}
        drifted = [c for c in decide(cluster.problem()).commands if "claim-n" in c.retire]
        assert [command.retire for command in drifted] == gone


def test_a_drifted_node_stays_for_a_pod_whose_volume_is_its_disk() -> None:
    """With the node the data would go, and the pod would wait for a volume of a host that is no more."""
    cluster = _cluster()
    cluster.machine("n", [on("p", cpu="1", volumes=["data"])], drifted=True)
    cluster.more = {"volumes": (_on_the_disk_of("n"),), "volume_claims": (builders.volume_claim(volume="disk"),)}
    decision = decide(cluster.problem())
    assert not decision.commands
    assert [(held.node_claim, held.objection.code) for held in decision.staying] == [
        ("claim-n", ObjectionCode.NO_PLACE)
    ]
