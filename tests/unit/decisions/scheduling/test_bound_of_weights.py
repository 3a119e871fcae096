"""NodePools with weights and limits: whether a pod may pass over a heavier pool is open, so the bound lets all of them;
a second one keeps each pod in pools as heavy as those that the plan uses.
"""

from typing import Any

import pytest
from hypothesis import given

from joinery.decisions.scheduling.packing import Packing
from joinery.decisions.scheduling.problem import Problem
from joinery.decisions.scheduling.solve import solve
from joinery.decisions.verification.verify import verify
from joinery.objects.karpenter.labels import ARCH, INSTANCE_TYPE
from simulator.builders import instance_type, node_pool, pod
from tests.properties import examples
from tests.unit.decisions.scheduling.worlds import Exhaustive, World, weighted_pools, worlds
from tests.unit.decisions.verification.plans import launch, packing, problem

PENNY = 1e-7
DEAR = instance_type("m7a.large", price=1.0, spot=None)
DEAR_AND_LARGE = instance_type("m7a.16xlarge", price=32.0, spot=None)
CHEAP = instance_type("c7a.xlarge", price=0.1, spot=None)
ON_ARM = (
    instance_type("m7g.large", price=1.0, spot=None, arch="arm64"),
    instance_type("c7g.xlarge", price=0.1, spot=None, arch="arm64"),
)
TYPES = (DEAR, DEAR_AND_LARGE, CHEAP, *ON_ARM)


def _pools(**limits: str) -> list[Any]:
    """A dear pool of higher weight, and a cheap one; both have nodes of either architecture."""
    return [
        node_pool(
            "heavy", weight=10, limits=limits, requirements=[f"{INSTANCE_TYPE}=m7a.large,m7a.16xlarge,m7g.large"]
        ),
        node_pool("light", requirements=[f"{INSTANCE_TYPE}=c7a.xlarge,c7g.xlarge"]),
    ]


def _asked(count: int, **limits: str) -> Problem:
    return problem(*_pools(**limits), *(pod(f"p{i}", cpu="1200m") for i in range(count)), types=TYPES)


def _by_pool(plan: Packing) -> dict[str, int]:
    pools = [one.node_pool for one in plan.launches]
    return {name: pools.count(name) for name in sorted(set(pools))}


@examples(60)
@given(worlds(most=5, copies=2, rules=("none", "zones"), pools=weighted_pools()).filter(lambda w: len(w.wishes) <= 5))
def test_bounds_and_optima_come_in_order_with_weights_and_without(world: World) -> None:
    """No proof claims more than the best nodes cost, be it any nodes or those that keep the plan's weights."""
    plan = solve(world.problem)
    assert verify(world.problem, plan) == ()
    assert 0 <= plan.lower_bound <= Exhaustive(world, plan).least() + PENNY
    least = Exhaustive(world, plan, keeps_weights=True).least()
    assert plan.lower_bound <= plan.kept_bound <= least + PENNY
    assert least <= plan.hourly + PENNY


@pytest.mark.parametrize("limits", [{"cpu": "64"}, {"memory": "32Gi"}, {"nodes": "4"}])
def test_a_plan_in_a_dear_pool_of_higher_weight_is_proven_with_weights_kept(limits: dict[str, str]) -> None:
    """Without them a tenth of its price would do, and nobody is told that the bound is weak."""
    plan = solve(_asked(3, **limits))
    assert _by_pool(plan) == {"heavy": 3}
    assert plan.lower_bound < 0.2
    assert plan.kept_bound == pytest.approx(plan.hourly, rel=1e-6)
    assert plan.weaknesses == ()


def test_pods_of_a_class_that_a_limit_divides_are_kept_by_number() -> None:
    """Two of them are in the heavier pool, and three of their like where it is cheap: the bound knows how many."""
    plan = solve(_asked(5, cpu="4"))
    assert _by_pool(plan) == {"heavy": 2, "light": 1}
    assert plan.hourly == pytest.approx(2.1)
    assert plan.kept_bound == pytest.approx(plan.hourly, rel=1e-6)


def test_a_right_plan_may_leave_a_heavier_pool_half_empty_which_the_bound_allows() -> None:
    """Karpenter charges the limit with the largest type that the first pod's node may become. Then nothing is left of
    it, though the node is small, and the other pod, which cannot join it, is bought for in the lighter pool.
    """
    pods = [pod(f"p{i}", cpu="1200m", node_selector={ARCH: arch}) for i, arch in enumerate(("amd64", "arm64"))]
    asked = problem(*_pools(cpu="64"), *pods, types=TYPES)
    other = packing(
        launch(asked, "default/p0", name="heavy-1", pool="heavy", types=("m7a.large", "m7a.16xlarge")),
        launch(asked, "default/p1", name="light-1", pool="light", kind="c7g.xlarge"),
    )
    assert verify(asked, other) == ()
    assert solve(asked).lower_bound <= other.hourly


def test_the_bound_knows_weights_where_a_heavier_pool_takes_every_pod() -> None:
    """Then nobody opens a node of the lighter pool, though more pods would fit it than a node of the heavier one."""
    heavy = node_pool("heavy", weight=10, requirements=[f"{INSTANCE_TYPE}=m7a.large"])
    light = node_pool("light", requirements=[f"{INSTANCE_TYPE}=c7a.xlarge"])
    pods = [pod(f"p{i}", cpu="1200m") for i in range(3)]
    plan = solve(problem(heavy, light, *pods, types=TYPES))
    assert plan.hourly == pytest.approx(3.0)
    assert plan.lower_bound == pytest.approx(plan.hourly, rel=1e-6)


def test_a_pod_that_only_the_lighter_pool_takes_may_bring_others_along() -> None:
    """Its node has room for them, and Karpenter puts pods on nodes that it is buying already."""
    heavy = node_pool("heavy", weight=10, requirements=[f"{INSTANCE_TYPE}=m7a.large,m7a.16xlarge"])
    light = node_pool("light", requirements=[f"{INSTANCE_TYPE}=c7a.xlarge"])
    tied = pod("tied", cpu="1200m", node_selector={INSTANCE_TYPE: "c7a.xlarge"})
    asked = problem(heavy, light, tied, pod("free", cpu="1200m"), types=TYPES)
    other = packing(launch(asked, "default/tied", "default/free", name="light-1", pool="light", kind="c7a.xlarge"))
    assert verify(asked, other) == ()
    plan = solve(asked)
    assert plan.lower_bound <= other.hourly
    assert plan.kept_bound == pytest.approx(plan.hourly, rel=1e-6)


def test_plans_of_hundreds_of_pods_have_a_bound_with_weights_kept() -> None:
    """A tenth of the price would do without them."""
    plan = solve(_asked(240, cpu="9000"))
    assert plan.lower_bound < plan.hourly / 5
    assert plan.kept_bound > plan.hourly * 0.9


@pytest.mark.parametrize("count", [3, 240])
def test_what_weights_cost_and_what_preferences_cost_are_two_figures(count: int) -> None:
    """Pods prefer the dear one of two architectures, in a dear NodePool that is used first."""
    types = (
        instance_type("m7a.large", price=1.0, spot=None),
        instance_type("m7g.large", price=0.8, spot=None, arch="arm64"),
        CHEAP,
        ON_ARM[1],
    )
    preference = {"matchExpressions": [{"key": ARCH, "operator": "In", "values": ["amd64"]}]}
    soft = {
        "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": preference}]}
    }
    pods = [pod(f"p{i}", cpu="1200m", affinity=soft) for i in range(count)]
    plan = solve(problem(*_pools(cpu="9000"), *pods, types=types))
    assert plan.hourly == pytest.approx(count)
    assert {kept.value: cost / count for kept, cost in plan.kept.items()} == pytest.approx(
        {"weights": 0.7, "preferences": 0.2}, abs=0.1
    )
    assert plan.lower_bound + sum(plan.kept.values()) == pytest.approx(plan.kept_bound)
