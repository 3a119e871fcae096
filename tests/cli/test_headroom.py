"""``joinery plan``, ``disrupt`` and ``top`` with CapacityBuffers."""

import json
from typing import Any

import pytest

from tests.cli.conftest import Run, Write
from tools.template import ROOT

HEADROOM, NODES = (str(ROOT / "examples" / name) for name in ("headroom.yaml", "consolidation.yaml"))
NIGHT, DAY = "2026-11-27T22:00:00Z", "2026-11-27T10:00:00Z"
#: For one pod of half the size of the empty node.
BUFFER = [
    {
        "apiVersion": "v1",
        "kind": "PodTemplate",
        "metadata": {"name": "chunk"},
        "template": {
            "spec": {"containers": [{"name": "main", "image": "x", "resources": {"requests": {"cpu": "3"}}}]},
        },
    },
    {
        "apiVersion": "autoscaling.x-k8s.io/v1beta1",
        "kind": "CapacityBuffer",
        "metadata": {"name": "spare"},
        "spec": {"podTemplateRef": {"name": "chunk"}, "replicas": 3},
    },
]


def test_a_plan_says_which_part_of_its_price_is_headroom(run: Run) -> None:
    """By buffer, and what counts at that moment alone."""
    day = run("plan", "--now", DAY, "-f", HEADROOM)
    assert "6 pods placed, and room kept for 5 of buffers" in day.out
    assert "is headroom: room for 3 of ci/builds, 2 of shop/web" in day.out
    assert "room for 5, of 2 buffers" in run("plan", "--now", DAY, "-f", HEADROOM, "-o", "html").out
    night = run("plan", "--now", NIGHT, "-f", HEADROOM)
    assert "is headroom: room for 2 of shop/web" in night.out
    assert "note: CapacityBuffer ci/builds keeps no room now: its schedule is not open" in night.err


def test_a_decision_about_nodes_leaves_a_buffer_its_room(run: Run, write: Write) -> None:
    """Without it more nodes go than with it, and the price of its room is said."""
    without = run("disrupt", "-f", NODES, "-o", "json").document
    given = ("-f", NODES, "-f", write("buffer.json", {"apiVersion": "v1", "kind": "List", "items": BUFFER}))
    decided = run("disrupt", *given, "-o", "json").document
    assert decided["cost"]["after"] > without["cost"]["after"]
    assert decided["cost"]["lowerBound"] > without["cost"]["lowerBound"]
    ((name, chunks),) = [(one["buffer"], one["chunks"]) for one in decided["cost"]["headroom"]]
    assert (name, chunks) == ("default/spare", 3)
    assert all("capacity-buffer" not in pod for command in decided["commands"] for pod in command["pods"])
    assert "is headroom: room for 3 of default/spare" in run("disrupt", *given).out


def test_a_quota_of_the_files_binds_a_buffer(run: Run, write: Write) -> None:
    """As far as the files' own pods leave room in it, or as a cluster has counted."""
    pod = {
        "metadata": {"name": "web"},
        "spec": {"containers": [{"name": "web", "resources": {"requests": {"cpu": "2"}}}]},
    }
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "team"},
        "spec": {"hard": {"requests.cpu": "9"}},
    }
    for used, chunks in (({}, 2), ({"status": {"used": {"requests.cpu": "4"}}}, 1)):
        items = [*BUFFER, {"apiVersion": "v1", "kind": "Pod", **pod}, {**quota, **used}]
        file = write("quota.json", {"apiVersion": "v1", "kind": "List", "items": items})
        outcome = run("plan", "-f", NODES, "-f", file, "-o", "json")
        assert json.dumps(outcome.document["existing"]).count("capacity-buffer-spare") == chunks
        assert "CapacityBuffer default/spare is smaller than it asks for, by ResourceQuotas: team" in outcome.err


def test_top_says_what_of_the_nodes_is_headroom(run: Run, write: Write) -> None:
    """A chunk is no pod that waits."""
    file = write("buffer.json", {"apiVersion": "v1", "kind": "List", "items": BUFFER})
    outcome = run("top", "-f", NODES, "-f", file)
    assert "of it headroom" in outcome.out.splitlines()[1]
    assert "0 pods wait" in outcome.out
    first = run("plan", "-f", NODES, "-f", file, "-o", "json").document
    assert json.dumps(first["existing"]).count("capacity-buffer-spare") == 3


def test_a_schedule_that_cannot_be_read_is_said(run: Run, write: Write) -> None:
    """With the annotation, and what it should be."""
    wrong = {**BUFFER[1], "metadata": {"name": "spare", "annotations": {"joinery.dev/buffer-schedule": "mornings"}}}
    items = [BUFFER[0], wrong]
    err = run("plan", "-f", HEADROOM, "-f", write("w.json", {"apiVersion": "v1", "kind": "List", "items": items})).err
    assert (
        "warning: CapacityBuffer default/spare keeps no room: the annotation joinery.dev/buffer-schedule: 'mornings': "
        "'mornings' is not \"from CRON for DURATION in ZONE\""
    ) in err


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"replicas": 1_000_000}, "warning: CapacityBuffer default/spare: room for 1,000 of 1,000,000 is kept"),
        ({"replicas": 0}, "keeps no room: its replicas, percentage and limits come to no chunk"),
        ({"limits": {"cpu": "-4"}}, "keeps no room: its replicas, percentage and limits come to no chunk"),
        (
            {"replicas": 1, "provisioningStrategy": "example.com/cold"},
            "is left alone: its provisioningStrategy example.com/cold is not buffer.x-k8s.io/active-capacity",
        ),
    ],
)
def test_a_buffer_that_is_less_than_was_meant_says_so(run: Run, write: Write, spec: dict[str, Any], said: str) -> None:
    """None of it is an error for an API server."""
    buffer = {**BUFFER[1], "spec": {"podTemplateRef": {"name": "chunk"}, **spec}}
    file = write("w.json", {"apiVersion": "v1", "kind": "List", "items": [BUFFER[0], buffer]})
    assert said in run("plan", "--now", NIGHT, "-f", HEADROOM, "-f", file).err


def test_a_buffer_of_a_paused_namespace_says_that(run: Run, write: Write) -> None:
    """And nothing of a schedule that it has not."""
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "default", "annotations": {"joinery.dev/paused": "true"}},
    }
    file = write("n.json", {"apiVersion": "v1", "kind": "List", "items": [*BUFFER, namespace]})
    err = run("plan", "--now", NIGHT, "-f", HEADROOM, "-f", file).err
    said = "CapacityBuffer default/spare keeps no room now: namespace default is paused until somebody resumes it"
    assert said in err
