"""A pod that is made anew requests what a VerticalPodAutoscaler recommends by then."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from joinery.decisions.scheduling.constraints.resources import requests_of
from joinery.objects.kubernetes.core import Pod
from joinery.objects.kubernetes.verticalautoscaler import VerticalPodAutoscaler
from joinery.objects.snapshot.pod_groups import PodGroups
from joinery.objects.snapshot.snapshot import Snapshot
from joinery.objects.snapshot.vertical_autoscalers import is_wanted
from simulator.builders import EPOCH, owner, pod

SET = {"vpaUpdates": "Pod resources updated by web: container 0: cpu request"}


def _autoscaler(mode: str = "Auto", *, kind: str = "Deployment", name: str = "web", **policy: Any) -> Any:
    target = {"containerName": "main", "target": {"cpu": "250m", "memory": "262144k"}}
    document = {
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "targetRef": {"apiVersion": "apps/v1", "kind": kind, "name": name},
            "updatePolicy": {"updateMode": mode} if mode else {},
            "resourcePolicy": {"containerPolicies": [{"containerName": "*", **policy}] if policy else []},
        },
        "status": {"recommendation": {"containerRecommendations": [target]}},
    }
    return msgspec.convert(document, VerticalPodAutoscaler)


def _coming(one: Pod, *autoscalers: Any) -> tuple[int, int]:
    """What comes in its place: milli-CPU and MiB."""
    snapshot = Snapshot(now=EPOCH, pods=(one,), vertical_autoscalers=autoscalers)
    requests = requests_of(snapshot.successor(one))
    return requests["cpu"], requests["memory"] >> 20


WEB = pod("web-1", node="n", cpu="1", memory="1Gi", owner="web-7f", labels={"pod-template-hash": "7f"}, annotations=SET)


@pytest.mark.parametrize("mode", ["", "Auto", "Recreate", "Initial", "InPlaceOrRecreate"])
def test_a_pod_of_its_deployment_comes_back_as_recommended(mode: str) -> None:
    """Whatever it requests now, in each mode in which pods are made so. Auto is what is not written."""
    assert _coming(WEB, _autoscaler(mode)) == (250, 250)


@pytest.mark.parametrize(
    "autoscaler",
    [_autoscaler("Off"), _autoscaler(name="other"), _autoscaler(kind="StatefulSet"), _autoscaler(**{"mode": "Off"})],
)
def test_one_that_does_not_act_on_it_changes_nothing(autoscaler: Any) -> None:
    """It only recommends, is about another workload, or leaves the container as it is written."""
    assert _coming(WEB, autoscaler) == (1000, 1024)


def test_only_what_it_controls_is_set() -> None:
    """The policy of a container may leave its memory to whoever wrote it."""
    assert _coming(WEB, _autoscaler(controlledResources=["cpu"])) == (250, 1024)


def test_a_stateful_set_s_pod_is_set_by_its_own_name() -> None:
    """It has no other owner between."""
    db = pod("db-0", node="n", cpu="1", memory="1Gi", owner=owner("StatefulSet", "db"))
    assert _coming(db, _autoscaler(kind="StatefulSet", name="db")) == (250, 250)


def test_a_limit_below_the_target_does_not_keep_it() -> None:
    """The autoscaler moves limits along."""
    container = WEB.spec.containers[0]
    limited = replace(container, resources=replace(container.resources, limits={"cpu": "100m"}))
    assert _coming(replace(WEB, spec=replace(WEB.spec, containers=[limited])), _autoscaler()) == (250, 250)


def test_they_are_read_where_some_pod_was_set_by_one() -> None:
    """Other clusters are not asked for a kind that they need not have."""
    assert is_wanted(PodGroups().following((pod("a"), WEB)))
    assert not is_wanted(PodGroups().following((pod("a"),)))
