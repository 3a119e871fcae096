"""What becomes of pods when the time limit strikes before they have a place."""

from bisect import bisect_left
from collections import Counter
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from joinery.decisions.scheduling.packing import Packing, placed_pods
from joinery.decisions.scheduling.problem import Options, Problem
from joinery.decisions.scheduling.reason import ReasonCode
from joinery.decisions.scheduling.solve import GRACE, solve
from joinery.decisions.verification.verify import verify
from joinery.objects.karpenter.labels import ZONE
from joinery.objects.kubernetes.core import Pod
from simulator.builders import ZONES, instance_type, node_pool, pod
from tests.unit.decisions.verification.plans import problem

LIMITED = Options(time_limit=1.0)
PODS = [pod(f"web-{number}", cpu=f"{500 + number}m") for number in range(20)]
SHOP = [pod(f"cart-{number}", namespace="shop", cpu=f"{100 + number}m") for number in range(4)]


def _asked(*pods: object) -> Problem:
    return problem(node_pool(), *pods, types=(instance_type("m7a.large"),), options=LIMITED)


def _late(asked: Problem, after: int) -> Packing:
    """The plan if the stopwatch, once it was asked so often, has gone on by seconds whenever it is asked."""
    turns = count(-after)
    return solve(asked, stopwatch=lambda: 9.0 * max(0, next(turns)))


def _hurried(*pods: Pod, looks: int) -> set[str]:
    """The pods with a place if the limit has passed at once, and placing ends when the stopwatch was asked so often."""
    turns = count()
    plan = solve(_asked(*pods), stopwatch=lambda: 1.0 + GRACE * next(turns) / looks)
    return set(placed_pods(plan.existing, plan.launches))


def _crowd(number: int, **fields: Any) -> list[Pod]:
    """Pods of one namespace, no two of which are alike, and all of which first-fit would place before ``SHOP``."""
    return [pod(f"crowd-{n:03}", namespace="crowd", cpu=f"{900 + n}m", **fields) for n in range(number)]


@pytest.mark.parametrize("after", [0, 5, 40])
def test_pods_that_were_not_reached_in_time_stay_pending_and_say_so(after: int) -> None:
    """What has a place by then is planned, and every other pod waits for the next run with a reason of its own."""
    asked = _asked(*PODS)
    plan = _late(asked, after)
    assert plan.limit_struck
    assert {reason.code for one in plan.unplaced for reason in one.reasons} <= {ReasonCode.TIME_LIMIT}
    assert len(set(placed_pods(plan.existing, plan.launches)) | {one.pod for one in plan.unplaced}) == len(PODS)
    assert verify(asked, plan) == ()


def test_no_time_at_all_leaves_all_pods_pending() -> None:
    """The reason says that they were not tried."""
    plan = _late(_asked(*PODS), 0)
    assert len(plan.unplaced) == len(PODS)
    assert all("before it was tried" in str(one.reasons[0]) for one in plan.unplaced)


def test_pods_are_placed_for_a_moment_after_the_limit() -> None:
    """A small plan is whole whatever its limit, and however long it took until placing began."""
    asked = _asked(*PODS)
    assert not solve(asked, stopwatch=lambda: 1.1).unplaced
    assert not solve(asked, stopwatch=lambda: 9.0).unplaced


@pytest.mark.parametrize(
    "crowd",
    [
        _crowd(250),
        _crowd(250, priority=1000),
        _crowd(250, node_selector={"example.com/place": "nowhere"}),
        _crowd(400),  # so many that they wait for the optimizer's nodes
    ],
    ids=["large", "urgent", "hopeless", "deferred"],
)
def test_namespaces_take_turns_once_the_limit_has_passed(crowd: list[Pod]) -> None:
    """Thousands of workloads of one namespace leave time for the few of another."""
    placed = _hurried(*crowd, *SHOP, looks=300)
    assert placed >= {one.key for one in SHOP}
    assert len(placed) < len(crowd)


def test_urgent_pods_go_first_within_a_turn() -> None:
    """There is time for a few: those of the highest priority."""
    placed = _hurried(*_crowd(100, priority=1000), *SHOP, looks=12)
    assert "crowd/crowd-099" in placed
    assert not placed & {one.key for one in SHOP}


def test_what_nobody_sells_a_node_for_is_tried_last() -> None:
    """Workloads of one namespace that no NodePool can hold leave time for the others in it."""
    hopeless = [pod(f"wrong-{n:03}", namespace="shop", cpu=f"{1000 + n}") for n in range(250)]
    assert _hurried(*hopeless, *SHOP, looks=300) == {one.key for one in SHOP}


def test_a_limit_that_strikes_while_the_optimizer_packs_loses_no_node() -> None:
    """Pods that were left to it get nodes that it has made, or first-fit's: the next run need not begin anew."""
    asked, looks = _asked(*_crowd(300)), count()
    solve(asked, stopwatch=lambda: 0.0 * next(looks))
    in_all = next(looks)
    for part in (0.2, 0.5, 0.9):
        looks = count(-int(part * in_all))
        plan = solve(asked, stopwatch=lambda looks=looks: 1.0 + next(looks) / 2000)  # type: ignore[misc]
        assert plan.launches
        assert not verify(asked, plan)


def test_a_search_that_is_cut_short_keeps_what_it_has_found() -> None:
    """Zone by zone the optimizer's nodes replace first-fit's: a little later the plan is cheaper, and always right."""
    services = [
        pod(f"web-{app}-{n}", cpu=f"{700 + 130 * app}m", labels={"app": f"web-{app}"}, spread=[_of(f"web-{app}")])
        for app in range(8)
        for n in range(9)
    ]
    types = tuple(instance_type(f"{one}.{size}") for one in ("c7a", "m7a") for size in ("large", "xlarge", "2xlarge"))
    asked = problem(node_pool(), *services, types=types, options=LIMITED)
    alone = solve(asked, stopwatch=lambda: 1.1).hourly

    def cost(after: int) -> float:
        looks = count(-after)
        plan = solve(asked, stopwatch=lambda: 1.1 * (next(looks) > 0))
        assert not plan.unplaced
        assert verify(asked, plan) == ()
        return plan.hourly

    first = bisect_left(range(2000), True, key=lambda after: cost(after) < alone)
    assert cost(first + 40) < cost(first) < alone


def test_a_pod_with_a_problem_of_its_own_says_that_whatever_the_time() -> None:
    """To look at the pod is enough, and the next run would know no more."""
    wrong = pod("wrong", affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": []}}})  # fmt: skip
    plan = _late(replace(_asked(wrong)), 0)
    assert [one.reasons[0].code for one in plan.unplaced] == [ReasonCode.REQUIREMENTS]


EVENLY = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}


@pytest.mark.parametrize("after", range(0, 60, 4))
def test_pods_that_spread_are_even_whenever_time_is_up(after: int) -> None:
    """A class is never left with its pods in the first zones only: that plan would be wrong, and so for nothing."""
    services = [
        pod(f"web-{app}-{number}", cpu="900m", labels={"app": f"web-{app}"}, spread=[_of(f"web-{app}")])
        for app in range(3)
        for number in range(9)
    ]
    types = (instance_type("m7a.large", zones=ZONES),)
    asked = problem(node_pool(), *services, types=types, options=LIMITED)
    plan = _late(asked, after)
    assert verify(asked, plan) == ()
    placed = Counter(name.rsplit("-", 1)[0] for name in placed_pods(plan.existing, plan.launches))
    assert set(placed.values()) <= {9}


def _of(app: str) -> dict[str, Any]:
    return {**EVENLY, "labelSelector": {"matchLabels": {"app": app}}}
