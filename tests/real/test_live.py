"""A whole real cluster on a real API server, status included, and every door that reads it."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from joinery.gateways.kubernetes.adapter import KubernetesCluster
from joinery.gateways.kubernetes.lists import CORE, NODE_CLAIMS, NODE_POOLS, node_classes
from joinery.gateways.kubernetes.transport import MERGE_PATCH, Transport
from joinery.objects.errors import ConflictError
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from joinery.objects.kubernetes.core import Node
from joinery.objects.kubernetes.decoding import convert
from joinery.objects.kubernetes.quantity import amounts
from joinery.objects.snapshot.instances import instance_id
from joinery.objects.snapshot.snapshot import Snapshot
from simulator.cloud.market import sample
from simulator.doors.doors import Doors
from simulator.doors.queues import record
from tests.controlplane.objects import connect, sweep
from tests.controlplane.story import RealWorld
from tests.real.files import CLUSTER, FOLDER, objects
from tools.controlplane.plane import JOINERY, ControlPlane

NOW = datetime(2026, 11, 22, tzinfo=UTC)
#: What the API server gives, or what only a controller that is not here would make true.
_SERVERS_OWN = (
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
)
#: Where the doors' kinds live: kind to path of all of them.
CUSTOM = {custom.kind: custom for custom in (NODE_POOLS, NODE_CLAIMS, node_classes(EC2NodeClass))}
PATHS = {struct.__name__: path for _, path, struct in CORE} | {kind: custom.path for kind, custom in CUSTOM.items()}
FOREIGN = 3  # two NodePools and a NodeClaim of EKS Auto Mode
FIRST = ("Namespace", "PriorityClass", "StorageClass")


def listed() -> list[dict[str, Any]]:
    """What the doors read of the cluster, with the objects of EKS Auto Mode beside it; what others need comes first."""
    auto_mode = [
        FOLDER / "karpenter" / f"{name}.yaml" for name in ("nodepools-eks-auto-mode", "nodeclaim-eks-auto-mode")
    ]
    items = [item for path in (CLUSTER, *auto_mode, FOLDER / "nodes" / "eks-auto-mode.yaml") for item in objects(path)]
    wanted = [item for item in items if item["kind"] in PATHS]
    return sorted(wanted, key=lambda item: item["kind"] not in FIRST)


def post(transport: Transport, item: dict[str, Any]) -> None:
    """Create one object as it is printed, and then its status."""
    meta = item["metadata"]
    place, namespace = PATHS[item["kind"]], meta.get("namespace")
    if namespace:
        root, _, plural = place.rpartition("/")
        place = f"{root}/namespaces/{namespace}/{plural}"
    stored = {**item, "status": {}, "metadata": {key: value for key, value in meta.items() if key not in _SERVERS_OWN}}
    try:
        transport.request("POST", place, stored)
    except ConflictError:
        assert item["kind"] in ("Namespace", "PriorityClass"), "every cluster has some of its own"
    if "status" in item and item["kind"] != "Namespace":
        status = {"status": item["status"]}
        transport.request("PATCH", f"{place}/{meta['name']}/status", status, content_type=MERGE_PATCH)


@pytest.fixture(scope="module")
def real_cluster(joinery_api_server: ControlPlane) -> Iterator[ControlPlane]:
    """An API server that holds the cluster."""
    admin = connect(joinery_api_server)
    sweep(admin)
    ranks = [item["metadata"]["name"] for item in listed() if item["kind"] == "PriorityClass"]
    try:
        for item in listed():
            post(admin, item)
        yield joinery_api_server
    finally:
        for node in (item["metadata"]["name"] for item in listed() if item["kind"] == "Node"):
            # The API server takes a swap of nothing as status, and then refuses every other change of that Node.
            no_swap = {"status": {"nodeInfo": {"swap": None}}}
            admin.request("PATCH", f"{PATHS['Node']}/{node}/status", no_swap, content_type=MERGE_PATCH)
        sweep(admin)
        for name in ranks:
            if not name.startswith("system-"):
                admin.request("DELETE", f"{PATHS['PriorityClass']}/{name}")


def snapshot(plane: ControlPlane) -> Snapshot:
    """What a door reads."""
    return KubernetesCluster(connect(plane, JOINERY), now=lambda: NOW, node_class=EC2NodeClass).snapshot()


def test_every_object_of_a_real_cluster_is_read(real_cluster: ControlPlane) -> None:
    """None is missing and none is invalid: drivers without drivers, memory in Ki, claims of another provider."""
    seen = snapshot(real_cluster)
    assert seen.invalid == ()
    fields = {struct.__name__: field for field, _, struct in CORE} | {
        kind: custom.field for kind, custom in CUSTOM.items()
    }
    for kind, field in fields.items():
        wanted = {item["metadata"]["name"] for item in listed() if item["kind"] == kind}
        assert wanted <= {item.metadata.name for item in getattr(seen, field)}, kind


def test_what_is_read_is_what_was_posted(real_cluster: ControlPlane) -> None:
    """Amounts and taints survive the API server and the reader."""
    seen = {node.metadata.name: node for node in snapshot(real_cluster).nodes}
    for wanted in (convert(item, Node) for item in listed() if item["kind"] == "Node"):
        node = seen[wanted.metadata.name]
        assert amounts(node.status.allocatable) == amounts(wanted.status.allocatable)
        assert {taint.key for taint in wanted.spec.taints} <= {taint.key for taint in node.spec.taints}


def test_every_door_decides_on_it_and_leaves_alone_what_is_not_ours(real_cluster: ControlPlane) -> None:
    """Nothing fails, the marked pods are served, and no object of EKS Auto Mode is written to."""
    before = foreign(real_cluster)
    assert len(before) == FOREIGN
    world = RealWorld(connect(real_cluster, JOINERY), NOW)
    world.store.put_catalog(sample())
    warning = json.loads((FOLDER / "eventbridge" / "spot-interruption.json").read_text())
    seen = snapshot(real_cluster)
    theirs = next(claim for claim in seen.node_claims if claim not in seen.managed_claims)
    warning["detail"]["instance-id"] = instance_id(theirs.status.provider_id)
    doors = Doors(world)
    with doors.open():
        for door in ("provisioning", "lifecycle"):
            doors.invoke(door, {"Records": [record("1", f"joinery-{door}.fifo", {"bell": door}, group="real")]})
        doors.invoke("expiration", {"schedule": "2026-11-22T00:00:00Z"})
        told = doors.invoke("interruption", {"Records": [record("1", "joinery-interruptions", warning)]})
    *swept, _ = doors.calls
    assert [(call.door, call.error or call.result["outcome"]) for call in swept] == [
        ("provisioning", "done"), ("lifecycle", "done"), ("expiration", "done"),
    ]  # fmt: skip
    # reporting-0 waits: a claim of its ephemeral volume's name is there, and no pod owns it (``VolumeIsForPod``).
    assert (swept[0].result["placed"], swept[0].result["unplaced"]) == (8, 1)
    assert told.result == {"batchItemFailures": []}
    assert foreign(real_cluster) == before


def foreign(plane: ControlPlane) -> dict[str, str]:
    """The objects of EKS Auto Mode, each with the version that any write would change."""
    seen = snapshot(plane)
    refs = [(pool.metadata, pool.spec.template.spec.node_class_ref) for pool in seen.node_pools]
    refs += [(claim.metadata, claim.spec.node_class_ref) for claim in seen.node_claims]
    return {meta.name: meta.resource_version for meta, ref in refs if ref.group == "eks.amazonaws.com"}
