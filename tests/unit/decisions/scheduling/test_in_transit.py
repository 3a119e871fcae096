"""Room of pods that have just been asked to go: their next node was bought, and their successors are still to come."""

from datetime import timedelta

import pytest

from joinery.decisions.scheduling.packing import Packing
from joinery.decisions.scheduling.solve import solve
from joinery.objects.annotations.plans import remembered
from joinery.objects.karpenter.labels import INTERRUPTED_AT
from joinery.objects.kubernetes.core import Pod
from simulator import builders
from simulator.builders import EPOCH
from tests.unit.decisions.verification.plans import problem

WARNED = {INTERRUPTED_AT: EPOCH.isoformat()}
#: When the grace of a pod ends that was asked to go at this moment.
JUST_NOW = EPOCH + timedelta(seconds=30)


def _planned(*pods: Pod) -> Packing:
    """A plan while two nodes go. The next node of the first one's pod, web-a, is on its way: it holds one such pod."""
    first = builders.pod("web-a", cpu="3", owner="web", node="first")
    bought = builders.node_claim(
        "bought", conditions=("Launched",), annotations=remembered([first.key], {first.key: first})
    )
    going = [builders.node_claim(name, node=name, annotations=WARNED) for name in ("first", "second")]
    nodes = [builders.node(name) for name in ("first", "second")]
    return solve(problem(builders.node_pool(), bought, *going, *nodes, *pods))


def _web(name: str, node: str = "", deleted: bool = False, **rest: int) -> Pod:
    ends = JUST_NOW - timedelta(**rest) if deleted else None
    return builders.pod(name, cpu="3", owner="web", node=node, deleted=ends)


def test_nobody_else_gets_the_room_of_a_pod_whose_successor_is_still_to_come() -> None:
    """It would be marked as replaced and drained, and the successor would wait for another node."""
    plan = _planned(_web("web-a", node="first", deleted=True), _web("web-b", node="second"))
    assert [launch.pods for launch in plan.launches] == [("default/web-b",)]
    assert plan.existing == ()


def test_its_successor_gets_that_room() -> None:
    """As soon as it is there."""
    plan = _planned(_web("web-a", node="first", deleted=True), _web("web-c"), _web("web-b", node="second"))
    assert {(place.node_claim, place.pods) for place in plan.existing} == {("bought", ("default/web-c",))}
    assert [launch.pods for launch in plan.launches] == [("default/web-b",)]


@pytest.mark.parametrize("pods", [(), (_web("web-a", node="first", deleted=True, seconds=11),)])
def test_a_pod_that_nobody_makes_again_keeps_no_room(pods: tuple[Pod, ...]) -> None:
    """Its Deployment was scaled down."""
    plan = _planned(*pods, _web("web-b", node="second"))
    assert {(place.node_claim, place.pods) for place in plan.existing} == {("bought", ("default/web-b",))}
