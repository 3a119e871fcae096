"""What tolerating, evicting and deleting pods promises, in every form of the ``Cluster`` gateway."""

from typing import Any

import pytest
from msgspec.structs import replace

from joinery.gateways.kubernetes.gateway import Eviction
from joinery.objects.errors import ConflictError, NotFoundError
from joinery.objects.karpenter.disruption import OUR_DELETION_COST
from joinery.objects.karpenter.labels import PLANNED_TAINT, POD_DELETION_COST
from joinery.objects.kubernetes.core import Toleration
from simulator import builders
from simulator.kubernetes.resources import with_metadata
from tests.gateways.clusters import Form, exists

APP = {"app": "web"}


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
    form.cluster.tolerate(pod, OURS)
    other = replace(OURS, value="default-2")
    form.cluster.tolerate(read_pod(form), other)
    assert read_pod(form).spec == replace(pod.spec, tolerations=[*pod.spec.tolerations, OURS, other])


def test_a_pod_that_is_gone_gains_none(form: Form) -> None:
    """Neither does a namesake in its place."""
    form.put(builders.pod("p1"))
    pod = read_pod(form)
    form.remove(pod)
    with pytest.raises(NotFoundError):
        form.cluster.tolerate(pod, OURS)
    form.put(builders.pod("p1"))
    with pytest.raises(NotFoundError):
        form.cluster.tolerate(pod, OURS)
    assert OURS not in read_pod(form).spec.tolerations


def test_a_pod_is_annotated_beside_what_others_write(form: Form) -> None:
    """Their annotations and ours stay; ours can be taken off again."""
    form.put(builders.pod("p1", annotations={"theirs": "x"}))
    pod = read_pod(form)
    form.cluster.update_pod(pod, with_metadata(pod, annotations={"theirs": "x", POD_DELETION_COST: OUR_DELETION_COST}))
    marked = read_pod(form)
    assert marked.metadata.annotations == {"theirs": "x", POD_DELETION_COST: OUR_DELETION_COST}
    form.cluster.update_pod(marked, pod)
    assert read_pod(form).metadata.annotations == {"theirs": "x"}


def test_an_annotation_that_somebody_wrote_meanwhile_is_a_conflict(form: Form) -> None:
    """It is theirs, and another decision is due."""
    form.put(builders.pod("p1"))
    before = read_pod(form)
    after = with_metadata(before, annotations={POD_DELETION_COST: OUR_DELETION_COST})
    form.cluster.update_pod(before, after)
    with pytest.raises(ConflictError):
        form.cluster.update_pod(before, after)


def test_a_pod_that_is_gone_is_not_annotated(form: Form) -> None:
    """Whoever decided that learns it."""
    form.put(builders.pod("p1"))
    pod = read_pod(form)
    form.remove(pod)
    with pytest.raises(NotFoundError):
        form.cluster.update_pod(pod, with_metadata(pod, annotations={POD_DELETION_COST: OUR_DELETION_COST}))


def test_a_pod_that_was_bound_meanwhile_is_none_the_worse(form: Form) -> None:
    """The scheduler was faster."""
    form.put(builders.pod("p1", node="n1"))
    form.cluster.tolerate(read_pod(form), OURS)
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
