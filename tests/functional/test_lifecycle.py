"""Every claim one step further, whatever happens to the others."""

from itertools import pairwise

import pytest

from joinery.controllers.lifecycle import LifecycleController
from joinery.gateways.doorbell.gateway import Bell
from joinery.objects.errors import ConfigurationError, UnavailableError
from joinery.objects.karpenter.labels import INITIALIZED, PLANNED_TAINT, REGISTERED
from simulator import builders
from simulator.latency import Killed
from tests.functional.fuse import Fuse
from tests.functional.stand import Stand


def test_a_new_pool_is_ready_after_one_run_and_wakes_provisioning(stand: Stand) -> None:
    """Pods that waited for the pool should not wait for the schedule too."""
    stand.world.cluster.add(builders.node_pool("second", ready=False))
    stand.live()
    ready = {found.type: found.status for found in stand.world.cluster.node_pools["second"].status.conditions}
    assert {"ValidationSucceeded": "True", "NodeClassReady": "True", "Ready": "True"}.items() <= ready.items()
    assert Bell.PROVISIONING in stand.rung()


def test_an_idle_cluster_is_left_in_peace(stand: Stand) -> None:
    """Nothing is written, and the chain of ticks has ended."""
    stand.live()
    before = stand.world.cluster.snapshot()
    stand.rung()
    stand.live()
    assert (stand.world.cluster.snapshot(), stand.rung()) == (before, set())


def test_a_node_is_met_steered_and_made_fit(stand: Stand) -> None:
    """From a claim to running pods; then the node is open to all, and nothing is in progress any more."""
    stand.pods(3)
    stand.provision()
    stand.boot()
    outcome = stand.live()
    (node,) = stand.world.cluster.nodes.values()
    assert (node.metadata.labels[REGISTERED], node.metadata.labels[INITIALIZED]) == ("true", "true")
    assert {taint.key for taint in node.spec.taints} == {PLANNED_TAINT}
    assert (outcome["in_progress"], stand.claim.is_true("Ready")) == (1, True)
    stand.bind()
    assert {pod.spec.node_name for pod in stand.world.cluster.pods.values()} == {node.metadata.name}
    stand.rung()
    assert stand.live()["in_progress"] == 0
    (node,) = stand.world.cluster.nodes.values()
    assert node.spec.taints == []
    assert stand.rung() == set()


def test_a_run_tags_fifty_instances_at_most(stand: Stand) -> None:
    """Each takes a call, and EC2 takes ten a second (EC2 API, "Request throttling"): a surge is tagged run by run."""
    stand.pods(60, cpu="3")
    stand.provision()
    stand.boot()
    stand.live()
    stand.bind()
    numbers = []
    for _ in range(4):
        stand.live()
        numbers.append(sum("Name" in (instance.tags or {}) for instance in stand.world.cloud.instances()))
    assert (max(b - a for a, b in pairwise([0, *numbers])), numbers[-1]) == (50, len(stand.world.cloud.instances()))


def test_what_nobody_uses_is_removed_once_an_hour(stand: Stand) -> None:
    """That EC2 or IAM refuses it fails no run."""
    stand.world.cloud.fail_next("remove_unused", ConfigurationError("denied"))
    controller = LifecycleController(stand.gateways, stand.settings)
    before, removals = stand.world.cloud.removals, []
    for minutes in (0, 5, 60, 60):
        stand.wait(60 * minutes)
        controller.reconcile(stand.invocation())
        removals.append(stand.world.cloud.removals - before)
    assert removals == [0, 0, 1, 2]


@pytest.mark.parametrize(
    ("kind", "removals"),
    [("NodeOverlay", 1), ("NodePool", 1), ("CSINode", 1), ("EC2NodeClass", 0), ("NodeClaim", 0)],
)
def test_what_may_be_used_by_what_cannot_be_read_stays(stand: Stand, kind: str, removals: int) -> None:
    """Only classes and claims name what launches have made."""
    stand.world.cluster.add_document({"kind": kind, "metadata": {"name": "broken"}, "spec": 5})
    before = stand.world.cloud.removals
    stand.live()
    assert stand.world.cloud.removals - before == removals


def test_ticks_go_on_while_something_is_in_progress(stand: Stand) -> None:
    """A ring of the webhook may be lost."""
    stand.pods(1)
    stand.provision()
    stand.rung()
    stand.live()
    assert Bell.LIFECYCLE in stand.rung()


def test_a_pod_that_does_not_bind_to_its_node_is_planned_anew(stand: Stand) -> None:
    """Something keeps it from there that no plan knew: the node is kept no longer, and provisioning looks again."""
    stand.pods(1)
    stand.provision()
    stand.boot()
    stand.live()
    stand.wait(30)
    stand.rung()
    stand.live()
    (node,) = stand.world.cluster.nodes.values()
    assert node.spec.taints == []
    assert Bell.PROVISIONING in stand.rung()


def test_pods_that_may_not_be_changed_do_not_keep_a_node_from_registering(stand: Stand) -> None:
    """A policy of the cluster refuses every change to a pod: steering fails,
    is reported, and the node is there all the same.
    """
    stand.pods(1)
    stand.provision()
    stand.boot()
    fuse = Fuse(failing="cluster.tolerate", error=ConfigurationError("denied by a policy"))
    with pytest.raises(ConfigurationError, match="policy"):
        Stand(stand.world, gateways=fuse.protect(stand.gateways)).live()
    assert stand.claim.is_true("Ready")


def test_a_claim_that_was_left_without_an_instance_is_launched(stand: Stand) -> None:
    """Provisioning was killed between writing the claim and asking EC2."""
    stand.pods(1)
    stand.world.cloud.fail_next("launch", Killed("killed"))
    with pytest.raises(Killed):
        stand.provision()
    stand.wait(64)
    stand.live()
    assert stand.alive == []
    stand.wait(1)
    stand.live()
    assert len(stand.alive) == 1
    assert stand.claim.is_true("Launched")


def test_an_instance_that_no_claim_knows_is_terminated(stand: Stand) -> None:
    """A leak costs money for ever."""
    stand.pods(1)
    stand.provision()
    stand.world.cluster.remove(stand.claim)
    stand.wait(30)
    stand.live()
    assert len(stand.alive) == 1
    stand.wait(1)
    stand.live()
    assert stand.alive == []


def test_an_instance_that_never_joins_is_given_up(stand: Stand) -> None:
    """After fifteen minutes its claim and it go, and the pods are planned anew."""
    stand.pods(1)
    stand.provision()
    stand.wait(15 * 60)
    stand.live()
    stand.live()
    assert Bell.PROVISIONING in stand.rung()
    assert stand.alive == []
    stand.wait(31)
    stand.live()
    assert stand.claims == []


def test_nodes_that_joined_while_lifecycle_was_switched_off_are_registered(stand: Stand) -> None:
    """They serve. Giving them up for a timeout would end them all at once, on the day on which it is switched on."""
    stand.pods(6)
    stand.provision()
    stand.boot()
    stand.wait(60 * 60)
    stand.live()
    assert len(stand.claims) == len(stand.alive) == 2
    assert all(claim.is_true("Registered") and not claim.is_deleting for claim in stand.claims)
    stand.live()
    (pool,) = stand.world.cluster.node_pools.values()
    assert {found.type: found.status for found in pool.status.conditions}["NodeRegistrationHealthy"] == "True"


def test_a_user_retires_a_node_by_deleting_it(stand: Stand) -> None:
    """``kubectl delete node`` drains it, and the instance goes before the Node does."""
    stand.pods(1)
    stand.settle()
    (node,) = stand.world.cluster.nodes.values()
    stand.world.cluster.delete_node(node)
    for _ in range(16):
        stand.live()
        assert stand.alive or not stand.world.cluster.nodes or stand.world.cloud.instances()
        stand.wait(5)
    assert (stand.claims, dict(stand.world.cluster.nodes), dict(stand.world.cluster.pods)) == ([], {}, {})


def test_a_budget_keeps_a_pod_and_says_so(stand: Stand) -> None:
    """The drain asks the eviction API, and waits for as long as the budget says no."""
    stand.pods(1, labels={"app": "web"})
    stand.settle()
    stand.world.cluster.add(builders.pdb(labels={"app": "web"}, allowed=0))
    stand.world.cluster.delete_node_claim(stand.claim)
    stand.live()
    stand.wait(15)
    stand.live()
    assert "FailedDraining" in stand.event_reasons("Node")
    assert "a disruption budget keeps it" in stand.messages("FailedEviction")["pod-0"]
    assert list(stand.world.cluster.pods) == ["default/pod-0"]
    stand.world.cluster.add(builders.pdb(labels={"app": "web"}, allowed=1))
    stand.wait(5)
    stand.live()
    assert "Evicted" in stand.event_reasons("Pod")


def test_one_bad_claim_does_not_stop_the_others(stand: Stand) -> None:
    """EC2 refuses to end one. The call for both is repeated for each, and the other is retired all the same."""
    for name in ("claim-1", "claim-2"):
        stand.world.cluster.add(
            builders.node_claim(name, conditions=("Launched",), provider_id=f"aws:///us-east-1a/i-{name}")
        )
    for claim in stand.claims:
        stand.world.cluster.delete_node_claim(claim)
    protected = ConfigurationError("OperationNotPermitted: i-claim-1 may not be terminated")
    fuse = Fuse(failing="cloud.terminate", error=protected, about=lambda instance_ids: "i-claim-1" in instance_ids)
    with pytest.raises(ConfigurationError, match="i-claim-1"):
        Stand(stand.world, gateways=fuse.protect(stand.gateways)).live()
    assert [claim.is_true("InstanceTerminating") for claim in stand.claims] == [False, True]


def test_a_throttled_call_for_many_is_not_repeated_for_each(stand: Stand) -> None:
    """That would be throttled the more. The next tick asks again, and the door is told to ring."""
    for name in ("claim-1", "claim-2"):
        stand.world.cluster.add(
            builders.node_claim(name, conditions=("Launched",), provider_id=f"aws:///us-east-1a/i-{name}")
        )
    for claim in stand.claims:
        stand.world.cluster.delete_node_claim(claim)
    fuse = Fuse(failing="cloud.terminate", error=UnavailableError("throttled"))
    with pytest.raises(UnavailableError, match="throttled"):
        Stand(stand.world, gateways=fuse.protect(stand.gateways)).live()
    assert fuse.calls.count("cloud.terminate") == 1


def test_a_class_that_cannot_be_resolved_does_not_stop_the_others(stand: Stand) -> None:
    """Its status stays as it is, the claims go on, and somebody is told."""
    stand.world.cluster.add(builders.node_class("second", ready=False))
    stand.pods(1)
    stand.provision()
    stand.boot()
    stand.world.cloud.fail_next("status_of", ConfigurationError("no permission to describe subnets"))
    with pytest.raises(ConfigurationError, match="subnets"):
        stand.live()
    assert stand.claim.is_true("Registered")
    assert stand.world.cluster.node_classes["second"].status.conditions


def test_a_new_class_that_cannot_be_resolved_says_so(stand: Stand) -> None:
    """Its pools launch nothing, and its user would read logs. It says what it is as soon as somebody could look."""
    stand.world.cluster.add(builders.node_class("second", ready=False))
    for _ in range(2):  # whichever of the two comes first
        stand.world.cloud.fail_next("status_of", UnavailableError("describing subnets: RequestLimitExceeded"))
    with pytest.raises(UnavailableError, match="RequestLimitExceeded"):
        stand.live()
    assert _ready(stand, "second") == ("Unknown", "NotResolved", "describing subnets: RequestLimitExceeded")
    assert _ready(stand, "default")[0] == "True"
    stand.live()
    assert _ready(stand, "second")[0] == "True"


def _ready(stand: Stand, name: str) -> tuple[str, str, str]:
    ready = stand.world.cluster.node_classes[name].ready
    assert ready is not None
    return ready.status, ready.reason, ready.message


def test_a_class_stays_until_no_node_needs_it(stand: Stand) -> None:
    """What somebody deletes by mistake: its nodes could not be judged without it. The last claim takes it along."""
    stand.pods(1)
    stand.provision()
    stand.live()
    (node_class,) = stand.world.cluster.node_classes.values()
    assert node_class.metadata.finalizers == ["karpenter.k8s.aws/termination"]
    stand.world.cluster.api.delete(node_class)
    stand.live()
    assert "default" in stand.world.cluster.node_classes
    assert stand.messages("WaitingOnNodeClaimTermination")
    stand.world.cluster.remove(stand.claim)
    stand.live()
    assert stand.world.cluster.node_classes == {}


def test_a_class_that_finds_no_subnet_keeps_its_pools_out(stand: Stand) -> None:
    """The pool says why, and its pods are told the same."""
    stand.world.cloud.network.subnets.clear()
    stand.live()
    stand.pods(1)
    assert stand.provision()["unplaced"] == 1
    (message,) = stand.messages("FailedScheduling").values()
    assert "not ready" in message
