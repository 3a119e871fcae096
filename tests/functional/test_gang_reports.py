"""What others' users reported of gangs under an autoscaler, on our doors."""

from typing import Any

from msgspec.structs import replace

from joinery.objects.autoscaling.provisioningrequest import CONSUMES, ProvisioningRequest
from joinery.objects.kubernetes.core import Condition, Pod
from joinery.objects.snapshot.gangs import KUEUE_GROUP, KUEUE_TOTAL
from joinery.objects.snapshot.pods import bound_to
from simulator import builders
from tests.functional.stand import Stand

#: One fills a node of the stand.
WORKER: dict[str, Any] = {"cpu": "3"}
TRAIN: dict[str, Any] = {**WORKER, "scheduling_group": {"podGroupName": "train"}}


def _bought_for(stand: Stand) -> set[str]:
    """The pods that have an Event about a node for them."""
    return set(stand.messages("Nominated"))


def _requests(stand: Stand) -> dict[str, dict[str, tuple[str, str]]]:
    """By request, its conditions."""
    stored: tuple[ProvisioningRequest, ...] = stand.world.cluster.snapshot().provisioning_requests
    return {
        one.metadata.name: {said.type: (said.status, said.reason) for said in one.status.conditions} for one in stored
    }


def test_a_member_that_its_scheduler_calls_schedulable_is_bought_for(stand: Stand) -> None:
    """Volcano marks one of two as Schedulable, for it has found a node for it alone, and the other as Unschedulable:
    https://github.com/volcano-sh/volcano/issues/2558, https://github.com/volcano-sh/volcano/issues/3976
    """
    stand.free_nodes(1, **WORKER)
    schedulable = Condition(type="PodScheduled", status="False", reason="Schedulable")
    pod = builders.pod("train-1", unschedulable=False, **TRAIN)
    pod = replace(pod, status=replace(pod.status, conditions=[schedulable]))
    stand.world.cluster.add(builders.pod_group(minimum=2), pod, builders.pod("train-2", **TRAIN))
    stand.provision()
    assert (len(stand.alive), _bought_for(stand) & {"train-1", "train-2"}) == (2, {"train-1", "train-2"})


def test_a_member_that_is_to_preempt_others_is_bought_no_node(stand: Stand) -> None:
    """It is nominated for a node that it will have: https://github.com/volcano-sh/volcano/issues/3499"""
    (node,) = stand.free_nodes(1, **WORKER)
    pod = builders.pod("train-1", **TRAIN)
    nominated = replace(pod, status=replace(pod.status, nominated_node_name=node))
    stand.world.cluster.add(builders.pod_group(minimum=2), nominated, builders.pod("train-2", **TRAIN))
    stand.provision()
    assert len(stand.alive) == 2


def test_members_without_a_place_for_the_last_starve_nobody(stand: Stand) -> None:
    """Nine of ten had room, which they kept from others for good:
    https://github.com/kubernetes-sigs/scheduler-plugins/issues/713
    """
    nodes = stand.free_nodes(2, **WORKER)
    large = builders.pod("train-9", cpu="64", scheduling_group={"podGroupName": "train"})
    stand.world.cluster.add(
        builders.pod_group(minimum=3), large, *(builders.pod(f"train-{n}", **TRAIN) for n in (1, 2))
    )
    stand.world.cluster.add(builders.pod("web-1", **WORKER), builders.pod("web-2", **WORKER))
    stand.provision()
    assert (len(stand.alive), _bought_for(stand)) == (len(nodes), {"pod-0", "pod-1", "web-1", "web-2"})
    assert "train-9 has none" in stand.messages("FailedScheduling")["train-1"]


def test_leaders_do_not_take_the_room_of_workers(stand: Stand) -> None:
    """Two groups of a leader and a worker, and room for three: both leaders had a node, and no worker the second one:
    https://github.com/kubernetes-sigs/lws/issues/167
    """
    pool = builders.node_pool(requirements=["karpenter.k8s.aws/instance-size=xlarge"], limits={"cpu": "12"})
    groups = [builders.pod_group(name, minimum=2) for name in ("vllm-0", "vllm-1")]
    pods = [
        builders.pod(f"{group}-{role}", scheduling_group={"podGroupName": group}, priority=priority, **WORKER)
        for group in ("vllm-0", "vllm-1")
        for role, priority in (("leader", 10), ("worker", 0))
    ]
    stand.world.cluster.add(pool, *groups, *pods)
    stand.provision()
    assert (len(stand.alive), _bought_for(stand)) == (2, {"vllm-0-leader", "vllm-0-worker"})


def test_a_group_that_asks_for_more_pods_than_its_owner_makes_says_so(stand: Stand) -> None:
    """Scaled down from six to four, while the operator has never updated the PodGroup:
    https://github.com/ray-project/kuberay/issues/5205
    """
    stand.world.cluster.add(builders.pod_group(minimum=6))
    stand.pods(4, **TRAIN)
    stand.provision()
    said = "no node for it: PodGroup default/train places 6 pods together, and 4 of them exist"
    assert (stand.alive, set(stand.messages("FailedScheduling").values())) == ([], {said})


def _kueue(name: str, **given: Any) -> Pod:
    return builders.pod(name, labels={KUEUE_GROUP: "train"}, annotations={KUEUE_TOTAL: "2"}, **WORKER, **given)


def test_a_pending_pod_that_is_deleted_is_no_member(stand: Stand) -> None:
    """Its replacement, and not the dying pod, is the second of the group:
    https://github.com/kubernetes-sigs/kueue/issues/2208
    """
    dying = _kueue("train-2", deleted=stand.world.clock.now())
    stand.world.cluster.add(_kueue("train-1"), dying)
    stand.provision()
    assert stand.alive == []
    stand.world.cluster.add(_kueue("train-3"))
    stand.provision()
    assert (len(stand.alive), _bought_for(stand)) == (2, {"train-1", "train-3"})


def test_a_replacement_is_bought_for_while_its_predecessor_ends(stand: Stand) -> None:
    """The dying pod has a node for as long as its grace period lasts, and the group a member more:
    https://github.com/kubernetes-sigs/kueue/issues/15424
    """
    one, other = stand.free_nodes(2, **WORKER)
    dying = bound_to(_kueue("train-2", deleted=stand.world.clock.now()), other)
    stand.world.cluster.add(bound_to(_kueue("train-1"), one), dying, _kueue("train-3"))
    stand.provision()
    assert len(stand.alive) == 3


def test_room_that_its_pods_have_taken_is_not_counted_twice(stand: Stand) -> None:
    """The first request's pods run; a second one fits beside them, and was said not to:
    https://github.com/kubernetes/autoscaler/issues/9805
    """
    nodes = stand.free_nodes(2, **WORKER)
    stand.world.cluster.add(builders.pod_template("worker", **WORKER), builders.provisioning_request("first", count=1))
    stand.provision()
    stand.world.cluster.add(bound_to(builders.pod("worker", annotations={CONSUMES[0]: "first"}, **WORKER), nodes[0]))
    stand.world.cluster.add(builders.provisioning_request("second", count=1))
    stand.provision()
    assert len(stand.alive) == 2
    assert {name: said["Provisioned"] for name, said in _requests(stand).items()} == {
        "first": ("True", "CapacityIsFound"),
        "second": ("True", "CapacityIsFound"),
    }


def test_room_that_a_check_has_found_is_not_scaled_down(stand: Stand) -> None:
    """Nothing runs there yet: https://github.com/kubernetes/autoscaler/issues/6517"""
    stand.free_nodes(1, **WORKER)
    stand.world.cluster.add(
        builders.pod_template("worker", **WORKER), builders.provisioning_request(count=1, check=True)
    )
    stand.provision()
    stand.wait(300)
    stand.live()
    stand.consolidate()
    stand.live()
    assert not any(claim.is_deleting for claim in stand.claims)
    stand.wait(300)
    stand.provision()
    stand.live()
    stand.consolidate()
    stand.live()
    assert all(claim.is_deleting for claim in stand.claims)


def test_a_check_that_is_not_to_be_retried_fails_at_once(stand: Stand) -> None:
    """Or its place in a queue is taken while it is looked for: https://github.com/kubernetes/autoscaler/issues/7495"""
    stand.world.cluster.add(
        builders.pod_template("worker", **WORKER),
        builders.provisioning_request(count=1, check=True, noRetry="true"),
        builders.provisioning_request("patient", count=1, check=True),
    )
    stand.provision()
    assert _requests(stand)["train"]["Failed"] == ("True", "CapacityIsNotFound")
    assert _requests(stand)["patient"]["Provisioned"] == ("False", "CapacityIsNotFound")


def test_the_minimum_of_a_group_that_grows_is_followed(stand: Stand) -> None:
    """It may change from Kubernetes 1.37 on, and the new member is bought for with those that run:
    https://github.com/kubernetes/enhancements/pull/6076
    """
    nodes = stand.free_nodes(2, **WORKER)
    running = [bound_to(builders.pod(f"train-{number}", **TRAIN), node) for number, node in enumerate(nodes)]
    stand.world.cluster.add(builders.pod_group(minimum=3), *running)
    stand.provision()
    assert len(stand.alive) == 2
    stand.world.cluster.add(builders.pod("train-2", **TRAIN))
    stand.provision()
    assert (len(stand.alive), _bought_for(stand) & {"train-2"}) == (3, {"train-2"})
