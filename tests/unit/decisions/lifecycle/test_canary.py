"""A new image is tried on a few nodes: what is said of it from one snapshot."""

import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace as changed

from joinery.decisions.lifecycle.pools.canary import ImageTrial, TrialStage, canary_events, trials
from joinery.objects.annotations.canaries import CanaryOutcome, verdicts_of
from joinery.objects.annotations.disruption import Replaces, encoded
from joinery.objects.karpenter.disruption import CanaryRule, canary_of
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from joinery.objects.karpenter.labels import ARCH, CANARIES, CANARY, CANARY_APPROVED, INTERRUPTED_AT, RAN_WELL, REPLACES
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Condition, ContainerState, ContainerStateWaiting, ContainerStatus, Node, Pod
from joinery.objects.snapshot.claims import with_status
from joinery.objects.snapshot.snapshot import Snapshot
from simulator import builders
from simulator.clock import START

OLD, NEW = "ami-old", "ami-amd64"
RULE = CanaryRule(timedelta(minutes=10))
AGO = {"long": START - timedelta(days=1), "lately": START - timedelta(minutes=5)}


def _claim(name: str, image: str, *, fit: bool = True, since: str = "long", **given: Any) -> NodeClaim:
    conditions = ["Launched", "Registered", *(["Initialized"] if fit else [])]
    fields = {"labels": {ARCH: "amd64"}, "created": AGO[since], **given}
    claim = builders.node_claim(f"claim-{name}", node=name, conditions=conditions, **fields)
    dated = [it.model_copy(update={"last_transition_time": AGO[since]}) for it in claim.status.conditions]
    return with_status(claim, image_id=image, conditions=dated)


def _node(name: str, *, ready: bool = True, since: datetime = START - timedelta(days=1)) -> Node:
    node = builders.node(name)
    condition = Condition(type="Ready", status="True" if ready else "False", last_transition_time=since)
    return changed(node, status=changed(node.status, conditions=[condition]))


def _pod(name: str, node: str, *, ready: bool = True, crashes: int = 0, since: str = "long", owner: str = "web") -> Pod:
    pod = builders.pod(name, node=node, owner=owner, created=AGO[since])
    waiting = ContainerState(waiting=ContainerStateWaiting(reason="CrashLoopBackOff")) if crashes else None
    status = changed(
        pod.status,
        conditions=[Condition(type="Ready", status="True" if ready and not crashes else "False")],
        container_statuses=[ContainerStatus(name="main", restart_count=crashes, state=waiting)],
    )
    return changed(pod, status=status)


def _class(**annotations: str) -> EC2NodeClass:
    node_class = builders.node_class()
    metadata = node_class.metadata.model_copy(update={"annotations": annotations})
    return node_class.model_copy(update={"metadata": metadata})


OUTDATED = _claim("old", OLD)


def _snapshot(*claims: NodeClaim, pods: tuple[Pod, ...] = (), nodes: tuple[Node, ...] = (), **given: Any) -> Snapshot:
    names = {node.metadata.name for node in nodes}
    there = [claim.status.node_name for claim in (OUTDATED, *claims) if claim.status.node_name not in {*names, ""}]
    return Snapshot(
        now=START,
        node_claims=(OUTDATED, *claims),
        node_classes=(given.pop("node_class", _class()),),
        nodes=(*nodes, *map(_node, there)),
        pods=pods,
        **given,
    )


def _trial(*claims: NodeClaim, rule: CanaryRule | None = RULE, **given: Any) -> ImageTrial | None:
    return trials(_snapshot(*claims, **given), rule).of.get(("default", NEW))


def _stage(*claims: NodeClaim, **given: Any) -> TrialStage:
    trial = _trial(*claims, **given)
    assert trial is not None
    return trial.stage


# --- when there is a trial ---


def test_nothing_is_tried_where_no_node_has_another_image() -> None:
    """Also a class that nobody has looked at says nothing."""
    current = with_status(OUTDATED, image_id=NEW)
    snapshot = Snapshot(now=START, node_claims=(current,), node_classes=(_class(),))
    assert not trials(snapshot, RULE).of
    unknown = builders.node_class(ready=False)
    unseen = unknown.model_copy(update={"status": type(unknown.status)()})
    assert not trials(Snapshot(now=START, node_claims=(OUTDATED,), node_classes=(unseen,)), RULE).of


def test_an_untried_image_has_room_for_one_node() -> None:
    """As many as the rule says: a number, or a part of the class's nodes."""
    trial = _trial()
    assert trial is not None
    assert (trial.stage, trial.room) == (TrialStage.TRIED, 1)
    assert "on 1 node first" in str(trial.why)
    third = _trial(*(_claim(f"old-{number}", OLD) for number in range(8)), rule=canary_of("25% for 10m"))
    assert third is not None
    assert third.room == 3


@pytest.mark.parametrize("image", [NEW, ""], ids=["launched", "to be launched"])
def test_a_node_that_boots_it_takes_the_room(image: str) -> None:
    """A claim that waits for its launch may boot any image of its class."""
    coming = _claim("new", image, fit=False, since="lately")
    if not image:
        coming = with_status(coming, provider_id="", node_name="", conditions=[])
    trial = _trial(coming, nodes=(_node("new", ready=False, since=START),))
    assert trial is not None
    assert (trial.stage, trial.room) == (TrialStage.TRIED, 0)


# --- what passes ---


def test_an_image_passes_when_a_node_ran_well_with_it_for_the_soak_time() -> None:
    """Whoever bought the node: those for pods that wait boot the image as well."""
    trial = _trial(_claim("new", NEW), pods=(_pod("web-1", "new"),))
    assert trial is not None
    assert trial.stage is TrialStage.PASSED
    assert "claim-new" in str(trial.why)


@pytest.mark.parametrize(
    ("claim", "node"),
    [
        (_claim("new", NEW, since="lately"), _node("new")),
        (_claim("new", NEW), _node("new", since=AGO["lately"])),
        (_claim("new", NEW, fit=False, since="lately"), _node("new")),
    ],
    ids=["fit lately", "ready again lately", "not fit yet"],
)
def test_a_node_that_has_not_run_for_so_long_proves_nothing_yet(claim: NodeClaim, node: Node) -> None:
    """The soak time runs from when it was fit for pods, and anew when it was not ready in between."""
    assert _stage(claim, nodes=(node,)) is TrialStage.TRIED


def test_a_replacement_soaks_with_the_pods_that_it_was_bought_for() -> None:
    """While the node that it replaces keeps them, nothing is tried."""
    link = {REPLACES: encoded(Replaces("command", ("claim-old",)))}
    replacement = _claim("new", NEW, annotations=link)
    assert _stage(replacement) is TrialStage.TRIED
    assert _stage(replacement, pods=(_pod("web-1", "new", since="lately"),)) is TrialStage.TRIED
    assert _stage(replacement, pods=(_pod("web-1", "new"),)) is TrialStage.PASSED


def test_a_pod_that_is_still_starting_is_waited_for() -> None:
    """It is judged when its own soak time is over."""
    pods = (_pod("web-1", "new", ready=False, since="lately"), _pod("web-2", "old"))
    assert _stage(_claim("new", NEW), pods=pods) is TrialStage.TRIED


# --- what fails ---


def test_a_node_that_does_not_get_ready_fails_the_image() -> None:
    """Also when it is being deleted since, because its command was rolled back."""
    trial = _trial(_claim("new", NEW, fit=False))
    assert trial is not None
    assert trial.stage is TrialStage.FAILED
    assert "was not fit for pods within 0:09:00" in str(trial.why)
    assert _stage(_claim("new", NEW, fit=False, deleted=START)) is TrialStage.FAILED


@pytest.mark.parametrize(
    "given",
    [{"deleted": AGO["long"]}, {"annotations": {INTERRUPTED_AT: AGO["long"].isoformat()}}],
    ids=["deleted by a person", "taken by EC2"],
)
def test_a_node_that_ended_before_its_time_says_nothing(given: Any) -> None:
    """It might have got ready."""
    assert _stage(_claim("new", NEW, fit=False, **given)) is TrialStage.TRIED


def test_a_node_that_is_no_longer_ready_fails_the_image_after_two_minutes() -> None:
    """A kubelet that is started anew is ready again by then."""
    claim = _claim("new", NEW)
    lately = _node("new", ready=False, since=START - timedelta(seconds=119))
    assert _stage(claim, nodes=(lately,)) is TrialStage.TRIED
    assert _stage(claim, nodes=(_node("new", ready=False, since=AGO["lately"]),)) is TrialStage.FAILED


@pytest.mark.parametrize(
    ("pod", "stage"),
    [
        (_pod("web-1", "new", crashes=3, since="lately"), TrialStage.FAILED),
        (_pod("web-1", "new", crashes=2, since="lately"), TrialStage.TRIED),
        (_pod("web-1", "new", ready=False), TrialStage.FAILED),
    ],
    ids=["a crash loop", "it began badly", "never ready"],
)
def test_a_pod_fails_the_image_if_others_of_its_owner_run_well(pod: Pod, stage: TrialStage) -> None:
    """A crash or two may be for a dependency that was not there yet."""
    assert _stage(_claim("new", NEW), pods=(pod, _pod("web-2", "old"))) is stage


def test_a_workload_that_fails_everywhere_says_nothing() -> None:
    """Nor does one that runs nowhere else: a new release may be broken on any image."""
    crashing = _pod("web-1", "new", crashes=5)
    assert _stage(_claim("new", NEW), pods=(crashing,)) is TrialStage.PASSED
    elsewhere = (_pod("web-2", "old", crashes=5), _pod("web-3", "old"))
    assert _stage(_claim("new", NEW), pods=(crashing, *elsewhere)) is TrialStage.PASSED


@pytest.mark.parametrize(
    ("text", "stage"),
    [('["uid-replicaset-web"]', TrialStage.FAILED), ('["uid-other"]', TrialStage.PASSED), ("{", TrialStage.PASSED)],
)
def test_the_only_pod_of_its_owner_counts_if_it_ran_well_on_the_node_before(text: str, stage: TrialStage) -> None:
    """The replacement remembers that, for a pod that has come back under another name."""
    claim = _claim("new", NEW, annotations={RAN_WELL: text})
    assert _stage(claim, pods=(_pod("web-1", "new", crashes=5),)) is stage


# --- what is remembered, and what a person says ---


def test_a_verdict_is_written_on_the_class_and_told() -> None:
    """The node that told it may be gone a minute later."""
    snapshot = _snapshot(_claim("new", NEW, fit=False))
    judged = trials(snapshot, RULE)
    assert judged.halted == {"default"}
    after = judged.remembered(snapshot.node_classes[0])
    assert verdicts_of(after)[NEW].outcome is CanaryOutcome.FAILED
    (told,) = canary_events(snapshot.node_classes[0], after)
    assert (told.reason, told.warning) == ("CanaryFailed", True)
    again = trials(_snapshot(node_class=after), RULE)
    assert again.of["default", NEW].stage is TrialStage.FAILED
    assert again.remembered(after) == after
    assert not list(canary_events(after, after))


def test_a_verdict_is_forgotten_with_the_image_and_not_before() -> None:
    """While nobody can say what the class selects, it stands."""
    snapshot = _snapshot(_claim("new", NEW, fit=False))
    judged = trials(snapshot, RULE)
    after = judged.remembered(snapshot.node_classes[0])
    blind = after.model_copy(update={"status": after.status.model_copy(update={"amis": []})})
    assert CANARIES in judged.remembered(blind).metadata.annotations
    amis = [builders.node_class().status.amis[0].model_copy(update={"id": "ami-newer"})]
    newer = after.model_copy(update={"status": after.status.model_copy(update={"amis": amis})})
    assert CANARIES not in judged.remembered(newer).metadata.annotations


@pytest.mark.parametrize("text", ["", "{", "[1]", '[{"image": "ami-amd64"}]', "null", "[" * 4000])
def test_a_verdict_that_cannot_be_read_is_none(text: str) -> None:
    """Anybody may edit an annotation."""
    assert _stage(node_class=_class(**{CANARIES: text})) is TrialStage.TRIED


def test_a_person_may_approve_an_image() -> None:
    """That holds for this image alone, whatever its trial has come to."""
    failed = json.dumps([{"image": NEW, "outcome": "Failed", "at": START.isoformat(), "why": "x"}])
    assert _stage(node_class=_class(**{CANARIES: failed})) is TrialStage.FAILED
    approved = _class(**{CANARIES: failed, CANARY_APPROVED: f"ami-other, {NEW}"})
    assert _stage(node_class=approved) is TrialStage.PASSED


def test_a_class_may_say_how_its_images_are_tried() -> None:
    """Its annotation counts, and not the setting."""
    assert _trial(node_class=_class(**{CANARY: "off"})) is None
    assert _trial(rule=None) is None
    assert _stage(rule=None, node_class=_class(**{CANARY: "1 node for 1h"})) is TrialStage.TRIED
    assert _stage(_claim("new", NEW), node_class=_class(**{CANARY: "2 nodes for 10m"})) is TrialStage.TRIED


def test_an_annotation_that_cannot_be_read_halts_the_drift() -> None:
    """Someone meant to try images."""
    trial = _trial(node_class=_class(**{CANARY: "some nodes"}))
    assert trial is not None
    assert (trial.stage, trial.verdict) == (TrialStage.FAILED, None)
    assert "cannot be read" in str(trial.why)


@pytest.mark.parametrize(
    "text", ["", "1 node", "0 nodes for 10m", "101% for 1h", "1 node for ever", "1 pod for 10m", "on"]
)
def test_a_rule_that_is_none_is_refused(text: str) -> None:
    """With an example of one."""
    with pytest.raises(ValueError, match="1 node for 10m"):
        canary_of(text)
