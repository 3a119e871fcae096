"""Disruption commands: replacements first, then the nodes that they replace, whatever happens in between."""

from typing import Any

import pytest

from joinery.gateways.doorbell.gateway import Bell
from joinery.objects.annotations.disruption import DISRUPTION_REASON, BoughtFor, Readiness, purchase_of, record_of
from joinery.objects.errors import CapacityError, UnavailableError
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.karpenter.labels import (
    DISRUPTION_COMMAND,
    DO_NOT_DISRUPT,
    EXCLUDE_FROM_LOAD_BALANCERS,
    NODE_POOL_HASH,
    PLANNED_TAINT,
    REPLACEMENT_LAUNCHED,
    REPLACES,
    RETIRED_FOR,
)
from joinery.objects.karpenter.meta import with_metadata
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Node, Pod
from joinery.objects.snapshot.claims import annotated
from simulator import builders
from tests.functional.disrupting import disrupt, is_tainted, now, others, running, stays
from tests.functional.fuse import Fuse
from tests.functional.stand import APART, Stand


def _ready(stand: Stand) -> None:
    """Let what was launched boot, and lifecycle see it."""
    stand.boot()
    stand.live()
    stand.live()


def _pod(stand: Stand, name: str = "pod-0") -> Pod:
    return next(pod for pod in stand.world.cluster.pods.values() if pod.metadata.name == name)


def _node(stand: Stand, claim: NodeClaim) -> Node:
    return stand.world.cluster.nodes[now(stand, claim).status.node_name]


# --- as planned ---


def test_a_node_is_retired_once_its_replacement_is_initialised(stand: Stand) -> None:
    """Until then it keeps its pods and its traffic, and says why it is tainted."""
    (old,) = running(stand)
    stand.rung()
    assert disrupt(stand, old).why_not is None
    assert Bell.LIFECYCLE in stand.rung()
    assert is_tainted(stand, old)
    assert EXCLUDE_FROM_LOAD_BALANCERS not in _node(stand, old).metadata.labels
    reason = now(stand, old).condition(DISRUPTION_REASON)
    assert reason is not None
    assert reason.reason == "Underutilized"
    (new,) = others(stand, [old])
    assert new.is_true("Launched")
    assert stand.live()["in_progress"] == 2
    assert not now(stand, old).is_deleting
    _ready(stand)
    assert now(stand, old).is_deleting
    assert now(stand, old).metadata.annotations[RETIRED_FOR] == "Underutilized"
    assert "DisruptionTerminating" in stand.event_reasons("Node") & stand.event_reasons("NodeClaim")
    assert {"DisruptionLaunching", "DisruptionWaitingReadiness"} <= stand.event_reasons("NodeClaim")


def test_the_pods_of_a_retired_node_move_to_its_replacement(stand: Stand) -> None:
    """Nothing else is bought for them, before or after their eviction, and one node is left."""
    (old,) = running(stand, owner="web")
    disrupt(stand, old)
    assert stand.provision()["launches"] == 0
    _ready(stand)
    assert stand.provision()["launches"] == 0
    assert REPLACEMENT_LAUNCHED in now(stand, old).metadata.annotations
    stand.live()
    assert "Evicted" in stand.event_reasons("Pod")
    stand.world.cluster.add(builders.pod("pod-9", cpu="900m", labels={"app": "web"}, affinity=APART, owner="web"))
    assert stand.provision()["launches"] == 0
    for _ in range(6):
        stand.live()
        stand.bind()
        stand.wait(10)
    assert len(stand.alive) == 1
    (new,) = stand.claims
    assert _pod(stand, "pod-9").spec.node_name == new.status.node_name
    assert REPLACES not in new.metadata.annotations


def test_a_replacement_is_kept_for_the_pods_that_will_move(stand: Stand) -> None:
    """While a second replacement boots, pods that wait are not let onto the first, nor onto the node that goes."""
    old = running(stand, 2)
    disrupt(stand, *old)
    (first, second) = others(stand, old)
    stand.wait(10)
    node = stand.kubelets.register(first.status.provider_id.rpartition("/")[2])
    stand.kubelets.become_ready(node.metadata.name)
    stand.live()
    stand.wait(60)
    stand.live()
    assert PLANNED_TAINT in {taint.key for taint in _node(stand, first).spec.taints}
    assert not any(now(stand, claim).is_deleting for claim in old)
    stand.world.cluster.add(builders.pod("newcomer", cpu="3500m"))
    assert stand.provision()["launches"] == 1


def test_no_pod_is_planned_onto_a_candidate(stand: Stand) -> None:
    """Its free room is about to go."""
    (old,) = running(stand)
    disrupt(stand, old, with_replacements=False)
    stand.world.cluster.add(builders.pod("newcomer", cpu="100m"))
    assert stand.provision()["launches"] == 1


def test_a_forced_command_waits_for_launches_only(stand: Stand) -> None:
    """A spot node with a bad forecast may be gone before another can boot."""
    (old,) = running(stand)
    disrupt(stand, old, reason=DisruptionReason.REBALANCE, waits_for=Readiness.LAUNCHED)
    stand.live()
    assert now(stand, old).metadata.annotations[RETIRED_FOR] == "Rebalance"
    stand.provision()
    stand.live()
    assert "Evicted" in stand.event_reasons("Pod")


def test_a_command_without_replacements_goes_on_at_once(stand: Stand) -> None:
    """An empty node waits for nobody."""
    (old,) = running(stand)
    stand.world.cluster.api.delete(_pod(stand))
    disrupt(stand, old, reason=DisruptionReason.EMPTY, with_replacements=False)
    stand.live()
    assert now(stand, old).is_deleting


# --- as not planned ---


def test_a_pod_that_must_not_be_disrupted_saves_its_node(stand: Stand) -> None:
    """It came while the replacement booted. The replacement, which nobody needs, goes."""
    (old,) = running(stand)
    disrupt(stand, old)
    guard = builders.pod("guard", cpu="100m", node=old.status.node_name, annotations={DO_NOT_DISRUPT: "true"})
    stand.world.cluster.add(guard)
    _ready(stand)
    stand.live()
    assert stays(stand, old)
    assert "default/guard" in stand.messages("DisruptionRolledBack")[old.metadata.name]
    (new,) = others(stand, [old])
    assert new.is_deleting
    for _ in range(4):
        stand.wait(10)
        stand.live()
    assert len(stand.alive) == 1


@pytest.mark.parametrize(
    "pod",
    [{"tolerations": [{"operator": "Exists"}]}, {"owner": builders.owner("Node", "node", api_version="v1")}],
    ids=["tolerating", "static"],
)
def test_a_protected_pod_that_no_drain_asks_saves_its_node_too(stand: Stand, pod: Any) -> None:
    """It would end with the node, without a word."""
    (old,) = running(stand)
    disrupt(stand, old)
    guard = builders.pod("guard", cpu="100m", node=old.status.node_name, annotations={DO_NOT_DISRUPT: "true"}, **pod)
    stand.world.cluster.add(guard)
    _ready(stand)
    stand.live()
    assert stays(stand, old)


@pytest.mark.parametrize(("period", "goes"), [(None, False), ("1h", True)])
def test_drift_is_stopped_by_pods_only_where_nothing_promises_an_end(
    stand: Stand, period: str | None, goes: bool
) -> None:
    """A ``terminationGracePeriod`` says that the node can be replaced whatever its pods say (Karpenter)."""
    (old,) = running(stand)
    spec = old.spec.model_copy(update={"termination_grace_period": period})
    stand.world.cluster.api.update(annotated(old.model_copy(update={"spec": spec}), {NODE_POOL_HASH: "older"}))
    stand.live()
    disrupt(stand, now(stand, old), reason=DisruptionReason.DRIFTED)
    guard = builders.pod("guard", cpu="100m", node=old.status.node_name, annotations={DO_NOT_DISRUPT: "true"})
    stand.world.cluster.add(guard)
    _ready(stand)
    assert now(stand, old).is_deleting is goes


def test_a_used_up_budget_saves_the_node(stand: Stand) -> None:
    """The eviction would be refused: the node would stand half drained."""
    (old,) = running(stand)
    disrupt(stand, old)
    stand.world.cluster.add(builders.pdb("web", labels={"app": "web"}))
    _ready(stand)
    stand.live()
    assert stays(stand, old)
    assert "web" in stand.messages("DisruptionRolledBack")[old.metadata.name]


def test_a_replacement_that_never_gets_ready_is_given_up_at_the_deadline(stand: Stand) -> None:
    """After ten minutes, before the registration timeout ends it by itself."""
    (old,) = running(stand)
    disrupt(stand, old)
    stand.wait(599)
    stand.live()
    assert is_tainted(stand, old)
    stand.wait(1)
    stand.live()
    stand.live()
    assert stays(stand, old)
    assert "was not ready within 0:10:00" in stand.messages("DisruptionRolledBack")[old.metadata.name]
    assert others(stand, [old])[0].is_deleting


def test_a_replacement_that_ec2_has_no_capacity_for_frees_the_node(stand: Stand) -> None:
    """Its claim is given up at once, and so is the command."""
    (old,) = running(stand)
    stand.world.cloud.fail_next("launch", CapacityError("out of everything"))
    disrupt(stand, old)
    stand.live()
    stand.live()
    assert stays(stand, old)
    assert "was lost" in stand.messages("DisruptionRolledBack")[old.metadata.name]


def test_replacements_that_nobody_wrote_are_lost_after_a_minute(stand: Stand) -> None:
    """Whoever was to write them may still be at it until its function is killed."""
    (old,) = running(stand)
    disrupt(stand, old)
    (new,) = others(stand, [old])
    stand.world.cluster.api.delete(new)
    stand.world.cluster.update_node_claim(now(stand, new), with_metadata(now(stand, new), finalizers=[]))
    stand.live()
    assert is_tainted(stand, old)
    stand.wait(65)
    stand.live()
    stand.live()
    assert stays(stand, old)


def test_a_launch_that_failed_is_tried_again_by_lifecycle(stand: Stand) -> None:
    """The claim is written; the command waits for it."""
    (old,) = running(stand)
    stand.world.cloud.fail_next("launch", UnavailableError("throttled"))
    with pytest.raises(UnavailableError):
        disrupt(stand, old)
    stand.live()
    (new,) = others(stand, [old])
    assert new.is_true("Launched")
    _ready(stand)
    assert now(stand, old).is_deleting


def test_an_interrupted_candidate_drops_out_and_its_replacementstays(stand: Stand) -> None:
    """Its pods need it all the more. The other candidate is replaced as planned."""
    first, second = old = running(stand, 2)
    disrupt(stand, *old)
    stand.receive("interruption_spot_warning", first.status.provider_id.rpartition("/")[2])
    assert stand.provision()["launches"] == 0
    stand.live()
    assert "Evicted" in stand.event_reasons("Pod")
    assert not now(stand, second).is_deleting
    _ready(stand)
    assert now(stand, second).is_deleting
    assert not any(claim.is_deleting for claim in others(stand, old))


def test_an_interrupted_replacement_rolls_the_command_back(stand: Stand) -> None:
    """What it was to replace stays where it is."""
    (old,) = running(stand)
    disrupt(stand, old)
    (new,) = others(stand, [old])
    stand.receive("interruption_spot_warning", new.status.provider_id.rpartition("/")[2])
    stand.live()
    stand.live()
    assert stays(stand, old)
    assert stand.provision()["launches"] == 0


@pytest.mark.parametrize("text", ["", "{", "{}", "[]", "null", '{"id": "x", "candidates": ["y"]}'])
def test_a_command_that_cannot_be_read_is_rolled_back(stand: Stand, text: str) -> None:
    """Somebody edited it. The node takes pods again, and its replacement goes."""
    (old,) = running(stand)
    disrupt(stand, old)
    stand.world.cluster.update_node_claim(now(stand, old), annotated(now(stand, old), {DISRUPTION_COMMAND: text}))
    stand.live()
    assert stays(stand, old)
    assert "cannot be read" in stand.messages("DisruptionRolledBack")[old.metadata.name]
    assert others(stand, [old])[0].is_deleting


def test_a_candidate_whose_annotation_somebody_removesstays(stand: Stand) -> None:
    """That is how a person takes a node out of a command; the other one goes on."""
    first, second = old = running(stand, 2)
    disrupt(stand, *old)
    marks = {key: value for key, value in now(stand, first).metadata.annotations.items() if key != DISRUPTION_COMMAND}
    stand.world.cluster.update_node_claim(now(stand, first), with_metadata(now(stand, first), annotations=marks))
    _ready(stand)
    assert now(stand, second).is_deleting
    assert stays(stand, first)


def test_a_command_copied_to_another_claim_is_none(stand: Stand) -> None:
    """Its candidates do not name that claim."""
    first, second = running(stand, 2)
    disrupt(stand, first)
    copied = now(stand, first).metadata.annotations[DISRUPTION_COMMAND]
    stand.world.cluster.update_node_claim(second, annotated(second, {DISRUPTION_COMMAND: copied}))
    stand.live()
    assert stays(stand, second)
    assert record_of(now(stand, first)) is not None


def test_a_replacement_that_pods_use_outlives_the_rollback(stand: Stand) -> None:
    """It becomes an ordinary node."""
    (old,) = running(stand)
    disrupt(stand, old)
    stand.boot()
    (new,) = others(stand, [old])
    node = next(n for n in stand.world.cluster.nodes.values() if n.spec.provider_id == new.status.provider_id)
    stand.world.cluster.add(builders.pod("user", cpu="100m", node=node.metadata.name))
    stand.world.cluster.add(
        builders.pod("guard", cpu="100m", node=old.status.node_name, annotations={DO_NOT_DISRUPT: "true"})
    )
    for _ in range(3):
        stand.live()
    assert stays(stand, old)
    assert not now(stand, new).is_deleting
    assert REPLACES not in now(stand, new).metadata.annotations


def test_a_candidate_whose_deletion_failed_stays_if_a_budget_is_used_up_meanwhile(stand: Stand) -> None:
    """Nothing is left of its retirement."""
    (old,) = running(stand)
    disrupt(stand, old)
    stand.boot()
    stand.live()
    refused = Fuse(failing="cluster.delete_node_claim", error=UnavailableError("throttled"))
    with pytest.raises(UnavailableError):
        Stand(stand.world, gateways=refused.protect(stand.gateways)).live()
    assert RETIRED_FOR in now(stand, old).metadata.annotations
    stand.world.cluster.add(builders.pdb("web", labels={"app": "web"}))
    stand.live()
    stand.live()
    assert stays(stand, old)


# --- what a replacement was bought for ---


def test_a_replacement_says_what_its_command_saves_for_as_long_as_it_is_there(stand: Stand) -> None:
    """Whoever decides later learns from it when the moves are repaid. Its part in the command is over by then."""
    (old,) = running(stand, owner="web")
    disrupt(stand, old, savings=0.36, move_price=0.12)
    (new,) = others(stand, [old])
    assert purchase_of(new) == BoughtFor(savings=0.36, move_price=0.12)
    record = record_of(now(stand, old))
    assert record is not None
    assert (record.savings, record.move_price) == (0.36, 0.12)
    _ready(stand)
    stand.provision()
    for _ in range(6):
        stand.live()
        stand.bind()
        stand.wait(10)
    (left,) = stand.claims
    assert REPLACES not in left.metadata.annotations
    assert purchase_of(left) == BoughtFor(savings=0.36, move_price=0.12)


def test_only_a_command_that_is_to_save_money_says_so(stand: Stand) -> None:
    """Drift is replaced at any price. That it may be cheaper afterwards is no reason to wait for anything."""
    (old,) = running(stand)
    disrupt(stand, old, reason=DisruptionReason.DRIFTED, savings=0.36, move_price=0.12)
    (new,) = others(stand, [old])
    assert purchase_of(new) is None


def test_a_replacement_of_a_command_that_was_rolled_back_has_nothing_to_repay(stand: Stand) -> None:
    """Nothing is saved by it: the node that it was to replace stays."""
    (old,) = running(stand)
    disrupt(stand, old, savings=0.36, move_price=0.12)
    stand.boot()
    (new,) = others(stand, [old])
    node = next(n for n in stand.world.cluster.nodes.values() if n.spec.provider_id == new.status.provider_id)
    stand.world.cluster.add(builders.pod("user", cpu="100m", node=node.metadata.name))
    guard = builders.pod("guard", cpu="100m", node=old.status.node_name, annotations={DO_NOT_DISRUPT: "true"})
    stand.world.cluster.add(guard)
    for _ in range(3):
        stand.live()
    assert stays(stand, old)
    assert purchase_of(now(stand, new)) is None
