"""Optimised plans: between their proven bound and first-fit's price, right by every rule, and the same every time."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import count
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinery.decisions.scheduling.firstfit.firstfit import FirstFit
from joinery.decisions.scheduling.firstfit.options import FirstFitOptions
from joinery.decisions.scheduling.firstfit.workspace import Workspace
from joinery.decisions.scheduling.packing import Packing
from joinery.decisions.scheduling.problem import Options, Problem
from joinery.decisions.scheduling.solve import solve
from joinery.decisions.verification.verify import verify
from joinery.objects.karpenter.labels import HOSTNAME, INSTANCE_TYPE, ZONE
from joinery.objects.kubernetes.core import Pod
from simulator.builders import daemon_set, instance_type, node, node_pool, pod
from tests.properties import examples
from tests.unit.decisions.scheduling.worlds import Exhaustive, World, shuffled, worlds
from tests.unit.decisions.verification.plans import A, B, C, problem

PENNY = 1e-7
CHEAPEST = Options(only_marked_unschedulable=False, node_size="cheapest", spot_types=0)


def first_fit(asked: Problem, *, smallest_first: bool = False) -> FirstFit:
    """What first-fit alone makes of the problem."""
    packer = FirstFit(Workspace(asked), FirstFitOptions(smallest_first=smallest_first))
    packer.run()
    return packer


def _price(packer: FirstFit) -> float:
    return sum(packer.nodes.opened.price)


@examples(70)
@given(worlds())
def test_bound_optimum_and_plan_come_in_that_order(world: World) -> None:
    """No proof claims more than the best nodes for the launched pods cost, and no plan costs less than those."""
    _assert_in_order(world)


@examples(50)
@given(worlds(most=5, reservations=2))
def test_the_same_holds_where_capacity_is_reserved(world: World) -> None:
    """Reservations are a stock: no proof claims more than its best use costs,
    and no plan has more of it than there is.
    """
    _assert_in_order(world)


def _assert_in_order(world: World) -> None:
    plan = solve(world.problem)
    least = Exhaustive(world, plan).least()
    assert verify(world.problem, plan) == ()
    assert 0 <= plan.lower_bound <= least + PENNY
    assert least <= plan.hourly + PENNY


@examples(30)
@given(worlds(most=4, copies=6, reservations=3), st.integers(0, 99))
def test_what_is_reserved_depends_on_no_order(world: World, seed: int) -> None:
    """One problem and seed give one plan, right by every rule, that costs no more than first-fit's."""
    asked = replace(world.problem, options=replace(CHEAPEST, seed=seed))
    plan, alone = solve(asked), first_fit(asked)
    assert verify(asked, plan) == ()
    assert solve(shuffled(asked, Random(seed))) == plan
    if not alone.left:
        assert not plan.unplaced
        assert plan.hourly <= _price(alone) + PENNY


@examples(30)
@given(worlds(most=4, copies=8))
def test_a_plan_is_right_and_costs_no_more_than_first_fit(world: World) -> None:
    """Of who wants nothing but the cheapest nodes: what first-fit placed is placed for no more,
    and what is not has a reason.
    """
    asked = replace(world.problem, options=CHEAPEST)
    plan, alone = solve(asked), first_fit(asked)
    assert verify(asked, plan) == ()
    assert all(unplaced.reasons for unplaced in plan.unplaced)
    if not alone.left:
        assert not plan.unplaced
        assert plan.hourly <= _price(alone) + PENNY


@examples(30)
@given(worlds(most=4, copies=8), st.integers(0, 99))
def test_one_problem_and_seed_give_one_plan(world: World, seed: int) -> None:
    """Whatever the order of pods, nodes, pools and types."""
    asked = replace(world.problem, options=replace(world.problem.options, seed=seed))
    assert solve(shuffled(asked, Random(seed))) == solve(asked)


#: A core costs the same in all sizes of a family but the largest.
TYPES = tuple(
    instance_type(f"{family}7a.{size}", price=round(price * worth, 3), spot=None)
    for family, price in (("c", 0.045), ("m", 0.055), ("r", 0.07))
    for size, worth in (("large", 2), ("xlarge", 4), ("2xlarge", 8), ("4xlarge", 16), ("8xlarge", 36))
)


def _mix(**given: Any) -> list[Pod]:
    """Pods that need cores and pods that need memory, which go well together: first-fit does not see how well.

    Nine doors may be given a rule of their own.
    """
    return [
        *(pod(f"calculator-{i:02}", cpu="1300m", memory="1Gi", labels={"app": "calculator"}) for i in range(48)),
        *(pod(f"memory-{i:02}", cpu="150m", memory="5Gi", labels={"app": "memory"}) for i in range(48)),
        *(pod(f"door-{i:02}", cpu="600m", memory="700Mi", labels={"app": "door"}, **given) for i in range(9)),
    ]


def _asked(*objects: Any, **options: Any) -> Problem:
    return problem(*objects, types=TYPES, options=replace(CHEAPEST, **options))


DOORS = {"matchLabels": {"app": "door"}}
APART = {"requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": DOORS, "topologyKey": HOSTNAME}]}


def _spread(key: str) -> dict[str, Any]:
    return {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": DOORS}


PORT = {"name": "door", "restartPolicy": "Always", "ports": [{"hostPort": 8080}]}
TAINT = {"key": "rare", "value": "yes", "effect": "NoSchedule"}
RULED = {
    "nothing at all": _asked(node_pool(), *_mix()),
    "anti-affinity over hosts": _asked(node_pool(), *_mix(affinity={"podAntiAffinity": APART})),
    "host ports": _asked(node_pool(), *_mix(init_containers=[PORT])),
    "a spread over hosts": _asked(node_pool(), *_mix(spread=[_spread(HOSTNAME)])),
    "a spread over zones": _asked(node_pool(), *_mix(spread=[_spread(ZONE)])),
    "both spreads": _asked(node_pool(), *_mix(spread=[_spread(ZONE), _spread(HOSTNAME)])),
    "a zone": _asked(node_pool(), *_mix(node_selector={ZONE: B})),
    "a limit of cores": _asked(node_pool(limits={"cpu": "100"}), *_mix()),
    "a limit of nodes": _asked(node_pool(limits={"nodes": "16"}), *_mix()),
    "minimal values": _asked(
        node_pool(requirements=[{"key": INSTANCE_TYPE, "operator": "Exists", "minValues": 2}]), *_mix()
    ),
    "weights": _asked(
        node_pool("heavy", weight=10, taints=[TAINT]), node_pool("light"), *_mix(tolerations=[{"operator": "Exists"}])
    ),
    "daemons": _asked(node_pool(), daemon_set(cpu="300m", memory="1Gi"), *_mix()),
    "nodes with room": _asked(
        node_pool(), node("n-1", cpu="8", memory="16Gi"), node("n-2", cpu="2", memory="30Gi", zone=B), *_mix()
    ),
}


@cache
def _planned(rule: str) -> Packing:
    return solve(RULED[rule])


@pytest.mark.parametrize("rule", RULED)
def test_rules_hold_where_nodes_were_bettered(rule: str) -> None:
    """Under every sort of rule the optimiser finds cheaper nodes than first-fit,
    and verification has nothing against them.
    """
    asked, plan = RULED[rule], _planned(rule)
    assert plan.method == "assignment"
    assert plan.hourly < _price(first_fit(asked)) - PENNY
    assert verify(asked, plan) == ()
    assert not plan.unplaced


@pytest.mark.parametrize("rule", RULED)
def test_ruled_plans_are_near_their_bounds(rule: str) -> None:
    """Whether the bound knows a rule or not, it costs a fifth more at the most."""
    assert 0 <= _planned(rule).gap < 0.2


def _doors_of(plan: Packing) -> list[int]:
    """How many doors each node has, of those that have some."""
    held = [sum("door" in name for name in launch.pods) for launch in plan.launches]
    return [number for number in held if number]


@pytest.mark.parametrize("rule", ["anti-affinity over hosts", "host ports", "a spread over hosts", "both spreads"])
def test_doors_that_keep_apart_have_a_node_each(rule: str) -> None:
    """Nine doors, nine nodes."""
    assert _doors_of(_planned(rule)) == [1] * 9


@pytest.mark.parametrize("rule", ["a spread over zones", "both spreads"])
def test_doors_that_are_spread_stay_spread(rule: str) -> None:
    """Nine doors are three in each zone, as first-fit dealt them out."""
    zones = [launch.offering.zone for launch in _planned(rule).launches for name in launch.pods if "door" in name]
    assert [zones.count(zone) for zone in (A, B, C)] == [3, 3, 3]


def test_limits_are_kept_with_what_each_launch_may_become() -> None:
    """A hundred cores, or sixteen nodes: no more, whichever type of a launch EC2 picks."""
    cores = {kind.name: kind.capacity["cpu"] // 1000 for kind in TYPES}
    launches = _planned("a limit of cores").launches
    assert sum(max(cores[name] for name in launch.instance_types) for launch in launches) <= 160
    assert len(_planned("a limit of nodes").launches) <= 16


def test_room_under_a_limit_that_better_nodes_leave_is_used() -> None:
    """Of nine nodes, first-fit's leave a pod out, whichever pods go first.

    Better ones are fewer: it is bought for too.
    """
    asked = _asked(node_pool(limits={"nodes": "9"}), *_mix())
    plan = solve(asked)
    assert all(first_fit(asked, smallest_first=smallest).left for smallest in (False, True))
    assert verify(asked, plan) == ()
    assert not plan.unplaced
    assert len(plan.launches) <= 9


def _over(after: int) -> Iterator[float]:
    """A stopwatch's readings: over once it was asked so often."""
    return (float(turn >= after) for turn in count())


def _timed(asked: Problem, after: int) -> Packing:
    readings = _over(after)
    return solve(replace(asked, options=replace(asked.options, time_limit=1.0)), stopwatch=lambda: next(readings))


@pytest.mark.parametrize("rule", RULED)
def test_a_stopwatch_that_is_over_at_once_leaves_a_sensible_plan(rule: str) -> None:
    """Every pod has a place, all rules hold, it costs no more than first-fit,
    and the plan says that the limit struck.
    """
    asked = RULED[rule]
    plan = _timed(asked, 0)
    assert plan.limit_struck
    assert verify(asked, plan) == ()
    assert not plan.unplaced
    assert plan.hourly <= _price(first_fit(asked)) + PENNY


@pytest.mark.parametrize("after", [1, 2, 3, 5, 8, 20])
def test_a_stopwatch_that_strikes_midway_leaves_a_right_plan(after: int) -> None:
    """Whenever time is up, what was found is completed to a whole plan."""
    asked = RULED["both spreads"]
    plan = _timed(asked, after)
    assert plan.limit_struck
    assert verify(asked, plan) == ()
    assert not plan.unplaced
    assert plan.hourly <= _price(first_fit(asked)) + PENNY


def test_without_a_limit_no_stopwatch_strikes() -> None:
    """A plan without a time limit asks no stopwatch and takes what it takes."""
    plan = solve(RULED["nothing at all"], stopwatch=lambda: 1e9)
    assert not plan.limit_struck
    assert plan == solve(RULED["nothing at all"])
