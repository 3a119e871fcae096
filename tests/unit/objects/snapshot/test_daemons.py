"""DaemonSets of other groups than apps are known by their pods: new nodes have room for those too."""

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace as with_fields

from joinery.decisions.scheduling.problem import Problem
from joinery.decisions.scheduling.solve import solve
from joinery.decisions.verification.verify import verify
from joinery.objects.kubernetes.core import Node, Pod
from joinery.objects.snapshot.snapshot import Snapshot
from simulator import builders
from simulator.clock import START

KRUISE = builders.owner("DaemonSet", "sensor", api_version="apps.kruise.io/v1alpha1")


def _sensor(node: str, **given: Any) -> Pod:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    pinned = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    return builders.pod(f"sensor-{node}", node=node, owner=KRUISE, affinity=pinned, cpu="1", **given)


def _bought(pods: Sequence[Pod], nodes: Sequence[Node], *, pool: str = "default") -> list[int]:
    """Millicores of what is bought in that NodePool for a pod of 3 cores, where nodes with 4 and 8 are sold."""
    waits = builders.pod("waits", cpu="3", node_selector={"karpenter.sh/nodepool": pool})
    snapshot = Snapshot(
        now=START,
        pods=(*pods, waits),
        nodes=tuple(nodes),
        node_pools=(builders.node_pool("default"), builders.node_pool("gpu")),
        node_classes=(builders.node_class(),),
    )
    types = tuple(builders.instance_type(f"m7a.{size}") for size in ("xlarge", "2xlarge"))
    problem = Problem(snapshot=snapshot, instance_types={"default": types})
    packing = solve(problem)
    assert not verify(problem, packing)
    return [launch.requests["cpu"] for launch in packing.launches]


#: Nodes that take no more pods.
A, B, G = (
    with_fields(node, spec=with_fields(node.spec, unschedulable=True))
    for node in (builders.node("a"), builders.node("b"), builders.node("g", node_pool="gpu"))
)


@pytest.mark.parametrize(
    ("pods", "nodes", "pool", "cpu"),
    [
        ([_sensor("a"), _sensor("b")], [A, B], "default", 4000),
        ([_sensor("a")], [A, B], "default", 4000),
        ([_sensor("a"), _sensor("b")], [A, B], "gpu", 4000),
        ([_sensor("a"), _sensor("b")], [A, B, G], "gpu", 3000),
        ([_sensor("g")], [A, B, G], "default", 3000),
        ([_sensor("g")], [A, B, G], "gpu", 4000),
        ([_sensor("g", node_selector={"karpenter.sh/nodepool": "gpu"})], [A, B, G], "default", 3000),
        ([_sensor("a", phase="Failed")], [A], "default", 3000),
        ([], [A], "default", 3000),
    ],
    ids=[
        "on all nodes", "one has just joined", "a NodePool without nodes", "not in that NodePool", "in the other alone",
        "in its own", "by its selector", "it has ended", "none",
    ],
)  # fmt: skip
def test_what_is_bought_holds_their_pod_where_most_nodes_run_one(
    pods: Sequence[Pod], nodes: Sequence[Node], pool: str, cpu: int
) -> None:
    """What the template demanded by affinity cannot be seen in a pod."""
    assert _bought(pods, nodes, pool=pool) == [cpu]
