"""Consolidation moves pods with their claims for devices, and only to where there are some.

As Karpenter's own specs ask for it (`disruption/consolidation_dra_test.go`, core 1.15.0).
"""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from joinery.decisions.disruption.decide import decide
from joinery.decisions.disruption.decision import DisruptionDecision
from joinery.objects.kubernetes.dynamic_resources import (
    DeviceClass,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
    ResourceSliceSpec,
)
from simulator import builders
from tests.unit.decisions.disruption.clusters import Cluster, on

#: As dear as the nodes that there are.
_TYPE = builders.instance_type("m7a.xlarge", price=0.40, spot=None)
GPU = "gpu.example.com"
_REQUEST = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu", "count": 1}}]}}


def _slice(count: int, node: str = "") -> dict[str, Any]:
    devices = [{"name": f"d{number}"} for number in range(count)]
    return {"driver": GPU, "pool": {"name": node or "pool"}, "nodeName": node, "devices": devices}


def _claim(pod: str, node: str) -> ResourceClaim:
    """Made for the pod from the template; it has the first device of the pod's node."""
    result = {"request": "r", "driver": GPU, "pool": node, "device": "d0"}
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]
    allocation = {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": terms}}
    status = {"allocation": allocation, "reservedFor": [{"resource": "pods", "name": pod}]}
    return msgspec.convert(
        {"metadata": {"name": pod, "namespace": "default"}, "spec": _REQUEST, "status": status}, ResourceClaim
    )


def _decide(there: int, sold: int, *, by_name: bool = False, nodes: int = 2) -> DisruptionDecision:
    """Nodes of so many devices, on each of which a small pod claims one. New nodes have ``sold`` devices."""
    slices = (msgspec.convert(_slice(sold), ResourceSliceSpec),)
    cluster = Cluster(pools=[builders.node_pool(budgets=[{"nodes": "100%"}])], types=(replace(_TYPE, slices=slices),))
    selector = {"cel": {"expression": f"device.driver == '{GPU}'"}}
    device_class = msgspec.convert({"metadata": {"name": "gpu"}, "spec": {"selectors": [selector]}}, DeviceClass)
    template = {"metadata": {"name": "one", "namespace": "default"}, "spec": {"spec": _REQUEST}}
    names = [f"n{number}" for number in range(nodes)]
    for name in names:
        reference = {"resourceClaimName": f"of-{name}"} if by_name else {"resourceClaimTemplateName": "one"}
        pod = on(f"of-{name}", name, cpu="100m", resource_claims=[{"name": "gpu", **reference}])
        cluster.machine(name, [pod])
    cluster.more |= {
        "device_classes": (device_class,),
        "resource_claim_templates": (msgspec.convert(template, ResourceClaimTemplate),),
        "resource_claims": tuple(_claim(f"of-{name}", name) for name in names),
        "resource_slices": tuple(
            msgspec.convert({"metadata": {"name": name}, "spec": _slice(there, name)}, ResourceSlice) for name in names
        ),
    }
    return decide(cluster.problem())


@pytest.mark.parametrize("by_name", [False, True])
def test_a_pod_moves_to_where_a_device_is_free(by_name: bool) -> None:
    """Its claim is made anew, or given back when it goes."""
    (command,) = _decide(2, 2, by_name=by_name).commands
    assert len(command.pods) == 1
    assert command.launches == ()


@pytest.mark.parametrize("by_name", [False, True])
def test_pods_stay_where_there_is_no_other_device(by_name: bool) -> None:
    """By CPU alone one node would hold all, and a new one is no better."""
    assert _decide(1, 1, by_name=by_name, nodes=3).commands == ()


def test_several_move_to_one_node_with_devices_for_all() -> None:
    """A new node of two devices in place of two with one each."""
    (command,) = _decide(1, 2).commands
    assert (len(command.pods), len(command.launches)) == (2, 1)


def test_pods_share_what_is_free_on_the_nodes_that_stay() -> None:
    """Six nodes of two devices with a pod each: three go, and no new one is bought for what the others have room."""
    decision = _decide(2, 2, nodes=6)
    assert [len(command.launches) for command in decision.commands] == [0, 0, 0]
    assert len({placed.node for command in decision.commands for placed in command.existing}) == 3


def test_a_node_whose_devices_are_only_looked_at_is_empty() -> None:
    """A DaemonSet's claim for all of them takes none (kubernetes-sigs/cluster-autoscaler #119: the node stayed for
    ever, as if they were all in use).
    """
    cluster = Cluster(pools=[builders.node_pool(budgets=[{"nodes": "100%"}])], types=(_TYPE,))
    daemon = {"kind": "DaemonSet", "name": "monitor", "uid": "1", "apiVersion": "apps/v1", "controller": True}
    cluster.machine(
        "n0", [on("monitor", "n0", owner=daemon, resource_claims=[{"name": "all", "resourceClaimName": "m"}])]
    )
    got = {"request": "r", "driver": GPU, "pool": "n0", "device": "d0", "adminAccess": True}
    status = {"allocation": {"devices": {"results": [got]}}, "reservedFor": [{"resource": "pods", "name": "monitor"}]}
    cluster.more |= {
        "resource_claims": (
            msgspec.convert({"metadata": {"name": "m", "namespace": "default"}, "status": status}, ResourceClaim),
        ),
        "resource_slices": (msgspec.convert({"metadata": {"name": "n0"}, "spec": _slice(2, "n0")}, ResourceSlice),),
    }
    (command,) = decide(cluster.problem()).commands
    assert (command.reason, command.launches) == ("Empty", ())
