"""PodGroups of files: the number of pods that are placed together is where its API looks for it, and at least one."""

from typing import Any

import pytest

from tests.cli.conftest import NOW, Run, Write

KUBERNETES, COSCHEDULING, VOLCANO = (
    "scheduling.k8s.io/v1beta1",
    "scheduling.x-k8s.io/v1alpha1",
    "scheduling.volcano.sh/v1beta1",
)


def _said(run: Run, write: Write, api: str, spec: dict[str, Any], **metadata: str) -> tuple[int, str]:
    named = {"name": "train", "namespace": "ml", **metadata}
    path = write("group.json", {"apiVersion": api, "kind": "PodGroup", "metadata": named, "spec": spec})
    outcome = run("plan", "--now", NOW, "-f", path)
    return outcome.status, outcome.err


@pytest.mark.parametrize(
    ("api", "spec", "problem"),
    [
        (
            KUBERNETES,
            {"schedulingPolicy": {"gang": {"minCount": 0}}},
            "schedulingPolicy.gang.minCount: must be at least 1, is 0",
        ),
        (KUBERNETES, {"schedulingPolicy": {"gang": {}}}, "schedulingPolicy.gang.minCount: is missing"),
        (
            KUBERNETES,
            {"minMember": 4},
            "minMember: no such field in scheduling.k8s.io; is it schedulingPolicy.gang.minCount?",
        ),
        (COSCHEDULING, {"minMember": -1}, "minMember: must be at least 1, is -1"),
        (COSCHEDULING, {"minMember": 0}, "minMember: must be at least 1, is 0"),
        (COSCHEDULING, {"minMembers": 4}, "minMembers: no such field in scheduling.x-k8s.io; is it minMember?"),
        (VOLCANO, {"minMember": -1}, "minMember: must be at least 0, is -1"),
        (VOLCANO, {"minAvailable": 4}, "minAvailable: no such field in scheduling.volcano.sh; is it minMember?"),
        (
            VOLCANO,
            {"schedulingPolicy": {"gang": {"minCount": 4}}},
            "schedulingPolicy: no such field in scheduling.volcano.sh; is it minMember?",
        ),
    ],
)  # fmt: skip
def test_a_number_that_its_api_refuses_or_does_not_look_at_is_an_error(
    run: Run, write: Write, api: str, spec: dict[str, Any], problem: str
) -> None:
    """Else the gang would be planned pod by pod, without a word."""
    status, said = _said(run, write, api, spec)
    assert status == 2
    assert f"group.json:1: PodGroup ml/train: spec.{problem}\n" in said


def test_a_group_without_any_number_is_no_gang_and_a_warning_says_so(run: Run, write: Write) -> None:
    """The plugins' definitions have it optional."""
    for api in (COSCHEDULING, VOLCANO):
        status, said = _said(run, write, api, {})
        assert (status, "spec.minMember: is missing, so its pods are placed one by one" in said) == (0, True)


def test_what_a_cluster_has_stored_is_no_error(run: Run, write: Write) -> None:
    """A newer version of the API may have such a field; Volcano stores a minimum of none."""
    status, said = _said(run, write, COSCHEDULING, {"minMember": 2, "minMembers": 4}, uid="a")
    assert (status, "warning: " in said and "spec.minMembers: no such field" in said) == (0, True)
    assert "minMember" not in _said(run, write, VOLCANO, {"minMember": 0})[1]
