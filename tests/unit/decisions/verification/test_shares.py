"""Verification refuses a plan that leaves a NodePool short of nodes on demand, where it could do otherwise."""

from dataclasses import replace
from typing import Any

import pytest

from joinery.decisions.scheduling.packing import Launch
from joinery.decisions.scheduling.problem import Problem
from joinery.objects.karpenter.labels import CAPACITY_TYPE, ON_DEMAND, ON_DEMAND_SHARE, SPOT
from joinery.objects.karpenter.meta import Requirement
from simulator import builders
from tests.unit.decisions.disruption.clusters import annotated
from tests.unit.decisions.verification.plans import launch, packing, problem, renamed, violated

LARGE = builders.instance_type("m7a.large", price=0.1)
XLARGE = builders.instance_type("m7a.xlarge", price=0.2)


def _asked(share: str = "1", *there: Any, **pool: Any) -> Problem:
    pools = annotated(builders.node_pool(**pool), {ON_DEMAND_SHARE: share})
    pods = [builders.pod(f"p-{number}", cpu="1500m") for number in (1, 2)]
    return problem(pools, *there, *pods, types=(LARGE, XLARGE))


def _of(asked: Problem, number: int, *kinds: str, **more: Any) -> Launch:
    """A launch for a pod that allows these capacity types and counts on the first."""
    made = launch(asked, f"default/p-{number}", name=f"default-{number}", capacity_type=kinds[0], **more)
    allowed = Requirement(key=CAPACITY_TYPE, operator="In", values=sorted(kinds))
    return renamed(made, requirements=(*made.requirements, allowed))


@pytest.mark.parametrize(
    ("share", "kinds", "refused"),
    [
        ("1", [(ON_DEMAND,), (SPOT, ON_DEMAND)], set()),
        ("1", [(SPOT, ON_DEMAND), (SPOT, ON_DEMAND)], {"OnDemandShare"}),
        ("2", [(ON_DEMAND,), (SPOT, ON_DEMAND)], {"OnDemandShare"}),
        ("2", [(ON_DEMAND,), (SPOT,)], set()),
        ("50%", [(ON_DEMAND,), (SPOT, ON_DEMAND)], set()),
        ("51%", [(ON_DEMAND,), (SPOT, ON_DEMAND)], {"OnDemandShare"}),
    ],
)
def test_a_launch_that_may_be_either_is_on_demand_where_the_share_lacks_it(
    share: str, kinds: list[tuple[str, ...]], refused: set[str]
) -> None:
    """One that can be on spot alone is what its pods ask for."""
    asked = _asked(share)
    launches = [_of(asked, number, *allowed) for number, allowed in enumerate(kinds, start=1)]
    assert violated(asked, packing(*launches)) == refused


def test_nodes_that_are_there_count() -> None:
    """One on demand is there."""
    there = (
        builders.node_claim("c", node="n", capacity_type=ON_DEMAND),
        builders.node("n", node_pool="default", capacity_type=ON_DEMAND, cpu="100m"),
    )
    asked = _asked("1", *there)
    assert violated(asked, packing(_of(asked, 1, SPOT, ON_DEMAND), _of(asked, 2, SPOT, ON_DEMAND))) == set()


def test_a_launch_that_limits_keep_on_spot_is_right() -> None:
    """On demand there is a type that would take more of the limit than it counts on."""
    only_spot = replace(LARGE, offerings=tuple(one for one in LARGE.offerings if one.capacity_type == SPOT))
    types = {"default": (only_spot, XLARGE)}
    asked = replace(_asked("2", limits={"cpu": "64"}), instance_types=types)
    both = [_of(asked, number, SPOT, ON_DEMAND, types=("m7a.large", "m7a.xlarge")) for number in (1, 2)]
    assert violated(asked, packing(*both)) == set()
    asked = replace(_asked("2"), instance_types=types)
    assert violated(asked, packing(*both)) == {"OnDemandShare"}


def test_a_launch_that_min_values_keep_open_is_right() -> None:
    """A NodePool that wants both capacity types in each launch has said that neither must be certain."""
    both = {"key": CAPACITY_TYPE, "operator": "In", "values": [SPOT, ON_DEMAND], "minValues": 2}
    asked = _asked("2", requirements=[both])
    assert violated(asked, packing(_of(asked, 1, SPOT, ON_DEMAND), _of(asked, 2, SPOT, ON_DEMAND))) == set()
