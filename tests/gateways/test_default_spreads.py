"""Services are read where a scheduler spreads pods by itself, and else nobody is asked for them."""

from joinery.gateways.kubernetes.adapter import KubernetesCluster
from joinery.gateways.kubernetes.connection import connection
from joinery.gateways.kubernetes.transport import Transport
from joinery.objects.default_spread import DefaultSpread, DefaultSpreads
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from joinery.objects.kubernetes.core import LabelSelector, ObjectMeta, Service, ServiceSpec
from simulator import builders
from simulator.clock import Clock
from simulator.kubernetes.cluster import InMemoryCluster
from simulator.kubernetes.kubeapi import KubernetesServer
from simulator.kubernetes.resources import StoredReplicaSet, with_fields

SERVICES, REPLICA_SETS = ("GET", "/api/v1/services"), ("GET", "/apis/apps/v1/replicasets")
BY_SERVICE = Service(metadata=ObjectMeta(name="web", namespace="default"), spec=ServiceSpec(selector={"app": "web"}))


def _replica_set() -> StoredReplicaSet:
    made = builders.replica_set("web-1")
    return with_fields(made, spec=with_fields(made.spec, selector=LabelSelector(match_labels={"hash": "a"})))


def _reader(server: KubernetesServer, spreads: DefaultSpreads) -> KubernetesCluster:
    transport = Transport(connection(server.url))
    return KubernetesCluster(transport, now=Clock().now, node_class=EC2NodeClass, default_spreads=spreads, short=0)


def _memory() -> InMemoryCluster:
    labels = {"app": "web", "hash": "a"}
    return InMemoryCluster(Clock(), BY_SERVICE, _replica_set(), builders.pod("web", labels=labels, owner="web-1"))


def test_a_pod_is_read_with_the_spread_that_its_scheduler_gives_it() -> None:
    """By the Service and the ReplicaSet that select it. What has not changed is the same object next time."""
    with KubernetesServer(_memory()) as server:
        cluster = _reader(server, (DefaultSpread("rack", 2),))
        (pod,) = cluster.snapshot().pods
        (again,) = cluster.snapshot().pods
    (spread,) = pod.spec.topology_spread_constraints
    assert (spread.topology_key, spread.max_skew) == ("rack", 2)
    assert spread.label_selector is not None
    assert spread.label_selector.match_labels == {"app": "web"}
    assert [(one.key, one.values) for one in spread.label_selector.match_expressions] == [("hash", ["a"])]
    assert again is pod


def test_without_the_setting_nobody_reads_services() -> None:
    """A cluster may have many."""
    with KubernetesServer(_memory()) as server:
        (pod,) = _reader(server, ()).snapshot().pods
        assert pod.spec.topology_spread_constraints == []
        assert not {SERVICES, REPLICA_SETS} & set(server.api.requests)


def test_pods_that_ask_for_a_spread_themselves_have_no_services_read() -> None:
    """Nor have those of another scheduler."""
    own = builders.pod("web", spread=[{"topologyKey": "rack"}])
    with KubernetesServer(InMemoryCluster(Clock(), BY_SERVICE, own)) as server:
        _reader(server, (DefaultSpread("rack", 2),)).snapshot()
        _reader(server, (DefaultSpread("rack", 2, scheduler="batch"),)).snapshot()
        assert SERVICES not in server.api.requests
