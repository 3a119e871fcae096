"""What pods are made from is read where some may come back different, and else nobody is asked for it."""

import msgspec
from msgspec.structs import replace

from joinery.decisions.scheduling.constraints.resources import requests_of
from joinery.gateways.kubernetes.adapter import KubernetesCluster
from joinery.gateways.kubernetes.connection import connection
from joinery.gateways.kubernetes.transport import Transport
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from joinery.objects.kubernetes.core import Pod
from joinery.objects.kubernetes.verticalautoscaler import VerticalPodAutoscaler
from joinery.objects.snapshot.snapshot import Snapshot
from simulator import builders
from simulator.clock import Clock
from simulator.kubernetes.cluster import InMemoryCluster
from simulator.kubernetes.kubeapi import KubernetesServer
from tests.gateways import clusters


def _pod(generation: int) -> Pod:
    pod = builders.pod("web", node="n", owner="web-1", cpu="3")
    return replace(pod, metadata=replace(pod.metadata, generation=generation))


def _read(pod: Pod) -> Snapshot:
    with clusters.served() as form:
        form.put(pod, builders.node("n"), builders.replica_set("web-1", cpu="1"))
        return form.cluster.snapshot()


def test_a_pod_whose_spec_has_changed_has_its_owner_read() -> None:
    """Its successor is made from that one's template."""
    snapshot = _read(_pod(generation=2))
    (pod,) = snapshot.pods
    assert (requests_of(pod)["cpu"], requests_of(snapshot.successor(pod))["cpu"]) == (3000, 1000)
    assert not snapshot.invalid


def test_pods_that_are_as_they_were_made_have_not() -> None:
    """A cluster has thousands of ReplicaSets."""
    assert _read(_pod(generation=1)).replica_sets == ()


def test_vertical_autoscalers_are_read_where_some_pod_was_set_by_one() -> None:
    """A cluster without them is not asked."""
    path = ("GET", "/apis/autoscaling.k8s.io/v1/verticalpodautoscalers")
    autoscaler = msgspec.convert(
        {
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"targetRef": {"kind": "ReplicaSet", "name": "web-1"}},
            "status": {
                "recommendation": {"containerRecommendations": [{"containerName": "main", "target": {"cpu": 2}}]}
            },
        },
        VerticalPodAutoscaler,
    )
    for annotations, comes in (({}, 1000), ({"vpaUpdates": "set"}, 2000)):
        pod = builders.pod("web", node="n", owner="web-1", cpu="1", annotations=annotations)
        with KubernetesServer(InMemoryCluster(Clock(), builders.node("n"), pod, autoscaler)) as server:
            transport = Transport(connection(server.url))
            snapshot = KubernetesCluster(transport, now=Clock().now, node_class=EC2NodeClass).snapshot()
            assert requests_of(snapshot.successor(snapshot.pods[0]))["cpu"] == comes
            assert (path in server.api.requests) == bool(annotations)
