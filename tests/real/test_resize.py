"""Pods that are resized in place, as the scheduler counts them (component-helpers ``resource.PodRequests``)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinery.decisions.scheduling.constraints.resources import requests_of
from joinery.decisions.verification.predicates import requests_of as checked_requests_of
from joinery.objects.kubernetes.core import Pod
from joinery.objects.kubernetes.decoding import convert
from tests.real.files import FOLDER, objects

INFEASIBLE = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
DEFERRED = {"type": "PodResizePending", "status": "True", "reason": "Deferred"}


def pod(*containers: tuple[str, Any], sidecars: tuple[Any, ...] = (), **given: Any) -> Pod:
    """A pod whose containers ask for that much CPU, and hold what their status says;
    ``given``: further parts of spec and status.
    """
    spec = {"containers": [_container(f"c{i}", cpu) for i, (cpu, _) in enumerate(containers)]}
    spec["initContainers"] = [
        {**_container(f"s{i}", cpu), "restartPolicy": "Always"} for i, (cpu, _) in enumerate(sidecars)
    ]
    status = {"containerStatuses": [_status(f"c{i}", held) for i, (_, held) in enumerate(containers)]}
    status["initContainerStatuses"] = [_status(f"s{i}", held) for i, (_, held) in enumerate(sidecars)]
    return convert({"spec": {**spec, **given.get("spec", {})}, "status": {**status, **given.get("status", {})}}, Pod)


def _container(name: str, cpu: str) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": {"cpu": cpu}}}


def _status(name: str, held: Any) -> dict[str, Any]:
    return {"name": name, **({"resources": {"requests": {"cpu": held}}} if isinstance(held, str) else held)}


CASES = [
    (pod(("1", "2")), 2000),
    (pod(("3", "2")), 3000),
    (pod(("3", "2"), status={"conditions": [DEFERRED]}), 3000),
    (pod(("3", "2"), status={"conditions": [INFEASIBLE]}), 2000),
    (pod(("3", "2"), status={"resize": "Infeasible"}), 2000),
    (pod(("3", {"allocatedResources": {"cpu": "4"}})), 4000),
    (pod(("3", {"allocatedResources": {"cpu": "4"}, "resources": {"requests": {"cpu": "1"}}})), 4000),
    (pod(("3", {})), 3000),
    (pod(("1", "1"), ("1", "2")), 3000),
    (pod(("1", "1"), sidecars=(("1", "3"),)), 4000),
    (pod(("1", "1"), sidecars=(("3", "2"),), status={"conditions": [INFEASIBLE]}), 3000),
    (
        pod(
            ("1", "1"), spec={"resources": {"requests": {"cpu": "5"}}}, status={"resources": {"requests": {"cpu": "6"}}}
        ),
        6000,
    ),
    (
        pod(
            ("1", "1"),
            spec={"resources": {"requests": {"cpu": "5"}}},
            status={"resources": {"requests": {"cpu": "4"}}, "conditions": [INFEASIBLE]},
        ),
        4000,
    ),
]


@pytest.mark.parametrize(("resized", "cpu"), CASES, ids=[str(number) for number in range(len(CASES))])
def test_a_resized_pod_takes_the_larger_of_what_it_asks_and_what_it_holds(resized: Pod, cpu: int) -> None:
    """And what it holds alone, where its node will never have what it asks for."""
    assert requests_of(resized)["cpu"] == checked_requests_of(resized)["cpu"] == cpu


@pytest.mark.parametrize(("file", "cpu"), [("in-place-resize-deferred", 1600), ("in-place-resize-shrinking", 1400)])
def test_pods_that_kubelets_are_resizing_are_counted(file: str, cpu: int) -> None:
    """Since Kubernetes 1.33 only ``containerStatuses[].resources`` says what is held."""
    (document,) = objects(FOLDER / "pods" / f"{file}.yaml")
    assert requests_of(convert(document, Pod))["cpu"] == cpu


_CPU = st.sampled_from(["250m", "1", "2", "3500m"])
_CONTAINER = st.tuples(_CPU, st.one_of(_CPU, st.just({}), _CPU.map(lambda cpu: {"allocatedResources": {"cpu": cpu}})))


@given(
    st.lists(_CONTAINER, min_size=1, max_size=3),
    st.lists(_CONTAINER, max_size=2),
    st.sampled_from([INFEASIBLE, DEFERRED, None]),
)
def test_planner_and_check_count_the_same(containers: Any, sidecars: Any, condition: Any) -> None:
    """Each has its own code for it."""
    resized = pod(*containers, sidecars=tuple(sidecars), status={"conditions": [condition] if condition else []})
    assert requests_of(resized) == checked_requests_of(resized)
