"""``status.lastPodEventTime``: when pods last came to a node or went from it."""

from datetime import timedelta

import pytest
from msgspec.structs import replace as changed

from joinery.gateways.doorbell.gateway import Bell
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import OwnerReference, Pod
from joinery.objects.snapshot.claims import with_status
from joinery.objects.snapshot.pod_events import last_pod_event
from simulator import builders
from simulator.world import World
from tests.functional.fuse import Fuse
from tests.functional.stand import Stand


def _quiet(stand: Stand, pods: int = 1) -> NodeClaim:
    """A node whose pods have been there for a while."""
    stand.pods(pods)
    stand.settle()
    stand.wait(60)
    stand.live()
    stand.live()
    stand.wait(60)
    return stand.claim


def _writes(stand: Stand, runs: int = 1) -> int:
    """How many writes to claims so many runs of lifecycle make."""
    fuse = Fuse()
    counted = Stand(stand.world, gateways=fuse.protect(stand.gateways))
    for _ in range(runs):
        counted.live()
    return fuse.writes.count("cluster.update_node_claim")


def _pod(stand: Stand) -> Pod:
    return next(iter(stand.world.cluster.pods.values()))


def _second(stand: Stand, owner: OwnerReference | None = None) -> Pod:
    return builders.pod("second", cpu="100m", node=stand.claim.status.node_name, owner=owner)


def test_a_pod_that_comes_is_noted(stand: Stand) -> None:
    """At the moment of the run that sees it."""
    _quiet(stand)
    stand.world.cluster.add(_second(stand))
    stand.live()
    assert stand.claim.status.last_pod_event_time == stand.world.clock.now().replace(microsecond=0)


def test_a_pod_that_is_gone_is_noted(stand: Stand) -> None:
    """Nothing of it is left but the difference."""
    before = _quiet(stand).status.last_pod_event_time
    stand.world.cluster.api.delete(_pod(stand))
    stand.live()
    after = stand.claim.status.last_pod_event_time
    assert after is not None
    assert before is None or after > before


def test_a_pod_that_has_ended_is_noted(stand: Stand) -> None:
    """It is still listed, and needs no room."""
    before = _quiet(stand).status.last_pod_event_time
    pod = _pod(stand)
    stand.world.cluster.api.update(changed(pod, status=changed(pod.status, phase="Succeeded")))
    stand.live()
    assert stand.claim.status.last_pod_event_time != before


def test_a_daemon_is_no_event(stand: Stand) -> None:
    """It comes with the node."""
    before = _quiet(stand).status.last_pod_event_time
    daemon = OwnerReference(api_version="apps/v1", kind="DaemonSet", name="agent", uid="agent")
    stand.world.cluster.add(_second(stand, owner=daemon))
    assert _writes(stand) == 0
    assert stand.claim.status.last_pod_event_time == before


def test_an_idle_cluster_is_not_written_to(stand: Stand) -> None:
    """Nor does it tick."""
    _quiet(stand)
    stand.rung()
    assert _writes(stand, runs=3) == 0
    assert Bell.LIFECYCLE not in stand.rung()


def test_a_busy_node_is_written_to_every_ten_seconds_at_most(stand: Stand) -> None:
    """Who asks in between takes what is not noted yet for an event of this moment."""
    _quiet(stand)
    writes = 0
    for number in range(20):
        stand.wait(1)
        stand.world.cluster.add(builders.pod(f"busy-{number}", cpu="1m", node=stand.claim.status.node_name))
        writes += _writes(stand)
    assert writes == 2
    now, pods = stand.world.clock.now(), [*stand.world.cluster.pods.values()]
    assert last_pod_event(stand.claim, pods, now) == now


@pytest.mark.parametrize(("quiet", "expected"), [("10m", 1), ("Never", 0)])
def test_a_patient_pool_is_written_to_less_often(world: World, quiet: str, expected: int) -> None:
    """A tenth of its ``consolidateAfter`` is exact enough, and where nobody asks nothing is noted."""
    pool = builders.node_pool(requirements=["karpenter.k8s.aws/instance-size=xlarge"], consolidate_after=quiet)
    world.cluster.add(builders.node_class(), pool)
    stand = Stand(world)
    stand.live()
    _quiet(stand)
    writes = 0
    for number in range(5):
        stand.wait(11)
        stand.world.cluster.add(builders.pod(f"busy-{number}", cpu="1m", node=stand.claim.status.node_name))
        writes += _writes(stand)
    assert writes == expected


def test_the_moment_that_another_controller_noted_counts_on(stand: Stand) -> None:
    """A node that moves to Joinery has been quiet for as long as it has."""
    claim = _quiet(stand)
    noted = stand.world.clock.now() - timedelta(hours=1)
    fresh = [condition for condition in claim.status.conditions if not condition.type.startswith("joinery.dev/")]
    stand.world.cluster.update_node_claim(claim, with_status(claim, conditions=fresh, last_pod_event_time=noted))
    stand.live()
    assert stand.claim.status.last_pod_event_time == noted
