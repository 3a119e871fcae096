"""The proven bound of a plan: below whatever anyone could pay, also where a pod may not or need not follow the weights of pools."""

from typing import Any

import pytest

from joinery.apis.labels import HOSTNAME
from joinery.scheduling.problem import Problem
from joinery.scheduling.solve import solve
from joinery.scheduling.verify import verify
from simulator.builders import instance_type, node, node_pool, pod
from tests.unit.verify.plans import problem

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


def test_nothing_launched_has_a_bound_of_nothing() -> None:
    """Without launches there is neither a bound nor a gap."""
    plan = solve(_world(LIGHT, node("n", node_pool="light"), pod("p")))
    assert (plan.hourly, plan.lower_bound, plan.gap) == (0.0, 0.0, 0.0)
