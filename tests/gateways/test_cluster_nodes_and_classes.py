"""What writing Nodes, NodePools and node classes promises, in every form of the ``Cluster`` gateway."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from joinery.apis.core import Node, Taint
from joinery.apis.ec2nodeclass import EC2NodeClass
from joinery.apis.labels import DISRUPTED_TAINT, NO_EXECUTE, NO_SCHEDULE
from joinery.errors import ConflictError, NotFoundError
from simulator import builders
from tests.gateways.clusters import START, Form

DISRUPTED = Taint(key=DISRUPTED_TAINT, effect=NO_SCHEDULE)


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


def annotated(node: Node, **annotations: str) -> Node:
    """The node with other annotations."""
    return replace(node, metadata=replace(node.metadata, annotations=annotations))


def tainted(node: Node, *taints: Taint) -> Node:
    """The node with these taints."""
    return replace(node, spec=replace(node.spec, taints=list(taints)))


def test_a_write_beside_somebody_else_s_is_no_conflict(form: Form) -> None:
    """The kubelet and others write nodes all the time: what they wrote stays, and the taint is there at once."""
    form.put(builders.node("n1"))
    node = read_node(form)
    form.cluster.update_node(node, annotated(node, a="1"))
    form.cluster.update_node(node, tainted(node, DISRUPTED))
    assert read_node(form).metadata.annotations["a"] == "1"
    assert read_node(form).spec.taints == [DISRUPTED]
    form.cluster.update_node(node, annotated(node, b="2"))
    assert {"a": "1", "b": "2"}.items() <= read_node(form).metadata.annotations.items()


def test_a_write_over_somebody_else_s_is_a_conflict(form: Form) -> None:
    """Taints are one list: whoever decides about it has to see the other's."""
    form.put(builders.node("n1"))
    node = read_node(form)
    form.cluster.update_node(node, tainted(node, Taint(key="theirs", effect=NO_SCHEDULE)))
    with pytest.raises(ConflictError):
        form.cluster.update_node(node, tainted(node, DISRUPTED))
    assert [taint.key for taint in read_node(form).spec.taints] == ["theirs"]


def test_a_write_to_a_node_that_was_deleted_meanwhile_is_a_conflict(form: Form) -> None:
    """What was decided about a living node does not hold for one that goes."""
    form.put(builders.node("n1"))
    node = read_node(form)
    form.cluster.delete_node(node)
    with pytest.raises(ConflictError):
        form.cluster.update_node(node, annotated(node, a="1"))


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


def test_one_node_pool_is_read_as_it_is_now(form: Form) -> None:
    """With its annotations, which say what its user wants."""
    form.put(builders.node_pool("web"))
    assert form.cluster.node_pool("web").metadata.name == "web"
    with pytest.raises(NotFoundError):
        form.cluster.node_pool("absent")
