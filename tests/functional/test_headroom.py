"""Room that CapacityBuffers keep free: bought ahead, given to pods at once, and bought anew."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from joinery.gateways.doorbell.gateway import Bell
from joinery.objects.annotations.plans import planned_pods
from joinery.objects.autoscaling.capacitybuffer import CapacityBuffer
from joinery.objects.karpenter.labels import (
    BUFFER_SCHEDULE,
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    PAUSED,
    PLANNED_TAINT,
    REPLACES,
)
from joinery.objects.snapshot.pods import bound_to, buffer_of, is_virtual
from joinery_cli.reading.inputs import load
from simulator import builders
from tests.functional.stand import APART, Stand

#: Of these, a node of the stand holds four.
CHUNK: dict[str, Any] = {"cpu": "900m", "labels": {"app": "web"}}


@pytest.fixture
def buffered(stand: Stand) -> Stand:
    """A buffer for three pods, which is one node."""
    stand.world.cluster.add(builders.pod_template(**CHUNK))
    stand.world.cluster.add(builders.capacity_buffer("spare", template="chunk", replicas=3))
    return stand


def buffer(stand: Stand, name: str = "spare") -> CapacityBuffer:
    """As it is now."""
    return next(one for one in stand.world.cluster.snapshot().capacity_buffers if one.metadata.name == name)


def conditions(stand: Stand, name: str = "spare") -> dict[str, tuple[str, str]]:
    """By type, status and reason."""
    return {one.type: (one.status, one.reason) for one in buffer(stand, name).status.conditions}


def test_room_is_bought_before_any_pod_waits(buffered: Stand) -> None:
    """And no pod is created for it. The next run finds the room that is on its way."""
    outcome = buffered.provision()
    assert (outcome["launched"], outcome["headroom"], outcome["unplaced"]) == (1, 3, 0)
    assert planned_pods(buffered.claim) == tuple(f"default/capacity-buffer-spare-{number}" for number in (1, 2, 3))
    assert conditions(buffered) == {
        "ReadyForProvisioning": ("True", "Resolved"),
        "Provisioning": ("False", "RequiresNewCapacity"),
        "LimitedByQuotas": ("False", "ResourceQuotasAllocated"),
    }
    assert buffered.provision()["launches"] == 0
    buffered.boot()
    buffered.live()
    assert buffered.provision()["launches"] == 0
    assert conditions(buffered)["Provisioning"] == ("True", "FitsExistingCapacity")
    status = buffer(buffered).status
    assert status.pod_template_ref is not None
    assert (status.pod_template_ref.name, status.pod_template_generation, status.replicas) == ("chunk", 1, 3)
    assert buffered.world.cluster.pods == {}
    assert buffered.event_reasons("Pod") == set()


def test_what_was_bought_for_a_buffer_is_open_to_all_at_once(buffered: Stand) -> None:
    """Nobody waits for pods that will never come."""
    buffered.provision()
    buffered.boot()
    buffered.live()
    (node,) = buffered.world.cluster.nodes.values()
    assert all(taint.key != PLANNED_TAINT for taint in node.spec.taints)


def test_a_status_that_is_as_it_was_is_not_written_again(buffered: Stand) -> None:
    """Provisioning runs every minute."""
    buffered.provision()
    before = buffer(buffered).metadata.resource_version
    buffered.provision()
    assert buffer(buffered).metadata.resource_version == before


def test_a_pod_takes_the_room_and_it_is_bought_anew(buffered: Stand) -> None:
    """A pod that waits goes to the room; what it takes is bought again, and as much and no more."""
    buffered.provision()
    buffered.boot()
    buffered.live()
    (node,) = buffered.world.cluster.nodes.values()
    buffered.pods(2)
    outcome = buffered.provision()
    assert (outcome["launches"], outcome["placed"]) == (1, 2)
    assert set(buffered.messages("Nominated").values()) == {f"pod should schedule on node/{node.metadata.name}"}
    for pod in list(buffered.world.cluster.pods.values()):
        buffered.world.cluster.api.update(bound_to(pod, node.metadata.name))
    assert buffered.provision()["launches"] == 0


def test_a_pod_comes_before_a_buffer_on_a_node_that_is_on_its_way(buffered: Stand) -> None:
    """The node was bought for the buffer's chunks, which give way: no pod waits for a node of its own."""
    buffered.provision()
    first = buffered.claim.metadata.name
    buffered.pods(3)
    buffered.provision()
    assert {message for message in buffered.messages("Nominated").values()} == {
        f"pod should schedule on nodeclaim/{first}"
    }


def test_pods_come_before_buffers_under_a_limit(stand: Stand) -> None:
    """Where a NodePool's limit leaves room for one node, it is bought for pods."""
    pool = builders.node_pool(requirements=["karpenter.k8s.aws/instance-size=xlarge"], limits={"cpu": "4"})
    stand.world.cluster.add(pool, builders.pod_template(**CHUNK))
    stand.world.cluster.add(builders.capacity_buffer("spare", template="chunk", replicas=3))
    stand.live()
    stand.pods(4)
    assert stand.provision()["launched"] == 1
    assert set(planned_pods(stand.claim)) == {f"default/pod-{number}" for number in range(4)}
    message = next(one.message for one in buffer(stand).status.conditions if one.type == "Provisioning")
    assert message.startswith("0/3 virtual pods required new capacity, 3 failed: ")
    assert stand.messages("HeadroomLacking")["spare"].startswith("no node for 3 of 3: ")


def test_a_buffer_grows_with_the_workload_that_it_is_for(stand: Stand) -> None:
    """``percentage`` of its replicas, rounded up; and with its template's shape."""
    stand.world.cluster.add(builders.deployment("web", replicas=5))
    stand.world.cluster.add(builders.capacity_buffer("spare", workload="web", percentage=30))
    stand.provision()
    assert buffer(stand).status.replicas == 2
    stand.world.cluster.add(builders.deployment("web", replicas=11))
    stand.provision()
    assert buffer(stand).status.replicas == 4
    assert buffer(stand).status.pod_template_ref is None


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"template": "lacking", "replicas": 1}, "PodTemplateNotFound"),
        ({"workload": "lacking", "replicas": 1}, "ScalableRefNotFound"),
        ({"workload": "web", "kind": "DaemonSet", "replicas": 1}, "ResolutionFailed"),
        ({"replicas": 1}, "ResolutionFailed"),
        ({"template": "chunk", "replicas": 1, "annotations": {BUFFER_SCHEDULE: "mornings"}}, "InvalidAnnotation"),
    ],
)
def test_a_buffer_that_is_wrong_says_why_and_stops_no_other(
    buffered: Stand, given: dict[str, Any], reason: str
) -> None:
    """Its conditions say it. Room for others is bought all the same."""
    buffered.world.cluster.add(builders.capacity_buffer("wrong", **given))
    assert buffered.provision()["launched"] == 1
    assert conditions(buffered, "wrong") == {
        "ReadyForProvisioning": ("False", reason),
        "Provisioning": ("False", "NotReadyForProvisioning"),
    }


def test_a_reference_that_comes_later_is_found(stand: Stand) -> None:
    """GitOps applies things in any order."""
    stand.world.cluster.add(builders.capacity_buffer("spare", template="chunk", replicas=1))
    assert stand.provision()["launches"] == 0
    stand.world.cluster.add(builders.pod_template(**CHUNK))
    assert stand.provision()["launched"] == 1
    assert conditions(stand)["ReadyForProvisioning"] == ("True", "Resolved")


def test_a_buffer_of_another_strategy_is_left_to_others(stand: Stand) -> None:
    """Nothing is bought for it, and nothing is written to it."""
    stand.world.cluster.add(builders.pod_template(**CHUNK))
    stand.world.cluster.add(
        builders.capacity_buffer("theirs", template="chunk", replicas=1, provisioningStrategy="buffer.example.com/warm")
    )
    assert stand.provision()["launches"] == 0
    assert conditions(stand, "theirs") == {}


def test_a_scheduled_buffer_is_bought_when_its_schedule_opens(stand: Stand) -> None:
    """07:30 in Berlin is 05:30 in UTC in summer. The schedule of the door, which comes once a minute, is enough."""
    stand.world.cluster.add(builders.pod_template(**CHUNK))
    hours = {BUFFER_SCHEDULE: "from 30 7 * * mon-fri for 11h in Europe/Berlin"}
    stand.world.cluster.add(builders.capacity_buffer("spare", template="chunk", replicas=1, annotations=hours))
    for moment, launches, reason in (
        (datetime(2026, 8, 25, 5, 29, tzinfo=UTC), 0, "OutsideSchedule"),
        (datetime(2026, 8, 25, 5, 30, tzinfo=UTC), 1, "RequiresNewCapacity"),
        (datetime(2026, 8, 25, 16, 30, tzinfo=UTC), 0, "OutsideSchedule"),
    ):
        stand.wait((moment - stand.world.clock.now()).total_seconds())
        assert stand.provision()["launches"] == launches
        assert conditions(stand)["Provisioning"] == ("False", reason)
    assert buffer(stand).status.replicas == 0


def test_quotas_make_a_buffer_smaller(buffered: Stand) -> None:
    """Room for pods that nobody could create serves nobody."""
    quota = {
        "metadata": {"name": "team", "namespace": "default"},
        "spec": {"hard": {"requests.cpu": "2"}},
        "status": {"hard": {"requests.cpu": "2"}, "used": {"requests.cpu": "1"}},
    }
    buffered.world.cluster.add_document({"apiVersion": "v1", "kind": "ResourceQuota", **quota})
    assert buffered.provision()["headroom"] == 1
    limited = next(one for one in buffer(buffered).status.conditions if one.type == "LimitedByQuotas")
    assert (limited.status, limited.message) == ("True", "Buffer replicas limited from 3 to 1 due to quotas: team")


def test_observe_mode_writes_no_status_and_buys_nothing(buffered: Stand) -> None:
    """It says of pods what would be launched, and of chunks nothing: they are no pods."""
    watching = buffered.observing()
    assert watching.provision()["launched"] == 0
    assert (conditions(buffered), buffered.alive, buffered.event_reasons("Pod")) == ({}, [], set())


def test_a_buffer_wakes_nobody_but_lifecycle(buffered: Stand) -> None:
    """A run that has placed all is not rung for again."""
    buffered.rung()
    buffered.provision()
    assert buffered.rung() == {Bell.LIFECYCLE}


def test_a_buffer_may_live_on_spot_while_its_pods_may_not(stand: Stand) -> None:
    """The annotation takes the place of what the template says of capacity types."""
    stand.world.cluster.add(builders.pod_template(node_selector={CAPACITY_TYPE: "on-demand"}, **CHUNK))
    both = builders.node_pool(
        requirements=["karpenter.k8s.aws/instance-size=xlarge", f"{CAPACITY_TYPE}=spot,on-demand"]
    )
    spot = {"joinery.dev/buffer-capacity-types": "spot"}
    stand.world.cluster.add(both, builders.capacity_buffer("a", template="chunk", replicas=1))
    stand.live()
    stand.provision()
    assert stand.claim.metadata.labels[CAPACITY_TYPE] == "on-demand"
    stand.world.cluster.add(builders.capacity_buffer("b", template="chunk", replicas=3, annotations=spot))
    stand.provision()
    assert sorted(claim.metadata.labels[CAPACITY_TYPE] for claim in stand.claims) == ["on-demand", "spot"]


# --- nodes that go ---


@pytest.fixture
def at_rest(stand: Stand) -> Stand:
    """A buffer for three pods whose room is there, on a node that is old enough to be consolidated."""
    stand.world.cluster.add(builders.pod_template(**CHUNK))
    stand.world.cluster.add(builders.capacity_buffer("spare", template="chunk", replicas=3))
    stand.grow_old(7200)
    stand.provision()
    return stand


def test_a_node_that_holds_a_buffer_is_not_empty(at_rest: Stand) -> None:
    """It has no pod, and stays."""
    outcome = at_rest.consolidate()
    assert (outcome["commands"], len(at_rest.alive)) == (0, 1)
    assert at_rest.provision()["launches"] == 0


def test_without_its_buffer_the_node_goes(at_rest: Stand) -> None:
    """It is empty then, whether the buffer is deleted or has no replicas any more."""
    at_rest.world.cluster.remove(buffer(at_rest))
    outcome = at_rest.consolidate()
    assert (outcome["commands"], outcome["retired"], outcome["launches"]) == (1, 1, 0)


def test_only_as_many_nodes_stay_as_the_buffer_needs(at_rest: Stand) -> None:
    """Of two nodes with as much room one goes, as the empty one that it is."""
    at_rest.pods(4)
    at_rest.grow_old(7200)
    for pod in list(at_rest.world.cluster.pods.values()):
        at_rest.world.cluster.remove(pod)
    at_rest.wait(7200)
    at_rest.live()
    assert len(at_rest.alive) == 2
    assert at_rest.provision()["launches"] == 0
    outcome = at_rest.consolidate()
    assert (outcome["retired"], outcome["launches"], outcome["evictions"]) == (1, 0, 0)


def test_what_replaces_a_node_has_room_for_the_buffer(at_rest: Stand) -> None:
    """A drifted one, here: the buffer's room is bought before it goes, and nothing is bought for it twice."""
    node_class = builders.node_class()
    changed = node_class.model_copy(update={"spec": node_class.spec.model_copy(update={"tags": {"team": "new"}})})
    at_rest.world.cluster.add(changed)
    at_rest.live()
    outcome = at_rest.consolidate()
    assert (outcome["retired"], outcome["launches"], outcome["evictions"]) == (1, 1, 0)
    for _ in range(6):
        at_rest.provision()
        at_rest.boot()
        at_rest.live()
        at_rest.wait(60)
    assert len(at_rest.alive) == 1
    at_rest.provision()
    assert conditions(at_rest)["Provisioning"] == ("True", "FitsExistingCapacity")


def test_a_node_with_pods_is_replaced_by_one_that_holds_the_buffer_too(stand: Stand) -> None:
    """A cheaper node for the pods alone would have the room bought anew the next minute."""
    large, all_kinds = (
        builders.node_pool(requirements=[f"{INSTANCE_TYPE}={kinds}", f"{CAPACITY_TYPE}=on-demand"])
        for kinds in ("m7a.2xlarge", "m7a.xlarge,m7a.2xlarge")
    )
    stand.world.cluster.add(large, builders.pod_template(**CHUNK))
    stand.live()
    stand.pods(7)
    stand.grow_old(7200)
    for number in range(1, 7):
        stand.world.cluster.remove(stand.world.cluster.pods[f"default/pod-{number}"])
    stand.world.cluster.add(all_kinds, builders.capacity_buffer("spare", template="chunk", replicas=2))
    stand.wait(7200)
    stand.live()
    assert stand.provision()["launches"] == 0
    outcome = stand.consolidate()
    assert (outcome["retired"], outcome["launches"], outcome["evictions"]) == (1, 1, 1)
    (new,) = [claim for claim in stand.claims if REPLACES in claim.metadata.annotations]
    assert new.metadata.labels[INSTANCE_TYPE] == "m7a.xlarge"


def test_a_paused_namespace_s_buffers_keep_no_room(buffered: Stand) -> None:
    """Its pods get their nodes all the same: only what is bought ahead can wait."""
    namespace = builders.namespace("default")
    paused = replace(namespace, metadata=replace(namespace.metadata, annotations={PAUSED: "true"}))
    buffered.world.cluster.add(paused)
    assert buffered.provision()["launches"] == 0
    (provisioning,) = [one for one in buffer(buffered).status.conditions if one.type == "Provisioning"]
    assert provisioning.message == "namespace default is paused until somebody resumes it"
    buffered.pods(1)
    assert buffered.provision()["launches"] == 1


def test_a_recorded_decision_can_be_made_again(buffered: Stand, tmp_path: Path) -> None:
    """The record has the chunks as pods that wait, or that have room on a node."""
    buffered.pods(2)
    buffered.provision()
    (key,) = buffered.world.store.documents
    file = tmp_path / "record.json"
    file.write_bytes(msgspec.json.encode(buffered.world.store.read(key)))
    inputs = load([str(file)])
    read = inputs.snapshot(buffered.world.clock.now())
    assert sorted(pod.key for pod in read.pods if is_virtual(pod)) == [
        f"default/capacity-buffer-spare-{number}" for number in (1, 2, 3)
    ]
    assert {buffer_of(pod) for pod in read.pods if is_virtual(pod)} == {"default/spare"}
    assert inputs.all_notices() == []


def test_chunks_keep_the_rules_of_their_pods_among_each_other(stand: Stand) -> None:
    """Those that must not share a host get a node each."""
    stand.world.cluster.add(builders.pod_template(affinity=APART, **CHUNK))
    stand.world.cluster.add(builders.capacity_buffer("spare", template="chunk", replicas=3))
    assert stand.provision()["launched"] == 3
    assert stand.provision()["launches"] == 0


def test_no_budget_of_pods_keeps_a_node_for_its_chunks(at_rest: Stand) -> None:
    """A budget that lets no pod go selects the chunks' labels, and nobody evicts a chunk."""
    at_rest.world.cluster.add(builders.pdb(labels={"app": "web"}, max_unavailable=0))
    changed = builders.node_class()
    changed = changed.model_copy(update={"spec": changed.spec.model_copy(update={"tags": {"team": "new"}})})
    at_rest.world.cluster.add(changed)
    at_rest.live()
    assert at_rest.consolidate()["retired"] == 1


def test_an_expired_node_takes_the_room_along_and_it_is_bought_anew(stand: Stand) -> None:
    """Expiration waits for no buffer; provisioning buys what is lacking then."""
    pool = builders.node_pool(requirements=["karpenter.k8s.aws/instance-size=xlarge"], expire_after="1h")
    stand.world.cluster.add(pool, builders.pod_template(**CHUNK))
    stand.world.cluster.add(builders.capacity_buffer("spare", template="chunk", replicas=3))
    stand.live()
    stand.grow_old(4000)
    (old,) = stand.claims
    stand.expire()
    for _ in range(4):
        stand.provision()
        stand.boot()
        stand.live()
        stand.wait(60)
    assert old.metadata.name not in stand.world.cluster.node_claims
    stand.provision()
    assert len(stand.alive) == 1
    assert conditions(stand)["Provisioning"] == ("True", "FitsExistingCapacity")
