"""Hundreds of pods of as many sizes, as the vertical autoscaler makes them: first-fit leaves their nodes to the
optimizer.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from joinery.decisions.scheduling.firstfit.firstfit import FirstFit
from joinery.decisions.scheduling.firstfit.workspace import Workspace
from joinery.decisions.scheduling.problem import Problem
from joinery.decisions.scheduling.solve import solve
from joinery.decisions.verification.verify import verify
from simulator.builders import instance_type, node, node_pool, pod
from tests.unit.decisions.scheduling.worlds import APART
from tests.unit.decisions.verification.plans import PENDING, problem

SIZES = 320
TYPES = [
    instance_type("c7a.2xlarge", price=0.41, spot=None),
    instance_type("m7a.2xlarge", price=0.46, spot=None),
    instance_type("r7a.4xlarge", price=1.21, spot=None),
]


def _sized(number: int) -> Any:
    """So large that few share a node: the search for the nodes of small ones takes fifteen seconds."""
    return pod(f"api-{number}", cpu=f"{2600 + 2 * number}m", memory=f"{200 + number * 7 % 900}Mi")


def _asked(*others: Any, pods: int = SIZES) -> Problem:
    return problem(*others, *(_sized(number) for number in range(pods)), types=TYPES)


def _run(asked: Problem) -> FirstFit:
    packer = FirstFit(Workspace(asked), defers=True)
    packer.run()
    return packer


def test_pods_of_many_sizes_get_their_nodes_from_the_optimizer() -> None:
    """All have a place, by all rules, for no more than first-fit alone would pay."""
    asked = _asked(node_pool())
    plan = solve(asked)
    alone = solve(replace(asked, options=replace(PENDING, first_fit_only=True)))
    assert len(_run(asked).deferred) == SIZES
    assert verify(asked, plan) == ()
    assert not plan.unplaced
    assert plan.hourly <= alone.hourly + 1e-9


def test_room_on_existing_nodes_is_taken_first() -> None:
    """What a node that exists has room for is deferred to nobody."""
    asked = _asked(node_pool(), node("here", cpu="8", memory="32Gi"))
    packer, plan = _run(asked), solve(asked)
    assert 0 < len(packer.deferred) < SIZES
    assert verify(asked, plan) == ()
    assert sum(len(placement.pods) for placement in plan.existing) == SIZES - len(packer.deferred)


def test_a_pod_that_no_node_takes_is_left_with_its_reason() -> None:
    """Deferring asks for a type with room first."""
    asked = _asked(node_pool(), pod("whale", cpu="900"))
    plan = solve(asked)
    assert [unplaced.pod for unplaced in plan.unplaced] == ["default/whale"]
    assert verify(asked, plan) == ()


@pytest.mark.parametrize(
    "other",
    [
        node_pool("limited", limits={"cpu": "900"}),
        pod("apart", labels={"app": "red"}, affinity={"podAntiAffinity": APART}),
    ],
    ids=["a limit", "a rule about pods"],
)
def test_nothing_is_deferred_where_anything_else_counts(other: Any) -> None:
    """A limit may run out, and a rule may bind pods to each other's nodes."""
    assert not _run(_asked(node_pool(), other)).deferred
    assert not _run(_asked(node_pool(), pods=40)).deferred


@pytest.mark.parametrize("after", [0, 1, 3, 8])
def test_where_time_is_up_first_fit_buys_for_the_deferred(after: int) -> None:
    """Whenever a stopwatch strikes, every pod has a place."""
    asked = _asked(node_pool())
    readings: Iterator[float] = (float(turn >= after) for turn in count())
    limited = replace(asked, options=replace(PENDING, time_limit=1.0))
    plan = solve(limited, stopwatch=lambda: next(readings))
    assert plan.limit_struck
    assert verify(asked, plan) == ()
    assert not plan.unplaced
