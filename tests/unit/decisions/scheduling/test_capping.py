"""A plan within the caps: the most urgent part of it, verified as the whole was."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from joinery.decisions.capping import plan_within_caps, within_caps
from joinery.decisions.planning import Plan
from joinery.decisions.scheduling.packing import Packing, Unplaced
from joinery.decisions.scheduling.problem import Options, Problem
from joinery.decisions.scheduling.reason import ReasonCode
from joinery.decisions.verification.verify import verify
from joinery.objects.karpenter.labels import INTERRUPTED_AT, RETIRED_FOR, TERMINATION_TIMESTAMP
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Pod
from joinery.objects.policies import Caps
from joinery.objects.snapshot.snapshot import Snapshot
from joinery.objects.snapshot.urgency import Need, urgencies
from simulator import builders
from simulator.clock import START
from tests.unit.decisions.scheduling.launches import priced_launch
from tests.unit.decisions.verification.plans import problem

LOST = {INTERRUPTED_AT: START.isoformat()}
RETIRED = {RETIRED_FOR: "Expired"}


def _capped(asked: Problem, **caps: float) -> Problem:
    return replace(asked, options=replace(asked.options, caps=Caps(**caps)))  # type: ignore[arg-type]


def _codes(packing: Packing) -> dict[str, set[ReasonCode]]:
    return {unplaced.pod: {reason.code for reason in unplaced.reasons} for unplaced in packing.unplaced}


def test_a_plan_within_the_caps_is_the_plan() -> None:
    """Nobody pays for a cap that is not in the way: the bounds are proven still."""
    asked = problem(builders.node_pool(), builders.pod("web"))
    assert plan_within_caps(_capped(asked, max_launches=1)) == plan_within_caps(asked)


def test_a_part_of_a_plan_is_right_by_itself() -> None:
    """What a pod's affinity looks for may be left out: then it is not bought a node that it cannot go to."""
    follower = builders.pod(
        "follower",
        cpu="3",
        priority=10,
        affinity={
            "podAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "topology.kubernetes.io/zone", "labelSelector": {"matchLabels": {"app": "leader"}}}
                ]
            }
        },
    )
    leader = builders.pod("leader", cpu="3", labels={"app": "leader"})
    pool = builders.node_pool(requirements=["karpenter.k8s.aws/instance-size=xlarge"])
    asked = _capped(problem(pool, follower, leader), max_launches=1)
    plan = plan_within_caps(asked)
    assert plan.violations == ()
    assert verify(asked, plan.packing) == ()
    assert len(plan.packing.launches) <= 1
    assert "default/follower" in _codes(plan.packing)


@pytest.mark.parametrize("most", range(5))
def test_every_pod_is_placed_or_told(most: int) -> None:
    """And never more is launched than the cap allows."""
    pool = builders.node_pool(requirements=["karpenter.k8s.aws/instance-size=xlarge"])
    pods = [builders.pod(f"pod-{number}", cpu="3", priority=number) for number in range(4)]
    packing = plan_within_caps(_capped(problem(pool, *pods), max_launches=most)).packing
    placed = {pod for launch in packing.launches for pod in launch.pods}
    assert placed == {pod.key for pod in pods[4 - most :]}
    assert _codes(packing) == {pod.key: {ReasonCode.CAPS} for pod in pods[: 4 - most]}


def _planner(_: Problem, left_out: Mapping[str, Unplaced]) -> Plan:
    """One node for all pods that are planned, for a dollar a pod."""
    planned = [pod for pod in ("default/lost", "default/web-0", "default/web-1") if pod not in left_out]
    launches = (priced_launch(len(planned), *planned),) if planned else ()
    return Plan(packing=Packing(launches=launches, unplaced=tuple(left_out.values())))


def _with_a_lost_node(**caps: float) -> Problem:
    claim = builders.node_claim("claim-1", node="node-1", annotations=LOST)
    node = builders.node("node-1", provider_id=claim.status.provider_id)
    pods = (builders.pod("lost", node="node-1"), builders.pod("web-0"), builders.pod("web-1"))
    snapshot = Snapshot(now=START, pods=pods, nodes=(node,), node_claims=(claim,))
    return Problem(snapshot=snapshot, instance_types={}, options=Options(caps=Caps(**caps)))  # type: ignore[arg-type]


def test_pods_that_wait_give_way_on_a_node_that_they_would_share() -> None:
    """Together they need a node that no cap lets in; alone, the pod of the node that is lost gets its own."""
    packing = within_caps(_with_a_lost_node(max_hourly=2.0), _planner).packing
    assert [launch.pods for launch in packing.launches] == [("default/lost",)]
    assert _codes(packing) == {"default/web-0": {ReasonCode.CAPS}, "default/web-1": {ReasonCode.CAPS}}


def test_nobody_gives_way_for_what_cannot_be_bought() -> None:
    """A replacement dearer than what is left of the cap must not keep the others waiting."""

    def planner(_: Problem, left_out: Mapping[str, Unplaced]) -> Plan:
        plan = _planner(_, left_out)
        price = 1.0 if "default/lost" in left_out else 2.0
        launches = tuple(priced_launch(price, *launch.pods) for launch in plan.packing.launches)
        return Plan(packing=replace(plan.packing, launches=launches))

    packing = within_caps(_with_a_lost_node(max_hourly=2.0, hourly=0.5), planner).packing
    assert [launch.pods for launch in packing.launches] == [("default/web-0", "default/web-1")]
    assert _codes(packing) == {"default/lost": {ReasonCode.CAPS}}


def test_a_pod_whose_node_no_cap_ever_lets_in_keeps_nobody_waiting() -> None:
    """Others are not put onto the room that its node would have, and its reason is the cap."""
    pods = [builders.pod(f"web-{number}", namespace="victim", cpu="200m") for number in range(3)]
    asked = problem(builders.node_pool(), builders.pod("huge", cpu="3"), *pods)
    (launch,) = plan_within_caps(asked).packing.launches
    assert launch.offering.price == 0.2
    plan = plan_within_caps(_capped(asked, max_hourly=0.15))
    assert {pod for launch in plan.packing.launches for pod in launch.pods} == {pod.key for pod in pods}
    assert _codes(plan.packing) == {"default/huge": {ReasonCode.CAPS}}


def _need(annotations: dict[str, str], **claim: Any) -> Need:
    node_claim: NodeClaim = builders.node_claim("claim-1", node="node-1", annotations=annotations, **claim)
    node = builders.node("node-1", provider_id=node_claim.status.provider_id)
    pod: Pod = builders.pod("a", node="node-1")
    snapshot = Snapshot(now=START, pods=(pod,), nodes=(node,), node_claims=(node_claim,))
    return urgencies(snapshot)["default/a"].need


def test_how_urgently_a_pod_needs_a_node_depends_on_when_its_own_is_drained() -> None:
    """Lost, or deleted by a person: soon. Retired for its age: when it is replaced, or when its deadline comes."""
    soon, late = START + timedelta(minutes=1), START + timedelta(hours=1)
    assert _need({}) is Need.WAITING
    assert _need(LOST) is Need.FORCED
    assert _need({}, deleted=START) is Need.FORCED
    assert _need(RETIRED, deleted=START) is Need.RETIRED
    assert _need({**RETIRED, **LOST}, deleted=START) is Need.FORCED
    assert _need({**RETIRED, TERMINATION_TIMESTAMP: late.isoformat()}, deleted=START) is Need.RETIRED
    assert _need({**RETIRED, TERMINATION_TIMESTAMP: soon.isoformat()}, deleted=START) is Need.FORCED
