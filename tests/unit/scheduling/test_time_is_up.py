"""What becomes of pods when the time limit strikes before they have a place."""

from dataclasses import replace
from itertools import count

import pytest

from joinery.scheduling.packing import Packing, placed_pods
from joinery.scheduling.problem import Options, Problem
from joinery.scheduling.reason import ReasonCode
from joinery.scheduling.solve import solve
from joinery.verification.verify import verify
from simulator.builders import instance_type, node_pool, pod
from tests.unit.verification.plans import problem

LIMITED = Options(time_limit=1.0)
PODS = [pod(f"web-{number}", cpu=f"{500 + number}m") for number in range(20)]


def _asked(*pods: object) -> Problem:
    return problem(node_pool(), *pods, types=(instance_type("m7a.large"),), options=LIMITED)


def _late(asked: Problem, after: int) -> Packing:
    """The plan if the stopwatch says so much that nothing more is placed, once it was asked so often."""
    turns = count()
    return solve(asked, stopwatch=lambda: 9.0 * (next(turns) >= after))


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
    """A small plan is whole whatever its limit; what is owed for ten thousand pods within a second is not."""
    asked = _asked(*PODS)
    assert not solve(asked, stopwatch=lambda: 1.1).unplaced
    assert solve(asked, stopwatch=lambda: 1.1, grace=0.0).unplaced


def test_a_pod_with_a_problem_of_its_own_says_that_whatever_the_time() -> None:
    """To look at the pod is enough, and the next run would know no more."""
    wrong = pod("wrong", affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": []}}})  # fmt: skip
    plan = _late(replace(_asked(wrong)), 0)
    assert [one.reasons[0].code for one in plan.unplaced] == [ReasonCode.REQUIREMENTS]
