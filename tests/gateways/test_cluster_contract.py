"""What every form of the ``Cluster`` and ``Recorder`` gateways promises.

Run against the simulator's cluster in the process, against the adapter over the simulator's HTTP server, and against the
adapter over a real API server under the roles that a user applies. Whatever holds for one must hold for all: this is what
makes a test on the simulator worth something.
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from joinery.apis.core import Node, Taint, Toleration
from joinery.apis.ec2nodeclass import EC2NodeClass
from joinery.apis.labels import (
    DISRUPTED_TAINT,
    NO_EXECUTE,
    NO_SCHEDULE,
    PLANNED_TAINT,
    REPORTER,
    TERMINATION_FINALIZER,
)
from joinery.apis.meta import Condition
from joinery.apis.nodeclaim import NodeClaim
from joinery.cluster.gateway import Event, Eviction
from joinery.errors import ConfigurationError, ConflictError, NotFoundError
from simulator import builders
from tests.gateways.clusters import START, Form, InMemory, exists, real, served

REAL = pytest.mark.xdist_group("api_server")


@pytest.fixture(params=["memory", "served", pytest.param("real", marks=REAL)])
def form(request: pytest.FixtureRequest) -> Iterator[Form]:
    """One form of the gateway over an empty cluster."""
    match request.param:
        case "memory":
            yield InMemory()
        case "served":
            with served() as over_http:
                yield over_http
        case _:
            with real(request.getfixturevalue("joinery_api_server")) as over_kubernetes:
                yield over_kubernetes


DISRUPTED = Taint(key=DISRUPTED_TAINT, effect=NO_SCHEDULE)
APP = {"app": "web"}
LEASE = "joinery-decisions"


def claim(name: str = "default-1", **given: Any) -> NodeClaim:
    """A claim as provisioning makes it: launched by nobody yet."""
    return builders.node_claim(name, conditions=(), **given)


def with_metadata(item: NodeClaim, **changes: Any) -> NodeClaim:
    """The claim with other metadata."""
    return item.model_copy(update={"metadata": item.metadata.model_copy(update=changes)})


def launched(item: NodeClaim) -> NodeClaim:
    """The claim with a status that says which instance it has."""
    condition = Condition(type="Launched", status="True", reason="Launched", message="", last_transition_time=START)
    status = item.status.model_copy(update={"provider_id": "aws:///us-east-1a/i-1", "conditions": [condition]})
    return item.model_copy(update={"status": status})


def names(items: Any) -> set[str]:
    """The names of objects."""
    return {item.metadata.name for item in items}


# --- the snapshot -----------------------------------------------------------------------------------------------------


def test_a_snapshot_holds_everything_a_decision_looks_at(form: Form) -> None:
    """Nodes, pods, custom resources, workloads, storage and budgets are all read."""
    form.put(
        builders.node("n1"), builders.pod("p1"), builders.node_claim("c1"), builders.node_pool("pool"),
        builders.node_class("class"), builders.daemon_set("agent"), builders.storage_class("gp3"), builders.volume("pv"),
        builders.volume_claim("data"), builders.pdb("budget", labels=APP),
    )  # fmt: skip

    read = form.cluster.snapshot()

    assert names(read.nodes) == {"n1"}
    assert [pod.key for pod in read.pods] == ["default/p1"]
    assert names(read.node_claims) == {"c1"}
    assert names(read.node_pools) == {"pool"}
    assert names(read.node_classes) == {"class"}
    assert names(read.daemon_sets) == {"agent"}
    assert {"default", "kube-system"} <= names(read.namespaces)
    assert (names(read.storage_classes), names(read.volumes), names(read.volume_claims)) == ({"gp3"}, {"pv"}, {"data"})
    assert names(read.disruption_budgets) == {"budget"}


def test_a_snapshot_knows_its_moment(form: Form) -> None:
    """Time comes from the injected clock: a decision never asks another."""
    form.clock.advance(timedelta(minutes=5))
    assert form.cluster.snapshot().now == START + timedelta(minutes=5)


def test_a_pod_keeps_what_its_scheduling_depends_on(form: Form) -> None:
    """Requests, selectors and the Unschedulable mark survive the way through the API."""
    form.put(builders.pod("p1", cpu="750m", node_selector={"disk": "ssd"}, labels=APP))

    (read,) = form.cluster.snapshot().pods

    assert read.spec.containers[0].resources.requests["cpu"] == "750m"
    assert (read.spec.node_selector, read.metadata.labels) == ({"disk": "ssd"}, APP)
    assert [(c.type, c.reason) for c in read.status.conditions] == [("PodScheduled", "Unschedulable")]


# --- claims -----------------------------------------------------------------------------------------------------------


def test_a_created_claim_comes_back_with_its_identity(form: Form) -> None:
    """UID and version are the API server's; finalizer and labels are ours, from the first moment on."""
    made = form.cluster.create_node_claim(claim())

    assert made.metadata.uid
    assert made.metadata.resource_version
    assert made.metadata.creation_timestamp is not None
    assert made.metadata.finalizers == [TERMINATION_FINALIZER]
    assert made.spec.node_class_ref.name == "default"
    assert form.cluster.snapshot().node_claims == (made,)


def test_a_taken_name_is_a_conflict(form: Form) -> None:
    """Two writers cannot both create a claim of one name."""
    form.cluster.create_node_claim(claim())
    with pytest.raises(ConflictError):
        form.cluster.create_node_claim(claim())


def test_a_claim_that_breaks_the_rules_is_refused_by_field(form: Form) -> None:
    """What the custom resource's validation forbids is a configuration error that names the field."""
    good = claim()
    wrong = good.model_copy(update={"spec": good.spec.model_copy(update={"expire_after": "soon"})})
    with pytest.raises(ConfigurationError, match="expireAfter"):
        form.cluster.create_node_claim(wrong)


def test_a_dry_run_is_judged_and_not_stored(form: Form) -> None:
    """It tells which part of a claim the API server refuses."""
    form.cluster.create_node_claim(claim(), dry_run=True)
    assert form.cluster.snapshot().node_claims == ()
    with pytest.raises(ConfigurationError, match="bad value"):
        form.cluster.create_node_claim(claim(labels={"team": "bad value"}), dry_run=True)


def test_metadata_and_status_change_together(form: Form) -> None:
    """One update carries labels, annotations and status, although status is a subresource."""
    made = form.cluster.create_node_claim(claim())
    wanted = launched(with_metadata(made, labels={"new": "label"}, annotations={"note": "x"}))

    updated = form.cluster.update_node_claim(made, wanted)

    assert updated == form.stored(made)
    assert (updated.metadata.labels, updated.metadata.annotations) == ({"new": "label"}, {"note": "x"})
    assert updated.status.provider_id == "aws:///us-east-1a/i-1"
    assert [(c.type, c.status) for c in updated.status.conditions] == [("Launched", "True")]
    assert updated.metadata.resource_version != made.metadata.resource_version


def test_a_removed_annotation_is_gone(form: Form) -> None:
    """A key that is missing afterwards is removed, the others stay."""
    made = form.cluster.create_node_claim(claim(annotations={"keep": "1", "drop": "1"}))
    updated = form.cluster.update_node_claim(made, with_metadata(made, annotations={"keep": "1"}))
    assert updated.metadata.annotations == {"keep": "1"}


def test_an_update_that_changes_nothing_writes_nothing(form: Form) -> None:
    """The version stays, so nobody else's write is disturbed."""
    made = form.cluster.create_node_claim(claim())
    form.cluster.update_node_claim(made, made)
    assert form.stored(made).metadata.resource_version == made.metadata.resource_version


@pytest.mark.parametrize("change", [launched, lambda found: with_metadata(found, labels={"late": "1"})])
def test_a_stale_update_is_a_conflict(form: Form, change: Any) -> None:
    """Of two writers that read the same version one is refused, for metadata as for status."""
    made = form.cluster.create_node_claim(claim())
    form.cluster.update_node_claim(made, with_metadata(made, labels={"first": "1"}))
    with pytest.raises(ConflictError):
        form.cluster.update_node_claim(made, change(made))


def test_an_update_of_a_claim_that_is_gone_says_so(form: Form) -> None:
    """An update never brings an object back."""
    made = form.cluster.create_node_claim(claim())
    form.remove(made)
    with pytest.raises(NotFoundError):
        form.cluster.update_node_claim(made, launched(made))


def test_a_deleted_claim_stays_until_its_finalizer_goes(form: Form) -> None:
    """Deletion is a request; the object ends when the last finalizer does, even if its status changes with it."""
    made = form.cluster.create_node_claim(claim())
    form.cluster.delete_node_claim(made)
    marked = form.stored(made)
    assert marked.is_deleting

    form.cluster.update_node_claim(marked, launched(with_metadata(marked, finalizers=[])))

    assert not exists(form, made)


def test_deleting_what_is_gone_says_so(form: Form) -> None:
    """Not found is what a deletion wanted; the caller decides that."""
    made = form.cluster.create_node_claim(claim(finalizers=()))
    form.cluster.delete_node_claim(made)
    with pytest.raises(NotFoundError):
        form.cluster.delete_node_claim(made)


def test_a_namesake_is_not_deleted(form: Form) -> None:
    """A deletion means one UID: a newer claim of the same name is left alone."""
    first = form.cluster.create_node_claim(claim())
    form.remove(first)
    second = form.cluster.create_node_claim(claim())
    with pytest.raises(ConflictError):
        form.cluster.delete_node_claim(first)
    assert not form.stored(second).is_deleting


# --- nodes, pools and classes -----------------------------------------------------------------------------------------


def read_node(form: Form) -> Node:
    """The only node, as a snapshot has it."""
    (found,) = form.cluster.snapshot().nodes
    return found


def test_a_node_is_tainted_labelled_and_annotated_at_once(form: Form) -> None:
    """One update changes taints and metadata; labels that others wrote stay."""
    form.put(builders.node("n1"))
    node = read_node(form)
    metadata = replace(node.metadata, labels={**node.metadata.labels, "new": "1"}, annotations={"note": "x"})
    spec = replace(node.spec, taints=[*node.spec.taints, DISRUPTED])

    updated = form.cluster.update_node(node, replace(node, metadata=metadata, spec=spec))

    assert updated == read_node(form)
    assert DISRUPTED in updated.spec.taints
    assert updated.metadata.labels == {**node.metadata.labels, "new": "1"}
    assert updated.metadata.annotations["note"] == "x"
    assert updated.spec.provider_id == node.spec.provider_id


def test_a_taint_is_taken_off(form: Form) -> None:
    """A node without taints is a node whose taints were removed, not one whose spec was."""
    form.put(builders.node("n1", taints=[DISRUPTED]))
    node = read_node(form)
    updated = form.cluster.update_node(node, replace(node, spec=replace(node.spec, taints=[])))
    assert updated.spec.taints == []
    assert updated.spec.provider_id == node.spec.provider_id


def test_another_s_taint_keeps_its_age(form: Form) -> None:
    """Taints are written as one list, so what a list says about when a taint was added must come back as it was."""
    form.put(builders.node("n1", taints=[Taint(key="storage", effect=NO_EXECUTE, time_added=START)]))
    node = read_node(form)
    updated = form.cluster.update_node(
        node, replace(node, spec=replace(node.spec, taints=[*node.spec.taints, DISRUPTED]))
    )
    assert Taint(key="storage", effect=NO_EXECUTE, time_added=START) in updated.spec.taints


def test_a_stale_node_update_is_a_conflict(form: Form) -> None:
    """The kubelet and others write nodes too: nothing of theirs is overwritten."""
    form.put(builders.node("n1"))
    node = read_node(form)
    form.cluster.update_node(node, replace(node, metadata=replace(node.metadata, annotations={"a": "1"})))
    with pytest.raises(ConflictError):
        form.cluster.update_node(node, replace(node, spec=replace(node.spec, taints=[DISRUPTED])))


def test_a_deleted_node_stays_until_its_finalizer_goes(form: Form) -> None:
    """Termination can rely on the Node object until it takes its finalizer off."""
    form.put(builders.node("n1"))
    node = read_node(form)
    form.cluster.delete_node(node)
    marked = read_node(form)
    assert marked.metadata.deletion_timestamp is not None
    form.cluster.update_node(marked, replace(marked, metadata=replace(marked.metadata, finalizers=[])))
    with pytest.raises(NotFoundError):
        form.cluster.delete_node(node)


def test_a_node_pool_gets_annotations_and_status(form: Form) -> None:
    """Hashes are annotations, counts are status."""
    form.put(builders.node_pool("pool", ready=False))
    (pool,) = form.cluster.snapshot().node_pools
    metadata = pool.metadata.model_copy(update={"annotations": {"hash": "1"}})
    status = pool.status.model_copy(update={"nodes": 3, "resources": {"cpu": "12"}})

    updated = form.cluster.update_node_pool(pool, pool.model_copy(update={"metadata": metadata, "status": status}))

    assert updated.metadata.annotations == {"hash": "1"}
    assert (updated.status.nodes, updated.status.resources) == (3, {"cpu": "12"})
    assert updated.metadata.generation == pool.metadata.generation


def test_a_node_class_gets_a_finalizer_and_status(form: Form) -> None:
    """An EC2NodeClass is kept while claims use it, and its status says what its selectors found."""
    form.put(builders.node_class("class"))
    (found,) = form.cluster.snapshot().node_classes
    assert isinstance(found, EC2NodeClass)
    metadata = found.metadata.model_copy(update={"finalizers": ["karpenter.k8s.aws/termination"]})
    status = found.status.model_copy(update={"instance_profile": "profile-2"})

    updated = form.cluster.update_node_class(found, found.model_copy(update={"metadata": metadata, "status": status}))

    assert updated.metadata.finalizers == ["karpenter.k8s.aws/termination"]
    assert isinstance(updated, EC2NodeClass)
    assert updated.status.instance_profile == "profile-2"
    assert updated.status.subnets == found.status.subnets


def test_a_pool_is_rejected_in_its_status(form: Form) -> None:
    """It is not ready, and a person who describes it reads why; saying it twice writes once."""
    form.put(builders.node_pool("pool"))
    form.cluster.reject("NodePool", "pool", "spec.weight: must be at most 100")
    form.clock.advance(timedelta(minutes=1))
    (rejected,) = form.cluster.snapshot().node_pools
    form.cluster.reject("NodePool", "pool", "spec.weight: must be at most 100")
    (again,) = form.cluster.snapshot().node_pools

    condition = next(c for c in rejected.status.conditions if c.type == "ValidationSucceeded")
    assert (condition.status, condition.message) == ("False", "spec.weight: must be at most 100")
    ready = next(c for c in rejected.status.conditions if c.type == "Ready")
    assert (ready.status, ready.message) == (
        "False", "ValidationSucceeded=False: spec.weight: must be at most 100",
    )  # fmt: skip
    assert again == rejected


# --- pods -------------------------------------------------------------------------------------------------------------


def running(name: str, **given: Any) -> Any:
    """A running pod; it ends at once when it is deleted, because it has no node to shut it down."""
    return builders.pod(name, node="", phase="Running", unschedulable=False, labels=APP, **given)


def read_pod(form: Form) -> Any:
    """The only pod, as a snapshot has it."""
    (found,) = form.cluster.snapshot().pods
    return found


OURS = Toleration(key=PLANNED_TAINT, operator="Equal", value="default-1", effect="NoSchedule")


def test_a_pod_gains_a_toleration(form: Form) -> None:
    """It is added to those that the pod has, and nothing else changes."""
    form.put(builders.pod("p1"))
    pod = read_pod(form)
    form.cluster.tolerate([pod], OURS)
    other = replace(OURS, value="default-2")
    form.cluster.tolerate([read_pod(form)], other)
    assert read_pod(form).spec == replace(pod.spec, tolerations=[*pod.spec.tolerations, OURS, other])


def test_a_pod_that_is_gone_gains_none(form: Form) -> None:
    """Neither does a namesake in its place."""
    form.put(builders.pod("p1"))
    pod = read_pod(form)
    form.remove(pod)
    form.cluster.tolerate([pod], OURS)
    form.put(builders.pod("p1"))
    form.cluster.tolerate([pod], OURS)
    assert OURS not in read_pod(form).spec.tolerations


def test_a_pod_that_is_gone_keeps_no_other_from_its_toleration(form: Form) -> None:
    """All are tried."""
    form.put(builders.pod("p1"))
    pod = read_pod(form)
    form.remove(pod)
    form.put(builders.pod("p2"))
    form.cluster.tolerate([pod, read_pod(form)], OURS)
    assert OURS in read_pod(form).spec.tolerations


def test_a_pod_that_was_bound_meanwhile_is_none_the_worse(form: Form) -> None:
    """The scheduler was faster."""
    form.put(builders.pod("p1", node="n1"))
    form.cluster.tolerate([read_pod(form)], OURS)
    assert OURS in read_pod(form).spec.tolerations


def test_a_pod_without_a_budget_is_evicted(form: Form) -> None:
    """Nothing is in the way: the eviction API deletes the pod."""
    form.put(running("p1"))
    assert form.cluster.evict(read_pod(form)) is Eviction.EVICTED
    assert form.cluster.snapshot().pods == ()


def test_a_budget_blocks_an_eviction(form: Form) -> None:
    """A PodDisruptionBudget without a disruption left keeps the pod where it is."""
    form.put(running("p1"), builders.pdb(labels=APP, allowed=0))
    pod = read_pod(form)
    assert form.cluster.evict(pod) is Eviction.BLOCKED
    assert exists(form, pod)


def test_a_budget_with_room_allows_one_eviction(form: Form) -> None:
    """The disruption is counted: the second pod has to wait for the budget's controller."""
    form.put(running("p1"), running("p2"), builders.pdb(labels=APP, allowed=1))
    answers = [form.cluster.evict(pod) for pod in form.cluster.snapshot().pods]
    assert answers == [Eviction.EVICTED, Eviction.BLOCKED]


def test_two_budgets_over_one_pod_block_it(form: Form) -> None:
    """The eviction API cannot serve two budgets at once, so the pod is blocked, not lost and not an error."""
    form.put(running("p1"), builders.pdb("one", labels=APP, allowed=1), builders.pdb("two", labels=APP, allowed=1))
    assert form.cluster.evict(read_pod(form)) is Eviction.BLOCKED


def test_a_pod_that_is_gone_needs_no_eviction(form: Form) -> None:
    """Neither does one whose namesake is there."""
    form.put(running("p1"))
    pod = read_pod(form)
    form.remove(pod)
    assert form.cluster.evict(pod) is Eviction.GONE
    form.put(running("p1"))
    assert form.cluster.evict(pod) is Eviction.GONE
    assert exists(form, pod)


def test_a_deadline_deletes_past_every_budget(form: Form) -> None:
    """A pod with a node gets its grace; the deletion is marked and the kubelet ends it."""
    form.put(builders.pod("p1", node="n1", labels=APP), builders.pdb(labels=APP, allowed=0))
    pod = read_pod(form)
    form.cluster.delete_pod(pod, grace_seconds=0)
    assert read_pod(form).metadata.deletion_timestamp is not None


def test_deleting_a_pod_that_is_gone_says_so(form: Form) -> None:
    """A namesake counts as gone and is left alone."""
    form.put(running("p1"))
    pod = read_pod(form)
    form.remove(pod)
    with pytest.raises(NotFoundError):
        form.cluster.delete_pod(pod, grace_seconds=30)
    form.put(running("p1"))
    with pytest.raises(NotFoundError):
        form.cluster.delete_pod(pod, grace_seconds=30)
    assert exists(form, pod)


# --- the Lease --------------------------------------------------------------------------------------------------------


def test_a_lease_has_one_holder(form: Form) -> None:
    """Whoever comes second is refused while the first holds it."""
    form.cluster.acquire_lease(LEASE, holder="a", seconds=60)
    with pytest.raises(ConflictError, match="held by a"):
        form.cluster.acquire_lease(LEASE, holder="b", seconds=60)


def test_a_released_lease_is_free(form: Form) -> None:
    """Giving it back lets the next one in at once."""
    form.cluster.release_lease(form.cluster.acquire_lease(LEASE, holder="a", seconds=60))
    assert form.cluster.acquire_lease(LEASE, holder="b", seconds=60).holder == "b"


def test_the_lease_of_a_killed_holder_ends(form: Form) -> None:
    """Its duration fences a function that died: after it, and not before, another may take over."""
    form.cluster.acquire_lease(LEASE, holder="a", seconds=60)
    form.clock.advance(timedelta(seconds=59))
    with pytest.raises(ConflictError):
        form.cluster.acquire_lease(LEASE, holder="b", seconds=60)
    form.clock.advance(timedelta(seconds=2))
    assert form.cluster.acquire_lease(LEASE, holder="b", seconds=60).holder == "b"


def test_a_late_release_does_not_free_another_s_lease(form: Form) -> None:
    """A holder that was fenced returns what it no longer has: harmless."""
    late = form.cluster.acquire_lease(LEASE, holder="a", seconds=60)
    form.clock.advance(timedelta(seconds=61))
    form.cluster.acquire_lease(LEASE, holder="b", seconds=60)
    form.cluster.release_lease(late)
    with pytest.raises(ConflictError, match="held by b"):
        form.cluster.acquire_lease(LEASE, holder="c", seconds=60)


def test_a_holder_may_take_its_lease_again(form: Form) -> None:
    """Taking it again renews it."""
    form.cluster.acquire_lease(LEASE, holder="a", seconds=60)
    form.clock.advance(timedelta(seconds=50))
    form.cluster.acquire_lease(LEASE, holder="a", seconds=60)
    form.clock.advance(timedelta(seconds=50))
    with pytest.raises(ConflictError):
        form.cluster.acquire_lease(LEASE, holder="b", seconds=60)


# --- the recorder -----------------------------------------------------------------------------------------------------


NEWS = Event(
    reason="Launched", message="launched m7a.large in us-east-1a", kind="NodeClaim", name="default-1", uid="u-1",
    api_version="karpenter.sh/v1",
)  # fmt: skip


def test_an_event_says_who_what_and_why(form: Form) -> None:
    """It names the object, the reason and us as its reporter, which is how our webhook knows not to ring for it."""
    form.recorder.emit([NEWS])
    (told,) = form.told()
    assert (told.reason, told.message, told.kind, told.name) == (NEWS.reason, NEWS.message, "NodeClaim", "default-1")
    assert (told.reporter, told.warning) == (REPORTER, False)


def test_a_warning_about_a_pod_lives_in_its_namespace(form: Form) -> None:
    """``kubectl describe pod`` finds it there."""
    form.recorder.emit([Event("FailedScheduling", "no room", "Pod", "p1", "u-2", "default", warning=True)])
    (told,) = form.told()
    assert (told.kind, told.warning) == ("Pod", True)


def test_the_same_news_is_told_once_in_two_minutes(form: Form) -> None:
    """Repeats are dropped, whoever emits them; other reasons and objects are news."""
    form.recorder.emit([NEWS, NEWS])
    form.clock.advance(timedelta(seconds=60))
    form.recorder.emit([NEWS])
    assert len(form.told()) == 1
    form.clock.advance(timedelta(seconds=120))
    form.recorder.emit([NEWS, Event("Registered", "", "NodeClaim", "default-1", "u-1")])
    assert sorted(told.reason for told in form.told()) == ["Launched", "Launched", "Registered"]
