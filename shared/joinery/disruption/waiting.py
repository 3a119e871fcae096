"""Pods that wait and fit onto nodes that are there: kube-scheduler is about to bind them.

Until it has, their room is not there for pods that are moved, and their nodes are neither empty nor without use. Pods
for which nodes have to be bought are provisioning's alone.
"""

from collections.abc import Mapping
from dataclasses import replace

from joinery.disruption.problem import DisruptionProblem
from joinery.scheduling.solve import Stopwatch, solve
from joinery.state.pods import bound_to, is_pending


def settled(
    problem: DisruptionProblem, stopwatch: Stopwatch = lambda: 0.0
) -> tuple[DisruptionProblem, Mapping[str, str]]:
    """The problem with waiting pods on the nodes that have room for them, as the packing core places them; and by Node
    the first of these pods (namespace/name). Costs nothing where no pod waits.
    """
    packing = problem.packing
    only_marked = packing.options.only_marked_unschedulable
    if not any(is_pending(pod, only_marked=only_marked) for pod in packing.snapshot.pods):
        return problem, {}
    placements = [placement for placement in solve(packing, stopwatch=stopwatch).existing if placement.node]
    node_of = {pod: placement.node for placement in placements for pod in placement.pods}
    pods = tuple(
        bound_to(pod, node_of[pod.key]) if pod.key in node_of and is_pending(pod, only_marked=only_marked) else pod
        for pod in packing.snapshot.pods
    )
    bound = replace(problem, packing=replace(packing, snapshot=replace(packing.snapshot, pods=pods)))
    return bound, {placement.node: placement.pods[0] for placement in placements if placement.pods}
