"""Nodes of NodePools with weights and limits are packed anew too: heavier pools are used as far as their limits go, and
for no more money than need be.
"""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given

from joinery.decisions.scheduling.packing import Launch, Packing
from joinery.decisions.scheduling.problem import Options
from joinery.decisions.scheduling.solve import solve
from joinery.decisions.verification.verify import verify
from joinery.objects.kubernetes.quantity import amounts
from simulator.builders import instance_type, node_pool, pod
from tests.properties import examples
from tests.unit.decisions.scheduling.worlds import World, weighted_pools, worlds
from tests.unit.decisions.verification.plans import problem
from tools.bench.small_plans import problem as small_plan

PENNY = 1e-7
CHEAPEST = Options(only_marked_unschedulable=False, node_size="cheapest", spot_types=0)
TYPES = tuple(
    instance_type(f"m7a.{size}", price=price, spot=None)
    for size, price in (("large", 0.1), ("xlarge", 0.2), ("2xlarge", 0.4), ("4xlarge", 0.8))
)


def _by_pool(plan: Packing) -> Counter[str]:
    """How many pods are on new nodes of each pool."""
    return Counter(one.node_pool for one in plan.launches for _ in one.pods)


def test_a_node_that_a_limit_allows_is_as_large_as_saves_a_lighter_one() -> None:
    """First-fit's one node grew while it was good value, and a pod was left for the lighter pool."""
    heavy = node_pool("heavy", weight=10, limits={"nodes": "1"})
    pods = [pod(f"p{i}", cpu=cpu, memory="1Gi") for i, cpu in enumerate(("3200m", "3200m", "1200m"))]
    asked = problem(heavy, node_pool("light"), *pods, types=TYPES, options=CHEAPEST)
    plan = solve(asked)
    assert verify(asked, plan) == ()
    assert _by_pool(plan) == {"heavy": 3}
    assert plan.hourly <= solve(replace(asked, options=replace(CHEAPEST, first_fit_only=True))).hourly + PENNY
    assert plan.kept_bound == pytest.approx(plan.hourly, rel=1e-6)


@pytest.mark.parametrize(("count", "seed"), [(8, 0), (8, 1), (20, 0), (20, 1), (60, 1)])
def test_plans_of_pools_with_weights_and_limits_are_nearly_the_cheapest(count: int, seed: int) -> None:
    """With the weights that they keep. Nodes that stayed as first-fit made them were up to a fifth dearer."""
    asked = small_plan("weights and limits", count, seed)
    plan = solve(asked)
    assert verify(asked, plan) == ()
    assert plan.kept_gap < 0.05


@examples(60)
@given(worlds(most=5, copies=4, rules=("none",), pools=weighted_pools()))
def test_heavier_pools_hold_no_fewer_pods_than_first_fit_gave_them_and_nothing_is_dearer(world: World) -> None:
    """And no pod is in a lighter pool for which a node of the heavier one is left within its limits."""
    asked = replace(world.problem, options=CHEAPEST)
    plan, alone = solve(asked), solve(replace(asked, options=replace(CHEAPEST, first_fit_only=True)))
    assert verify(asked, plan) == ()
    if not alone.unplaced:
        assert plan.hourly <= alone.hourly + PENNY
        held, at_first = _by_pool(plan), _by_pool(alone)
        assert held["heavy"] >= at_first["heavy"]
        assert held["heavy"] + held["middle"] >= at_first["heavy"] + at_first["middle"]
    assert [one.name for one in plan.launches if _passes_over(world, plan, one)] == []


def _passes_over(world: World, plan: Packing, one: Launch) -> bool:
    """Whether a node of a heavier pool, within its limits, would hold one of the launch's pods."""
    weights = {pool.metadata.name: pool.spec.weight or 0 for pool in world.pools}
    kinds = {kind.name: kind for kind in world.types}
    for pool in world.pools:
        name = pool.metadata.name
        if weights[name] <= weights[one.node_pool]:
            continue
        rooms = world.rooms if pool is world.pools[0] else ()
        types = [other.offering.instance_type for other in plan.launches if other.node_pool == name]
        bought = [kinds[kind].capacity["cpu"] for kind in types]
        limits = amounts(pool.spec.limits)
        cpu = limits.get("cpu", 1 << 40) - sum(bought) - sum(1000 * cores for cores, _ in rooms)
        is_open = len(bought) + len(rooms) < limits.get("nodes", 1 << 40)
        allowed = [kinds[kind] for kind in pool.spec.template.spec.requirements[0].values]
        within = [kind for kind in allowed if kind.capacity["cpu"] <= cpu and is_open]
        if any(world.fits(world.wish(key), kind) for key in one.pods for kind in within):
            return True
    return False
