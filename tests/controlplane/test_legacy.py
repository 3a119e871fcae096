"""Objects of Karpenter v0.31 on a real API server, with definitions that drop what v0.31 did not know."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from joinery.decisions.installation import shipped
from joinery.decisions.lifecycle.pools.readiness import readiness
from joinery.decisions.scheduling.constraints.requirements import ValueSet, written
from joinery.gateways.kubernetes.adapter import KubernetesCluster
from joinery.gateways.kubernetes.auth import from_kubeconfig
from joinery.gateways.kubernetes.legacy import LegacyApis
from joinery.gateways.kubernetes.transport import MERGE_PATCH, Transport
from joinery.objects.actions import UpdateClass, UpdatePool
from joinery.objects.errors import ConflictError, NotFoundError
from joinery.objects.karpenter.conditions import Observation, true
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass, SubnetStatus
from joinery.objects.karpenter.labels import TERMINATION_FINALIZER
from joinery.objects.karpenter.meta import OwnerReference, with_metadata
from joinery.objects.snapshot.claims import LAUNCHED, with_condition
from simulator import builders
from tests.controlplane.objects import MANIFEST_FILES, MANIFESTS, connect, documents, install, put, sweep, uninstall
from tests.functional.older import beta, provisioner, template
from tools.controlplane.plane import JOINERY, ControlPlane

DEFINITIONS = Path(__file__).parent / "legacy-crds.yaml"
NOW = datetime.fromisoformat("2026-11-21T12:00:00+00:00")
BETA = DEFINITIONS.with_name("beta-crds.yaml")
BETA_CLAIMS = "/apis/karpenter.sh/v1beta1/nodeclaims"
CORE, AWS = "/apis/karpenter.sh/v1alpha5", "/apis/karpenter.k8s.aws/v1alpha1"
MACHINE: dict[str, Any] = {
    "apiVersion": "karpenter.sh/v1alpha5",
    "kind": "Machine",
    "metadata": {
        "name": "default-x",
        "labels": {"karpenter.sh/provisioner-name": "default"},
        "finalizers": [TERMINATION_FINALIZER],
    },
    "spec": {"requirements": [], "machineTemplateRef": {"name": "default"}},
}


@pytest.fixture
def admin(api_server: ControlPlane) -> Iterator[Transport]:
    """Our definitions and rights, and those of v0.31 beside them with a Provisioner and its template."""
    install(api_server, *MANIFEST_FILES, DEFINITIONS)
    transport = connect(api_server)
    sweep(transport)
    transport.request("POST", f"{AWS}/awsnodetemplates", template())
    transport.request("POST", f"{CORE}/provisioners", provisioner(ttlSecondsUntilExpired=60))
    yield transport
    sweep(transport)
    uninstall(transport, *documents(DEFINITIONS))


@pytest.fixture
def cluster(api_server: ControlPlane) -> KubernetesCluster:
    """The adapter of the doors, with the rights of the doors."""
    transport = Transport(from_kubeconfig(api_server.kubeconfig(JOINERY)))
    legacy = LegacyApis(transport, EC2NodeClass, default_profile="")
    return KubernetesCluster(transport, now=lambda: NOW, node_class=EC2NodeClass, legacy=legacy)


def _items(transport: Transport, path: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = msgspec.json.decode(transport.get(path))["items"]
    return items


def _stored(transport: Transport, path: str) -> dict[str, Any]:
    stored: dict[str, Any] = msgspec.json.decode(transport.get(path))
    return stored


def test_what_lifecycle_says_of_them_is_kept(admin: Transport, cluster: KubernetesCluster) -> None:
    """The pool is ready at the next read, though its definition has no room for that; the next run writes nothing."""
    resolved = builders.node_class().status.model_copy(
        update={"subnets": [SubnetStatus(id="subnet-a", zone="us-east-1a", zone_id="use1-az1")]}
    )
    for _ in range(2):
        for chain in readiness(cluster.snapshot(), {"default": resolved}):
            for command in chain:
                match command:
                    case UpdatePool(before, after):
                        cluster.update_node_pool(before, after)
                    case UpdateClass(node_class, changed):
                        cluster.update_node_class(node_class, changed)
    snapshot = cluster.snapshot()
    assert [one.metadata.name for one in snapshot.node_pools] == ["default"]
    assert snapshot.node_classes[0].zones == (("us-east-1a", "use1-az1"),)
    assert list(readiness(snapshot, {"default": resolved})) == []
    status = _stored(admin, f"{AWS}/awsnodetemplates/default")["status"]
    assert status["subnets"] == [{"id": "subnet-a", "zone": "us-east-1a"}]
    assert "conditions" not in status
    assert _stored(admin, f"{CORE}/provisioners/default")["status"]["resources"]["cpu"] == "0"


@pytest.mark.usefixtures("admin")
def test_a_claim_of_a_provisioner_is_stored_with_its_owner(cluster: KubernetesCluster) -> None:
    """In v1, owned by the Provisioner, which takes the right to block its deletion; and as old as that allows."""
    (pool,) = cluster.snapshot().node_pools
    api_version, kind = pool.stored_as
    owner = OwnerReference(
        api_version=api_version, kind=kind, name="default", uid=pool.metadata.uid, block_owner_deletion=True
    )
    claim = builders.node_claim("default-1", conditions=[])
    claim = claim.model_copy(update={"metadata": claim.metadata.model_copy(update={"owner_references": [owner]})})
    cluster.create_node_claim(claim)
    (read,) = cluster.claims_snapshot().node_claims
    assert (read.metadata.owner_references, read.spec.expire_after) == ([owner], "60s")


def test_a_machine_is_written_and_ends_as_a_machine(admin: Transport, cluster: KubernetesCluster) -> None:
    """Labels and finalizers are its own, and its conditions have their old names."""
    admin.request("POST", f"{CORE}/machines", MACHINE)
    (claim,) = cluster.snapshot().node_claims
    launched = with_condition(claim, true(LAUNCHED, Observation(NOW, claim.metadata.generation)))
    status = launched.status.model_copy(update={"provider_id": "aws:///us-east-1a/i-1", "image_id": "ami-1"})
    after = cluster.update_node_claim(claim, launched.model_copy(update={"status": status}))
    (read,) = cluster.snapshot().node_claims
    assert (read.status, read.metadata.resource_version) == (status, after.metadata.resource_version)
    shown = _stored(admin, f"{CORE}/machines/default-x")["status"]
    assert [one["type"] for one in shown["conditions"]] == ["MachineLaunched"]
    assert shown["providerID"] == "aws:///us-east-1a/i-1"
    cluster.delete_node_claim(read)
    (leaving,) = cluster.snapshot().node_claims
    assert leaving.is_deleting
    cluster.update_node_claim(leaving, with_metadata(leaving, finalizers=[]))
    assert cluster.snapshot().node_claims == ()


def test_a_claim_that_somebody_else_has_changed_is_a_conflict(admin: Transport, cluster: KubernetesCluster) -> None:
    """As for claims of v1."""
    admin.request("POST", f"{CORE}/machines", MACHINE)
    (claim,) = cluster.snapshot().node_claims
    patch = {"metadata": {"labels": {"a": "b"}}}
    admin.request("PATCH", f"{CORE}/machines/default-x", patch, content_type=MERGE_PATCH)
    with pytest.raises(ConflictError):
        cluster.update_node_claim(claim, with_metadata(claim, labels={"c": "d"}))


def test_what_cannot_be_converted_says_so_where_it_is_stored(admin: Transport, cluster: KubernetesCluster) -> None:
    """In its conditions, or where its definition has none in the annotation; the others go on."""
    bad = provisioner("bad", providerRef={})
    admin.request("POST", f"{CORE}/provisioners", bad)
    (invalid,) = cluster.snapshot().invalid
    assert (invalid.kind, invalid.name) == ("NodePool", "bad")
    for _ in range(2):
        cluster.reject(invalid.kind, invalid.name, invalid.reason)
    told = _stored(admin, f"{CORE}/provisioners/bad")["status"]["conditions"]
    assert "spec.providerRef" in told[0]["message"]
    with pytest.raises(NotFoundError):
        cluster.reject("NodePool", "absent", "it is not there")


def test_one_pool_is_read_wherever_it_is_stored(admin: Transport, cluster: KubernetesCluster) -> None:
    """A NodePool of v1 first."""
    assert cluster.node_pool("default").stored_as[1] == "Provisioner"
    put(admin, builders.node_pool())
    assert cluster.node_pool("default").stored_as[1] == "NodePool"
    with pytest.raises(NotFoundError):
        cluster.node_pool("absent")


def test_a_cluster_without_them_is_asked_once(joinery_api_server: ControlPlane) -> None:
    """Not again and again: what is absent is asked for once in ten minutes."""
    transport = _Counting(from_kubeconfig(joinery_api_server.kubeconfig(JOINERY)))
    legacy = LegacyApis(transport, EC2NodeClass, default_profile="")
    cluster = KubernetesCluster(transport, now=lambda: NOW, node_class=EC2NodeClass, legacy=legacy)
    for _ in range(3):
        assert isinstance(cluster.snapshot().node_claims, tuple)
    assert transport.asked.count("/apis/karpenter.sh") == 1
    assert legacy.served().fields == ()


@pytest.fixture
def beta_admin(api_server: ControlPlane) -> Iterator[Transport]:
    """A cluster that serves v1beta1 alone, with a NodePool and its class."""
    install(api_server, *MANIFEST_FILES)
    transport = connect(api_server)
    sweep(transport)
    uninstall(transport, *shipped.definitions())
    install(api_server, BETA)
    node_class, pool = beta()
    transport.request("POST", "/apis/karpenter.k8s.aws/v1beta1/ec2nodeclasses", node_class)
    transport.request("POST", "/apis/karpenter.sh/v1beta1/nodepools", pool)
    yield transport
    uninstall(transport, *documents(BETA))
    install(api_server, MANIFESTS / "crds")


def test_where_v1_is_not_served_claims_are_those_of_v1beta1(beta_admin: Transport, cluster: KubernetesCluster) -> None:
    """Written, a bound among its requirements, read with all of its status, and ended there; its age is its pool's."""
    snapshot = cluster.snapshot()
    assert [one.stored_as[0] for one in (*snapshot.node_pools, *snapshot.node_classes)] == [
        "karpenter.sh/v1beta1",
        "karpenter.k8s.aws/v1beta1",
    ]
    bounds = written("karpenter.k8s.aws/instance-generation", ValueSet(True, gte=3))
    required = [bound.model_dump(exclude_none=True) for bound in bounds]
    created = cluster.create_node_claim(builders.node_claim("default-1", conditions=[], requirements=required))
    assert cluster.create_node_claim(builders.node_claim("default-2", conditions=[]), dry_run=True).metadata.name
    launched = with_condition(created, true(LAUNCHED, Observation(NOW, created.metadata.generation)))
    cluster.update_node_claim(created, launched)
    (read,) = cluster.claims_snapshot().node_claims
    assert (read.spec.expire_after, read.status) == ("48h", launched.status)
    assert read.spec.node_class_ref == created.spec.node_class_ref
    (document,) = _items(beta_admin, BETA_CLAIMS)
    assert document["spec"]["nodeClassRef"]["apiVersion"] == "karpenter.k8s.aws/v1beta1"
    cluster.delete_node_claim(read)
    (leaving,) = cluster.snapshot().node_claims
    cluster.update_node_claim(leaving, with_metadata(leaving, finalizers=[]))
    assert cluster.snapshot().node_claims == ()


class _Counting(Transport):
    """Remembers what was asked for."""

    def __init__(self, configuration: Any) -> None:
        super().__init__(configuration)
        self.asked: list[str] = []

    def ask(self, method: str, path: str, *given: Any, **options: Any) -> Any:
        self.asked.append(path.partition("?")[0])
        return super().ask(method, path, *given, **options)
