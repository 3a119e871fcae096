"""Keeping a new node for the pods that it was bought for, and no longer than that helps."""

from datetime import timedelta
from typing import Any

import pytest

from joinery.decisions.lifecycle.joining.steering import LONGEST_KEPT, is_steered, kept, planned_onto, steer
from joinery.decisions.lifecycle.state.cluster import LifecycleStep, state_of
from joinery.decisions.lifecycle.state.waiting import TIME_TO_BIND
from joinery.decisions.lifecycle.step import advance
from joinery.decisions.scheduling.packing import ExistingPlacement, Packing
from joinery.objects.actions import UpdateNode
from joinery.objects.annotations.plans import planned_pods, remembered
from joinery.objects.karpenter.labels import PLANNED_PODS, PLANNED_TAINT, UNREGISTERED_TAINT
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Node, Pod, Toleration
from joinery.objects.snapshot.instances import Instance
from joinery.objects.snapshot.snapshot import Snapshot
from simulator import builders
from simulator.clock import START

BOOT = {"key": UNREGISTERED_TAINT, "effect": "NoExecute"}
TAINT = {"key": PLANNED_TAINT, "value": "claim-1", "effect": "NoSchedule"}
WARM_UP = {"key": "warm-up", "effect": "NoSchedule"}
OURS = {**TAINT, "operator": "Equal"}
INSTANCE = Instance("i-node-1", "m7a.xlarge", "us-east-1a", "on-demand", "running", START)


def _claim(*reached: str, planned: str = '["default/a"]', **given: Any) -> NodeClaim:
    """A claim that was launched for the pod ``a``."""
    node = "node-1" if "Registered" in reached else ""
    rest = {
        "provider_id": "aws:///us-east-1a/i-node-1",
        "created": START,
        "annotations": {PLANNED_PODS: planned},
        **given,
    }
    return builders.node_claim("claim-1", conditions=("Launched", *reached), node=node, **rest)


def _kept(**given: Any) -> Node:
    """Its node, once it is registered."""
    return builders.node("node-1", **{"taints": [TAINT], **given})


def _step(
    claim: NodeClaim, *nodes: Node, pods: tuple[Pod, ...] = (), after: timedelta = timedelta(0), **rest: Any
) -> LifecycleStep:
    """One step, so long after the claim reached what it has."""
    times = [found.last_transition_time for found in claim.status.conditions if found.last_transition_time]
    snapshot = Snapshot(now=max(times) + after, node_claims=(claim,), nodes=nodes, pods=pods, **rest)
    return advance(state_of(snapshot, [INSTANCE]), claim)


def _taints(step: LifecycleStep) -> list[str]:
    """Of the node as the step writes it."""
    (found,) = [command for command in step.commands if isinstance(command, UpdateNode)]
    return [taint.key for taint in found.after.spec.taints]


def _is_released(step: LifecycleStep) -> bool:
    return any(isinstance(command, UpdateNode) and PLANNED_TAINT not in _taints(step) for command in step.commands)


LIVING = ("Registered", "Initialized")


def test_planned_pods_may_go_to_their_node_before_it_is_there() -> None:
    """Their tolerations are written while the instance boots, so that the scheduler does not wait for us then."""
    pods = (builders.pod("a"), builders.pod("b"), builders.pod("done", node="node-9"))
    command = _step(_claim(planned='["default/a", "default/done", "default/gone"]'), pods=pods).tolerate
    assert command is not None
    given = command.toleration
    assert (command.pods, given.key, given.value, given.effect) == (pods[:1], *TAINT.values())


@pytest.mark.parametrize("tolerated", [OURS, {"operator": "Exists"}])
def test_a_pod_that_may_go_there_already_is_left_alone(tolerated: dict[str, str]) -> None:
    """A toleration is written once."""
    assert _step(_claim(), pods=(builders.pod("a", tolerations=[tolerated]),)).tolerate is None


def test_a_node_registers_with_the_taint_that_keeps_it() -> None:
    """In one write with the removal of the boot taint: at no moment may others take the room."""
    step = _step(
        _claim(),
        builders.node("node-1", labels={"karpenter.sh/registered": ""}, taints=[BOOT]),
        pods=(builders.pod("a"),),
    )
    assert _taints(step) == [PLANNED_TAINT]
    assert step.tolerate is not None
    assert step.in_progress


def test_a_node_that_nobody_waits_for_is_open_to_all() -> None:
    """Its pods found another place, or are gone."""
    step = _step(_claim(), builders.node("node-1", labels={"karpenter.sh/registered": ""}, taints=[BOOT]))
    assert _taints(step) == []


def test_the_scheduler_has_its_time() -> None:
    """Until then the room is theirs, and the ticks go on."""
    step = _step(_claim(*LIVING), _kept(), pods=(builders.pod("a"),), after=TIME_TO_BIND - timedelta(seconds=1))
    assert (_is_released(step), step.in_progress) == (False, True)


@pytest.mark.parametrize("pods", [(), (builders.pod("a", node="node-1"),), (builders.pod("a", node="node-9"),)])
def test_a_node_is_released_as_soon_as_its_pods_are_there(pods: tuple[Pod, ...]) -> None:
    """There, anywhere, or gone: whatever room is left is for everybody, and nothing is in progress any more."""
    step = _step(_claim(*LIVING), _kept(), pods=pods)
    assert (_is_released(step), step.is_short, step.in_progress) == (True, False, False)


def test_pods_that_did_not_bind_in_time_are_planned_anew() -> None:
    """Something keeps them from their node that no plan knew: others may have the room."""
    step = _step(_claim(*LIVING), _kept(), pods=(builders.pod("a"),), after=TIME_TO_BIND)
    assert (_is_released(step), step.is_short) == (True, True)


def test_a_node_that_does_not_get_fit_is_not_kept_for_ever() -> None:
    """Five minutes after its registration it is open to whoever can make use of it."""
    node = _kept(ready=False, initialized=False)
    pods = (builders.pod("a"),)
    assert not _is_released(_step(_claim("Registered"), node, pods=pods, after=LONGEST_KEPT - timedelta(seconds=1)))
    assert _is_released(_step(_claim("Registered"), node, pods=pods, after=LONGEST_KEPT))


def _beside(*reached: str, created: timedelta = timedelta(0), planned: str = '["default/b"]', **given: Any) -> bool:
    """Whether a node whose time is over is released beside another claim, so much younger, that has reached this."""
    claim = _claim(*LIVING)
    fit = claim.condition("Initialized")
    assert fit is not None
    assert fit.last_transition_time is not None
    other = builders.node_claim(
        "claim-2",
        conditions=("Launched", *reached),
        created=fit.last_transition_time + created,
        annotations={PLANNED_PODS: planned},
        **given,
    )
    snapshot = Snapshot(
        now=fit.last_transition_time + TIME_TO_BIND,
        node_claims=(claim, other),
        nodes=(_kept(),),
        pods=(builders.pod("a"),),
    )
    return _is_released(advance(state_of(snapshot, [INSTANCE]), claim))


def test_nodes_that_come_together_are_kept_together() -> None:
    """A spread may want the pods of a node that boots more slowly first: theirs may be what these wait for."""
    assert not _beside()
    assert not _beside("Registered")


def test_nodes_that_cannot_be_awaited_are_not() -> None:
    """One that goes, one that was bought for nobody, one that was bought later, one that had its time."""
    assert _beside(deleted=START)
    assert _beside(planned="[]")
    assert _beside(created=timedelta(seconds=1))
    assert _beside(*LIVING)


@pytest.mark.parametrize(
    ("daemon", "node", "is_released"),
    [
        ({"tolerations": [WARM_UP]}, {"taints": [TAINT, WARM_UP]}, True),
        ({"tolerations": [WARM_UP, {"key": PLANNED_TAINT, "operator": "Exists"}]}, {"taints": [TAINT, WARM_UP]}, False),
        ({"tolerations": []}, {"taints": [TAINT, WARM_UP]}, False),
        ({"tolerations": [], "node_selector": {"gpu": "yes"}}, {}, False),
        ({"tolerations": []}, {}, True),
        ({"tolerations": []}, {"resources": {"nvidia.com/gpu": "1"}}, False),
    ],
    ids=["needed", "tolerates us", "waits for another taint", "belongs elsewhere", "gpu plugin", "fit without it"],
)
def test_a_daemon_that_makes_the_node_fit_is_let_in(
    daemon: dict[str, Any], node: dict[str, Any], is_released: bool
) -> None:
    """The node would wait for its pods, they for a resource, that for a daemon, and the daemon for the taint to go."""
    claim = _claim("Registered", startupTaints=[WARM_UP], requests={"nvidia.com/gpu": "1"})
    sets = (builders.daemon_set("agent", **daemon),)
    step = _step(claim, _kept(initialized=False, **node), pods=(builders.pod("a"),), daemon_sets=sets)
    assert _is_released(step) is is_released


def test_a_plan_looks_past_the_taint() -> None:
    """What room a kept node has left may be planned with: whoever is planned for it gets to tolerate it."""
    snapshot = Snapshot(now=START, nodes=(_kept(),), node_claims=(_claim(*LIVING),))
    (found,) = snapshot.views
    assert found.taints == ()


def test_a_node_without_a_claim_speaks_for_itself() -> None:
    """Nobody would take such a taint off it."""
    (found,) = Snapshot(now=START, nodes=(_kept(),)).views
    assert [taint.key for taint in found.taints] == [PLANNED_TAINT]


def test_the_taint_names_the_claim_in_63_characters() -> None:
    """A NodePool's name may be so long that its claim's is longer than a taint's value may be."""
    claim = builders.node_claim(
        "-".join(["pool" * 15, "abcde", "7kx2p"]), conditions=("Launched",), annotations={PLANNED_PODS: '["default/a"]'}
    )
    command = _step(claim.model_copy(update={"status": _claim().status}), pods=(builders.pod("a"),)).tolerate
    assert command is not None
    assert command.toleration.value.endswith("pool-abcde-7kx2p")
    assert len(command.toleration.value) <= 63


def _promised(claim: NodeClaim, *nodes: Node) -> list[str]:
    """What the claim will say of its pods, now that ``a`` is planned for it."""
    snapshot = Snapshot(now=START, pods=(builders.pod("a"), builders.pod("b")), node_claims=(claim,), nodes=nodes)
    packing = Packing(existing=(ExistingPlacement(claim.status.node_name, "claim-1", ("default/a",)),))
    return [update.after.metadata.annotations[PLANNED_PODS] for update in planned_onto(snapshot, packing)]


@pytest.mark.parametrize("reached", [(), LIVING], ids=["on its way", "kept"])
def test_pods_planned_for_a_node_since_its_launch_are_promised_it(reached: tuple[str, ...]) -> None:
    """They get to tolerate its taint too; pods that are gone are forgotten, and known ones not written again."""
    nodes = (_kept(),) if reached else ()
    assert _promised(_claim(*reached, planned='["default/gone"]'), *nodes) == ['["default/a"]']
    assert _promised(_claim(*reached), *nodes) == []


def test_a_promise_to_others_forgets_no_pod_whose_successor_is_still_to_come() -> None:
    """It was asked to go a moment ago, and the node was bought for it."""
    gone = builders.pod("web-a", owner="web", node="old", deleted=START + timedelta(seconds=30))
    claim = builders.node_claim(
        "claim-1", conditions=("Launched",), annotations=remembered([gone.key], {gone.key: gone})
    )
    snapshot = Snapshot(now=START, pods=(builders.pod("b"), gone), node_claims=(claim,))
    packing = Packing(existing=(ExistingPlacement("", "claim-1", ("default/b",)),))
    (update,) = planned_onto(snapshot, packing)
    assert planned_pods(update.after) == ("default/b", "default/web-a")


def test_a_node_that_is_open_to_all_needs_no_promise() -> None:
    """Its room is the scheduler's to give."""
    assert _promised(_claim(*LIVING, planned="[]"), builders.node("node-1")) == []


def test_a_node_of_another_provider_is_promised_to_nobody() -> None:
    """EKS Auto Mode's nodes on their way are room that comes, and their claims are not ours to write."""
    theirs = {"group": "eks.amazonaws.com", "kind": "NodeClass", "name": "default"}
    assert _promised(_claim(planned="[]", nodeClassRef=theirs)) == []


def test_tolerations_of_other_claims_do_not_help() -> None:
    """A pod that was planned elsewhere before is let onto this node too."""
    pod = builders.pod("a", tolerations=[{**OURS, "value": "claim-0"}])
    command = _step(_claim(), pods=(pod,)).tolerate
    assert command is not None
    assert command.toleration == Toleration(key=PLANNED_TAINT, value="claim-1", effect="NoSchedule")


def test_without_steering_nobody_is_let_in_and_nothing_is_kept() -> None:
    """The node registers open to all, and no pod is changed; one that was kept before is opened."""
    waiting = Snapshot(now=START, pods=(builders.pod("a"),), node_claims=(_claim(),))
    view = state_of(waiting, (), steers=False)
    assert steer(view, _claim(), None).tolerate is None
    assert kept(view, _claim(), builders.node("node-1")).spec.taints == []
    opened = steer(view, _claim(*LIVING), _kept())
    assert opened.node is not None
    assert not is_steered(opened.node)
    assert opened.ended == "steering is switched off"
