"""Pods that wait and fit onto nodes that are there: kube-scheduler is about to bind them.

Until it has, their room is not there for pods that are moved, and their nodes are neither empty nor without use. Pods
for which nodes have to be bought are provisioning's alone.

So it is with pods that have to leave their node and fit elsewhere. A drain takes a minute or more, and a command waits
for what it buys before its other pods go to the room that it counts on (Karpenter `SimulateScheduling`, which places
the pods of deleting nodes, too). Where a budget keeps them for longer, nodes are no longer kept for them.

And so it is with a node that was bought for pods of a node that goes, which a budget or a long grace period keeps
there. Given up because it is empty, it would be bought again at once, and so on every minute until the last has left.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.decisions.lifecycle.disrupting.new_commands import as_if_retired
from joinery.decisions.lifecycle.disrupting.started_commands import LONGEST_DRAIN_AWAITED
from joinery.decisions.scheduling.firstfit.pending import pending
from joinery.decisions.scheduling.problem import Problem
from joinery.decisions.scheduling.solve import Stopwatch, solve_unproven
from joinery.objects.annotations.disruption import is_candidate
from joinery.objects.snapshot.claims import leaving_since
from joinery.objects.snapshot.nodes import NodeView, is_leaving, pending_pods
from joinery.objects.snapshot.pods import bound_to, is_reschedulable
from joinery.objects.snapshot.snapshot import Snapshot

#: Of the time limit, for finding room for pods that wait.
_PART = 0.2
_WAITS, _LEAVES = "waits, and has room on it", "has to leave its node, and has room on it"


def with_pods_bound(
    problem: DisruptionProblem, stopwatch: Stopwatch = lambda: 0.0
) -> tuple[DisruptionProblem, Mapping[str, str]]:
    """The problem with waiting pods, and those of nodes that go, on nodes that have room for them, as the packing core
    places them, or were bought for them; and by Node what it is kept for. Costs little where none waits or leaves.
    """
    if not _is_any_without_a_place(problem.packing):
        return problem, {}
    problem, bought = _with_departing(problem)
    bound, awaited = _with_room_elsewhere(problem, stopwatch)
    return bound, {**bought, **awaited}


def _is_any_without_a_place(packing: Problem) -> bool:
    """Whether any pod waits, or any node goes whose pods might need another one. Far cheaper than to see all nodes."""
    snapshot, only_marked = packing.snapshot, packing.options.only_marked_unschedulable
    return (
        any(is_leaving(None, claim) for claim in snapshot.managed_claims)
        or any(is_leaving(node, None) for node in snapshot.nodes)
        or bool(pending_pods(snapshot, only_marked=only_marked))
    )


def _with_departing(problem: DisruptionProblem) -> tuple[DisruptionProblem, Mapping[str, str]]:
    """The problem with the pods of nodes that go on the nodes that were bought for them since; and by Node what
    it is kept for.
    """
    snapshot = problem.packing.snapshot
    nodes = snapshot.views
    leaves = _leaving(snapshot, nodes)
    if not leaves:
        return problem, {}
    claims = {claim.metadata.name: claim for claim in snapshot.managed_claims}
    node_of: dict[str, str] = {}
    for view in nodes:
        created = claims[view.claim].metadata.creation_timestamp if view.claim in claims else None
        if view.node and created is not None and not view.is_leaving:
            # What was planned for it long ago may have gone elsewhere, and come back from there.
            node_of.update({pod: view.node for pod in view.planned if pod in leaves and created >= leaves[pod]})
    if not node_of:
        return problem, {}
    text = "pod {} has to leave its node, and this one was bought for it"
    return bound(problem, node_of), {node: text.format(pod) for pod, node in reversed(node_of.items())}


def bound(problem: DisruptionProblem, node_of: Mapping[str, str]) -> DisruptionProblem:
    """The problem with pods on these Nodes. ``node_of``: by namespace/name of the pod."""
    packing = problem.packing
    pods = tuple(bound_to(pod, node_of[pod.key]) if pod.key in node_of else pod for pod in packing.snapshot.pods)
    return replace(problem, packing=replace(packing, snapshot=replace(packing.snapshot, pods=pods)))


def _with_room_elsewhere(
    problem: DisruptionProblem, stopwatch: Stopwatch
) -> tuple[DisruptionProblem, Mapping[str, str]]:
    snapshot = problem.packing.snapshot
    # A command's pods will have gone before another one could move any.
    candidates = [claim.metadata.name for claim in snapshot.managed_claims if is_candidate(claim)]
    packing = replace(problem.packing, snapshot=as_if_retired(snapshot, candidates))
    nodes = packing.snapshot.views
    if not pending(packing, nodes):
        return problem, {}
    leaves = _leaving(packing.snapshot, nodes)
    late = {pod for pod, since in leaves.items() if snapshot.now - since >= LONGEST_DRAIN_AWAITED}
    found = solve_unproven(in_part(packing), stopwatch=stopwatch).packing
    node_of = {
        pod: placement.node
        for placement in found.existing
        for pod in placement.pods
        if placement.node and pod not in late
    }
    if found.limit_struck:
        # Nobody knows yet whether they need new nodes, which are not bought here anyway.
        waiting = {pod.pod for pod in found.unplaced if pod.pod not in leaves}
        pods = tuple(pod for pod in snapshot.pods if pod.key not in waiting)
        problem = replace(problem, packing=replace(problem.packing, snapshot=replace(snapshot, pods=pods)))
    return bound(problem, node_of), {
        node: f"pod {pod} {_LEAVES if pod in leaves else _WAITS}" for pod, node in reversed(node_of.items())
    }


def in_part(packing: Problem) -> Problem:
    """The same problem with a part of its time limit: the decision about nodes is still to come."""
    limit = packing.options.time_limit
    return packing if limit is None else replace(packing, options=replace(packing.options, time_limit=limit * _PART))


def _leaving(snapshot: Snapshot, nodes: Iterable[NodeView]) -> Mapping[str, datetime]:
    """By pod (namespace/name) of a node that goes, since when it needs another one."""
    claims = {claim.metadata.name: claim for claim in snapshot.managed_claims}
    going = {name: since for name, claim in claims.items() if (since := leaving_since(claim)) is not None}
    return {
        pod.key: going[view.claim]
        for view in nodes
        if view.claim in going
        for pod in view.pods
        if is_reschedulable(pod)
    }
