"""One failing call stops itself and nothing else: its neighbours go on in the same run, and the failure is told."""

import contextlib
from dataclasses import replace
from typing import Any, cast

import pytest
from msgspec.structs import replace as changed

from joinery.gateways.doorbell.gateway import Bell
from joinery.gateways.ec2.gateway import Cloud, LaunchRequest, LaunchResult
from joinery.objects.errors import ConfigurationError, DeniedError, JoineryError, UnavailableError
from joinery.objects.karpenter.labels import DO_NOT_DISRUPT, INSTANCE_TAGGED, NODE_POOL, PLANNED_TAINT
from joinery.objects.kubernetes.core import Pod
from simulator import builders
from simulator.latency import Killed
from tests.functional.deciding import emptying
from tests.functional.disrupting import is_tainted, running
from tests.functional.fuse import Fuse
from tests.functional.guarded import guarded
from tests.functional.stand import Stand

REFUSED = ConfigurationError("pod is not for you", cause="an operator moves it")
DENIED = DeniedError("joinery may not do that (403)")
NO_RIGHT = (403, 'nodeclaims.karpenter.sh is forbidden: User "joinery" cannot create resource "nodeclaims"')


def _behind(stand: Stand, fuse: Fuse) -> Stand:
    """The same world, with a fuse in the wires."""
    return Stand(stand.world, gateways=fuse.protect(stand.gateways))


def _draining(stand: Stand) -> Stand:
    """A node with three pods whose drain begins with the next run."""
    stand.pods(3)
    stand.settle()
    stand.world.cluster.delete_node_claim(stand.claim)
    stand.live()
    stand.wait(15)
    return stand


@pytest.mark.parametrize("error", [REFUSED, DENIED, UnavailableError("etcd", is_answer=True)])
def test_an_eviction_that_is_refused_does_not_keep_its_neighbours(stand: Stand, error: JoineryError) -> None:
    """An admission webhook or a right that is missing may be about one pod only. That pod's Events say why."""
    fuse = Fuse(failing="cluster.evict", error=error, about=lambda pod: pod.metadata.name == "pod-0")
    with pytest.raises(JoineryError, match="1 failed"):
        _behind(_draining(stand), fuse).live()
    going = {key for key, pod in stand.world.cluster.pods.items() if pod.metadata.deletion_timestamp}
    assert going == {"default/pod-1", "default/pod-2"}
    assert set(stand.messages("FailedEviction")) == {"pod-0"}
    assert stand.claim.condition("Drained") is not None


@pytest.mark.parametrize("lasts", ["99999999h", "99999999999h", "9" * 400 + "h"])
def test_a_pod_that_asks_to_stay_for_longer_than_calendars_go_stops_nothing(stand: Stand, lasts: str) -> None:
    """Go knows no such duration, so it protects nothing, and its owner is told. Every user may annotate pods."""
    stand.pods(2)
    stand.settle()
    pod = stand.world.cluster.pods["default/pod-0"]
    annotated = changed(pod.metadata, annotations={**pod.metadata.annotations, DO_NOT_DISRUPT: lasts})
    started = changed(pod.status, start_time=stand.world.clock.now())
    stand.world.cluster.api.update(changed(pod, metadata=annotated, status=started))
    stand.world.cluster.delete_node_claim(stand.claim)
    stand.provision()
    for _ in range(4):
        stand.live()
        stand.wait(15)
    assert {"pod-0", "pod-1"} <= set(stand.messages("Evicted"))
    assert "pod-0" in stand.messages("InvalidDoNotDisruptAnnotation")


def test_where_nobody_answers_an_eviction_the_other_pods_of_the_node_wait(stand: Stand) -> None:
    """Each of them would cost the run another timeout."""
    asked: list[str] = []

    def count(pod: Pod) -> bool:
        asked.append(pod.metadata.name)
        return True

    fuse = Fuse(failing="cluster.evict", error=UnavailableError("timed out"), about=count)
    with pytest.raises(UnavailableError, match="timed out"):
        _behind(_draining(stand), fuse).live()
    assert (len(asked), stand.messages("FailedEviction")) == (1, {})


def test_a_refused_tag_does_not_keep_the_node_for_its_pods(stand: Stand) -> None:
    """The taint that kept it goes when they are bound, and the tag is tried again."""
    stand.pods(3)
    stand.provision()
    stand.boot()
    stand.live()
    stand.bind()
    # The claim notes its pods first: the tag comes in a step that writes nothing else.
    _behind(stand, Fuse(failing="cloud.tag", error=UnavailableError("not authorized"))).live()
    for _ in range(2):
        with pytest.raises(UnavailableError):
            _behind(stand, Fuse(failing="cloud.tag", error=UnavailableError("not authorized"))).live()
    (node,) = stand.world.cluster.nodes.values()
    assert PLANNED_TAINT not in {taint.key for taint in node.spec.taints}
    assert INSTANCE_TAGGED not in stand.claim.metadata.annotations
    stand.live()
    assert stand.claim.metadata.annotations[INSTANCE_TAGGED] == "true"
    (instance,) = stand.world.cloud.instances()
    assert (instance.tags or {})["Name"] == node.metadata.name


@pytest.mark.parametrize(("denied", "served"), [("default", "other"), ("other", "default")])
def test_a_right_that_is_missing_for_one_pool_does_not_keep_the_other_from_launching(denied: str, served: str) -> None:
    """However many claims the pool needs, and whichever is asked first."""
    stand, _ = guarded(lambda claim, _: NO_RIGHT if claim["metadata"]["labels"][NODE_POOL] == denied else None)
    stand.world.cluster.add(builders.node_pool("other", requirements=["karpenter.k8s.aws/instance-size=xlarge"]))
    stand.live()
    stand.pods(15, node_selector={NODE_POOL: denied})
    stand.world.cluster.add(builders.pod("served", node_selector={NODE_POOL: served}))
    with pytest.raises(UnavailableError, match="failed, first: POST"):
        stand.provision()
    assert stand.claim.metadata.labels[NODE_POOL] == served
    assert len(stand.alive) == 1
    assert set(stand.messages("Nominated")) == {"served"}


def test_nodes_register_while_ec2_cannot_be_asked_for_its_instances(stand: Stand) -> None:
    """And are opened to all, and their pods are let in: none of that needs EC2."""
    stand.pods(3)
    stand.provision()
    stand.boot()
    blind = _behind(stand, Fuse(failing="cloud.instances", error=UnavailableError("RequestLimitExceeded")))
    with pytest.raises(UnavailableError, match="RequestLimitExceeded"):
        blind.live()
    stand.bind()
    with pytest.raises(UnavailableError, match="RequestLimitExceeded"):
        blind.live()
    (node,) = stand.world.cluster.nodes.values()
    assert (stand.claim.is_true("Ready"), node.spec.taints) == (True, [])


def test_nothing_is_ended_because_ec2_cannot_be_asked(stand: Stand) -> None:
    """An instance that was not listed may be there: its node, its claim and its finalizers stay."""
    stand.pods(3)
    stand.settle()
    (node,) = stand.world.cluster.nodes.values()
    stand.world.cluster.api.update(changed(node, status=changed(node.status, conditions=[])))
    blind = _behind(stand, Fuse(failing="cloud.instances", error=UnavailableError("throttled")))
    with pytest.raises(UnavailableError):
        blind.live()
    assert (len(stand.alive), stand.claim.is_deleting) == (1, False)
    stand.world.cluster.delete_node_claim(stand.claim)
    for _ in range(20):
        stand.wait(5)
        with pytest.raises(UnavailableError):
            blind.live()
    assert len(stand.claims) == 1
    for _ in range(20):
        stand.wait(5)
        stand.live()
    assert (stand.claims, stand.alive) == ([], [])


def _left_behind(stand: Stand) -> Stand:
    """A claim that provisioning was killed before launching, long enough ago, and a pod that came after it."""
    stand.pods(1)
    stand.world.cloud.fail_next("launch", Killed("killed"))
    with pytest.raises(Killed):
        stand.provision()
    stand.wait(65)
    return stand


def test_nothing_is_launched_a_second_time_because_ec2_cannot_be_asked(stand: Stand) -> None:
    """The claim may have its instance already, so it waits; the ticks go on."""
    blind = _behind(_left_behind(stand), Fuse(failing="cloud.instances", error=UnavailableError("throttled")))
    stand.rung()
    with pytest.raises(UnavailableError):
        blind.live()
    assert (stand.alive, Bell.LIFECYCLE in stand.rung()) == ([], True)
    stand.live()
    assert len(stand.alive) == 1


def test_pods_get_nodes_though_a_claim_that_was_left_behind_cannot_be_looked_up(stand: Stand) -> None:
    """It is launched by a later run; its neighbours need not wait for that."""
    blind = _behind(_left_behind(stand), Fuse(failing="cloud.instances", error=UnavailableError("throttled")))
    stand.world.cluster.add(*(builders.pod(f"new-{number}", cpu="3") for number in range(2)))
    blind.provision()
    assert len(stand.alive) == 2


def test_ticks_and_garbage_go_on_though_nothing_can_be_launched(stand: Stand) -> None:
    """The list of prices cannot be read: a launch needs it, an instance that nobody knows does not."""
    _left_behind(stand)
    stand.world.cloud.fail_next("instance_types", UnavailableError("throttled"))
    stand.rung()
    with pytest.raises(UnavailableError, match="throttled"):
        stand.live()
    assert Bell.LIFECYCLE in stand.rung()


def test_a_bell_that_cannot_be_rung_does_not_keep_the_other_from_ringing(stand: Stand) -> None:
    """Provisioning should know of the pods that lost their place."""
    stand.pods(1)
    stand.settle()
    stand.world.cluster.delete_node(next(iter(stand.world.cluster.nodes.values())))
    stand.rung()
    fuse = Fuse(failing="doorbell.ring", error=UnavailableError("SQS"), about=lambda bell: bell is Bell.LIFECYCLE)
    with pytest.raises(UnavailableError, match="SQS"):
        _behind(stand, fuse).live()
    assert stand.rung() == {Bell.PROVISIONING}


def test_a_plan_is_told_and_recorded_though_no_bell_can_be_rung(stand: Stand) -> None:
    """Its nodes are bought; whoever waits for them should read so. The run fails in the end: its door rings again."""
    stand.pods(1)
    fuse = Fuse(failing="doorbell.ring", error=UnavailableError("SQS"))
    with pytest.raises(UnavailableError, match="SQS"):
        _behind(stand, fuse).provision()
    assert "Nominated" in stand.event_reasons("Pod")
    assert any("provisioning" in key for key in stand.world.store.documents)


def test_a_launch_that_we_stumble_over_keeps_no_drain(stand: Stand) -> None:
    """An answer of CreateFleet that nobody thought of: in every run the claim waits, and other nodes are drained."""
    stand.pods(3)
    stand.settle()
    world = stand.world
    (going,) = stand.claims
    world.cluster.add(*(builders.pod(f"late-{number}", cpu="900m") for number in range(3)))
    stumbling = Stand(world, gateways=replace(world.gateways, cloud=cast(Cloud, _Stumbling(world.gateways.cloud))))
    with pytest.raises(JoineryError, match="Instances"):
        stumbling.provision()
    world.cluster.delete_node_claim(going)
    for _ in range(8):
        stand.wait(15)
        with contextlib.suppress(JoineryError):
            stumbling.live()
        world.cluster.end_grace()
    assert going.metadata.name not in {claim.metadata.name for claim in stand.claims}


def test_a_class_that_we_stumble_over_keeps_no_drain(stand: Stand) -> None:
    """A mistake of our own is told, and stops no more than a refusal would."""
    fuse = Fuse(failing="cloud.prepare", error=KeyError("Subnets"))
    with pytest.raises(UnavailableError, match="Subnets"):
        _behind(_draining(stand), fuse).live()
    assert "cluster.evict" in fuse.calls


class _Stumbling:
    """A cloud whose ``launch`` cannot read the answer."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cloud, name)

    def launch(self, _: LaunchRequest) -> LaunchResult:
        raise KeyError("Instances")


def test_a_decision_that_cannot_be_recorded_is_carried_out_all_the_same(stand: Stand) -> None:
    """Somebody took the right to write into the bucket away: nodes cost money meanwhile. The run fails in the end."""
    claims = running(stand, 1)
    for pod in list(stand.world.cluster.pods.values()):
        stand.world.cluster.api.delete(pod)
    stand.live()
    with pytest.raises(DeniedError, match="AccessDenied"):
        _behind(stand, Fuse(failing="store.record", error=DeniedError("AccessDenied"))).consolidate(emptying)
    assert is_tainted(stand, claims[0])


def test_a_plan_that_cannot_be_recorded_is_told_all_the_same(stand: Stand) -> None:
    """The nodes are launched by then, and the pods' owners read Events, not the bucket. The run fails in the end."""
    stand.pods(1)
    stand.world.cluster.add(builders.pod("huge", cpu="9999"))
    with pytest.raises(DeniedError, match="AccessDenied"):
        _behind(stand, Fuse(failing="store.record", error=DeniedError("AccessDenied"))).provision()
    assert len(stand.alive) == 1
    assert {"Nominated", "FailedScheduling"} <= stand.event_reasons("Pod")
