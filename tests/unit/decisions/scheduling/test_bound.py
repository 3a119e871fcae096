"""The proven bound of a plan: below whatever anyone could pay,
also where a pod may not or need not follow the weights of pools.
"""

from dataclasses import replace
from itertools import count
from typing import Any

import msgspec
import pytest

from joinery.decisions.scheduling.packing import Packing
from joinery.decisions.scheduling.problem import Options, Problem
from joinery.decisions.scheduling.solve import solve, solve_unproven
from joinery.decisions.verification.verify import verify
from joinery.objects.karpenter.labels import CAPACITY_TYPE, HOSTNAME, ZONE
from simulator.builders import ZONES, instance_type, node, node_pool, pod
from tests.unit.decisions.verification.plans import problem
from tools.bench.small_plans import problem as small_plan

CHEAP, DEAR = instance_type("c7a.large", price=0.1, spot=None), instance_type("m7a.large", price=1.0, spot=None)
HEAVY = node_pool("heavy", weight=10, requirements=["node.kubernetes.io/instance-type=m7a.large"])
LIGHT = node_pool("light", labels={"tier": "light"}, requirements=["node.kubernetes.io/instance-type=c7a.large"])
REPELLING = node_pool(
    "heavy",
    weight=10,
    requirements=["node.kubernetes.io/instance-type=m7a.large"],
    taints=[{"key": "rare", "effect": "PreferNoSchedule"}],
)


def _expression(operator: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": "tier", "operator": operator, "values": ["light"]}]}


PREFERS_LIGHT = {
    "nodeAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": _expression("In")}]
    }
}
LIGHT_OR_OTHER = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [_expression("In"), _expression("NotIn")]
        }
    }
}
TERM = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": HOSTNAME}
BESIDE_A = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}}
RATHER_BESIDE_A = {
    "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": TERM}]}
}
A = pod("a", labels={"app": "a"}, node_selector={"tier": "light"})


def _world(*objects: Any) -> Problem:
    return problem(*objects, types=(CHEAP, DEAR))


LIGHT_FOR_A_REASON = {
    "a preference": _world(HEAVY, LIGHT, pod("b", affinity=PREFERS_LIGHT)),
    "a taint that only repels": _world(REPELLING, LIGHT, pod("b")),
    "a pod that it must join": _world(HEAVY, LIGHT, A, pod("b", affinity=BESIDE_A)),
    "a pod that it would rather join": _world(HEAVY, LIGHT, A, pod("b", affinity=RATHER_BESIDE_A)),
    "a choice of terms": _world(HEAVY, LIGHT, pod("b", affinity=LIGHT_OR_OTHER)),
}


@pytest.mark.parametrize("why", LIGHT_FOR_A_REASON)
def test_the_bound_holds_for_pods_that_go_to_a_lighter_pool_with_reason(why: str) -> None:
    """The dear pool of higher weight could have taken each of these pods, and the plan is right not to use it."""
    asked = LIGHT_FOR_A_REASON[why]
    plan = solve(asked)
    assert verify(asked, plan) == ()
    assert plan.hourly == pytest.approx(0.1)
    assert 0 < plan.lower_bound <= plan.hourly + 1e-9


def test_the_bound_counts_on_the_pool_of_higher_weight_where_nothing_speaks_against_it() -> None:
    """A pod that the dear pool takes is bought for there, and the bound says that nothing cheaper was allowed."""
    plan = solve(_world(HEAVY, LIGHT, pod("b", cpu="1900m")))
    assert plan.hourly == pytest.approx(1.0)
    assert plan.lower_bound > 0.9


def test_room_that_is_left_on_nodes_lowers_the_bound() -> None:
    """What two pods could still share with existing pods need not be bought, as far as the bound is concerned."""
    pods = [pod(f"p{number}", cpu="1200m") for number in range(3)]
    alone = solve(_world(LIGHT, *pods))
    beside = solve(_world(LIGHT, node("n", cpu="2", instance_type="c7a.large", node_pool="light"), *pods))
    assert sum(len(placed.pods) for placed in beside.existing) == 1
    assert 0 < beside.lower_bound < alone.lower_bound


def test_what_is_proven_of_a_plan_changes_nothing_of_it() -> None:
    """It is acted upon before, for a proof takes time."""
    world = _world(LIGHT, pod("b"))
    bounded, unproven = solve(world), solve_unproven(world)
    assert bounded.lower_bound > 0
    assert unproven.packing == bounded.without_proof()
    assert unproven.prove() == bounded


def test_nothing_launched_has_a_bound_of_nothing() -> None:
    """Without launches there is neither a bound nor a gap."""
    plan = solve(_world(LIGHT, node("n", node_pool="light"), pod("p")))
    assert (plan.hourly, plan.lower_bound, plan.gap) == (0.0, 0.0, 0.0)


MEDIUM, LARGE, HUGE = (
    instance_type(f"m7a.{size}", price=price, spot=0.5, zones=ZONES)
    for size, price in (("medium", 0.05), ("large", 0.1), ("xlarge", 0.2))
)
SPREAD = {"maxSkew": 1, "labelSelector": {"matchLabels": {"app": "web"}}}


def _planned(*objects: Any, **ruled: Any) -> Packing:
    """A plan for three pods with a rule, and whatever else there is; of nodes that hold one, three or seven of them."""
    pods = [pod(f"web-{i}", cpu="500m", memory="64Mi", labels={"app": "web"}, **ruled) for i in range(3)]
    asked = problem(
        *(objects or (node_pool(requirements=[BOUGHT]),)), *pods, types=(MEDIUM, LARGE, HUGE), options=CHEAPEST
    )
    plan = solve(asked)
    assert verify(asked, plan) == ()
    assert not plan.unplaced
    return plan


BOUGHT = f"{CAPACITY_TYPE}=on-demand"
CHEAPEST = Options(only_marked_unschedulable=False, node_size="cheapest", spot_types=0)
ZONE_TERM = {"labelSelector": SPREAD["labelSelector"], "topologyKey": ZONE}
APART = {"requiredDuringSchedulingIgnoredDuringExecution": [ZONE_TERM]}
EXACT: dict[str, dict[str, Any]] = {
    "nothing": {},
    "a spread over zones": {"spread": [{**SPREAD, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}]},
    "a spread over hosts": {"spread": [{**SPREAD, "topologyKey": HOSTNAME, "whenUnsatisfiable": "DoNotSchedule"}]},
    "anti-affinity over zones": {"affinity": {"podAntiAffinity": APART}},
    "a host port": {"init_containers": [{"name": "d", "restartPolicy": "Always", "ports": [{"hostPort": 80}]}]},
}


@pytest.mark.parametrize("rule", EXACT)
def test_where_nothing_cheaper_is_possible_the_bound_says_so(rule: str) -> None:
    """Whole nodes count, and so do rules over zones and hosts."""
    plan = _planned(**EXACT[rule])
    assert plan.lower_bound == pytest.approx(plan.hourly, rel=1e-6)
    assert plan.weaknesses == ()


def test_a_spread_over_capacity_types_counts() -> None:
    """Of three pods one at least is on demand, though spot costs half of it."""
    spread = [{**SPREAD, "topologyKey": CAPACITY_TYPE, "whenUnsatisfiable": "DoNotSchedule"}]
    plan = _planned(node_pool(requirements=[f"{CAPACITY_TYPE}=spot,on-demand"]), spread=spread)
    assert plan.lower_bound == pytest.approx(plan.hourly, rel=1e-6)


def test_a_limit_of_nodes_counts() -> None:
    """Where one node is allowed it must hold all: three small ones are no cheaper plan."""
    plan = _planned(node_pool(requirements=[BOUGHT], limits={"nodes": "1"}))
    assert plan.lower_bound == pytest.approx(plan.hourly, rel=1e-6)


def test_what_kept_preferences_cost_has_a_bound_of_its_own() -> None:
    """Nothing is cheaper with them; without them one node would do."""
    spread = [{**SPREAD, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"}]
    plan = _planned(spread=spread)
    assert plan.lower_bound < plan.hourly - 0.01
    assert plan.kept_bound == pytest.approx(plan.hourly, rel=1e-6)
    assert plan.kept_gap == pytest.approx(0, abs=1e-6)
    assert plan.weaknesses == ()


def _beside(app: str) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": HOSTNAME}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


DEAR_AND_LARGE = instance_type("m7a.4xlarge", price=9.0, spot=None, zones=ZONES)


def test_a_bound_for_which_there_was_no_time_holds_and_says_so() -> None:
    """Nothing is proven after the time limit but what takes no time, and a plan that looks dear by it tells why."""
    pods = [pod(f"web-{number}", cpu="1100m", memory="64Mi") for number in range(3)]
    asked = problem(node_pool(requirements=[BOUGHT]), *pods, types=(LARGE,), options=CHEAPEST)
    proven = solve(asked)
    plan = solve(replace(asked, options=replace(CHEAPEST, time_limit=1.0)), stopwatch=lambda: 1.0)
    assert verify(asked, plan) == ()
    assert 0 < plan.lower_bound < proven.lower_bound <= proven.hourly
    assert "the time limit struck before a better one was proven" in plan.weaknesses
    assert proven.weaknesses == ()


def test_a_plan_of_many_classes_has_bounds_however_late_it_is() -> None:
    """That with what it keeps too, which is most of the difference where that is dear."""
    wish = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {"matchExpressions": [
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m7a.4xlarge"]}]}}]}  # fmt: skip
    pods = [
        pod(f"web-{number}", cpu=f"{number}m", memory="8Mi", affinity={"nodeAffinity": wish})
        for number in range(1, 311)
    ]
    asked = problem(node_pool(), *pods, types=(LARGE, DEAR_AND_LARGE), options=replace(CHEAPEST, time_limit=1.0))
    plan = solve(asked, stopwatch=count(start=1, step=0.001).__next__)
    assert plan.limit_struck
    assert verify(asked, plan) == ()
    assert 0 < plan.lower_bound < plan.kept_bound <= plan.hourly


def test_a_bound_that_is_weak_says_why() -> None:
    """Pods that must be on a host with others are more than the proof knows of."""
    others = [pod(f"web-{i}", cpu="1500m", memory="64Mi", labels={"app": "web"}) for i in range(2)]
    pods = [pod(f"side-{i}", cpu="1500m", memory="64Mi", affinity=_beside("web")) for i in range(9)]
    plan = solve(problem(node_pool(), *others, *pods, types=(LARGE, DEAR_AND_LARGE), options=CHEAPEST))
    assert plan.hourly >= 9.0
    assert "pods that must be beside others count as if they might be anywhere" in plan.weaknesses


def test_pods_that_must_all_share_one_host_count_as_one_large_pod() -> None:
    """Small nodes would be cheaper, and hold a few of them each."""
    pods = [
        pod(f"web-{i}", cpu="1500m", memory="64Mi", labels={"app": "web"}, affinity=_beside("web")) for i in range(5)
    ]
    plan = solve(problem(node_pool(), *pods, types=(LARGE, DEAR_AND_LARGE), options=CHEAPEST))
    assert plan.hourly == pytest.approx(9.0)
    assert plan.lower_bound == pytest.approx(9.0, rel=1e-6)


def test_pods_of_which_a_spread_counts_some_stay_single() -> None:
    """They share one host all the same, and the bound holds."""
    spread = [{**SPREAD, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "maxSkew": 5}]
    pods = [
        pod(f"web-{i}", cpu="1500m", memory="64Mi", labels={"app": "web"}, affinity=_beside("web"), spread=spread)
        for i in range(5)
    ]
    plan = solve(problem(node_pool(), *pods, types=(LARGE, DEAR_AND_LARGE), options=CHEAPEST))
    assert 0 < plan.lower_bound <= plan.hourly + 1e-9


@pytest.mark.parametrize("count", [12, 35, 60])
@pytest.mark.parametrize("seed", [0, 1])
def test_nodes_of_pods_that_share_a_host_are_packed_as_well_as_others(count: int, seed: int) -> None:
    """Such pods keep together, and what is beside them is chosen anew. First-fit's nodes were up to a third dearer."""
    asked = small_plan("affinity over hosts", count, seed)
    plan = solve(asked)
    assert verify(asked, plan) == ()
    assert plan.kept_gap < 0.02


def test_a_plan_that_reads_a_rule_differently_is_not_refuted() -> None:
    """Whatever happens, no bound is above the price of a plan that the check agrees with."""
    running = node("n", cpu="4", zone=ZONES[0])
    there = [pod(f"old-{i}", cpu="10m", node="n", labels={"app": "web"}) for i in range(3)]
    spread = [{**SPREAD, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}]
    plan = _planned(node_pool(requirements=[BOUGHT]), running, *there, spread=spread)
    assert 0 < plan.lower_bound <= plan.hourly + 1e-9


@pytest.mark.parametrize("rule", ["a spread over hosts", "a host port"])
def test_room_that_others_keep_pods_out_of_does_not_lower_the_bound(rule: str) -> None:
    """A node that exists takes one of the three, and could hold all: the other two are bought for all the same."""
    there = node("n", cpu="8", memory="16Gi", zone=ZONES[0])
    plan = _planned(node_pool(requirements=[BOUGHT]), there, **EXACT[rule])
    assert sum(len(placed.pods) for placed in plan.existing) == 1
    assert plan.lower_bound == pytest.approx(plan.hourly, rel=1e-6)


@pytest.mark.parametrize("kind", ["zones apart", "of everything"])
def test_names_do_not_matter(kind: str) -> None:
    """The same pods by other names have the same bounds."""
    asked = small_plan(kind, 8, seed=2)
    named = [
        msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, name=f"z{100 - i}"))
        for i, pod in enumerate(asked.snapshot.pods)
    ]
    other = solve(replace(asked, snapshot=replace(asked.snapshot, pods=tuple(named))))
    plan = solve(asked)
    assert other.lower_bound == pytest.approx(plan.lower_bound, rel=1e-6)
    assert other.kept_bound == pytest.approx(plan.kept_bound, rel=1e-6)
