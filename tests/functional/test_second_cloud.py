"""A second cloud is a package: the whole life of a node that EC2 does not know, with the product's own controllers."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from joinery.controllers.acting.invocation import Invocation
from joinery.controllers.catalog import CatalogController
from joinery.controllers.lifecycle import LifecycleController
from joinery.controllers.provisioning import ProvisioningController
from joinery.gateways.bundles import Gateways
from joinery.objects.annotations.plans import is_kept, planned_pods
from joinery.objects.karpenter.labels import HOSTNAME, NO_EXECUTE, UNREGISTERED_TAINT
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.kubernetes.core import Condition, Node, NodeSpec, NodeStatus, ObjectMeta, Pod, Taint
from joinery.objects.settings import Settings
from simulator import builders
from simulator.aws import InMemoryDoorbell, InMemoryStore, InMemoryUnavailableOfferings
from simulator.clock import Clock
from simulator.kubernetes.cluster import InMemoryCluster
from simulator.world import InMemoryRecorder
from tests.functional.metal import GROUP, MetalCloud, MetalNodeClass, MetalNodeClassSpec

CLASS = MetalNodeClass(
    metadata={"name": "racks", "generation": 1, "finalizers": [f"{GROUP}/termination"]},
    spec=MetalNodeClassSpec(racks=["rack-1", "rack-2"], image="debian-13"),
)
POOL = NodePool.model_validate(
    {
        "metadata": {"name": "metal", "uid": "0a1b", "generation": 1},
        "spec": {"template": {"spec": {"nodeClassRef": {"group": GROUP, "kind": "MetalNodeClass", "name": "racks"}}}},
    }
)


class Basement:
    """A cluster whose nodes are machines, and the two controllers that a node's life needs."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.cluster = InMemoryCluster(self.clock, CLASS, POOL, node_class=MetalNodeClass)
        self.cloud = MetalCloud(self.clock)
        self._gateways = Gateways(
            cluster=self.cluster,
            recorder=InMemoryRecorder(self.clock, self.cluster),
            cloud=self.cloud,
            doorbell=InMemoryDoorbell(self.clock),
            store=InMemoryStore(),
            unavailable=InMemoryUnavailableOfferings(),
        )
        CatalogController(self._gateways, self.clock.now).reconcile()
        self.live()

    def live(self, after: float = 0) -> None:
        """One run of lifecycle, so many seconds later."""
        self.clock.move_to(self.clock.now() + timedelta(seconds=after))
        LifecycleController(self._gateways, Settings(cluster="basement")).reconcile(Invocation("b"))

    def provision(self) -> None:
        """One run of provisioning."""
        ProvisioningController(self._gateways, Settings(cluster="basement")).reconcile(Invocation("a"))

    def boot(self) -> None:
        """The kubelet of every machine registers its node, with the labels and taints that the launch asked for."""
        for machine, request in zip(self.cloud.instances(), self.cloud.requests, strict=True):
            room: dict[str, str | int | float] = {"cpu": "4", "memory": "16Gi", "pods": "50"}
            self.cluster.add(
                Node(
                    metadata=ObjectMeta(
                        name=machine.instance_id, labels={**request.labels, HOSTNAME: machine.instance_id}
                    ),
                    spec=NodeSpec(
                        provider_id=machine.provider_id, taints=[Taint(key=UNREGISTERED_TAINT, effect=NO_EXECUTE)]
                    ),
                    status=NodeStatus(
                        capacity=room, allocatable=room, conditions=[Condition(type="Ready", status="True")]
                    ),
                )
            )

    def bind(self) -> None:
        """Every pod runs on the only node."""
        for pod in tuple(self.cluster.pods.values()):
            status = replace(pod.status, phase="Running", conditions=[Condition(type="Ready", status="True")])
            self.cluster.api.update(
                replace(pod, spec=replace(pod.spec, node_name=self.node.metadata.name), status=status)
            )

    @property
    def claim(self) -> NodeClaim:
        """The only one."""
        (claim,) = self.cluster.node_claims.values()
        return claim

    @property
    def node(self) -> Node:
        """The only one."""
        (node,) = self.cluster.nodes.values()
        return node


@pytest.fixture
def basement() -> Basement:
    """With three pods that wait; a small machine holds them."""
    basement = Basement()
    pods: list[Pod] = [builders.pod(f"pod-{number}", cpu="1") for number in range(3)]
    basement.cluster.add(*pods)
    return basement


def test_a_class_of_another_cloud_makes_its_pool_ready(basement: Basement) -> None:
    """The cloud says what is true of its class; the pool and the hash follow."""
    node_class, pool = basement.cluster.node_classes["racks"], basement.cluster.node_pools["metal"]
    assert node_class.ready is not None
    assert node_class.ready.status == "True"
    assert node_class.metadata.annotations["metal.example.com/metalnodeclass-hash"] == CLASS.static_hash
    assert [condition.status for condition in pool.status.conditions if condition.type == "Ready"] == ["True"]


def test_pending_pods_get_a_machine(basement: Basement) -> None:
    """The cheapest that holds them, by a claim that names class and hash in the other cloud's own keys."""
    basement.provision()
    claim = basement.claim
    assert (claim.spec.node_class_ref.kind, claim.metadata.labels["metal.example.com/metalnodeclass"]) == (
        "MetalNodeClass",
        "racks",
    )
    assert claim.metadata.annotations["metal.example.com/metalnodeclass-hash"] == CLASS.static_hash
    assert claim.metadata.annotations["metal.example.com/image"] == "debian-13"
    assert claim.status.provider_id == "metal:///rack-1/machine-1"
    assert not [
        key for key in (*claim.metadata.labels, *claim.metadata.annotations) if key.startswith("karpenter.k8s.aws")
    ]


def test_a_machine_that_joins_becomes_the_node_of_its_pods(basement: Basement) -> None:
    """Registered and initialized, kept for its pods until they run, and then open to all."""
    basement.provision()
    basement.boot()
    basement.live(after=10)
    assert basement.claim.is_true("Initialized")
    assert any(map(is_kept, basement.node.spec.taints))
    basement.bind()
    basement.live(after=10)
    assert basement.node.spec.taints == []


def test_a_claim_that_is_deleted_is_drained_and_its_machine_goes_back(basement: Basement) -> None:
    """And the class goes after it, once nobody needs it any more."""
    basement.provision()
    basement.boot()
    basement.live(after=10)
    basement.bind()
    basement.cluster.delete_node_claim(basement.claim)
    basement.cluster.api.delete(basement.cluster.node_classes["racks"])
    basement.live(after=20)
    assert all(pod.metadata.deletion_timestamp for pod in basement.cluster.pods.values())
    assert basement.cluster.node_classes
    basement.clock.move_to(basement.clock.now() + timedelta(seconds=31))
    basement.cluster.end_grace()
    for _ in range(4):
        basement.live(after=5)
    assert not basement.cloud.instances()
    assert not basement.cluster.nodes
    assert not basement.cluster.node_claims
    assert not basement.cluster.node_classes


def test_pods_may_ask_for_a_class_of_another_cloud_by_its_label(basement: Basement) -> None:
    """The label is named after the kind, as Karpenter names EC2NodeClass's."""
    wanted = {"metal.example.com/metalnodeclass": "racks"}
    basement.cluster.add(builders.pod("choosy", node_selector=wanted))
    basement.provision()
    assert "default/choosy" in planned_pods(basement.claim)


def test_a_size_that_has_run_out_is_remembered_and_another_is_taken(basement: Basement) -> None:
    """The plan wants three small machines and there are two.

    The claim that gets none goes, and the next plan takes a large one.
    """
    basement.cluster.add(*(builders.pod(f"big-{number}", cpu="4", memory="8Gi") for number in range(2)))
    basement.provision()
    basement.provision()
    assert sorted(machine.instance_type for machine in basement.cloud.instances()) == ["large", "small", "small"]


def test_a_pool_says_why_the_cloud_finds_its_class_wanting() -> None:
    """The reason is the cloud's own, and its pods get no node."""
    basement = Basement()
    wrong = CLASS.model_copy(update={"spec": MetalNodeClassSpec(racks=["rack-9"], image="debian-13")})
    basement.cluster.add(wrong, POOL, builders.pod("pod-0"))
    basement.live(after=1)
    basement.provision()
    conditions = {found.type: found for found in basement.cluster.node_pools["metal"].status.conditions}
    assert conditions["NodeClassReady"].reason == "NoSuchRack"
    assert conditions["NodeClassReady"].message == "there is no rack rack-9"
    assert not basement.cluster.node_claims


def test_pools_of_ec2_are_another_providers_business_here(basement: Basement) -> None:
    """Nobody serves them in this cluster, and nobody writes to them."""
    theirs = builders.node_pool("theirs")
    basement.cluster.add(theirs)
    basement.live(after=1)
    assert basement.cluster.node_pools["theirs"].status == theirs.status
