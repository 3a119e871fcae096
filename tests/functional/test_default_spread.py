"""Doors on a cluster whose scheduler spreads pods by its own configuration."""

import pytest

from joinery import bootstrap
from joinery.objects.default_spread import DefaultSpread
from joinery.objects.karpenter import labels as keys
from joinery.objects.kubernetes.core import ObjectMeta, Service, ServiceSpec
from joinery.objects.snapshot.default_spreads import SpreadFiller
from simulator import builders
from tests.functional.stand import Stand

WEB = Service(metadata=ObjectMeta(name="web", namespace="default"), spec=ServiceSpec(selector={"app": "web"}))
ZONES = (DefaultSpread(keys.ZONE, 1),)


@pytest.fixture
def spreading(stand: Stand) -> Stand:
    """Pods of a Service, which one node would hold."""
    stand.world.cluster.add(WEB)
    stand.world.cluster.spreads = SpreadFiller(ZONES)
    return stand


def _zones(stand: Stand) -> list[str]:
    return sorted(node.metadata.labels[keys.ZONE] for node in stand.world.cluster.nodes.values())


def test_pods_without_a_spread_get_nodes_in_three_zones(spreading: Stand) -> None:
    """Pods that no Service selects stay together on one."""
    spreading.pods(3, labels={"app": "web"})
    spreading.settle()
    assert len(set(_zones(spreading))) == len(_zones(spreading)) == 3
    assert not [pod for pod in spreading.world.cluster.pods.values() if not pod.spec.node_name]


def test_room_for_such_pods_is_bought_where_they_will_be(spreading: Stand) -> None:
    """A buffer's, in three zones."""
    spreading.world.cluster.add(builders.pod_template(cpu="900m", labels={"app": "web"}))
    spreading.world.cluster.add(builders.capacity_buffer("spare", template="chunk", replicas=3))
    spreading.settle()
    assert len(set(_zones(spreading))) == len(_zones(spreading)) == 3


def test_consolidation_leaves_them_spread(spreading: Stand) -> None:
    """On one node they would be cheaper, and the scheduler would not put them there."""
    spreading.pods(3, labels={"app": "web"})
    spreading.grow_old(7200)
    spreading.consolidate()
    assert spreading.consolidate()["commands"] == 0
    spreading.world.cluster.spreads = SpreadFiller(())
    assert spreading.consolidate()["commands"] > 0


def test_a_door_reads_the_setting(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """``DefaultSpread`` in the stack's parameter Settings."""
    monkeypatch.setenv("JOINERY_CLUSTER", "simulated")
    monkeypatch.setenv("JOINERY_GATEWAYS", "simulator.world:gateways")
    monkeypatch.setenv("JOINERY_SETTINGS", f"DefaultSpread={keys.ZONE} 1 DoNotSchedule")
    stand.world.cluster.add(WEB, builders.pod("web", labels={"app": "web"}))
    bootstrap.reset()
    with stand.world.installed():
        (pod,) = bootstrap.door("provisioning").gateways.cluster.snapshot().pods
    bootstrap.reset()
    assert [one.topology_key for one in pod.spec.topology_spread_constraints] == [keys.ZONE]
