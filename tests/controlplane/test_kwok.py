"""The cloud of kwok on a real control plane: whole lives of nodes that are objects, by the command's own loop."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from joinery.gateways.ec2.gateway import LaunchRequest, Override
from joinery.gateways.kubernetes.transport import MERGE_PATCH
from joinery.objects.snapshot.snapshot import Snapshot
from simulator.kwok.installing import install
from simulator.kwok.nodeclass import KWOKNodeClass, KWOKNodeClassSpec
from simulator.kwok.world import Live, real_time
from tests.controlplane.objects import connect, documents, uninstall
from tests.controlplane.story import DEPLOYMENTS, clear
from tests.controlplane.test_story import deployment
from tools.controlplane.plane import ControlPlane

PODS = 6
Until = Callable[[Callable[[], bool]], bool]
KWOK = Path(__file__).parents[2] / "simulator" / "kwok"


class Ahead:
    """The real time, and so many seconds: while nobody waits for the real scheduler, schedules may come sooner."""

    seconds = 0

    def __call__(self) -> datetime:
        """Now, for the functions."""
        return real_time() + timedelta(seconds=self.seconds)


NOW = Ahead()


@pytest.fixture(scope="module")
def live(joinery_control_plane: ControlPlane) -> Iterator[Live]:
    """The functions at work on a cluster with a Deployment of six pods."""
    admin = connect(joinery_control_plane)
    created = list(install(admin))
    assert created == [
        "CustomResourceDefinition kwoknodeclasses.karpenter.kwok.sh",
        "KWOKNodeClass default",
        "NodePool default",
    ]
    assert list(install(admin)) == []
    admin.request("POST", DEPLOYMENTS, deployment("web", PODS, {}))
    live = Live(admin, NOW)
    with live.doors.open():
        yield live
    clear(admin)
    uninstall(admin, documents(KWOK / "cluster.yaml")[0])


def _all_run(seen: Snapshot) -> bool:
    return len(seen.pods) == PODS and all(pod.status.phase == "Running" for pod in seen.pods)


def test_pods_get_nodes_that_are_objects_and_nodes_that_nobody_needs_go(
    live: Live, joinery_control_plane: ControlPlane, until: Until
) -> None:
    """The real scheduler binds the pods to Nodes that no machine runs; without pods nothing is left."""
    until(lambda: _all_run(live.step()))
    seen = live.step()
    assert {pod.spec.node_name for pod in seen.pods} == {node.metadata.name for node in seen.nodes}
    assert {claim.status.provider_id for claim in seen.node_claims} == {node.spec.provider_id for node in seen.nodes}
    assert all(node.metadata.labels["karpenter.kwok.sh/instance-family"] for node in seen.nodes)

    scale = {"spec": {"replicas": 0}}
    connect(joinery_control_plane).request("PATCH", f"{DEPLOYMENTS}/web", scale, content_type=MERGE_PATCH)

    def is_empty() -> bool:
        NOW.seconds += 2
        seen = live.step()
        return not seen.nodes and not seen.node_claims

    until(is_empty)
    assert [call.error for call in live.doors.calls if call.error] == []


def test_a_node_that_boots_is_an_instance_already(live: Live) -> None:
    """Or its claim would be given up while it boots; the same launch makes no second one."""
    cloud = live.world.kwok
    node_class = KWOKNodeClass(metadata={"name": "slow"}, spec=KWOKNodeClassSpec(node_registration_delay="1h"))
    request = LaunchRequest(
        token="t", count=1, node_pool="default", node_class=node_class, capacity_type="on-demand", labels={},
        overrides=(Override("c-1x-amd64-linux", "test-zone-a", 0.02, 16),),
    )  # fmt: skip
    (launched,) = cloud.launch(request).instances
    assert cloud.launch(request).instances == (launched,)
    (booting,) = cloud.look_up([launched.instance_id])
    assert (booting.state, booting.provider_id) == ("pending", f"kwok:///test-zone-a/{launched.instance_id}")
    assert booting in cloud.instances()
    cloud.terminate([launched.instance_id])
    assert cloud.look_up([launched.instance_id]) == ()
