"""What writing Nodes, NodePools and node classes promises, in every form of the ``Cluster`` gateway."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from joinery.objects.errors import ConflictError, NotFoundError
from joinery.objects.karpenter.conditions import Observation, true
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from joinery.objects.karpenter.labels import (
    DISRUPTED_TAINT,
    NO_EXECUTE,
    NO_SCHEDULE,
    NODE_CLASS_HASH,
    NODE_POOL_HASH,
    PLANNED_TAINT,
)
from joinery.objects.kubernetes.core import Node, Taint
from joinery.objects.snapshot import claims
from simulator import builders
from tests.gateways.clusters import START, Form

DISRUPTED = Taint(key=DISRUPTED_TAINT, effect=NO_SCHEDULE)
PLANNED = Taint(key=PLANNED_TAINT, effect=NO_SCHEDULE)
#: What Joinery may write on a registered node, whatever is fenced.
LABEL = "node.kubernetes.io/exclude-from-external-load-balancers"
A, B = "joinery.dev/a", "joinery.dev/b"


def read_node(form: Form) -> Node:
    """The only node, as a snapshot has it."""
    (node,) = form.cluster.snapshot().nodes
    return node


def test_a_node_is_tainted_labelled_and_annotated_at_once(form: Form) -> None:
    """One update changes taints and metadata; labels that others wrote stay."""
    form.put(builders.node("n1"))
    node = read_node(form)
    metadata = replace(node.metadata, labels={**node.metadata.labels, LABEL: "1"}, annotations={A: "x"})
    spec = replace(node.spec, taints=[*node.spec.taints, DISRUPTED])

    updated = form.cluster.update_node(node, replace(node, metadata=metadata, spec=spec))

    assert updated == read_node(form)
    assert DISRUPTED in updated.spec.taints
    assert updated.metadata.labels == {**node.metadata.labels, LABEL: "1"}
    assert updated.metadata.annotations[A] == "x"
    assert updated.spec.provider_id == node.spec.provider_id


def test_a_taint_is_taken_off(form: Form) -> None:
    """A node without taints is a node whose taints were removed, not one whose spec was."""
    form.put(builders.node("n1", taints=[DISRUPTED]))
    node = read_node(form)
    updated = form.cluster.update_node(node, tainted(node))
    assert own_taints(updated) == []
    assert updated.spec.provider_id == node.spec.provider_id


def test_another_s_taint_keeps_its_age(form: Form) -> None:
    """Taints are written as one list, so what a list says about when a taint was added must come back as it was."""
    form.put(builders.node("n1", taints=[Taint(key="storage", effect=NO_EXECUTE, time_added=START)]))
    node = read_node(form)
    updated = form.cluster.update_node(
        node, replace(node, spec=replace(node.spec, taints=[*node.spec.taints, DISRUPTED]))
    )
    assert Taint(key="storage", effect=NO_EXECUTE, time_added=START) in updated.spec.taints


def annotated(node: Node, annotation: str, value: str) -> Node:
    """The node with that annotation alone."""
    return replace(node, metadata=replace(node.metadata, annotations={annotation: value}))


def tainted(node: Node, *taints: Taint) -> Node:
    """The node with these taints of ours, and those of others."""
    others = [taint for taint in node.spec.taints if taint.key not in (DISRUPTED_TAINT, PLANNED_TAINT)]
    return replace(node, spec=replace(node.spec, taints=[*others, *taints]))


def own_taints(node: Node) -> list[Taint]:
    """What Joinery has written; a real API server adds that a node without a kubelet is not ready."""
    return [taint for taint in node.spec.taints if taint.key in (DISRUPTED_TAINT, PLANNED_TAINT)]


def test_a_write_beside_somebody_else_s_is_no_conflict(form: Form) -> None:
    """The kubelet and others write nodes all the time: what they wrote stays, and the taint is there at once."""
    form.put(builders.node("n1"))
    node = read_node(form)
    form.cluster.update_node(node, annotated(node, A, "1"))
    form.cluster.update_node(node, tainted(node, DISRUPTED))
    assert read_node(form).metadata.annotations[A] == "1"
    assert own_taints(read_node(form)) == [DISRUPTED]
    form.cluster.update_node(node, annotated(node, B, "2"))
    assert {A: "1", B: "2"}.items() <= read_node(form).metadata.annotations.items()


def test_a_write_over_somebody_else_s_is_a_conflict(form: Form) -> None:
    """Taints are one list: whoever decides about it has to see what another run has written."""
    form.put(builders.node("n1"))
    node = read_node(form)
    form.cluster.update_node(node, tainted(node, PLANNED))
    with pytest.raises(ConflictError):
        form.cluster.update_node(node, tainted(node, DISRUPTED))
    assert own_taints(read_node(form)) == [PLANNED]


def test_a_write_to_a_node_that_was_deleted_meanwhile_is_a_conflict(form: Form) -> None:
    """What was decided about a living node does not hold for one that goes."""
    form.put(builders.node("n1"))
    node = read_node(form)
    form.cluster.delete_node(node)
    with pytest.raises(ConflictError):
        form.cluster.update_node(node, annotated(node, A, "1"))


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
    metadata = pool.metadata.model_copy(update={"annotations": {NODE_POOL_HASH: "1"}})
    status = pool.status.model_copy(update={"nodes": 3, "resources": {"cpu": "12"}})

    updated = form.cluster.update_node_pool(pool, pool.model_copy(update={"metadata": metadata, "status": status}))

    assert updated.metadata.annotations == {NODE_POOL_HASH: "1"}
    assert (updated.status.nodes, updated.status.resources) == (3, {"cpu": "12"})
    assert updated.metadata.generation == pool.metadata.generation


def test_a_node_overlay_gets_a_status(form: Form) -> None:
    """Its spec is the user's."""
    form.put(builders.node_overlay("dearer", adjustment="+10%"))
    (overlay,) = form.cluster.snapshot().node_overlays
    conditions = [true("ValidationSucceeded", Observation(now=builders.EPOCH, generation=1))]
    status = overlay.status.model_copy(update={"conditions": conditions})
    updated = form.cluster.update_node_overlay(overlay, overlay.model_copy(update={"status": status}))
    assert updated.status.conditions == conditions
    assert updated.spec == overlay.spec


def test_a_node_class_gets_annotations_and_status(form: Form) -> None:
    """Its hash is an annotation, and its status says what its selectors found."""
    form.put(builders.node_class("class"))
    (node_class,) = form.cluster.snapshot().node_classes
    assert isinstance(node_class, EC2NodeClass)
    metadata = node_class.metadata.model_copy(update={"annotations": {NODE_CLASS_HASH: "1"}})
    status = node_class.status.model_copy(update={"instance_profile": "profile-2"})

    updated = form.cluster.update_node_class(
        node_class, node_class.model_copy(update={"metadata": metadata, "status": status})
    )

    assert updated.metadata.annotations == {NODE_CLASS_HASH: "1"}
    assert isinstance(updated, EC2NodeClass)
    assert updated.status.instance_profile == "profile-2"
    assert updated.status.subnets == node_class.status.subnets


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


def test_one_node_pool_is_read_as_it_is_now(form: Form) -> None:
    """With its annotations, which say what its user wants."""
    form.put(builders.node_pool("web"))
    assert form.cluster.node_pool("web").metadata.name == "web"
    with pytest.raises(NotFoundError):
        form.cluster.node_pool("absent")


def test_one_node_claim_is_read_as_it_is_now(form: Form) -> None:
    """As a list has it, so that what is written to it is taken."""
    claim = form.cluster.create_node_claim(builders.node_claim("web-1", conditions=()))
    marked = form.cluster.update_node_claim(claim, claims.annotated(claim, {"joinery.dev/interrupted-at": "now"}))
    (listed,) = form.cluster.claims_snapshot().node_claims
    assert form.cluster.node_claim("web-1") == listed
    assert listed.metadata.resource_version == marked.metadata.resource_version
    with pytest.raises(NotFoundError):
        form.cluster.node_claim("absent")
