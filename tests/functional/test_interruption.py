"""One warning of EC2, followed through the controllers."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest
from msgspec.structs import replace as changed

from joinery.controllers.interruption import InterruptionController
from joinery.decisions.interruption.notice import Notice, NoticeKind
from joinery.decisions.interruption.ownership import EarlyNoticeError
from joinery.gateways.doorbell.gateway import Bell
from joinery.gateways.kubernetes.gateway import Cluster
from joinery.objects.errors import ConflictError, UnavailableError
from joinery.objects.karpenter.labels import DISRUPTED_TAINT, INTERRUPTED_AT, REPLACEMENT_LAUNCHED, SPOT
from joinery.objects.kubernetes.core import Node
from joinery.objects.snapshot.instances import instance_id
from simulator.kubernetes.cluster import InMemoryCluster
from tests.functional.fuse import READS, Fuse
from tests.functional.stand import Stand


def test_a_spot_warning_replaces_the_node_before_it_drains(running: Stand) -> None:
    """The whole way: warning, replacement launched, drain, instance gone; its pods were asked only after the launch."""
    (old,) = running.alive
    running.receive("interruption_spot_warning", old)
    assert running.rung() == {Bell.PROVISIONING, Bell.LIFECYCLE}
    running.live()
    assert "Evicted" not in running.event_reasons("Pod")
    running.provision()
    assert len(running.alive) == 2
    running.live()
    assert "Evicted" in running.event_reasons("Pod")
    for _ in range(12):
        running.wait(5)
        running.live()
    assert old not in running.alive
    assert [claim.is_deleting for claim in running.claims] == [False]
    assert dict(running.world.cluster.pods) == {}


def test_a_warning_marks_taints_and_deletes(running: Stand) -> None:
    """In this order, so that nobody sees a deletion without its mark."""
    running.receive("interruption_spot_warning", running.alive[0])
    (node,) = running.world.cluster.nodes.values()
    assert INTERRUPTED_AT in running.claim.metadata.annotations
    assert DISRUPTED_TAINT in {taint.key for taint in node.spec.taints}
    assert running.claim.is_deleting
    assert {"SpotInterrupted", "TerminatingOnInterruption"} <= running.event_reasons("NodeClaim")
    assert "SpotInterrupted" in running.event_reasons("Node")


def test_the_pool_that_is_being_emptied_is_avoided(running: Stand) -> None:
    """The replacement is bought elsewhere."""
    (old,) = [found for found in running.world.cloud.instances()]
    running.receive("interruption_spot_warning", old.instance_id)
    (pool,) = running.world.unavailable.at(running.world.clock.now())
    assert (pool.instance_type, pool.zone, pool.capacity_type) == (old.instance_type, old.zone, SPOT)
    running.provision()
    new = next(found for found in running.world.cloud.instances() if found.instance_id != old.instance_id)
    assert (new.instance_type, new.zone) != (old.instance_type, old.zone)


def test_without_a_replacement_the_drain_starts_after_fifteen_seconds(running: Stand) -> None:
    """A spot instance has two minutes; a pod that is moved late is better than one that is killed."""
    running.receive("interruption_spot_warning", running.alive[0])
    running.wait(14)
    running.live()
    assert "Evicted" not in running.event_reasons("Pod")
    running.wait(1)
    running.live()
    assert "Evicted" in running.event_reasons("Pod")
    assert REPLACEMENT_LAUNCHED not in running.claim.metadata.annotations


def test_a_replacement_has_its_fifteen_seconds_also_after_a_late_warning(running: Stand) -> None:
    """They begin when we hear of it."""
    (instance,) = running.alive
    sent = running.world.clock.now() - timedelta(seconds=40)
    running.notify(Notice(NoticeKind.SPOT_INTERRUPTED, (instance,), at=sent))
    running.wait(10)
    running.live()
    assert "Evicted" not in running.event_reasons("Pod")
    running.wait(10)
    running.live()
    running.live()
    assert "Evicted" in running.event_reasons("Pod")


def test_a_warning_that_comes_twice_is_one_warning(running: Stand) -> None:
    """SQS delivers at least once."""
    (old,) = running.alive
    running.receive("interruption_spot_warning", old)
    marked = running.claim
    running.wait(3)
    running.receive("interruption_spot_warning", old)
    assert running.claim == marked
    assert running.rung() == {Bell.PROVISIONING, Bell.LIFECYCLE}


@pytest.mark.parametrize(
    "event",
    [
        "interruption_scheduled_change",
        "interruption_instance_stopping",
        "interruption_instance_shutting_down",
        "interruption_capacity_reservation",
        "interruption_capacity_reservation_older_spelling",
    ],
)
def test_every_way_to_lose_an_instance_retires_its_claim(running: Stand, event: str) -> None:
    """Each sample event of a loss leads to the same end."""
    running.receive(event, running.alive[0])
    assert running.claim.is_deleting


def test_a_rebalance_recommendation_changes_nothing(running: Stand) -> None:
    """It is told to whoever looks, and wakes nobody."""
    running.receive("interruption_rebalance_recommendation", running.alive[0])
    assert not running.claim.is_deleting
    assert running.rung() == set()
    assert "SpotRebalanceRecommendation" in running.event_reasons("NodeClaim")


def test_somebody_else_s_instance_is_none_of_our_business(running: Stand) -> None:
    """Rules are account-wide: every cluster hears of every instance."""
    running.receive("interruption_spot_warning", "i-0aaaaaaaaaaaaaaaa")
    assert (running.claim.is_deleting, running.rung()) == (False, set())


def test_a_warning_that_could_not_be_handled_is_raised(running: Stand) -> None:
    """It carries data: its queue must deliver it again."""
    fuse = Fuse(failing="unavailable.mark", error=UnavailableError("DynamoDB is throttling"))
    running.gateways = fuse.protect(running.gateways)
    with pytest.raises(UnavailableError, match="throttling"):
        running.receive("interruption_spot_warning", running.alive[0])


def _spot(*instances: str) -> list[Notice]:
    return [Notice(NoticeKind.SPOT_INTERRUPTED, (instance,)) for instance in instances]


def _reads(fuse: Fuse) -> list[str]:
    return [call for call in fuse.calls if call.partition(".")[2] in READS]


def test_a_batch_about_others_instances_reads_the_claims_once(running: Stand) -> None:
    """Rules are account-wide: on a busy account nearly all messages are about instances of others."""
    fuse = Fuse()
    running.gateways = fuse.protect(running.gateways)
    running.notify(*_spot(*(f"i-0aaaaaaaaaaaaaaa{number}" for number in range(10))))
    assert fuse.calls == ["cluster.claims_snapshot"]


def test_a_batch_about_our_instances_reads_their_nodes_besides(stand: Stand) -> None:
    """Nobody lists pods or nodes to retire a few claims."""
    stand.pods(9)
    stand.settle()
    fuse = Fuse()
    stand.gateways = fuse.protect(stand.gateways)
    stand.notify(*_spot(*stand.alive, "i-0aaaaaaaaaaaaaaaa"))
    assert _reads(fuse) == ["cluster.claims_snapshot"] + ["cluster.node"] * 3
    assert all(claim.is_deleting for claim in stand.claims)
    assert fuse.writes.count("doorbell.ring") == 2


def test_two_notices_of_one_batch_about_one_instance_are_both_heard(running: Stand) -> None:
    """The instance is retired once, and its pool is avoided whichever comes first."""
    (instance,) = running.alive
    running.notify(Notice(NoticeKind.INSTANCE_STOPPED, (instance,)), *_spot(instance))
    assert running.claim.is_deleting
    assert len(running.world.unavailable.at(running.world.clock.now())) == 1


@pytest.mark.parametrize("error", [UnavailableError("the API server is busy"), KeyError("a bug")])
def test_one_notice_that_fails_costs_the_others_of_its_batch_nothing(stand: Stand, error: Exception) -> None:
    """Each has its own answer, and the bells ring for those that went well."""
    stand.pods(6)
    stand.settle()
    stand.rung()
    first, second = stand.alive
    claims = {instance_id(claim.status.provider_id): claim.metadata.name for claim in stand.claims}
    fuse = Fuse(
        failing="cluster.delete_node_claim",
        error=error,
        about=lambda claim: claim.metadata.name == claims[first],
    )
    outcomes = InterruptionController(fuse.protect(stand.gateways)).reconcile(_spot(first, second), stand.invocation())
    assert [isinstance(outcome, Exception) for outcome in outcomes] == [True, False]
    assert {name for name, claim in stand.world.cluster.node_claims.items() if claim.is_deleting} == {claims[second]}
    assert stand.rung() == {Bell.PROVISIONING, Bell.LIFECYCLE}


@pytest.fixture
def unaware(stand: Stand) -> Stand:
    """An instance was launched, and its claim could not be told."""
    stand.pods(1)
    whole, fuse = stand.gateways, Fuse(failing="cluster.update_node_claim", error=UnavailableError("timed out"))
    stand.gateways = fuse.protect(whole)
    with pytest.raises(UnavailableError):
        stand.provision()
    stand.gateways = whole
    return stand


def _lost(stand: Stand, instance: str) -> Notice:
    return Notice(NoticeKind.INSTANCE_TERMINATED, (instance,), at=stand.world.clock.now())


def test_a_notice_that_comes_before_its_claim_knows_its_instance_is_tried_again(unaware: Stand) -> None:
    """Dropped, its claim would wait for a dead instance for fifteen minutes."""
    (instance,) = unaware.alive
    notice = _lost(unaware, instance)
    for _ in range(2):
        with pytest.raises(EarlyNoticeError, match=instance):
            unaware.notify(notice)
        unaware.wait(36)
        unaware.live()
    unaware.notify(notice)
    assert unaware.claim.is_deleting


def test_an_instance_that_never_was_ours_is_dropped(unaware: Stand, counted: Callable[[], dict[str, float]]) -> None:
    """It may be taken for ours while claims wait, but never for so long that it ends among the dead letters."""
    notice = _lost(unaware, "i-0aaaaaaaaaaaaaaaa")
    with pytest.raises(EarlyNoticeError):
        unaware.notify(notice)
    unaware.wait(120)
    assert unaware.notify(notice)["claims"] == 0
    assert counted() == {}


def test_nothing_is_tried_again_while_no_claim_waits(running: Stand, counted: Callable[[], dict[str, float]]) -> None:
    """A claim is written before its instance is launched, so the instance is somebody else's."""
    assert running.notify(_lost(running, "i-0aaaaaaaaaaaaaaaa"))["claims"] == 0
    assert counted() == {}


class BusyKubelet:
    """A cluster in which the kubelet writes its Node right before anybody else does."""

    def __init__(self, cluster: InMemoryCluster) -> None:
        self._cluster = cluster

    def update_node(self, before: Node, after: Node) -> Node:
        """The write, after the kubelet's."""
        node = self._cluster.node(before.metadata.name)
        beat = {**node.metadata.annotations, "heartbeat": str(self._cluster.api.resource_version)}
        self._cluster.api.update(changed(node, metadata=changed(node.metadata, annotations=beat)))
        return self._cluster.update_node(before, after)

    def __getattr__(self, method: str) -> Any:
        return getattr(self._cluster, method)


def _has_taint(stand: Stand) -> bool:
    (node,) = stand.world.cluster.nodes.values()
    return DISRUPTED_TAINT in {taint.key for taint in node.spec.taints}


def test_a_kubelet_s_write_costs_an_interruption_nothing(running: Stand) -> None:
    """It is no reason to wait for the queue: that would take 36 of the 120 seconds."""
    running.gateways = replace(running.gateways, cluster=cast("Cluster", BusyKubelet(running.world.cluster)))
    running.receive("interruption_spot_warning", running.alive[0])
    assert running.claim.is_deleting
    assert _has_taint(running)


def test_a_conflict_on_the_mark_costs_the_claim_neither_its_deletion_nor_its_mark(running: Stand) -> None:
    """Lifecycle has just written the claim. Without the mark its drain would not be hurried."""
    refusals = iter([True])
    fuse = Fuse(
        failing="cluster.update_node_claim",
        error=ConflictError("somebody else was first"),
        about=lambda _: next(refusals, False),
    )
    running.gateways = fuse.protect(running.gateways)
    running.receive("interruption_spot_warning", running.alive[0])
    assert next(refusals, None) is None
    assert running.claim.is_deleting
    assert INTERRUPTED_AT in running.claim.metadata.annotations


def test_a_bell_that_cannot_be_rung_keeps_no_other_door_asleep(running: Stand) -> None:
    """The queue brings the message again; until then lifecycle can taint the node and begin its drain."""
    error = UnavailableError("the queue does not answer")
    fuse = Fuse(failing="doorbell.ring", error=error, about=lambda bell: bell is Bell.PROVISIONING)
    running.gateways = fuse.protect(running.gateways)
    with pytest.raises(UnavailableError):
        running.receive("interruption_spot_warning", running.alive[0])
    assert Bell.LIFECYCLE in running.rung()


@pytest.mark.parametrize("refused", ["update_node", "update_node_claim", "node"])
def test_the_deletion_waits_neither_for_the_taint_nor_for_the_mark(running: Stand, refused: str) -> None:
    """The replacement is on its way at once; lifecycle taints the node of what is being deleted."""
    fuse = Fuse(failing=f"cluster.{refused}", error=ConflictError("somebody else was first"))
    whole, running.gateways = running.gateways, fuse.protect(running.gateways)
    with suppress(ConflictError):
        running.receive("interruption_spot_warning", running.alive[0])
    assert running.claim.is_deleting
    assert running.rung() == {Bell.PROVISIONING, Bell.LIFECYCLE}
    running.gateways = whole
    running.live()
    assert _has_taint(running)


def test_what_is_marked_and_was_not_deleted_lifecycle_deletes(running: Stand) -> None:
    """After its last try a message rests among the dead letters; the instance goes all the same."""
    (old,) = running.alive
    fuse = Fuse(failing="cluster.delete_node_claim", error=UnavailableError("the API server is busy"))
    whole, running.gateways = running.gateways, fuse.protect(running.gateways)
    with pytest.raises(UnavailableError):
        running.receive("interruption_spot_warning", old)
    assert not running.claim.is_deleting
    running.gateways = whole
    running.rung()
    running.live()
    assert running.claim.is_deleting
    assert running.rung() == {Bell.PROVISIONING, Bell.LIFECYCLE}
    for _ in range(12):
        running.wait(5)
        running.live()
    assert running.alive == []


def test_a_dead_letter_that_is_sent_again_does_no_harm(running: Stand) -> None:
    """Whoever sends them again need not look at each: what is done is done, and what is gone is gone."""
    (old,) = running.alive
    notice = _lost(running, old)
    running.notify(notice)
    claim = running.claim
    running.wait(3600)
    running.notify(notice)
    assert running.claim == claim
    for _ in range(12):
        running.wait(5)
        running.live()
    assert (running.claims, running.notify(notice)["claims"]) == ([], 0)


def test_a_conflict_on_the_mark_is_decided_anew_at_once(running: Stand) -> None:
    """Two notices of one batch both mark a claim that waits for its replacement, the second from an old version."""
    (instance,) = running.alive
    running.wait(3600 * 24 * 365)
    running.expire()
    running.notify(Notice(NoticeKind.INSTANCE_STOPPED, (instance,)), *_spot(instance))
    assert INTERRUPTED_AT in running.claim.metadata.annotations


def _unreadable(stand: Stand) -> str:
    """The claim of a running pod's node becomes one that cannot be read; the instance's id."""
    stand.pods(1)
    stand.settle()
    claim = stand.claim
    document = claim.model_dump(mode="json", by_alias=True) | {"kind": "NodeClaim"}
    document["spec"]["requirements"] = "none"
    stand.world.cluster.remove(claim)
    stand.world.cluster.add_document(document)
    stand.rung()
    return stand.alive[0]


def test_a_node_whose_claim_cannot_be_read_is_drained_all_the_same(
    stand: Stand, counted: Callable[[], dict[str, float]]
) -> None:
    """A replacement is bought, its pods are evicted, and the warning is no stranger's."""
    instance = _unreadable(stand)
    outcome = stand.receive("interruption_spot_warning", instance)
    assert (outcome["claims"], stand.rung()) == (1, {Bell.PROVISIONING, Bell.LIFECYCLE})
    assert counted()["karpenter_interruption_received_messages_total"] == 1
    (node,) = stand.world.cluster.nodes.values()
    assert DISRUPTED_TAINT in {taint.key for taint in node.spec.taints}
    assert "cannot be read" in stand.messages("SpotInterrupted")[node.metadata.name]
    assert stand.provision()["launches"] == 1
    stand.live()
    assert "Evicted" in stand.event_reasons("Pod")


def test_a_node_that_nothing_holds_is_not_deleted_under_its_pods(stand: Stand) -> None:
    """Without our finalizer it would be gone at once: it only takes no more pods."""
    instance = _unreadable(stand)
    (node,) = stand.world.cluster.nodes.values()
    stand.world.cluster.update_node(node, changed(node, metadata=changed(node.metadata, finalizers=[])))
    stand.receive("interruption_spot_warning", instance)
    (node,) = stand.world.cluster.nodes.values()
    assert (node.metadata.deletion_timestamp, len(node.spec.taints)) == (None, 1)


def test_an_unreadable_claim_without_its_node_is_said_and_left(stand: Stand) -> None:
    """Nothing can be retired, and a second delivery would not change that."""
    instance = _unreadable(stand)
    (node,) = stand.world.cluster.nodes.values()
    stand.world.cluster.remove(node)
    assert stand.receive("interruption_spot_warning", instance)["claims"] == 1
