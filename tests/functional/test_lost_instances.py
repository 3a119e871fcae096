"""Instances that EC2 ends or stops, whose claims do not wait for them, and those that it only does not list."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import pytest
from msgspec.structs import replace as changed

from joinery.gateways.doorbell.gateway import Bell
from joinery.gateways.ec2.gateway import Cloud, Instance
from joinery.objects.errors import UnavailableError
from joinery.objects.karpenter.conditions import put
from joinery.objects.karpenter.meta import Condition
from joinery.objects.snapshot.claims import INSTANCE_MISSING
from simulator.latency import Killed
from tests.functional.fuse import Fuse
from tests.functional.stand import APART, Stand


def _launched_unknown(stand: Stand) -> None:
    """A claim whose instance was launched, and provisioning killed before it could write that down."""
    stand.pods(1)
    killed = Fuse(failing="cluster.update_node_claim", error=Killed())
    with pytest.raises(Killed):
        Stand(stand.world, gateways=killed.protect(stand.gateways)).provision()
    assert (bool(stand.alive), stand.claim.status.provider_id) == (True, "")


def test_an_instance_that_waits_for_its_claim_is_taken(stand: Stand) -> None:
    """The same token would launch no second one."""
    _launched_unknown(stand)
    stand.wait(65)
    stand.live()
    assert stand.claim.status.provider_id.endswith(stand.alive[0])


def test_an_instance_that_is_shutting_down_is_not_taken(stand: Stand) -> None:
    """Its claim is given up at once, and the pods get another node."""
    _launched_unknown(stand)
    stand.wait(60)
    stand.world.cloud.terminate(stand.alive)
    stand.wait(5)
    stand.rung()
    stand.live()
    assert (stand.claim.is_deleting, stand.claim.status.provider_id) == (True, "")
    assert "InstanceGone" in stand.event_reasons("NodeClaim")
    assert Bell.PROVISIONING in stand.rung()
    stand.live()
    stand.settle()
    assert (len(stand.alive), stand.claim.is_true("Ready")) == (1, True)


def test_an_instance_that_a_repeated_call_returns_though_it_is_gone_is_not_waited_for(stand: Stand) -> None:
    """EC2 answers a known token with the instances that it launched for it, whatever has become of them."""
    _launched_unknown(stand)
    stand.world.cloud.terminate(stand.alive)
    stand.wait(65)
    stand.live()
    assert stand.claim.is_true("Launched")
    stand.live()
    assert stand.claim.is_deleting


def test_a_claim_whose_instance_is_ended_while_it_boots_is_given_up_at_once(stand: Stand) -> None:
    """A spot instance may be taken back before it has joined; the registration timeout is fifteen minutes."""
    stand.pods(1)
    stand.provision()
    stand.world.cloud.terminate(stand.alive)
    stand.rung()
    stand.live()
    assert (stand.claim.is_deleting, Bell.PROVISIONING in stand.rung()) == (True, True)


def test_a_leak_is_collected_although_another_claim_of_its_pool_waits(stand: Stand) -> None:
    """A pool that always launches would keep its leaks for ever."""
    stand.pods(1)
    stand.provision()
    (leaked,) = stand.alive
    stand.world.cluster.remove(stand.claim)
    stand.wait(31)
    _launched_unknown(stand)
    stand.live()
    assert leaked not in stand.alive
    assert len(stand.alive) == 1


@pytest.mark.parametrize("trouble", ["not ready", "not known to be ready", "changed a moment ago", "being deleted"])
def test_an_instance_that_waits_for_its_claim_is_taken_whatever_its_class_is_now(stand: Stand, trouble: str) -> None:
    """It was launched while the class was ready, and costs money. Given up, it would be bought anew."""
    _launched_unknown(stand)
    stand.wait(65)
    api = stand.world.cluster.api
    (node_class,) = stand.world.cluster.node_classes.values()
    match trouble:
        case "being deleted":
            held = node_class.metadata.model_copy(update={"finalizers": ["karpenter.k8s.aws/termination"]})
            api.delete(api.update(node_class.model_copy(update={"metadata": held})))
        case "changed a moment ago":
            api.update(node_class.model_copy(update={"spec": node_class.spec.model_copy(update={"tags": {"a": "b"}})}))
        case _:
            status = "False" if trouble == "not ready" else "Unknown"
            judged = put(node_class.status.conditions, Condition(type="Ready", status=status, reason="SubnetsNotFound"))
            conditions = node_class.status.model_copy(update={"conditions": judged})
            api.update(node_class.model_copy(update={"status": conditions}))
    stand.provision()
    assert stand.claim.status.provider_id.endswith(stand.alive[0])
    assert len(stand.world.cloud.requests) == 1


class _Listing:
    """The cloud, whose lists and look-ups leave these instances out."""

    def __init__(self, cloud: Cloud, *left_out: str) -> None:
        self._cloud = cloud
        self._left_out = left_out

    def __getattr__(self, method: str) -> Any:
        return getattr(self._cloud, method)

    def instances(self) -> tuple[Instance, ...]:
        return tuple(one for one in self._cloud.instances() if one.instance_id not in self._left_out)

    def look_up(self, instance_ids: Sequence[str]) -> tuple[Instance, ...]:
        return self._cloud.look_up([name for name in instance_ids if name not in self._left_out])


def _leaving_out(stand: Stand, *left_out: str) -> Stand:
    cloud = cast("Cloud", _Listing(stand.world.cloud, *left_out))
    return Stand(stand.world, gateways=replace(stand.gateways, cloud=cloud))


def test_what_a_list_leaves_out_of_a_call_is_not_bought_anew(stand: Stand) -> None:
    """Of three instances of a lost call one is listed: the others are asked for with the same token."""
    stand.pods(3, labels={"app": "web"}, affinity=APART)
    killed = Fuse(failing="cluster.update_node_claim", error=Killed())
    with pytest.raises(Killed):
        Stand(stand.world, gateways=killed.protect(stand.gateways)).provision()
    first, *others = stand.alive
    stand.wait(65)
    partly = _leaving_out(stand, *others)
    partly.live()
    assert [claim.status.provider_id[-len(first) :] for claim in stand.claims if claim.status.provider_id] == [first]
    partly.live()
    assert len({claim.status.provider_id for claim in stand.claims}) == len(stand.alive) == 3
    assert not any(claim.is_deleting for claim in stand.claims)


def test_an_unhealthy_node_that_a_list_leaves_out_is_not_replaced_for_that(stand: Stand) -> None:
    """Its kubelet is silent for a moment, and so is EC2."""
    stand.pods(1)
    stand.settle()
    stand.wait(3600)
    node = next(iter(stand.world.cluster.nodes.values()))
    silent = [changed(one, status="Unknown") for one in node.status.conditions]
    stand.world.cluster.api.update(changed(node, status=changed(node.status, conditions=silent)))
    partly = _leaving_out(stand, *stand.alive)
    for _ in range(4):
        partly.live()
        stand.wait(60)
    assert not stand.claim.is_deleting
    stand.live()
    assert stand.claim.condition(INSTANCE_MISSING) is None


def test_a_stopped_instance_whose_event_was_lost_is_replaced_and_terminated(stand: Stand) -> None:
    """Nothing runs on it, and it would keep its claim, its pods and its disks for ever."""
    stand.pods(1)
    stand.settle()
    (stopped,) = stand.alive
    stand.world.cloud.stop(stopped)
    stand.live()
    assert stand.claim.is_deleting
    stand.wait(30)
    for _ in range(3):
        stand.live()
        stand.wait(30)
    assert stopped not in stand.alive
    assert stand.claims == []


def test_a_stopped_instance_that_no_claim_knows_is_terminated(stand: Stand) -> None:
    """Its disks cost money."""
    _launched_unknown(stand)
    (leaked,) = stand.alive
    stand.world.cluster.remove(stand.claim)
    stand.world.cloud.stop(leaked)
    stand.wait(31)
    stand.live()
    assert stand.alive == []


def test_a_claim_is_not_given_up_while_ec2_does_not_answer_about_it(stand: Stand) -> None:
    """The list lacks it, and to look it up fails: the run says so, and nothing follows from it."""
    stand.pods(1)
    stand.settle()
    partly = _leaving_out(stand, *stand.alive)
    stand.world.cloud.fail_next("look_up", UnavailableError("busy"))
    with pytest.raises(UnavailableError):
        partly.live()
    assert not stand.claim.is_deleting
