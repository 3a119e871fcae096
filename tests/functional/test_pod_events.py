"""What the owner of a pod learns from ``kubectl describe pod`` when its node goes."""

from datetime import datetime, timedelta

from msgspec.structs import replace

from joinery.controllers.acting.announcements import MOST_EVENTS
from joinery.objects.karpenter.labels import DO_NOT_DISRUPT
from joinery.objects.kubernetes.core import Pod
from joinery.objects.wording import rfc3339
from simulator import builders
from tests.functional.fuse import Fuse
from tests.functional.stand import Stand

DAEMON = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "uid-agent", "controller": True}
SPOT = ["karpenter.sh/capacity-type=spot", "karpenter.k8s.aws/instance-size=xlarge"]


def test_a_pod_on_an_interrupted_node_is_told_why_and_by_when(stand: Stand) -> None:
    """Its node, the reason, when it is evicted at the latest, and when the machine is gone."""
    stand.world.cluster.add(builders.node_pool(requirements=SPOT))
    stand.pods(1)
    stand.settle()
    begun = stand.world.clock.now()
    stand.receive("interruption_spot_warning", stand.alive[0])
    stand.live()
    (message,) = stand.messages("NodeLeaving").values()
    assert stand.claim.status.node_name in message
    assert "EC2 takes its instance away" in message
    assert rfc3339(begun + timedelta(seconds=15)) in message
    assert f"gone by {rfc3339(begun + timedelta(minutes=2))}" in message


def test_a_pod_on_an_expired_node_is_told_that_it_stays_for_now(stand: Stand) -> None:
    """Nothing forces the node: there is no moment by which the pod must go."""
    stand.pods(1)
    stand.settle()
    stand.wait(31 * 24 * 3600)
    stand.expire()
    stand.live()
    (message,) = stand.messages("NodeLeaving").values()
    assert message.endswith("it is older than its expireAfter; the pod stays until it has another place")


def test_pods_are_told_once(stand: Stand) -> None:
    """However long the drain takes: the next passes have other news."""
    stand.pods(2, labels={"app": "web"})
    stand.settle()
    stand.world.cluster.add(builders.pdb(labels={"app": "web"}, allowed=0))
    stand.world.cluster.delete_node_claim(stand.claim)
    for _ in range(4):
        stand.live()
        stand.wait(150)
    assert [event.reason for event in stand.world.cluster.events].count("NodeLeaving") == 2


def test_pods_that_come_back_to_no_other_node_are_not_told(stand: Stand) -> None:
    """A DaemonSet's pod ends with its node, and that is no news."""
    stand.pods(1)
    stand.settle()
    node = stand.claim.status.node_name
    stand.world.cluster.add(builders.pod("agent", node=node, owner=DAEMON))
    stand.world.cluster.delete_node_claim(stand.claim)
    stand.live()
    assert list(stand.messages("NodeLeaving")) == ["pod-0"]


def test_a_pod_on_a_node_without_a_claim_is_told_too(stand: Stand) -> None:
    """Somebody removed the claim first."""
    stand.pods(1)
    stand.settle()
    (node,) = stand.world.cluster.nodes.values()
    stand.world.cluster.remove(stand.claim)
    stand.world.cluster.delete_node(node)
    stand.live()
    assert "the Node is being deleted" in stand.messages("NodeLeaving")["pod-0"]


def test_telling_comes_after_everything_that_matters_and_is_bounded(stand: Stand) -> None:
    """Taint, deletion and bells first; then so many Events at most, though the node held more pods."""
    stand.pods(1)
    stand.settle()
    node = stand.claim.status.node_name
    many = (builders.pod(f"small-{number}", node=node, cpu="1m", phase="Running") for number in range(120))
    stand.world.cluster.add(*many)
    stand.world.cluster.delete_node_claim(stand.claim)
    fuse = Fuse()
    Stand(stand.world, gateways=fuse.protect(stand.gateways)).live()
    last = fuse.writes[-MOST_EVENTS:]
    assert set(last) == {"recorder.emit"}
    assert fuse.writes.index("doorbell.ring") < len(fuse.writes) - MOST_EVENTS
    assert len(stand.messages("NodeLeaving")) == MOST_EVENTS


def test_a_pod_that_is_deleted_for_a_deadline_is_told(stand: Stand) -> None:
    """Past its budget, because its node's time is over."""
    stand.world.cluster.add(
        builders.node_claim("late", node="late", termination_grace_period="10s", created=stand.world.clock.now()),
        builders.node("late"),
        builders.pod("slow", node="late", phase="Running", termination_grace_period_seconds=30),
    )
    stand.world.cluster.delete_node_claim(stand.world.cluster.node_claims["late"])
    stand.live()
    stand.wait(16)
    stand.live()
    assert "must be gone by" in stand.messages("Disrupted")["slow"]


def test_what_do_not_disrupt_does_is_told_while_the_node_is_drained(stand: Stand) -> None:
    """A duration protects until its end; a value that is none protects nothing, and nobody would guess."""
    stand.pods(1)
    stand.settle()
    node, now = stand.claim.status.node_name, stand.world.clock.now()
    stand.world.cluster.add(
        *(
            _started(builders.pod(name, node=node, annotations={DO_NOT_DISRUPT: value}), now)
            for name, value in {"hour": "1h", "wrong": "false", "always": "true", "past": "0s"}.items()
        )
    )
    stand.world.cluster.delete_node_claim(stand.claim)
    stand.live()
    until = rfc3339(now + timedelta(hours=1))
    assert stand.messages("DoNotDisruptUntil") == {"hour": f"{DO_NOT_DISRUPT} keeps it on its node until {until}"}
    assert set(stand.messages("InvalidDoNotDisruptAnnotation")) == {"wrong", "past"}


def _started(pod: Pod, at: datetime) -> Pod:
    return replace(pod, status=replace(pod.status, start_time=at))
