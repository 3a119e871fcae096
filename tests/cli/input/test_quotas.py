"""ResourceQuotas of files: which pods an API server would let in."""

from typing import Any

import pytest

from tests.cli.conftest import pod_document
from tests.cli.input.test_workloads import messages, names, workload

BEST_EFFORT: dict[str, Any] = {"containers": [{"name": "main"}]}


def quota(hard: dict[str, Any], *, used: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """A ResourceQuota of the namespace default."""
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "team"},
        "spec": {"hard": hard, **spec},
        **({"status": {"used": used}} if used else {}),
    }


def asking(cpu: str, memory: str = "1Gi", *, limits: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    """A pod's spec of one container."""
    resources = {"requests": {"cpu": cpu, "memory": memory}, **({"limits": limits} if limits else {})}
    return {"containers": [{"name": "main", "resources": resources}], **spec}


def deployed(replicas: int, spec: dict[str, Any]) -> dict[str, Any]:
    """A Deployment of such pods."""
    given = workload()
    given["spec"]["replicas"] = replicas
    given["spec"]["template"]["spec"] = spec
    return given


@pytest.mark.parametrize(
    ("hard", "spec", "planned"),
    [
        ({"pods": "3"}, asking("1"), 3),
        ({"count/pods": 3}, asking("1"), 3),
        ({"cpu": "2500m"}, asking("1"), 2),
        ({"requests.memory": "4Gi"}, asking("1"), 4),
        ({"limits.cpu": "4"}, asking("1", limits={"cpu": "2"}), 2),
        ({"limits.cpu": "4"}, asking("1"), 0),
        ({"requests.cpu": "10"}, BEST_EFFORT, 0),
        ({"requests.nvidia.com/gpu": "1"}, asking("1"), 5),
        ({"services": "0", "persistentvolumeclaims": "0", "requests.storage": "0"}, asking("1"), 5),
        ({"pods": "3", "cpu": "1"}, asking("1"), 1),
    ],
)
def test_a_workload_gets_as_many_pods_as_every_bound_allows(
    read: Any, hard: dict[str, Any], spec: dict[str, Any], planned: int
) -> None:
    """Pods count what they ask for; one that does not say what is bounded is refused."""
    inputs = read(deployed(5, spec), quota(hard))
    assert len(names(inputs)) == planned
    said = [line for line in messages(inputs) if "ResourceQuota" in line]
    assert bool(said) == (planned < 5)


def test_what_is_refused_is_said_by_quota_bound_and_owner(read: Any) -> None:
    """And the sentence about what is planned counts what is left."""
    lines = messages(read(deployed(5, asking("1")), quota({"cpu": "2"})))
    assert any(
        "ResourceQuota default/team: cpu 2: an API server refuses 3 pods of ReplicaSet web" in line for line in lines
    )
    assert any("planned as well: 2 pods of 1 workload" in line for line in lines)


def test_pods_that_are_there_count_first_and_stay(read: Any) -> None:
    """Of a cluster's pods none is taken away, and what the quota says is used counts where the files have less."""
    there = pod_document("there", **asking("2"))
    there["metadata"]["uid"] = "1"
    assert names(read(there, pod_document("new", **asking("1")), quota({"cpu": "2"}))) == ["default/there"]
    used = quota({"cpu": "4"}, used={"cpu": "3"})
    assert len(names(read(deployed(5, asking("1")), used))) == 1


@pytest.mark.parametrize(
    ("scope", "spec", "is_bounded"),
    [
        ({"scopes": ["BestEffort"]}, BEST_EFFORT, True),
        ({"scopes": ["BestEffort"]}, asking("1"), False),
        ({"scopes": ["NotBestEffort"]}, asking("1"), True),
        ({"scopes": ["Terminating"]}, asking("1", activeDeadlineSeconds=60), True),
        ({"scopes": ["NotTerminating"]}, asking("1", activeDeadlineSeconds=60), False),
        (
            {
                "scopeSelector": {
                    "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["low"]}]
                }
            },
            asking("1", priorityClassName="low"),
            True,
        ),
        (
            {
                "scopeSelector": {
                    "matchExpressions": [{"scopeName": "PriorityClass", "operator": "NotIn", "values": ["low"]}]
                }
            },
            asking("1", priorityClassName="low"),
            False,
        ),
    ],
)
def test_a_quota_is_about_the_pods_of_its_scopes(
    read: Any, scope: dict[str, Any], spec: dict[str, Any], is_bounded: bool
) -> None:
    """Kubernetes, "Resource Quotas"."""
    inputs = read(deployed(2, spec), quota({"pods": "0"}, **scope))
    assert len(names(inputs)) == (0 if is_bounded else 2)


def test_a_quota_of_another_namespace_is_about_others(read: Any) -> None:
    """Namespaces are counted apart."""
    other = quota({"pods": "0"})
    other["metadata"]["namespace"] = "other"
    assert len(names(read(deployed(2, asking("1")), other))) == 2
