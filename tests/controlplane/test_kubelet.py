"""The played parts behave towards real ones as kubelets and Lambda do."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from joinery.gateways.kubernetes.adapter import KubernetesCluster
from joinery.gateways.kubernetes.gateway import Eviction
from joinery.gateways.kubernetes.transport import Transport
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from joinery.objects.karpenter.labels import UNREGISTERED_TAINT
from joinery.objects.kubernetes.core import Pod
from simulator import builders
from tests.controlplane import objects
from tests.controlplane.kubelet import Kubelets, node_of
from tests.controlplane.webhook import function_url, webhooks
from tools.controlplane.plane import JOINERY, ControlPlane

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
TOKEN = "a-token-of-more-than-thirty-two-characters"


@pytest.fixture
def admin(joinery_control_plane: ControlPlane) -> Iterator[Transport]:
    """The administrator of a control plane that is empty before and after."""
    transport = objects.connect(joinery_control_plane)
    yield transport
    objects.sweep(transport)


def pod(cluster: KubernetesCluster) -> Pod:
    """The only pod."""
    (pod,) = cluster.snapshot().pods
    return pod


def test_a_launched_claim_becomes_a_node_that_the_real_scheduler_uses(
    joinery_control_plane: ControlPlane, admin: Transport, until: Callable[[Callable[[], Any]], Any]
) -> None:
    """The pod waits for the unregistered taint to go, is bound, runs,
    is held by its budget, and is evicted without it.
    """
    cluster = KubernetesCluster(
        objects.connect(joinery_control_plane, JOINERY), now=lambda: NOW, node_class=EC2NodeClass
    )
    kubelets = Kubelets(admin, NOW)
    claim, budget = builders.node_claim("c1"), builders.pdb(labels={"app": "web"}, min_available=1)
    objects.put(admin, claim, budget, builders.pod("p1", labels={"app": "web"}, unschedulable=False))

    assert [node.spec.provider_id for node in kubelets.boot([claim])] == [claim.status.provider_id]
    assert kubelets.boot([claim]) == []
    until(lambda: any(condition.reason == "Unschedulable" for condition in pod(cluster).status.conditions))
    (node,) = cluster.snapshot().nodes
    kept = [taint for taint in node.spec.taints if taint.key != UNREGISTERED_TAINT]
    cluster.update_node(node, replace(node, spec=replace(node.spec, taints=kept)))
    until(lambda: kubelets.tick() >= 0 and pod(cluster).status.phase == "Running")
    assert pod(cluster).spec.node_name == node_of(claim).metadata.name

    until(lambda: cluster.snapshot().disruption_budgets[0].status.disruptions_allowed == 0)
    assert cluster.evict(pod(cluster)) is Eviction.BLOCKED
    objects.remove(admin, budget)
    until(lambda: cluster.evict(pod(cluster)) is Eviction.EVICTED)
    until(lambda: kubelets.tick() >= 0 and cluster.snapshot().pods == ())


def test_the_api_server_calls_a_handler_with_a_function_url_event(
    joinery_control_plane: ControlPlane, admin: Transport, until: Callable[[Callable[[], Any]], Any]
) -> None:
    """A pod that fits nowhere makes the real scheduler emit an Event,
    and our webhook configuration sends it to the door.
    """
    calls: list[dict[str, Any]] = []

    def handler(event: dict[str, Any]) -> dict[str, Any]:
        calls.append(event)
        review = json.loads(event["body"])
        response = {"uid": review["request"]["uid"], "allowed": True}
        return {"statusCode": 200, "body": json.dumps({**review, "response": response})}

    with function_url(handler) as server, webhooks(joinery_control_plane, server, TOKEN):
        objects.put(admin, builders.pod("p1", unschedulable=False))
        until(lambda: [call for call in calls if "FailedScheduling" in call["body"]])

    assert {call["rawPath"] for call in calls} == {f"/{TOKEN}"}
    assert {call["requestContext"]["http"]["method"] for call in calls} == {"POST"}
