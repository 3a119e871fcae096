"""The end of a claim, pass by pass."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from joinery.decisions.lifecycle.draining.finalization import finalize, finalize_node
from joinery.decisions.lifecycle.state.cluster import LifecycleStep, state_of
from joinery.objects.actions import Announce, UpdateClaim, UpdateNode
from joinery.objects.karpenter.conditions import Observation, true
from joinery.objects.karpenter.labels import (
    DISRUPTED_TAINT,
    EXCLUDE_FROM_LOAD_BALANCERS,
    REGISTERED,
    REPLACEMENT_LAUNCHED,
    TERMINATION_TIMESTAMP,
)
from joinery.objects.karpenter.meta import Condition
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Node, VolumeAttachment, VolumeAttachmentSource, VolumeAttachmentSpec
from joinery.objects.snapshot.claims import with_condition, with_status
from joinery.objects.snapshot.instances import Instance
from joinery.objects.snapshot.snapshot import Snapshot
from simulator import builders
from simulator.clock import START

TAINTED = [{"key": DISRUPTED_TAINT, "effect": "NoSchedule"}]
SECOND = timedelta(seconds=1)
RUNNING = Instance("i-node-1", "m7a.xlarge", "us-east-1a", "spot", "running", START)
REPLACED = {REPLACEMENT_LAUNCHED: START.isoformat()}


def _claim(*, drained: datetime | None = None, terminating: bool = False, **given: Any) -> NodeClaim:
    """A claim deleted at START; ``drained``: since when the drain is over."""
    conditions = given.pop("conditions", ("Launched", "Registered", "Initialized"))
    past = [("Drained", drained), ("VolumesDetached", drained)] if drained else []
    claim = builders.node_claim("claim-1", node="node-1", deleted=START, conditions=conditions, **given)
    reached = [*past, *([("InstanceTerminating", drained)] if terminating else [])]
    added = [
        Condition(type=kind, status="True", reason=kind, last_transition_time=at, observed_generation=0)
        for kind, at in reached
    ]
    return with_status(claim, conditions=[*claim.status.conditions, *added])


def _going(**given: Any) -> Node:
    return builders.node(
        "node-1", taints=TAINTED, deleted=START, labels={EXCLUDE_FROM_LOAD_BALANCERS: "karpenter"}, **given
    )


def _finalize(
    claim: NodeClaim, *nodes: Node, now: datetime = START, instances: Iterable[Instance] = (RUNNING,), **rest: Any
) -> LifecycleStep:
    return finalize(state_of(Snapshot(now=now, node_claims=(claim,), nodes=nodes, **rest), instances), claim)


def _kinds(step: LifecycleStep) -> list[str]:
    return [type(command).__name__ for command in step.commands if type(command).__name__ != "Announce"]


def _after(step: LifecycleStep) -> NodeClaim:
    return [command for command in step.commands if isinstance(command, UpdateClaim)][-1].after


def test_the_node_is_closed_first() -> None:
    """No new pods, no more traffic, and a deletion that the finalizer holds."""
    step = _finalize(_claim(), builders.node("node-1"), pods=(builders.pod("a", node="node-1"),))
    assert _kinds(step) == ["UpdateNode", "DeleteNode"]
    node = next(command.after for command in step.commands if isinstance(command, UpdateNode))
    assert [taint.key for taint in node.spec.taints] == [DISRUPTED_TAINT]
    assert node.metadata.labels[EXCLUDE_FROM_LOAD_BALANCERS] == "karpenter"


@pytest.mark.parametrize(
    ("annotations", "waited", "is_drained"),
    [({}, 14, False), ({}, 15, True), (REPLACED, 0, True)],
    ids=["before fifteen seconds", "after fifteen seconds", "once the replacement is launched"],
)
def test_the_drain_waits_for_the_replacement_but_not_long(
    annotations: dict[str, str], waited: int, is_drained: bool
) -> None:
    """A pod should have somewhere to go, and a spot instance has two minutes."""
    step = _finalize(
        _claim(annotations=annotations), _going(), now=START + waited * SECOND, pods=(builders.pod("a", node="node-1"),)
    )
    assert ("Evict" in _kinds(step)) is is_drained
    assert step.in_progress


def test_an_empty_node_waits_for_no_replacement() -> None:
    """There is nobody to replace it for; the drain's own five seconds begin."""
    step = _finalize(_claim(), _going())
    found = _after(step).condition("Drained")
    assert found is not None
    assert (found.status, found.reason) == ("Unknown", "Draining")


def test_a_drain_lasts_five_seconds_at_least() -> None:
    """Pods that were bound just before the taint are still to be seen."""
    claim = _after(_finalize(_claim(), _going()))
    assert _kinds(_finalize(claim, _going(), now=START + 4 * SECOND)) == []
    step = _finalize(claim, _going(), now=START + 5 * SECOND)
    assert _kinds(step) == ["UpdateClaim", "TerminateInstance", "UpdateClaim"]
    assert all(_after(step).is_true(kind) for kind in ("Drained", "VolumesDetached", "InstanceTerminating"))


def test_the_instance_outlives_its_pods() -> None:
    """As long as a pod is waited for, nothing is terminated."""
    claim = _after(_finalize(_claim(annotations=REPLACED), _going(), pods=(builders.pod("a", node="node-1"),)))
    leaving = builders.pod("a", node="node-1", deleted=START + 60 * SECOND)
    assert "TerminateInstance" not in _kinds(_finalize(claim, _going(), now=START + 30 * SECOND, pods=(leaving,)))


def test_the_instance_outlives_its_volumes() -> None:
    """A volume that is still attached could not be mounted elsewhere for minutes."""
    held = VolumeAttachment(
        spec=VolumeAttachmentSpec(node_name="node-1", source=VolumeAttachmentSource(persistent_volume_name="pv-a"))
    )
    claim = _after(_finalize(_claim(), _going()))
    step = _finalize(claim, _going(), now=START + 5 * SECOND, volume_attachments=(held,))
    found = _after(step).condition("VolumesDetached")
    assert found is not None
    assert (found.reason, _kinds(step)) == ("AwaitingVolumeDetachment", ["UpdateClaim"])
    assert "TerminateInstance" in _kinds(_finalize(_after(step), _going(), now=START + 6 * SECOND))


def test_a_pod_that_comes_while_volumes_are_detached_is_asked_to_go_too() -> None:
    """A scheduler of its own may bind it after the taint. It would end with the instance otherwise."""
    claim = _claim(drained=START, annotations=REPLACED)
    late = builders.pod("late", node="node-1")
    step = _finalize(claim, _going(), now=START + 60 * SECOND, pods=(late,))
    assert _kinds(step) == ["Evict", "UpdateClaim"]
    assert not _after(step).is_true("Drained")
    ending = _claim(drained=START, terminating=True, annotations=REPLACED)
    assert "Evict" not in _kinds(_finalize(ending, _going(), now=START + 60 * SECOND, pods=(late,)))


def test_a_node_with_a_deadline_says_so() -> None:
    """Once, as it is closed: whoever looks at the Node should not have to look for its claim."""
    claim = _claim(termination_grace_period="1h")
    for node, told in ((builders.node("node-1"), 1), (_going(), 0)):
        commands = _finalize(claim, node).commands
        events = [command for command in commands if isinstance(command, Announce) and command.subject == node]
        assert [event.reason for event in events].count("TerminationGracePeriodExpiring") == told


def test_past_its_deadline_a_node_waits_for_no_volume() -> None:
    """The grace period is the user's word that everything must be over."""
    held = VolumeAttachment(
        spec=VolumeAttachmentSpec(node_name="node-1", source=VolumeAttachmentSource(persistent_volume_name="pv-a"))
    )
    claim = _after(_finalize(_claim(termination_grace_period="4s"), _going()))
    step = _finalize(claim, _going(), now=START + 5 * SECOND, volume_attachments=(held,))
    found = _after(step).condition("VolumesDetached")
    assert found is not None
    assert (found.reason, "TerminateInstance" in _kinds(step)) == ("TerminationGracePeriodElapsed", True)


def test_the_deadline_is_stamped_once() -> None:
    """Deletion plus grace period; an annotation that is there already is somebody's decision."""
    step = _finalize(_claim(termination_grace_period="1h"), _going())
    assert _after(step).metadata.annotations[TERMINATION_TIMESTAMP] == (START + timedelta(hours=1)).isoformat()
    early = {TERMINATION_TIMESTAMP: START.isoformat()}
    step = _finalize(_claim(termination_grace_period="1h", annotations=early), _going())
    assert _after(step).metadata.annotations[TERMINATION_TIMESTAMP] == START.isoformat()


def test_a_pod_that_would_miss_the_deadline_is_deleted() -> None:
    """Budgets and protection end where the grace period does."""
    stubborn = builders.pod(
        "a", node="node-1", termination_grace_period_seconds=120, annotations={"karpenter.sh/do-not-disrupt": "true"}
    )
    step = _finalize(
        _claim(annotations=REPLACED, termination_grace_period="60s"), _going(), now=START + SECOND, pods=(stubborn,)
    )
    (force,) = [command for command in step.commands if type(command).__name__ == "DeletePod"]
    assert (force.pod.key, force.grace) == ("default/a", 59)  # type: ignore[union-attr]


def test_the_objects_go_once_the_instance_is_gone() -> None:
    """Node first, claim last: as long as something could leak, its claim is there."""
    claim = _claim(drained=START, terminating=True)
    waiting = _finalize(claim, _going(), now=START + 30 * SECOND)
    assert "UpdateNode" not in _kinds(waiting)
    over = _finalize(claim, _going(), now=START + 30 * SECOND, instances=())
    assert _kinds(over) == ["UpdateNode", "UpdateClaim"]
    assert _after(over).metadata.finalizers == []
    assert not over.in_progress


def test_a_node_whose_instance_is_terminated_is_not_drained() -> None:
    """Its pods are dead already; waiting for them would keep their successors away."""
    ended, pods = replace(RUNNING, state="terminated"), (builders.pod("a", node="node-1"),)
    step = _finalize(_claim(), _going(ready=False), instances=[ended], pods=pods)
    assert _kinds(step) == ["UpdateNode", "UpdateClaim"]
    assert _after(step).metadata.finalizers == []


def test_a_node_whose_instance_is_missing_from_one_list_is_drained() -> None:
    """Any list may leave it out, so its pods are asked to go, and it is not ended before they have."""
    claim = _claim(annotations=REPLACED)
    step = _finalize(claim, _going(ready=False), instances=(), pods=(builders.pod("a", node="node-1"),))
    assert _kinds(step) == ["Evict", "UpdateClaim"]


def test_a_node_whose_instance_is_stopped_is_not_drained() -> None:
    """No kubelet would end its pods or detach their volumes: the instance is terminated at once."""
    stopped, pods = replace(RUNNING, state="stopped"), (builders.pod("a", node="node-1"),)
    step = _finalize(_claim(), _going(ready=False), instances=[stopped], pods=pods)
    assert _kinds(step) == ["TerminateInstance", "UpdateClaim"]


def test_an_instance_that_ec2_does_not_know_yet_is_asked_to_end_until_it_does() -> None:
    """EC2 answers that it knows no such instance, which is no sign that it has ended: its claim stays meanwhile."""
    claim = with_condition(_claim(conditions=()), true("Launched", Observation(START, 1)))
    claim = with_status(claim, provider_id=RUNNING.provider_id)
    early = _finalize(claim, now=START + 14 * 60 * SECOND, instances=())
    assert (_kinds(early), early.in_progress) == (["TerminateInstance"], True)
    late = _finalize(claim, now=START + 15 * 60 * SECOND, instances=())
    assert _kinds(late) == ["UpdateClaim", "TerminateInstance", "UpdateClaim"]
    assert _kinds(_finalize(_after(late), now=START + 15 * 60 * SECOND, instances=())) == ["UpdateClaim"]


def test_a_claim_that_never_got_an_instance_goes_at_once() -> None:
    """There is nothing to wait for; what EC2 may still give it is collected as garbage."""
    step = _finalize(_claim(conditions=()), instances=())
    assert _kinds(step) == ["UpdateClaim"]
    assert _after(step).metadata.finalizers == []


def test_an_instance_that_never_joined_is_terminated_without_a_drain() -> None:
    """No pod can be on a node that was never registered."""
    unjoined = with_status(_claim(conditions=("Launched",)), node_name="")
    step = _finalize(unjoined, builders.node("node-1", labels={REGISTERED: ""}))
    assert _kinds(step) == ["TerminateInstance", "UpdateClaim"]


def test_a_terminating_instance_is_not_terminated_again() -> None:
    """EC2 is told once; its list says the rest."""
    shutting = Instance("i-node-1", "m7a.xlarge", "us-east-1a", "spot", "shutting-down", START)
    step = _finalize(_claim(drained=START, terminating=True), _going(), instances=(shutting,))
    assert _kinds(step) == []
    assert step.in_progress


def test_a_claim_without_our_finalizer_is_not_ours_to_end() -> None:
    """Somebody else holds it."""
    assert _finalize(_claim(finalizers=("example.com/hold",)), _going()) == LifecycleStep()


def test_a_node_without_a_claim_is_drained_and_let_go() -> None:
    """Its finalizer would keep it for ever; its instance is collected as garbage."""
    world = state_of(Snapshot(now=START, nodes=(_going(),), pods=(builders.pod("a", node="node-1"),)), (RUNNING,))
    assert _kinds(finalize_node(world, _going())) == ["UpdateNode", "Evict"]
    empty = state_of(Snapshot(now=START, nodes=(_going(),)), (RUNNING,))
    (let_go,) = finalize_node(empty, _going()).commands
    assert isinstance(let_go, UpdateNode)
    assert let_go.after.metadata.finalizers == []
