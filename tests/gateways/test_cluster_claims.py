"""What creating, updating and deleting NodeClaims promises, in every form of the ``Cluster`` gateway."""

from typing import Any

import pytest

from joinery.objects.errors import ConfigurationError, ConflictError, NotFoundError
from joinery.objects.karpenter.labels import TERMINATION_FINALIZER
from joinery.objects.karpenter.meta import Condition
from joinery.objects.karpenter.nodeclaim import NodeClaim
from simulator import builders
from tests.gateways.clusters import START, Form, exists


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
