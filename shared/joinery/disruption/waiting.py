"""Pods that wait and fit onto nodes that are there: kube-scheduler is about to bind them.

Until it has, their room is not there for pods that are moved, and their nodes are neither empty nor without use. Pods
for which nodes have to be bought are provisioning's alone.

So it is with a node that was bought for pods of a node that goes, which a budget or a long grace period keeps there.
Given up because it is empty, it would be bought again at once, and so on every minute until the last of them has left.
"""

from collections.abc import Mapping
from dataclasses import replace

from joinery.apis.core import Pod
from joinery.disruption.problem import DisruptionProblem
from joinery.scheduling.solve import Stopwatch, solve
from joinery.state.claims import leaving_since
from joinery.state.nodes import views
from joinery.state.pods import bound_to, is_pending, is_reschedulable


def settled(
    problem: DisruptionProblem, stopwatch: Stopwatch = lambda: 0.0
) -> tuple[DisruptionProblem, Mapping[str, str]]:
    """The problem with waiting pods on the nodes that have room for them, as the packing core places them, and pods of
    nodes that go on those that were bought for them; and by Node what it is kept for. Costs little where none waits.
    """
    problem, bought = _with_departing(problem)
    bound, awaited = _with_waiting(problem, stopwatch)
    return bound, {**bought, **awaited}


def _with_departing(problem: DisruptionProblem) -> tuple[DisruptionProblem, Mapping[str, str]]:
    """The problem with the pods of nodes that go on the nodes that were bought for them since; and by Node what
    it is kept for.
    """
    snapshot = problem.packing.snapshot
    claims = {claim.metadata.name: claim for claim in snapshot.managed_claims}
    going = {name: since for name, claim in claims.items() if (since := leaving_since(claim)) is not None}
    if not going:
        return problem, {}
    nodes = views(snapshot)
    leaves = {
        pod.key: going[view.claim]
        for view in nodes
        if view.claim in going
        for pod in view.pods
        if is_reschedulable(pod)
    }
    node_of: dict[str, str] = {}
    for view in nodes:
        created = claims[view.claim].metadata.creation_timestamp if view.claim in claims else None
        if view.node and created is not None and not view.is_leaving:
            # What was planned for it long ago may have gone elsewhere, and come back from there.
            node_of.update({pod: view.node for pod in view.planned if pod in leaves and created >= leaves[pod]})
    if not node_of:
        return problem, {}
    pods = tuple(bound_to(pod, node_of[pod.key]) if pod.key in node_of else pod for pod in snapshot.pods)
    text = "pod {} has to leave its node, and this one was bought for it"
    return _with_pods(problem, pods), {node: text.format(pod) for pod, node in reversed(node_of.items())}


def _with_pods(problem: DisruptionProblem, pods: tuple[Pod, ...]) -> DisruptionProblem:
    packing = problem.packing
    return replace(problem, packing=replace(packing, snapshot=replace(packing.snapshot, pods=pods)))


def _with_waiting(problem: DisruptionProblem, stopwatch: Stopwatch) -> tuple[DisruptionProblem, Mapping[str, str]]:
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
    return _with_pods(problem, pods), {
        placement.node: f"pod {placement.pods[0]} waits, and has room on it"
        for placement in placements
        if placement.pods
    }
