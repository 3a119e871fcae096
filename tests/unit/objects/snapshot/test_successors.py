"""What comes in the place of a pod: made anew from its owner's template, as far as that says what it requests."""

from typing import Any

import pytest
from msgspec.structs import replace

from joinery.decisions.scheduling.constraints.resources import requests_of
from joinery.objects.karpenter.labels import PLANNED_TAINT
from joinery.objects.kubernetes.core import (
    Container,
    ObjectMeta,
    Pod,
    PodSpec,
    PodTemplateSpec,
    ResourceRequirements,
    Toleration,
)
from joinery.objects.kubernetes.workloads import (
    StatefulSetOrdinals,
    StatefulSetRollingUpdate,
    StatefulSetUpdateStrategy,
    Workload,
    WorkloadSpec,
    WorkloadStatus,
)
from joinery.objects.snapshot.snapshot import Snapshot
from joinery.objects.snapshot.successors import FIELDS, fields_wanted
from simulator import builders
from simulator.clock import START

#: The requests, limits and the like of the living pods.
ONE: dict[str, Any] = {"cpu": "1"}
THREE: dict[str, Any] = {"cpu": "3"}


def _container(name: str, requests: dict[str, Any], limits: dict[str, Any] | None = None) -> Container:
    return Container(name=name, resources=ResourceRequirements(requests=requests, limits=limits or {}))


def _pod(*containers: Container, kind: str = "ReplicaSet", name: str = "web-1-x", **spec: Any) -> Pod:
    given: dict[str, Any] = {"revision": "", "generation": 0, "uid": "", "deleted": None, "annotations": {}}
    given |= {key: spec.pop(key) for key in given.keys() & spec.keys()}
    owner = builders.owner(kind, "web-1", uid=given["uid"])
    pod = builders.pod(name, node="n", owner=owner, annotations=given["annotations"], deleted=given["deleted"])
    labels = {"controller-revision-hash": given["revision"]} if given["revision"] else {}
    metadata = replace(pod.metadata, labels=labels, generation=given["generation"])
    return replace(pod, metadata=metadata, spec=replace(pod.spec, containers=list(containers), **spec))


def _owner(*containers: Container, uid: str = "", **spec: Any) -> Workload:
    template, status = spec.pop("template", PodSpec(containers=list(containers))), spec.pop("status", WorkloadStatus())
    return Workload(
        metadata=ObjectMeta(name="web-1", namespace="default", uid=uid),
        spec=WorkloadSpec(template=PodTemplateSpec(spec=template), **spec),
        status=status,
    )


def _cpu(pod: Pod, owner: Workload, kind: str = "ReplicaSet") -> int:
    """Millicores that the pod's successor requests."""
    owners: dict[str, Any] = {FIELDS[kind]: (owner,)}
    snapshot = Snapshot(now=START, pods=(pod,), **owners)
    return requests_of(snapshot.successor(pod)).get("cpu", 0)


@pytest.mark.parametrize("kind", sorted(FIELDS))
@pytest.mark.parametrize(("lives", "asked", "cpu"), [(ONE, THREE, 3000), (THREE, ONE, 1000), (ONE, ONE, 1000)])
def test_it_requests_what_the_template_does(kind: str, lives: dict[str, Any], asked: dict[str, Any], cpu: int) -> None:
    """A pod that was resized in place is made anew from there, larger or smaller."""
    assert _cpu(_pod(_container("a", lives), kind=kind), _owner(_container("a", asked)), kind) == cpu


@pytest.mark.parametrize(
    ("lives", "asked", "cpu"),
    [
        (_container("a", ONE), _container("a", {}, THREE), 3000),
        (_container("a", ONE, ONE), _container("a", {"memory": "1Gi"}), 1000),
        (_container("a", ONE, THREE), _container("a", {"cpu": "2"}), 2000),
        (_container("a", ONE), _container("b", THREE), 4000),
    ],
    ids=[
        "a limit alone",
        "what a LimitRange adds",
        "a request beside a limit of its own",
        "a container that only the template has",
    ],
)
def test_what_the_template_does_not_say_stays_as_the_pod_has_it(lives: Container, asked: Container, cpu: int) -> None:
    """Admission will add it again."""
    assert _cpu(_pod(lives), _owner(asked)) == cpu


def test_sidecars_and_overhead_that_admission_added_come_again() -> None:
    """The template names neither."""
    pod = _pod(_container("a", ONE), _container("istio-proxy", {"cpu": "500m"}), overhead={"cpu": "250m"})
    assert _cpu(pod, _owner(_container("a", THREE))) == 3750


def test_sidecars_of_the_template_and_requests_of_the_whole_pod_are_asked_too() -> None:
    """Both may be resized in place."""
    sidecar = replace(_container("s", ONE), restart_policy="Always")
    of_template = replace(sidecar, resources=ResourceRequirements(requests=THREE))
    template = PodSpec(containers=[_container("a", ONE)], init_containers=[of_template])
    assert _cpu(_pod(_container("a", ONE), init_containers=[sidecar]), _owner(template=template)) == 4000
    whole = PodSpec(containers=[_container("a", {})], resources=ResourceRequirements(requests=THREE))
    pod = _pod(_container("a", {}), resources=ResourceRequirements(requests=ONE))
    assert _cpu(pod, _owner(template=whole)) == 3000


@pytest.mark.parametrize(
    "pod",
    [
        _pod(_container("a", ONE), generation=1),
        _pod(_container("a", ONE), generation=2, tolerations=[Toleration(key=PLANNED_TAINT)]),
        _pod(_container("a", ONE), generation=2, deleted=START),
        _pod(_container("a", ONE), annotations={"vpaUpdates": "Pod resources updated by web"}),
        _pod(_container("a", ONE), annotations={"vpaInPlaceUpdated": "true"}, generation=4),
        _pod(_container("a", ONE), uid="another"),
    ],
    ids=["as admitted", "steered since", "ending", "by an autoscaler", "by one in place", "of a namesake"],
)
def test_what_admission_made_of_the_template_it_will_make_again(pod: Pod) -> None:
    """A webhook may give less than the template asks, as one that overcommits does."""
    assert _cpu(pod, _owner(_container("a", THREE), uid="owner")) == 1000


def test_a_pod_that_was_resized_since_admission_is_made_anew() -> None:
    """Its API server numbers the states of its spec."""
    assert _cpu(_pod(_container("a", ONE), generation=2), _owner(_container("a", THREE))) == 3000


ROLLED_OUT = WorkloadStatus(current_revision="old", update_revision="new")


@pytest.mark.parametrize(
    ("name", "revision", "strategy", "cpu"),
    [
        ("web-0", "old", StatefulSetUpdateStrategy(), 3000),
        ("web-0", "new", StatefulSetUpdateStrategy(), 1000),
        ("web-0", "old", StatefulSetUpdateStrategy(type="OnDelete"), 3000),
        ("web-1", "old", StatefulSetUpdateStrategy(rolling_update=StatefulSetRollingUpdate(partition=1)), 3000),
        ("web-0", "old", StatefulSetUpdateStrategy(rolling_update=StatefulSetRollingUpdate(partition=1)), 1000),
        (
            "web-0",
            "old",
            StatefulSetUpdateStrategy(type="OnDelete", rolling_update=StatefulSetRollingUpdate(partition=1)),
            3000,
        ),
    ],
)
def test_a_stateful_sets_pod_comes_back_as_the_revision_that_its_number_gets(
    name: str, revision: str, strategy: StatefulSetUpdateStrategy, cpu: int
) -> None:
    """That of the template from its partition on (Kubernetes ``newVersionedStatefulSetPod``)."""
    pod = _pod(_container("a", ONE), kind="StatefulSet", name=name, revision=revision, generation=1)
    owner = _owner(_container("a", THREE), status=ROLLED_OUT, update_strategy=strategy)
    assert _cpu(pod, owner, "StatefulSet") == cpu


def test_numbers_of_a_stateful_set_may_begin_later() -> None:
    """Its partition counts from there."""
    strategy = StatefulSetUpdateStrategy(rolling_update=StatefulSetRollingUpdate(partition=1))
    pod = _pod(_container("a", ONE), kind="StatefulSet", name="web-5", revision="old", generation=1)
    owner = _owner(
        _container("a", THREE), status=ROLLED_OUT, update_strategy=strategy, ordinals=StatefulSetOrdinals(start=5)
    )
    assert _cpu(pod, owner, "StatefulSet") == 1000


def test_only_owners_of_pods_that_may_come_back_different_are_read() -> None:
    """In most clusters of today that is nobody but StatefulSets."""
    as_admitted = _pod(_container("a", ONE), generation=1)
    changed = _pod(_container("a", ONE), generation=2, kind="Job")
    numbered = _pod(_container("a", ONE), generation=1, kind="StatefulSet", revision="new")
    assert fields_wanted([as_admitted, builders.pod("waits", owner="web-1")]) == ()
    assert fields_wanted([as_admitted, changed, numbered]) == ("jobs", "stateful_sets")
