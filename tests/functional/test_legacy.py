"""The doors act on Provisioners and AWSNodeTemplates as Karpenter v0.31 did."""

from typing import Any

import pytest

from joinery.apis.labels import EMPTY_SINCE, NODE_POOL, WRITTEN_AS
from joinery.lifecycle.drift import drift_noted
from joinery.observing import read_only
from simulator import builders
from simulator.world import World
from tests.functional.fuse import Fuse
from tests.functional.older import OLD_NAME, XLARGE, beta, provisioner, stored, template, v31
from tests.functional.stand import Stand

DAY = 24 * 3600


@pytest.fixture
def old(world: World) -> Stand:
    """A cluster of v0.31 whose nodes go thirty seconds after they are empty, and after ten days."""
    return v31(Stand(world), ttlSecondsAfterEmpty=30, ttlSecondsUntilExpired=10 * DAY)


def _changed(stand: Stand, kind: str, **spec: Any) -> None:
    """Somebody edits the object."""
    document = stored(stand, kind)
    stand.world.cluster.add_document({**document, "spec": {**document["spec"], **spec}})


def _emptied(stand: Stand) -> None:
    for pod in list(stand.world.cluster.pods.values()):
        stand.world.cluster.api.delete(pod)


def _noted(stand: Stand) -> list[str | None]:
    return [node.metadata.annotations.get(EMPTY_SINCE) for node in stand.world.cluster.nodes.values()]


def _tick(stand: Stand, times: int = 5) -> None:
    for _ in range(times):
        stand.wait(10)
        stand.live()


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


# --- emptiness ---


def test_an_empty_node_says_since_when_and_goes_after_its_time(old: Stand) -> None:
    """The annotation comes with the last pod's end; thirty seconds later the node is retired."""
    old.pods(1)
    old.settle()
    assert _noted(old) == [None]
    old.wait(60)
    _emptied(old)
    old.live()
    noted = _noted(old)
    assert noted == [old.world.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")]
    old.wait(20)
    assert old.consolidate()["commands"] == 0
    old.live()
    assert _noted(old) == noted
    old.wait(20)
    assert old.consolidate()["commands"] == 1
    _tick(old)
    assert old.alive == []


def test_a_pod_takes_the_annotation_away(old: Stand) -> None:
    """The node is not empty any more, and its time begins anew with the next end."""
    old.pods(1)
    old.settle()
    _emptied(old)
    old.live()
    (node,) = old.world.cluster.nodes.values()
    old.world.cluster.add(builders.pod("late", node=node.metadata.name))
    old.live()
    assert _noted(old) == [None]


def test_all_empty_nodes_go_at_once(old: Stand) -> None:
    """There were no budgets."""
    old.pods(9)
    old.settle()
    assert len(old.alive) >= 3
    _emptied(old)
    old.live()
    old.wait(60)
    old.live()
    old.consolidate()
    _tick(old)
    assert old.alive == []


@pytest.mark.parametrize(("spec", "left"), [({"consolidation": {"enabled": True}}, 0), ({}, 1)])
def test_consolidation_decides_where_no_time_is_said(world: World, spec: dict[str, Any], left: int) -> None:
    """With neither, an empty node stays until it expires; and no annotation is written in either case."""
    stand = v31(Stand(world), **spec)
    stand.pods(1)
    stand.settle()
    _emptied(stand)
    _tick(stand, 2)
    assert _noted(stand) == [None]
    stand.wait(3600)
    stand.live()
    stand.consolidate()
    _tick(stand)
    assert len(stand.alive) == left


def test_do_not_evict_and_do_not_consolidate_are_heeded(world: World) -> None:
    """The older names of ``do-not-disrupt``, on pods and nodes."""
    stand = v31(Stand(world), consolidation={"enabled": True})
    stand.pods(1, annotations={"karpenter.sh/do-not-evict": "true"})
    stand.settle()
    stand.wait(3600)
    stand.live()
    (pod,) = stand.world.cluster.snapshot().pods
    assert pod.metadata.annotations["karpenter.sh/do-not-disrupt"] == "true"


# --- expiry and drift ---


def test_a_node_expires_when_its_provisioner_says_so(old: Stand) -> None:
    """After ten days."""
    old.pods(1)
    old.settle()
    old.wait(9 * DAY)
    assert old.expire() == {"expired": 0}
    old.wait(DAY)
    assert old.expire() == {"expired": 1}


def test_a_changed_expiry_holds_for_nodes_that_are_there(old: Stand) -> None:
    """It was never drift: the nodes stay until their new time."""
    old.pods(1)
    old.settle()
    _changed(old, "Provisioner", ttlSecondsUntilExpired=2 * DAY)
    old.live()
    assert drift_noted(old.claim) is None
    old.wait(2 * DAY)
    assert old.expire() == {"expired": 1}


def test_without_an_expiry_a_node_never_expires(world: World) -> None:
    """The 720 hours of NodePools are not a Provisioner's."""
    stand = v31(Stand(world))
    stand.pods(1)
    stand.settle()
    stand.wait(100 * DAY)
    assert stand.expire() == {"expired": 0}


def test_a_changed_provisioner_drifts_its_nodes(old: Stand) -> None:
    """Labels of its nodes are what they were made with."""
    old.pods(1)
    old.settle()
    _changed(old, "Provisioner", labels={"team": "new"})
    old.live()
    drift = drift_noted(old.claim)
    assert drift is not None
    assert drift.reason == "NodePoolDrifted"


def test_a_changed_template_drifts_its_nodes(old: Stand) -> None:
    """User data cannot change on an instance that runs."""
    old.pods(1)
    old.settle()
    _changed(old, "AWSNodeTemplate", userData="echo new")
    old.live()
    drift = drift_noted(old.claim)
    assert drift is not None
    assert drift.reason == "NodeClassDrift"


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


# --- nodes that v0.31 made ---


def _machine(**metadata: Any) -> dict[str, Any]:
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": "2026-08-24T00:00:00Z"}
        for kind in ("MachineLaunched", "MachineRegistered", "MachineInitialized")
    ]
    return {
        "apiVersion": "karpenter.sh/v1alpha5", "kind": "Machine",
        "metadata": {
            "name": "default-x", "labels": {OLD_NAME: "default"}, "finalizers": ["karpenter.sh/termination"],
            "creationTimestamp": "2026-08-24T00:00:00Z", **metadata,
        },
        "spec": {"requirements": [XLARGE], "machineTemplateRef": {"name": "default"}},
        "status": {"providerID": "", "conditions": conditions},
    }  # fmt: skip


@pytest.fixture
def made_by_v31(old: Stand) -> Stand:
    """A node of v0.31: its Machine is what Joinery's NodeClaim was until now."""
    old.pods(1)
    old.settle()
    claim = old.claim
    document = _machine()
    document["status"] |= {"providerID": claim.status.provider_id, "nodeName": claim.status.node_name}
    old.world.cluster.add(claim.model_copy(update={"metadata": claim.metadata.model_copy(update={"finalizers": []})}))
    old.world.cluster.remove(claim)
    old.world.cluster.add_document(document)
    return old


def test_a_machine_is_adopted_as_it_is(made_by_v31: Stand) -> None:
    """No second claim is made for its node, and nothing is replaced."""
    made_by_v31.live()
    (claim,) = made_by_v31.world.cluster.snapshot().node_claims
    assert claim.stored_as == ("karpenter.sh/v1alpha5", "Machine")
    assert (made_by_v31.claims, len(made_by_v31.alive)) == ([], 1)
    shown = {one["type"] for one in stored(made_by_v31, "Machine", "default-x")["status"]["conditions"]}
    assert {"MachineLaunched", "MachineRegistered", "MachineInitialized"} <= shown


def test_a_machine_expires_and_ends_with_its_instance(made_by_v31: Stand) -> None:
    """By its Provisioner's time; the Machine goes when the instance is gone."""
    made_by_v31.live()
    made_by_v31.wait(10 * DAY)
    assert made_by_v31.expire() == {"expired": 1}
    _emptied(made_by_v31)
    _tick(made_by_v31)
    assert made_by_v31.alive == []
    assert made_by_v31.world.cluster.snapshot().node_claims == ()


def test_an_empty_machine_goes(made_by_v31: Stand) -> None:
    """Emptiness and its annotation concern nodes of either kind of claim."""
    made_by_v31.live()
    _emptied(made_by_v31)
    made_by_v31.live()
    assert None not in _noted(made_by_v31)
    made_by_v31.wait(60)
    made_by_v31.live()
    made_by_v31.consolidate()
    _tick(made_by_v31)
    assert made_by_v31.alive == []


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
