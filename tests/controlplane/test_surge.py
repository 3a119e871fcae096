"""Surge before evict with the real Deployment controller, under the rights that a user grants.

One pod behind a budget that lets nothing go asks for its successor first, and EC2 takes its spot node.
"""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from joinery.objects.karpenter import labels as keys
from joinery.objects.snapshot.snapshot import Snapshot
from simulator import builders
from tests.controlplane import objects
from tests.controlplane.story import DEPLOYMENTS, REPLICA_SETS, Cluster, living
from tests.controlplane.test_story import SPOT, XLARGE, deployment
from tools.controlplane.plane import ControlPlane


@dataclass
class Story:
    """What was seen. ``revisions``: the rollouts that the Deployment's ReplicaSets are of."""

    cluster: Cluster
    first: Snapshot
    last: Snapshot
    revisions: list[str]
    told: list[dict[str, Any]]


@pytest.fixture(scope="module")
def story(joinery_control_plane: ControlPlane) -> Story:
    """The run. The control plane is empty again before the first test looks at it."""
    with living(joinery_control_plane) as cluster:
        pool = builders.node_pool(requirements=[SPOT, XLARGE], ready=False)
        budget = builders.pdb("web", labels={"app": "web"}, min_available=1)
        objects.put(cluster.admin, builders.node_class(ready=False), pool, budget)
        cluster.admin.request("POST", DEPLOYMENTS, _asking(deployment("web", 1, {})))
        first = cluster.until(lambda seen: seen if _runs(seen) else None)
        (interrupted,) = first.node_claims
        cluster.least_spare.clear()
        cluster.interrupt(interrupted)
        name = interrupted.metadata.name
        last = cluster.until(lambda seen: seen if _runs(seen) and name not in _names(seen) else None)
        sets = json.loads(cluster.admin.get(REPLICA_SETS))["items"]
        revisions = sorted(item["metadata"]["annotations"][keys.REVISION] for item in sets)
        return Story(cluster, first, last, revisions, cluster.events("AwaitingSuccessor"))


def _asking(document: dict[str, object]) -> dict[str, object]:
    asked: dict[str, object] = json.loads(json.dumps(document))
    asked["spec"]["template"]["metadata"]["annotations"] = {keys.SURGE_BEFORE_EVICTION: "true"}  # type: ignore[index]
    return asked


def _runs(seen: Snapshot) -> bool:
    """One pod runs, and nothing else is under way."""
    running = [pod.status.phase == "Running" and bool(pod.spec.node_name) for pod in seen.pods]
    return running == [True] and len(seen.nodes) == len(seen.node_claims) == 1


def _names(seen: Snapshot) -> set[str]:
    return {claim.metadata.name for claim in seen.node_claims}


def test_the_budget_is_kept_and_the_eviction_api_never_asked(story: Story) -> None:
    """The Deployment controller ended the pod itself, once the successor was available."""
    assert story.cluster.world.real.evictions == []
    assert story.cluster.least_spare["web"] == 0


def test_the_deployment_was_restarted_once(story: Story) -> None:
    """Two rollouts: the user's and ours."""
    assert story.revisions == ["1", "2"]


def test_one_node_was_bought_for_the_successor(story: Story) -> None:
    """The node that was bought for the old pod is the new one's."""
    assert len(story.cluster.world.cloud.requests) == 2
    (before,), (after,) = story.first.pods, story.last.pods
    assert before.spec.node_name != after.spec.node_name


def test_the_pod_was_told(story: Story) -> None:
    """By an Event that the API server took."""
    assert {event["regarding"]["name"] for event in story.told} == {story.first.pods[0].metadata.name}
