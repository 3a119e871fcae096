"""Kubelets, EC2 and the workload controllers, one at a time."""

from datetime import timedelta
from typing import Any

import pytest

from joinery.gateways.ec2.gateway import LaunchRequest, Override
from joinery.objects.errors import ConfigurationError
from joinery.objects.karpenter import labels as keys
from simulator import builders
from simulator.actors.base import Stage
from simulator.actors.ec2 import Ec2
from simulator.actors.kubelet import BOOTS_IN, READY_IN, STOPS_SLOWLY, Kubelets
from simulator.actors.kubescheduler.scheduler import KubeScheduler
from simulator.actors.volumes import DETACHES_IN, AttachDetach
from simulator.actors.workloads import Caretakers, DaemonSetController, WorkloadControllers, workload
from simulator.cloud.cloud import STARTS_IN, STOPS_IN
from simulator.cloud.market import market
from simulator.kubernetes.cluster import InMemoryCluster

MINUTE = timedelta(minutes=1)


def launched(stage: Stage, capacity_type: str = keys.SPOT) -> str:
    """The id of an instance that was just asked for."""
    request = LaunchRequest(
        token="token",
        count=1,
        node_pool="default",
        node_class=builders.node_class(),
        capacity_type=capacity_type,
        overrides=(Override("m7a.large", "us-east-1a", 0.05, 29),),
        labels={keys.NODE_POOL: "default", keys.CAPACITY_TYPE: capacity_type},
    )
    return stage.cloud.launch(request).instances[0].instance_id


def deployment(kind: str = "Deployment", replicas: int = 2, **annotations: str) -> dict[str, Any]:
    """A workload of small pods."""
    requests = {"cpu": "100m", "memory": "64Mi"}
    return {
        "kind": kind,
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "template": {
                "metadata": {"labels": {"app": "web"}, "annotations": annotations},
                "spec": {"containers": [{"name": "web", "resources": {"requests": requests}}]},
            },
        },
    }


@pytest.fixture
def events(stage: Stage) -> list[dict[str, Any]]:
    """What EventBridge gets to see."""
    return []


@pytest.fixture
def ec2(stage: Stage, events: list[dict[str, Any]]) -> Ec2:
    """EC2, publishing to the test."""
    return Ec2(stage, events.append)


@pytest.fixture
def kubelets(stage: Stage, ec2: Ec2) -> Kubelets:
    """Kubelets on every instance that runs."""
    kubelets = Kubelets(stage, market())
    ec2.when_running.append(kubelets.boot)
    return kubelets


def test_an_instance_becomes_a_node_that_nobody_may_use_yet(
    stage: Stage, kubelets: Kubelets, cluster: InMemoryCluster
) -> None:
    """It boots, registers with its provider id and carries the two taints of a booting node."""
    instance_id = launched(stage)
    assert stage.engine.run_for(MINUTE, stop=lambda: bool(cluster.nodes))
    (node,) = cluster.nodes.values()
    assert node.spec.provider_id == f"aws:///us-east-1a/{instance_id}"
    assert {taint.key for taint in node.spec.taints} == {"node.kubernetes.io/not-ready", keys.UNREGISTERED_TAINT}
    assert node.metadata.labels[keys.INSTANCE_TYPE] == "m7a.large"


def test_a_node_becomes_ready_and_keeps_joinery_s_taint(
    stage: Stage, kubelets: Kubelets, cluster: InMemoryCluster
) -> None:
    """The kubelet takes off its own taint; the other is Joinery's to take off."""
    launched(stage)
    stage.engine.run_for(STARTS_IN + timedelta(seconds=BOOTS_IN[1] + READY_IN[1] + 1))
    (node,) = cluster.nodes.values()
    assert [taint.key for taint in node.spec.taints] == [keys.UNREGISTERED_TAINT]
    assert node.status.conditions[0].status == "True"


def test_an_instance_that_is_terminated_while_booting_never_joins(
    stage: Stage, kubelets: Kubelets, cluster: InMemoryCluster
) -> None:
    """No ghost registers."""
    instance_id = launched(stage)
    stage.engine.run_for(STARTS_IN)
    stage.cloud.terminate([instance_id])
    stage.engine.run_for(2 * MINUTE)
    assert not cluster.nodes


def test_a_spot_warning_comes_two_minutes_before_the_end(stage: Stage, ec2: Ec2, events: list[dict[str, Any]]) -> None:
    """EventBridge sees the warning, then the state changes."""
    instance_id = launched(stage)
    stage.engine.run_for(MINUTE)
    ec2.interrupt(instance_id)
    warned = stage.clock.now()
    stage.engine.run_for(2 * MINUTE - timedelta(seconds=1))
    assert [event["detail"].get("state") for event in events] == ["running", None]
    assert events[-1]["detail-type"] == "EC2 Spot Instance Interruption Warning"
    stage.engine.run_until(warned + 2 * MINUTE + STOPS_IN)
    assert [event["detail"].get("state") for event in events[2:]] == ["shutting-down", "terminated"]


def test_only_spot_instances_are_interrupted(stage: Stage, ec2: Ec2) -> None:
    """On-demand instances are not EC2's to take back."""
    with pytest.raises(ConfigurationError, match="not a spot instance"):
        ec2.interrupt(launched(stage, keys.ON_DEMAND))


def test_a_node_whose_instance_is_gone_is_deleted(stage: Stage, ec2: Ec2, cluster: InMemoryCluster) -> None:
    """The cloud controller asks for it; our finalizer holds it until we have looked."""
    ec2.when_gone.append(Caretakers(stage).instance_gone)
    instance_id = launched(stage)
    cluster.add(builders.node(provider_id=f"aws:///us-east-1a/{instance_id}"))
    stage.engine.run_for(MINUTE)
    stage.cloud.terminate([instance_id])
    stage.engine.run_for(MINUTE)
    node = cluster.nodes["node-1"]
    assert node.status.conditions[0].status == "Unknown"
    assert node.metadata.deletion_timestamp is not None


def test_pods_of_a_node_that_is_gone_are_collected(stage: Stage, cluster: InMemoryCluster) -> None:
    """Nobody else would delete them."""
    Caretakers(stage)
    cluster.add(builders.node(finalizers=[]), builders.pod(node="node-1"))
    cluster.delete_node(cluster.nodes["node-1"])
    stage.engine.run_for(MINUTE)
    assert not cluster.pods


def test_a_deployment_keeps_its_number(stage: Stage, cluster: InMemoryCluster) -> None:
    """An evicted pod is replaced as soon as it is asked to go."""
    WorkloadControllers(stage).apply(workload(deployment()))
    stage.engine.run_for(MINUTE)
    first = next(iter(cluster.pods.values()))
    cluster.remove(first)
    stage.engine.run_for(MINUTE)
    assert len(cluster.pods) == 2
    assert first.key not in cluster.pods


def test_a_stateful_pod_is_made_again_only_when_it_has_gone(stage: Stage, cluster: InMemoryCluster) -> None:
    """At most one of a name, which is what holds up a drain."""
    WorkloadControllers(stage).apply(workload(deployment("StatefulSet", 1)))
    Kubelets(stage, market())
    stage.engine.run_for(MINUTE)
    cluster.add(builders.pod("web-0", node="node-1", owner=cluster.pods["default/web-0"].metadata.owner_references[0]))
    old = cluster.pods["default/web-0"].metadata.uid
    cluster.evict(cluster.pods["default/web-0"])
    assert cluster.pods["default/web-0"].metadata.uid == old
    stage.engine.run_for(MINUTE)
    assert cluster.pods["default/web-0"].metadata.uid != old
    assert cluster.pods["default/web-0"].spec.node_name == ""


def test_a_slow_pod_takes_its_time_and_no_more_than_its_grace(stage: Stage, cluster: InMemoryCluster) -> None:
    """A test may say how long its containers take to stop."""
    Kubelets(stage, market())
    for name, stops_in in (("slow", "20"), ("stubborn", "600")):
        cluster.add(builders.pod(name, node="node-1", annotations={STOPS_SLOWLY: stops_in}))
        cluster.evict(cluster.pods[f"default/{name}"])
    stage.engine.run_for(timedelta(seconds=19))
    assert len(cluster.pods) == 2
    stage.engine.run_for(timedelta(seconds=2))
    assert list(cluster.pods) == ["default/stubborn"]
    stage.engine.run_for(timedelta(seconds=10))
    assert not cluster.pods


def test_every_node_gets_a_pod_of_a_daemon_set(stage: Stage, cluster: InMemoryCluster) -> None:
    """One for each node that it tolerates, bound by the scheduler to that node."""
    DaemonSetController(stage)
    KubeScheduler(stage)
    taint = {"key": "gpu", "effect": "NoSchedule"}
    cluster.add(builders.daemon_set("everywhere"), builders.daemon_set("plain", tolerations=[]))
    cluster.add(builders.node("a"), builders.node("b", taints=[taint]))
    stage.engine.run_for(MINUTE)
    bound = sorted((pod.metadata.owner_references[0].name, pod.spec.node_name) for pod in cluster.pods.values())
    assert bound == [("everywhere", "a"), ("everywhere", "b"), ("plain", "a")]


def test_a_volume_is_detached_a_while_after_its_pod_has_gone(stage: Stage, cluster: InMemoryCluster) -> None:
    """Which is why a drain waits for VolumeAttachments."""
    AttachDetach(stage)
    cluster.add(
        builders.volume(), builders.volume_claim(volume="pv-data"), builders.pod(node="node-1", volumes=["data"])
    )
    stage.engine.run_for(timedelta(seconds=1))
    assert len(cluster.api.objects("VolumeAttachment")) == 1
    cluster.remove(cluster.pods["default/pod-1"])
    stage.engine.run_for(DETACHES_IN - timedelta(seconds=1))
    assert len(cluster.api.objects("VolumeAttachment")) == 1
    stage.engine.run_for(timedelta(seconds=1))
    assert not cluster.api.objects("VolumeAttachment")
