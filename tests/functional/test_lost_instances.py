"""Instances that EC2 ends before they join the cluster: their claims do not wait for them."""

import pytest

from joinery.apis.conditions import put
from joinery.apis.meta import Condition
from joinery.doorbell.gateway import Bell
from simulator.latency import Killed
from tests.functional.fuse import Fuse
from tests.functional.stand import Stand


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
    assert "InstanceGone" in stand.told("NodeClaim")
    assert Bell.PROVISIONING in stand.rung()
    stand.live()
    stand.settle()
    assert (len(stand.alive), stand.claim.is_true("Ready")) == (1, True)


def test_an_instance_that_a_repeated_call_returns_though_it_is_gone_is_waited_for_a_minute(stand: Stand) -> None:
    """EC2 answers a known token with the instances that it launched for it, whatever has become of them."""
    _launched_unknown(stand)
    stand.world.cloud.terminate(stand.alive)
    stand.wait(65)
    stand.live()
    assert stand.claim.is_true("Launched")
    stand.wait(59)
    stand.live()
    assert not stand.claim.is_deleting
    stand.wait(1)
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
