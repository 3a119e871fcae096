"""One step of one claim, by the state in which it is found."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from joinery.decisions.lifecycle.state.cluster import LifecycleStep, state_of
from joinery.decisions.lifecycle.step import LAUNCHING, advance
from joinery.objects.actions import Announce, Command, DeleteClaim, TagInstance, UpdateClaim, UpdateNode
from joinery.objects.karpenter.conditions import Observation, true
from joinery.objects.karpenter.hashing import HASH_VERSION
from joinery.objects.karpenter.labels import (
    DEVICE_DRIVERS,
    DO_NOT_SYNC_TAINTS,
    INITIALIZED,
    NODE_POOL_HASH_VERSION,
    REGISTERED,
    TERMINATION_FINALIZER,
    UNREGISTERED_TAINT,
)
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Node
from joinery.objects.snapshot.claims import INSTANCE_MISSING, observed, with_condition, with_status
from joinery.objects.snapshot.instances import Instance
from joinery.objects.snapshot.snapshot import Snapshot
from simulator import builders
from simulator.clock import START

LAUNCHED: dict[str, Any] = {"conditions": ("Launched",), "provider_id": "aws:///us-east-1a/i-node-1", "created": START}
BOOTING = [
    {"key": UNREGISTERED_TAINT, "effect": "NoExecute"},
    {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},
]


def _instance(instance_id: str = "i-node-1", launched_at: datetime = START) -> Instance:
    return Instance(instance_id, "m7a.xlarge", "us-east-1a", "on-demand", "running", launched_at)


def _step(
    claim: NodeClaim, *nodes: Node, now: datetime = START, instances: Iterable[Instance] | None = None, **rest: Any
) -> LifecycleStep:
    snapshot = Snapshot(now=now, node_claims=(claim,), nodes=nodes, **rest)
    return advance(state_of(snapshot, [_instance()] if instances is None else instances), claim)


def _joining(**given: Any) -> Node:
    """A node as its kubelet registers it: nothing of ours on it but the boot taint."""
    return builders.node("node-1", labels={REGISTERED: ""}, taints=BOOTING, initialized=False, finalizers=(), **given)


def _one(step: LifecycleStep, kind: type[Any]) -> Any:
    (found,) = [command for command in step.commands if isinstance(command, kind)]
    return found


def _kinds(commands: Iterable[Command]) -> list[str]:
    return [type(command).__name__ for command in commands if type(command).__name__ != "Announce"]


def test_no_claim_is_launched_without_a_finalizer() -> None:
    """An instance whose claim could vanish would be a leak."""
    step = _step(builders.node_claim(conditions=(), finalizers=(), created=START - timedelta(hours=1)))
    assert _one(step, UpdateClaim).after.metadata.finalizers == [TERMINATION_FINALIZER]
    assert _kinds(step.commands) == ["UpdateClaim"]


def test_a_claim_is_left_to_whoever_wrote_it_for_a_while() -> None:
    """Provisioning launches what it wrote; two launchers at once would ask EC2 twice."""
    claim = builders.node_claim(conditions=(), created=START)
    assert _step(claim, now=START + LAUNCHING - timedelta(seconds=1)) == LifecycleStep((), in_progress=True)
    assert _step(claim, now=START + LAUNCHING) == LifecycleStep(launch=claim, in_progress=True)


def test_a_launch_that_failed_is_tried_again_at_once() -> None:
    """Its first attempt is known to be over."""
    failed = {"type": "Launched", "status": "Unknown", "reason": "LaunchFailed", "lastTransitionTime": START}
    claim = builders.node_claim(conditions=(), created=START)
    claim = claim.model_copy(update={"status": claim.status.model_validate({"conditions": [failed]})})
    assert _step(claim).launch == claim


@pytest.mark.parametrize(
    ("conditions", "age", "is_given_up"),
    [
        ((), timedelta(minutes=4, seconds=59), False),
        ((), timedelta(minutes=5), True),
        (("Launched",), timedelta(minutes=14), False),
        (("Launched",), timedelta(minutes=15), True),
        (("Launched", "Registered"), timedelta(minutes=15), False),
    ],
)
def test_a_claim_that_gets_nowhere_is_given_up(conditions: tuple[str, ...], age: timedelta, is_given_up: bool) -> None:
    """Five minutes for an instance, fifteen to join, both from the claim's creation;
    a registered node has all the time.
    """
    claim = builders.node_claim(
        conditions=conditions, node="node-1" if "Registered" in conditions else "", created=START
    )
    if conditions:
        claim = with_status(claim, provider_id="aws:///z/i-node-1")
    step = _step(claim, now=START + age)
    assert any(isinstance(command, DeleteClaim) for command in step.commands) is is_given_up


def test_a_launched_claim_waits_for_its_node() -> None:
    """Its condition says what it is waiting for."""
    step = _step(builders.node_claim(**LAUNCHED))
    found = _one(step, UpdateClaim).after.condition("Registered")
    assert (found.status, found.reason, found.last_transition_time) == ("Unknown", "NodeNotFound", START)
    assert step.in_progress


def test_the_conditions_of_a_waiting_claim_are_written_once() -> None:
    """A step that finds nothing new writes nothing."""
    claim = _one(_step(builders.node_claim(**LAUNCHED)), UpdateClaim).after
    assert _step(claim, now=START + timedelta(seconds=30)).commands == ()


def test_a_node_is_registered_in_one_write() -> None:
    """What the claim says goes onto the node together with the removal of the taint that kept pods away."""
    claim = builders.node_claim(
        **LAUNCHED,
        labels={"team": "a"},
        annotations={"note": "b"},
        taints=[{"key": "dedicated", "value": "x", "effect": "NoSchedule"}],
        startupTaints=[{"key": "warm-up", "effect": "NoSchedule"}],
    )
    step = _step(claim, _joining())
    node = _one(step, UpdateNode).after
    assert node.metadata.labels["team"] == "a"
    assert node.metadata.labels[REGISTERED] == "true"
    assert node.metadata.annotations["note"] == "b"
    assert node.metadata.finalizers == [TERMINATION_FINALIZER]
    assert [owner.kind for owner in node.metadata.owner_references] == ["NodeClaim"]
    assert {taint.key for taint in node.spec.taints} == {"dedicated", "warm-up", "node.kubernetes.io/not-ready"}


def test_the_claim_says_registered_after_the_node_does() -> None:
    """A crash between the two leaves a claim that finds its node registered, not a taint for ever."""
    step = _step(builders.node_claim(**LAUNCHED), _joining())
    assert _kinds(step.commands) == ["UpdateNode", "UpdateClaim"]
    claim = _one(step, UpdateClaim).after
    assert (claim.status.node_name, claim.is_true("Registered"), claim.is_true("Initialized")) == (
        "node-1",
        True,
        False,
    )


def test_a_registered_node_is_not_written_again() -> None:
    """What its owners change after registration, a removed startup taint above all, is theirs."""
    claim = builders.node_claim(**LAUNCHED, startupTaints=[{"key": "warm-up", "effect": "NoSchedule"}])
    node = builders.node("node-1", ready=False, initialized=False)
    assert _kinds(_step(claim, node).commands) == ["UpdateClaim"]


def test_taints_are_left_to_a_node_that_says_so() -> None:
    """``do-not-sync-taints`` belongs to those who taint their nodes at boot; only ours goes."""
    claim = builders.node_claim(**LAUNCHED, taints=[{"key": "dedicated", "effect": "NoSchedule"}])
    node = builders.node(
        "node-1",
        labels={REGISTERED: "", DO_NOT_SYNC_TAINTS: "true"},
        taints=BOOTING[:1],
        initialized=False,
        finalizers=(),
    )
    assert _one(_step(claim, node), UpdateNode).after.spec.taints == []


def test_a_node_without_the_boot_taint_gets_the_taints_of_its_claim_whatever_it_says() -> None:
    """A flag of the user's own stood in for all of ours, and the label with ours says nothing of it.

    https://github.com/aws/karpenter-provider-aws/issues/7486
    """
    claim = builders.node_claim(**LAUNCHED, taints=[{"key": "dedicated", "effect": "NoSchedule"}])
    own = {"key": "node.cilium.io/agent-not-ready", "value": "true", "effect": "NoExecute"}
    labels = {REGISTERED: "", DO_NOT_SYNC_TAINTS: "true"}
    node = builders.node("node-1", labels=labels, taints=[own], initialized=False, finalizers=())
    taints = _one(_step(claim, node), UpdateNode).after.spec.taints
    assert [taint.key for taint in taints] == ["node.cilium.io/agent-not-ready", "dedicated"]


def test_a_node_without_the_boot_taint_is_registered_and_reported() -> None:
    """Pods may have been placed too soon: worth a warning, not a lost node."""
    node = builders.node("node-1", labels={REGISTERED: ""}, initialized=False, finalizers=())
    step = _step(builders.node_claim(**LAUNCHED), node)
    assert [c.reason for c in step.commands if isinstance(c, Announce)] == ["UnregisteredTaintMissing"]
    assert "UpdateNode" in _kinds(step.commands)


def test_two_nodes_of_one_instance_are_an_error() -> None:
    """Neither can be trusted; liveness ends it."""
    twin = builders.node("node-2", provider_id="aws:///us-east-1a/i-node-1")
    step = _step(builders.node_claim(**LAUNCHED), _joining(), twin)
    assert _one(step, UpdateClaim).after.condition("Registered").reason == "MultipleNodesFound"


REGISTERED_CLAIM: dict[str, Any] = {**LAUNCHED, "conditions": ("Launched", "Registered"), "node": "node-1"}


@pytest.mark.parametrize(
    ("node", "claim", "reason"),
    [
        ({"ready": False}, {}, "NodeNotReady"),
        ({"taints": [{"key": "warm-up", "effect": "NoSchedule"}]}, {}, "StartupTaintsExist"),
        ({"taints": BOOTING[1:]}, {}, "KnownEphemeralTaintsExist"),
        ({"taints": [{"key": "readiness.k8s.io/gpu", "effect": "NoSchedule"}]}, {}, "KnownEphemeralTaintsExist"),
        ({}, {"requests": {"cpu": "1", "nvidia.com/gpu": "1"}}, "ResourceNotRegistered"),
        ({}, {"annotations": {DEVICE_DRIVERS: "gpu.nvidia.com"}}, "DRADriverPoolsNotPublished"),
    ],
)
def test_a_node_is_fit_only_when_nothing_is_missing(node: dict[str, Any], claim: dict[str, Any], reason: str) -> None:
    """The first thing that is missing is the reason, and the chain of ticks goes on."""
    found = builders.node_claim(
        **{**REGISTERED_CLAIM, **claim}, startupTaints=[{"key": "warm-up", "effect": "NoSchedule"}]
    )
    step = _step(found, builders.node("node-1", initialized=False, **node))
    assert _one(step, UpdateClaim).after.condition("Initialized").reason == reason
    assert step.in_progress


def test_a_fit_node_is_initialized_and_the_claim_ready() -> None:
    """All three conditions hold, so the claim is Ready, and nothing is in progress any more."""
    node = builders.node("node-1", initialized=False, resources={"nvidia.com/gpu": "1"})
    claim = builders.node_claim(**REGISTERED_CLAIM, requests={"cpu": "1", "nvidia.com/gpu": "1"})
    claim = claim.model_copy(update={"metadata": claim.metadata.model_copy(update={"generation": 1})})
    step = _step(claim, node)
    assert _one(step, UpdateNode).after.metadata.labels[INITIALIZED] == "true"
    assert _one(step, UpdateClaim).after.is_true("Ready")
    assert not step.in_progress


def test_a_ready_node_may_register_and_initialize_in_one_step() -> None:
    """A tick is five seconds of a pod's waiting."""
    node = builders.node("node-1", labels={REGISTERED: ""}, taints=BOOTING[:1], initialized=False, finalizers=())
    step = _step(builders.node_claim(**LAUNCHED), node)
    assert _one(step, UpdateClaim).after.is_true("Initialized")


@pytest.mark.parametrize(("seconds", "rest"), [(0, 0), (20, 5), (60, 15), (240, 60), (600, 60)])
def test_a_boot_is_looked_at_ever_less_often(seconds: int, rest: int) -> None:
    """The webhook rings when the instance joins; without it, the node is late by a quarter of its boot."""
    claim = builders.node_claim(**{**LAUNCHED, "conditions": ()})
    claim = with_condition(claim, true("Launched", observed(claim, START)))
    booting = _step(claim, now=START + timedelta(seconds=seconds))
    noted = _one(booting, UpdateClaim).after
    step = _step(noted, now=START + timedelta(seconds=seconds))
    assert (step.commands, step.in_progress, step.rest) == ((), True, timedelta(seconds=rest))


def test_what_a_step_has_changed_is_looked_at_again_at_once() -> None:
    """Something may follow from it."""
    step = _step(builders.node_claim(**LAUNCHED), _joining(ready=False), now=START + timedelta(minutes=1))
    assert step.commands
    assert not step.rest


def test_a_node_that_never_gets_fit_is_left_to_the_schedule() -> None:
    """An endless chain of ticks would read the cluster every five seconds for ever."""
    step = _step(
        builders.node_claim(**REGISTERED_CLAIM), builders.node("node-1", ready=False), now=START + timedelta(minutes=20)
    )
    assert not step.in_progress


def test_a_claim_of_another_controller_is_stamped_and_not_drifted() -> None:
    """A user may move a cluster here and back without replacing a node."""
    claim = builders.node_claim(node="node-1", annotations={NODE_POOL_HASH_VERSION: "v3"}, created=START)
    step = _step(claim, builders.node("node-1"), node_pools=(builders.node_pool(),))
    assert _one(step, UpdateClaim).after.metadata.annotations[NODE_POOL_HASH_VERSION] == HASH_VERSION


def test_an_instance_is_named_after_its_node_once() -> None:
    """For people who look at EC2; only when the node is fit and nothing else is to be said of its claim."""
    assert not _step(builders.node_claim(**REGISTERED_CLAIM), builders.node("node-1")).tagging
    step = _step(builders.node_claim(node="node-1", created=START), builders.node("node-1"))
    assert not step.tagging
    tag, update = _step(_one(step, UpdateClaim).after, builders.node("node-1")).tagging
    assert isinstance(tag, TagInstance)
    assert isinstance(update, UpdateClaim)
    assert (tag.instance_id, tag.tags) == ("i-node-1", {"Name": "node-1", "karpenter.sh/nodeclaim": "default-1"})
    assert not _step(update.after, builders.node("node-1")).tagging


@pytest.mark.parametrize(
    ("there", "missing"),
    [
        ({"Name": "batch"}, {"karpenter.sh/nodeclaim": "default-1"}),
        ({"karpenter.sh/nodeclaim": "default-1"}, {"Name": "node-1"}),
        ({"Name": "batch", "karpenter.sh/nodeclaim": "default-1"}, None),
    ],
)
def test_a_name_that_an_instance_has_stays(there: dict[str, str], missing: dict[str, str] | None) -> None:
    """Users give one by ``spec.tags`` of their EC2NodeClass (Karpenter for AWS, nodeclaim/tagging)."""
    claim = builders.node_claim(node="node-1", created=START)
    claim = _one(_step(claim, builders.node("node-1")), UpdateClaim).after
    tagging = _step(claim, builders.node("node-1"), instances=[replace(_instance(), tags=there)]).tagging
    assert [command.tags for command in tagging if isinstance(command, TagInstance)] == ([missing] if missing else [])
    assert isinstance(tagging[-1], UpdateClaim)


def test_an_instance_that_ec2_does_not_list_is_not_named() -> None:
    """Nobody knows which tags it has."""
    claim = _one(_step(builders.node_claim(node="node-1", created=START), builders.node("node-1")), UpdateClaim).after
    assert not _step(claim, builders.node("node-1"), instances=[]).tagging


def test_a_deleted_node_takes_its_claim_along() -> None:
    """``kubectl delete node`` is a way to retire one."""
    node = builders.node("node-1", deleted=START)
    assert _kinds(_step(builders.node_claim(node="node-1", created=START), node).commands) == ["DeleteClaim"]


@pytest.mark.parametrize("state", ["stopping", "stopped", "shutting-down", "terminated"])
def test_a_claim_whose_instance_serves_nobody_any_more_is_given_up(state: str) -> None:
    """Whatever its Node says still, and although no event told of it."""
    claim = builders.node_claim(node="node-1", created=START)
    step = _step(claim, builders.node("node-1"), instances=[replace(_instance(), state=state)])
    assert _one(step, DeleteClaim).reason == f"its instance i-node-1 is {state}"


@pytest.mark.parametrize(
    ("ready", "launched", "missing", "is_given_up"),
    [
        (False, timedelta(hours=1), timedelta(minutes=5), True),
        (False, timedelta(hours=1), timedelta(minutes=4), False),
        (False, timedelta(hours=1), None, False),
        (True, timedelta(hours=1), timedelta(minutes=5), False),
    ],
)
def test_a_claim_whose_instance_ec2_does_not_know_is_given_up_when_all_says_so(
    ready: bool, launched: timedelta, missing: timedelta | None, is_given_up: bool
) -> None:
    """EC2 has said it for five minutes, and the kubelet is silent: any one list may leave out what runs."""
    claim = builders.node_claim(node="node-1", created=START)
    if missing is not None:
        claim = with_condition(claim, true(INSTANCE_MISSING, observed(claim, START + launched - missing)))
    step = _step(claim, builders.node("node-1", ready=ready), now=START + launched, instances=())
    assert any(isinstance(command, DeleteClaim) for command in step.commands) is is_given_up


@pytest.mark.parametrize(
    ("ready", "age", "is_noted"),
    [
        (False, timedelta(minutes=15), True),
        (False, timedelta(minutes=14), False),
        (True, timedelta(minutes=15), False),
    ],
)
def test_a_claim_notes_since_when_ec2_knows_nothing_of_its_instance(
    ready: bool, age: timedelta, is_noted: bool
) -> None:
    """Not while EC2 may list a new instance late, and not while its kubelet lives; it forgets it with the next list."""
    joined = builders.node_claim(
        node="node-1", conditions=("Registered", "Initialized"), provider_id="aws:///us-east-1a/i-node-1"
    )
    claim = with_condition(joined, true("Launched", Observation(START, 1)))
    node = builders.node("node-1", ready=ready)
    after = [
        command.after
        for command in _step(claim, node, now=START + age, instances=()).commands
        if isinstance(command, UpdateClaim)
    ]
    assert any(found.is_true(INSTANCE_MISSING) for found in after) is is_noted
    if is_noted:
        assert _one(_step(after[0], node, now=START + age), UpdateClaim).after.condition(INSTANCE_MISSING) is None


def test_what_ec2_could_not_be_asked_says_nothing() -> None:
    """A claim keeps what it has noted, and is not given up for it."""
    claim = builders.node_claim(node="node-1", created=START)
    claim = with_condition(claim, true(INSTANCE_MISSING, observed(claim, START)))
    snapshot = Snapshot(
        now=START + timedelta(hours=1), node_claims=(claim,), nodes=(builders.node("node-1", ready=False),)
    )
    for view in (state_of(snapshot, None), state_of(snapshot, (), are_complete=False)):
        assert not any(isinstance(command, DeleteClaim) for command in advance(view, claim).commands)
