"""What others' users reported of gangs under an autoscaler, in files."""

import json
from typing import Any

from joinery.objects.snapshot.gangs import COSCHEDULING_GROUP
from joinery_cli.sources import SAMPLE
from simulator.builders import node, node_claim, node_class, node_pool, pod
from tests.cli.conftest import NOW, Run, Write
from tests.cli.input.test_partial_exports import listed

PLAN = ("plan", "--now", NOW, "-o", "json", "--catalog", str(SAMPLE))


def _group(api: str, minimum: int) -> dict[str, Any]:
    return {"apiVersion": api, "kind": "PodGroup", "metadata": {"name": "train"}, "spec": {"minMember": minimum}}


def _bought(run: Run, *paths: str) -> list[str]:
    files = [part for path in paths for part in ("-f", path)]
    made = json.loads(run(*PLAN, *files).out)
    return sorted(pod for launch in made["launch"] for pod in launch["pods"])


def test_a_pod_of_a_group_that_is_made_anew_is_bought_for_alone(run: Run, write: Write) -> None:
    """Five of six run; the sixth waited for siblings that would never come:
    https://github.com/kubernetes-sigs/scheduler-plugins/issues/358
    """
    labels = {COSCHEDULING_GROUP: "train"}
    there = [
        part
        for number in range(5)
        for part in (
            node(f"node-{number}"),
            node_claim(f"claim-{number}", node=f"node-{number}"),
            pod(f"train-{number}", node=f"node-{number}", labels=labels, cpu="3"),
        )
    ]
    waiting = pod("train-5", labels=labels, cpu="3")
    cluster = write("cluster.json", listed(node_class(), node_pool(), *there, waiting))
    group = write("group.json", _group("scheduling.x-k8s.io/v1alpha1", 6))
    assert _bought(run, cluster, group) == ["default/train-5"]


def test_a_group_of_one_grows_pod_by_pod(run: Run, write: Write) -> None:
    """A Deployment of Volcano's with ``minMember: 1`` is scaled to two, and its node is full:
    https://github.com/volcano-sh/volcano/issues/4030
    """
    named = {"scheduling.k8s.io/group-name": "train"}
    there = [
        node("node-1"),
        node_claim("claim-1", node="node-1"),
        pod("a", node="node-1", annotations=named, cpu="3"),
    ]
    cluster = write("cluster.json", listed(node_class(), node_pool(), *there, pod("b", annotations=named, cpu="3")))
    group = write("group.json", _group("scheduling.volcano.sh/v1beta1", 1))
    assert _bought(run, cluster, group) == ["default/b"]
