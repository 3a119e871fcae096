"""Nodes are drawn with the pods that will be on them: what comes in a pod's place, not the pod as it is by now."""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from joinery.decisions.disruption.decide import decide
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.decisions.scheduling.solve import solve
from joinery.objects.karpenter.labels import DO_NOT_DISRUPT
from joinery.objects.kubernetes.core import ObjectMeta, Pod, PodTemplateSpec
from joinery.objects.kubernetes.workloads import Workload, WorkloadSpec
from joinery_cli.view import disruption_groups, plan_groups
from joinery_cli.view.costs import Costs
from simulator.builders import node_pool, pod
from simulator.clock import START
from tests.cli.disruptions import SOLD
from tests.cli.packings import PRICES
from tests.unit.decisions.disruption.clusters import Cluster, on

_THERE = on("api", "b", cpu="2", annotations={DO_NOT_DISRUPT: "true"})


def _resized(**machine: Any) -> DisruptionProblem:
    """Node ``a`` has a pod of three cores, whose owner's template asks for one; of the four of ``b`` two are taken."""
    cluster = Cluster(pools=[node_pool(budgets=[{"nodes": "100%"}])])
    cluster.machine("a", [on("web", "a", cpu="3")], **machine)
    cluster.machine("b", [_THERE])
    template = PodTemplateSpec(spec=pod("web", cpu="1").spec)
    owner = Workload(metadata=ObjectMeta(name="web-1", namespace="default"), spec=WorkloadSpec(template=template))
    cluster.more["replica_sets"] = (owner,)
    return cluster.problem()


def _cpu(asked: DisruptionProblem) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """Thousandths of a core that are drawn on each node, before the decision and after it."""
    seen = disruption_groups.view(asked, decide(asked), SOLD, PRICES, seconds=0)
    before, after = ({one.name: one.filled.used.get("cpu", 0) for one in nodes} for nodes in (seen.before, seen.after))
    return before, after


def test_a_plan_fills_a_node_with_what_will_come() -> None:
    """The pod that leaves is made anew with one core."""
    problem = _resized(deleted=START).packing
    (placed,) = plan_groups.view(problem, solve(problem), Costs(), PRICES, seconds=0).existing
    assert (placed.name, placed.node.used["cpu"]) == ("b", 3000)


def test_so_does_a_decision_about_nodes() -> None:
    """Before its move the pod takes what it has by now."""
    assert _cpu(_resized()) == ({"a": 3000, "b": 2000}, {"b": 3000})


def test_a_pod_that_ends_for_a_nominated_one_is_not_drawn_beside_it() -> None:
    """Both together are more than the node has."""
    cluster = Cluster()
    waits: Pod = pod("waits", cpu="3")
    ends = replace(_THERE, metadata=replace(_THERE.metadata, deletion_timestamp=START))
    cluster.machine("b", [ends, replace(waits, status=replace(waits.status, nominated_node_name="b"))])
    assert _cpu(cluster.problem()) == ({"b": 3000}, {"b": 3000})
