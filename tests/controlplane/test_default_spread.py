"""A scheduler that spreads by its own configuration: what the real one refuses, and what a plan makes of it."""

from collections.abc import Callable
from typing import Any

import msgspec

from joinery.decisions.planning import plan
from joinery.decisions.scheduling.problem import Problem
from joinery.gateways.kubernetes.adapter import KubernetesCluster
from joinery.gateways.kubernetes.transport import MERGE_PATCH
from joinery.objects.default_spread import DefaultSpread, DefaultSpreads
from joinery.objects.karpenter import labels as keys
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from simulator import builders
from simulator.clock import Clock
from tests.controlplane import objects
from tests.controlplane.story import DEPLOYMENTS
from tests.controlplane.test_story import deployment
from tools.controlplane.plane import SPREADING, ControlPlane

ZONES: DefaultSpreads = (DefaultSpread(keys.ZONE, 1, scheduler=SPREADING),)
Until = Callable[[Callable[[], Any]], Any]


def test_a_node_is_bought_where_the_scheduler_s_own_spread_wants_one(control_plane: ControlPlane, until: Until) -> None:
    """The real scheduler leaves the second pod waiting beside a node that has room. Who knows no reason buys none."""
    objects.install(control_plane, *objects.MANIFEST_FILES)
    transport = objects.connect(control_plane)
    objects.sweep(transport)
    here, there = builders.node("here", zone="us-east-1a"), builders.node("there", zone="us-east-1b", cpu="100m")
    objects.put(transport, builders.node_class(), builders.node_pool(), here, there)
    untaint(transport, here, there)
    transport.request("POST", DEPLOYMENTS, deployment("web", 2, {"schedulerName": SPREADING}))

    def bought(spreads: DefaultSpreads) -> list[str]:
        cluster = KubernetesCluster(transport, now=Clock().now, node_class=EC2NodeClass, default_spreads=spreads)
        types = {"default": (builders.instance_type("m7a.xlarge"),)}
        packing = plan(Problem(snapshot=cluster.snapshot(), instance_types=types)).packing
        assert not packing.unplaced
        return [launch.offering.zone for launch in packing.launches]

    def waiting() -> list[str]:
        pods = msgspec.json.decode(transport.get("/api/v1/namespaces/default/pods"))["items"]
        conditions = [one for pod in pods for one in pod["status"].get("conditions", ())]
        bound = [pod for pod in pods if pod["spec"].get("nodeName") == "here"]
        return [one["message"] for one in conditions if one.get("reason") == "Unschedulable"] if bound else []

    (why,) = until(waiting)
    assert "node(s) didn't match pod topology spread constraints" in why
    assert (bought(()), bought(ZONES)) == ([], ["us-east-1b"])
    transport.request("DELETE", f"{DEPLOYMENTS}/web")
    objects.sweep(transport)


def untaint(transport: Any, *nodes: Any) -> None:
    """As the kubelet and its controllers do once a node is ready."""
    for node in nodes:
        patch = {"spec": {"taints": None}}
        transport.request("PATCH", f"/api/v1/nodes/{node.metadata.name}", patch, content_type=MERGE_PATCH)
