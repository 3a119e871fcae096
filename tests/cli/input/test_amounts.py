"""Amounts of NodePools and DaemonSets that lack their unit: who wrote them is asked what was meant."""

from typing import Any

import pytest

from joinery_cli.sources import SAMPLE
from tests.cli.conftest import CLUSTER, NOW, Run, Write, pod_document

PLAN = ("plan", "--now", NOW, "--catalog", str(SAMPLE), "-f")


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ("{memory: 1000}", ["memory: 1000 is 1,000 bytes, and no node is so small; is it 1000Gi?"]),
        ("{memory: 500m}", ["memory: 500m is less than a byte, and no node is so small; is it 500Gi?"]),
        ("{memory: 536870911}", ["memory: 536870911 is 536,870,911 bytes, and no node is so small"]),
        ("{cpu: 100m}", ["cpu: 100m is less than a core, and no node is so small; is it 100?"]),
        ("{cpu: 1000, memory: 1000Gi, nvidia.com/gpu: 4}", []),
        ("{cpu: 0, memory: 0}", []),
        ("{cpu: 64000m, memory: 68719476736}", []),
    ],
)
def test_a_limit_smaller_than_any_node_is_asked_about(run: Run, write: Write, limits: str, words: list[str]) -> None:
    """Nothing is bought with it. None at all is a limit that stops a NodePool, and is meant."""
    cluster = CLUSTER.replace("  template:\n", f"  limits: {limits}\n  template:\n")
    told = run(*PLAN, write("cluster.yaml", cluster), write("pod.json", pod_document())).err.splitlines()
    assert [line for line in told if "so small" in line] == [
        f"warning: NodePool default: spec.limits.{line}" for line in words
    ]


def test_a_daemon_set_without_a_unit_is_asked_about(run: Run, cluster: str, write: Write) -> None:
    """Each node has less room than it seems to."""
    container = {"name": "agent", "resources": {"requests": {"cpu": "100m", "memory": 200}}}
    template: dict[str, Any] = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [container]}}
    agent = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent"},
        "spec": {"selector": {"matchLabels": {"app": "a"}}, "template": template},
    }
    outcome = run(*PLAN, cluster, write("agent.json", agent), write("pod.json", pod_document()))
    doubt = "pods of default/agent: they request memory: 200, which is 200 bytes; is it 200Mi?"
    assert f"warning: {doubt}\n" in outcome.err
