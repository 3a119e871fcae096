"""Room that CapacityBuffers keep free, where nodes are to go.

A chunk that has room on a node counts as a pod that runs there and that costs nothing to move: its node is not empty,
and goes only if the chunk has room elsewhere, or on what is bought. A chunk without room is provisioning's alone.

Nodes with pods are filled first, so that a node that no pod needs is left empty where that is possible.
"""

from collections.abc import Mapping
from dataclasses import replace

from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.decisions.disruption.waiting import bound, in_part
from joinery.decisions.lifecycle.disrupting.new_commands import as_if_retired
from joinery.decisions.scheduling.problem import Problem
from joinery.decisions.scheduling.solve import Stopwatch, solve_unproven
from joinery.objects.annotations.disruption import is_candidate
from joinery.objects.snapshot.nodes import cordoned
from joinery.objects.snapshot.pods import comes_with_node, wanted_by
from joinery.objects.snapshot.snapshot import Snapshot


def with_chunks_bound(problem: DisruptionProblem, stopwatch: Stopwatch = lambda: 0.0) -> DisruptionProblem:
    """The problem with the chunks of buffers on nodes that have room for them, and without the others. Costs nothing
    where there are no buffers.
    """
    snapshot = problem.packing.snapshot
    waiting = {pod.key for pod in snapshot.virtual_pods if not pod.spec.node_name}
    if not waiting:
        return problem
    for others in (_without_idle_nodes(snapshot), snapshot):
        node_of = _places(replace(problem.packing, snapshot=others), stopwatch)
        here = {pod: node for pod, node in node_of.items() if pod in waiting}
        problem = bound(problem, here)
        waiting -= here.keys()
        snapshot = problem.packing.snapshot
        if not waiting:
            return problem
    pods = tuple(pod for pod in snapshot.pods if pod.key not in waiting)
    return replace(problem, packing=replace(problem.packing, snapshot=replace(snapshot, pods=pods)))


def carried_over(snapshot: Snapshot, decided: Snapshot) -> Snapshot:
    """A later snapshot, with the chunks where they were when it was decided, as far as nodes and buffers are there."""
    nodes = {node.metadata.name for node in snapshot.nodes}
    names = {buffer.key for buffer in snapshot.capacity_buffers}
    names |= {request.key for request in snapshot.provisioning_requests if request.is_open}
    return snapshot.with_virtual(
        pod for pod in decided.virtual_pods if pod.spec.node_name in nodes and wanted_by(pod) in names
    )


def _without_idle_nodes(snapshot: Snapshot) -> Snapshot:
    """The snapshot, in which nodes without pods take none."""
    used = {pod.spec.node_name for pod in snapshot.pods if pod.spec.node_name and not comes_with_node(pod)}
    nodes = (node if node.metadata.name in used else cordoned(node) for node in snapshot.nodes)
    return replace(snapshot, nodes=tuple(nodes))


def _places(packing: Problem, stopwatch: Stopwatch) -> Mapping[str, str]:
    """By pod that waits, the Node that has room for it. Pods come before chunks."""
    # A command's pods will have gone before another one could move any.
    going = [claim.metadata.name for claim in packing.snapshot.managed_claims if is_candidate(claim)]
    asked = in_part(replace(packing, snapshot=as_if_retired(packing.snapshot, going)))
    found = solve_unproven(asked, stopwatch=stopwatch).packing
    return {pod: placement.node for placement in found.existing if placement.node for pod in placement.pods}
