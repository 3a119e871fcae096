"""The doors act on Provisioners and AWSNodeTemplates as Karpenter v0.31 did."""

from typing import Any

import pytest

from joinery.gateways.observing import read_only
from joinery.objects.karpenter.labels import INSTANCE_TYPE, NODE_POOL, WRITTEN_AS, ZONE
from simulator import builders
from simulator.builders import ZONES
from simulator.world import World
from tests.functional.fuse import Fuse
from tests.functional.older import DAY, OLD_NAME, beta, provisioner, stored, template, tick, v31
from tests.functional.stand import Stand


@pytest.fixture
def old(world: World) -> Stand:
    """A cluster of v0.31 whose nodes go thirty seconds after they are empty, and after ten days."""
    return v31(Stand(world), ttlSecondsAfterEmpty=30, ttlSecondsUntilExpired=10 * DAY)


# --- nodes of a Provisioner ---


def test_pending_pods_get_a_node_of_a_provisioner(old: Stand) -> None:
    """Its claim and its node have the old label and the new one, and pods that select by the old name go there."""
    old.pods(3, node_selector={OLD_NAME: "default"})
    old.settle()
    (node,) = old.world.cluster.nodes.values()
    assert {pod.spec.node_name for pod in old.world.cluster.pods.values()} == {node.metadata.name}
    for labels in (old.claim.metadata.labels, node.metadata.labels):
        assert (labels[OLD_NAME], labels[NODE_POOL]) == ("default", "default")


def test_a_claim_is_owned_by_the_provisioner(old: Stand) -> None:
    """An owner that does not exist would have Kubernetes delete the claim."""
    old.pods(1)
    old.settle()
    (owner,) = old.claim.metadata.owner_references
    uid = stored(old, "Provisioner")["metadata"]["uid"]
    assert (owner.api_version, owner.kind, owner.uid) == ("karpenter.sh/v1alpha5", "Provisioner", uid)


def test_labels_taints_and_startup_taints_are_the_node_s(world: World) -> None:
    """What the Provisioner says of its nodes."""
    taint, startup = {"key": "batch", "effect": "NoSchedule"}, {"key": "boot", "effect": "NoSchedule"}
    stand = v31(Stand(world), labels={"team": "web"}, taints=[taint], startupTaints=[startup])
    tolerations = [{"key": "batch", "operator": "Exists"}]
    stand.pods(1, tolerations=tolerations, node_selector={"team": "web"})
    stand.provision()
    stand.boot()
    stand.live()
    (node,) = stand.world.cluster.nodes.values()
    assert node.metadata.labels["team"] == "web"
    assert {"batch", "boot"} <= {one.key for one in node.spec.taints}


def test_limits_of_a_provisioner_hold(world: World) -> None:
    """Four CPUs are one xlarge node."""
    stand = v31(Stand(world), limits={"resources": {"cpu": 4}})
    stand.pods(9)
    stand.settle()
    stand.provision()
    assert len(stand.claims) == 1


def test_the_heavier_provisioner_comes_first(world: World) -> None:
    """As NodePools of such weights."""
    stand = v31(Stand(world))
    stand.world.cluster.add_document(provisioner("heavy", weight=50))
    stand.live()
    stand.pods(1)
    stand.provision()
    assert stand.claim.metadata.labels[OLD_NAME] == "heavy"


def test_a_provider_block_is_a_class_of_its_own(world: World) -> None:
    """Provisioner and class are one stored object, and neither's status is lost for the other's."""
    stand = Stand(world)
    block = template()["spec"]
    stand.world.cluster.add_document(provisioner("inline", providerRef=None, provider=block))
    stand.live()
    stand.pods(1)
    stand.settle()
    assert stand.claim.spec.node_class_ref.name == "inline"
    annotations = stored(stand, "Provisioner", "inline")["metadata"]["annotations"]
    assert {f"{WRITTEN_AS}.nodepool", f"{WRITTEN_AS}.ec2nodeclass"} <= annotations.keys()


def test_kubelets_that_differ_make_classes_that_stay_ready(world: World) -> None:
    """Three classes of one template; the second look has nothing to write."""
    stand = v31(Stand(world), kubeletConfiguration={"maxPods": 20})
    stand.world.cluster.add_document(provisioner("sparse", kubeletConfiguration={"maxPods": 5}))
    stand.live()
    snapshot = stand.world.cluster.snapshot()
    ready = {one.metadata.name: one.ready.status for one in snapshot.node_classes if one.ready}
    assert ready == dict.fromkeys(("default", "default-default", "default-sparse"), "True")
    before = stored(stand, "AWSNodeTemplate")
    stand.live()
    assert stored(stand, "AWSNodeTemplate") == before


# --- what is written on it ---


def test_status_is_written_where_v31_wrote_it(old: Stand) -> None:
    """Resources of the Provisioner; subnets, security groups and images of the template."""
    old.pods(1)
    old.settle()
    status = stored(old, "Provisioner")["status"]
    assert (status["resources"]["cpu"], "nodes" in status["resources"]) == ("4", False)
    assert {one["type"]: one["status"] for one in status["conditions"]}["Ready"] == "True"
    assert stored(old, "AWSNodeTemplate")["status"].keys() >= {"subnets", "securityGroups", "amis"}


def test_what_the_older_definition_drops_is_not_lost(old: Stand) -> None:
    """Its API server prunes a status that it does not know; a second look finds the pool ready and writes nothing."""
    for kind in ("Provisioner", "AWSNodeTemplate"):
        old.world.cluster.add_document({**stored(old, kind), "status": {}})
    before = stored(old, "Provisioner"), stored(old, "AWSNodeTemplate")
    old.live()
    assert (stored(old, "Provisioner"), stored(old, "AWSNodeTemplate")) == before
    old.pods(1)
    assert old.provision()["launched"] == 1


def test_a_broken_annotation_is_worked_out_again(old: Stand) -> None:
    """Anybody may edit it."""
    document = stored(old, "Provisioner")
    metadata = {**document["metadata"], "annotations": {f"{WRITTEN_AS}.nodepool": "{"}}
    old.world.cluster.add_document({**document, "metadata": metadata})
    old.live()
    old.pods(1)
    assert old.provision()["launched"] == 1


@pytest.mark.parametrize(
    "record",
    [
        '{"status": {"conditions": 5}}',
        '{"status": {"conditions": [1]}}',
        '{"status": {"conditions": [{"type": []}]}}',
        '{"status": {"resources": "all", "amis": 3, "allocatable": {"cpu": "x"}, "nodes": 1e999}}',
        '{"annotations": {"a": 1, "b": null, "c": ["d"]}}',
    ],
)
def test_a_record_of_other_types_is_worked_out_again(old: Stand, record: str) -> None:
    """On a Provisioner, its template, and a Machine: pods get nodes, and no door stops."""
    machine: dict[str, Any] = {"apiVersion": "karpenter.sh/v1alpha5", "kind": "Machine", "metadata": {"name": "older"}}
    condition = {"type": "MachineLaunched", "status": "True", "lastTransitionTime": "2026-08-24T00:00:00Z"}
    machine["spec"] = {"machineTemplateRef": {"name": "default"}, "requirements": [], "resources": {}}
    machine["status"] = {"providerID": "aws:///us-east-1a/i-0123456789abcdef0", "conditions": [condition]}
    given = ((stored(old, "Provisioner"), "nodepool"), (stored(old, "AWSNodeTemplate"), "ec2nodeclass"))
    for document, kind in (*given, (machine, "nodeclaim")):
        metadata = {**document["metadata"], "annotations": {f"{WRITTEN_AS}.{kind}": record}}
        old.world.cluster.add_document({**document, "metadata": metadata})
    old.live()
    old.live()
    old.consolidate()
    old.expire()
    old.pods(1)
    assert old.provision()["launched"] == 1


def test_a_template_without_an_instance_profile_says_so(world: World) -> None:
    """Karpenter's own settings held the default; it has to be a setting of ours."""
    stand = Stand(world)
    stand.world.cluster.add_document(template(instanceProfile=None))
    stand.world.cluster.add_document(provisioner())
    stand.live()
    stand.live()
    told = stored(stand, "AWSNodeTemplate")["status"]["conditions"]
    assert "DefaultInstanceProfile" in told[0]["message"]
    stand.pods(1)
    assert stand.provision()["launched"] == 0


def test_a_provisioner_without_its_template_says_so(world: World) -> None:
    """In its own condition."""
    stand = Stand(world)
    stand.world.cluster.add_document(provisioner())
    stand.live()
    conditions = {one["type"]: one for one in stored(stand, "Provisioner")["status"]["conditions"]}
    assert conditions["NodeClassReady"]["reason"] == "NodeClassNotFound"


def test_observe_mode_writes_nothing_on_it(world: World) -> None:
    """Neither annotation nor status."""
    stand = Stand(world, gateways=read_only(world.gateways))
    v31(stand)
    assert "annotations" not in stored(stand, "Provisioner")["metadata"]


# --- beside v1 ---


def test_a_node_pool_counts_instead_of_a_provisioner_of_its_name(old: Stand) -> None:
    """Halfway through a move both are there, and one pool must not be bought for twice."""
    old.world.cluster.add(builders.node_class(), builders.node_pool(labels={"team": "new"}))
    old.live()
    assert [pool.stored_as[1] for pool in old.world.cluster.snapshot().node_pools] == ["NodePool"]
    old.pods(1)
    old.provision()
    assert old.claim.metadata.labels["team"] == "new"


def test_a_provisioner_beside_a_node_pool_of_another_name_acts(stand: Stand) -> None:
    """Pools move one by one."""
    stand.world.cluster.add_document(template("older"))
    stand.world.cluster.add_document(provisioner("older", providerRef={"name": "older"}))
    stand.live()
    stand.pods(1, node_selector={OLD_NAME: "older"})
    stand.provision()
    assert stand.claim.metadata.labels[NODE_POOL] == "older"


def test_the_old_label_of_a_node_pool_s_name_selects_nothing(old: Stand) -> None:
    """Nodes of a NodePool do not carry it, and no scheduler would bind the pod there."""
    old.world.cluster.add(builders.node_class(), builders.node_pool("newer"))
    old.live()
    old.pods(1, node_selector={OLD_NAME: "newer"})
    assert old.provision()["launched"] == 0


# --- v1beta1 ---


def test_objects_of_v1beta1_are_acted_on(world: World) -> None:
    """Where v1 is not served: expiry of the pool, and WhenEmpty after its time."""
    stand = Stand(world)
    for document in beta():
        stand.world.cluster.add_document(document)
    stand.live()
    stand.pods(1)
    stand.settle()
    (owner,) = stand.claim.metadata.owner_references
    assert (owner.api_version, owner.kind) == ("karpenter.sh/v1beta1", "NodePool")
    stand.wait(2 * DAY)
    assert stand.expire() == {"expired": 1}


# --- crashes ---


def test_a_crash_while_its_status_is_written_loses_nothing(world: World) -> None:
    """The next run writes what is missing."""
    stand = Stand(world)
    fuse = Fuse()
    stand.gateways = fuse.protect(stand.gateways)
    for document in (template(), provisioner()):
        stand.world.cluster.add_document(document)
    fuse.kill_after(1)
    assert not fuse.outlives(stand.live)
    stand.live()
    stand.pods(1)
    assert stand.provision()["launched"] == 1


# --- v1alpha3 and v1alpha4 ---


@pytest.fixture
def earliest(world: World) -> Stand:
    """A Provisioner of v0.4 that lists large nodes of m7a on demand, by fields of their own."""
    block = {**template()["spec"], "cluster": {"name": "simulated", "endpoint": "https://simulated.example"}}
    spec = {"instanceTypes": ["m7a.large"], "zones": [ZONES[0]], "provider": block, "ttlSecondsAfterEmpty": 30}
    metadata = {"name": "default"}
    document = {"apiVersion": "karpenter.sh/v1alpha4", "kind": "Provisioner", "metadata": metadata, "spec": spec}
    stand = Stand(world)
    stand.world.cluster.add_document(document)
    stand.live()
    return stand


@pytest.mark.parametrize(
    ("selector", "wanted"),
    [
        ({}, ("m7a.large", ZONES[0])),
        ({INSTANCE_TYPE: "m7a.2xlarge"}, ("m7a.2xlarge", ZONES[0])),
        ({ZONE: ZONES[1]}, ("m7a.large", ZONES[1])),
    ],
)
def test_what_a_pod_selects_overrides_what_the_earliest_provisioners_list(
    earliest: Stand, selector: dict[str, str], wanted: tuple[str, str]
) -> None:
    """Its node is of that type, in that zone, runs the pod, and is no drifted node because of it."""
    earliest.pods(1, node_selector=selector)
    earliest.settle()
    (node,) = earliest.world.cluster.nodes.values()
    (pod,) = earliest.world.cluster.pods.values()
    assert (node.metadata.labels[INSTANCE_TYPE], node.metadata.labels[ZONE]) == wanted
    assert pod.spec.node_name == node.metadata.name
    assert earliest.claim.metadata.owner_references[0].api_version == "karpenter.sh/v1alpha4"
    tick(earliest)
    assert earliest.claim.condition("Drifted") is None
