"""Simulations: what would become of the cluster if these nodes went, under every rule (Karpenter `SimulateScheduling`).

The packing core plans the pods of the nodes as it plans pods that wait. The optimiser's answer is a wish: pods go where
it put them as far as rules allow, and the core finds the best for the others. So no rule has a second implementation.

Nodes are moved to for their price, so no size is preferred unless the NodePool says so itself.
"""

from collections.abc import Collection, Container, Iterator
from dataclasses import dataclass, replace

import numpy as np

from joinery.decisions.disruption.candidates import Candidate, Candidates
from joinery.decisions.disruption.consolidation.model import NEGLIGIBLE, ConsolidationModel
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.decisions.lifecycle.disrupting.new_commands import as_if_retired
from joinery.decisions.optimizer.consolidation.instance import Consolidation
from joinery.decisions.scheduling.constraints.budgets import Coverage
from joinery.decisions.scheduling.firstfit.pending import must_move
from joinery.decisions.scheduling.packing import ExistingPlacement, Launch, placed_pods, placements_of
from joinery.decisions.scheduling.problem import WishedLaunch, Wishes
from joinery.decisions.scheduling.solve import Stopwatch, solve_unproven
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.policies import CHEAPEST
from joinery.objects.snapshot.nodes import cordoned
from joinery.objects.snapshot.snapshot import Snapshot


@dataclass(frozen=True)
class SimulatedMoves:
    """``candidates``: those that go. ``existing``, ``launches``: where their pods go. ``stuck``: the names of claims
    whose pods have no other place: they cannot go. A pod that no eviction ends is not looked for a place for: where
    drift takes its node all the same, it stays until its time is over, and is planned then.
    """

    candidates: tuple[Candidate, ...] = ()
    existing: tuple[ExistingPlacement, ...] = ()
    launches: tuple[Launch, ...] = ()
    stuck: frozenset[str] = frozenset()


def simulate(
    problem: DisruptionProblem,
    judged: Candidates,
    retired: Collection[Candidate],
    wishes: Wishes,
    stopwatch: Stopwatch,
) -> SimulatedMoves:
    """Where the pods of these candidates would go. ``wishes``: where they should. Pods that were not tried in time have
    no other place.
    """
    names = {candidate.claim.metadata.name for candidate in retired}
    snapshot = _closed(as_if_retired(problem.packing.snapshot, names), judged)
    options = replace(problem.packing.options, node_size=CHEAPEST)
    asked = replace(problem.packing, snapshot=snapshot, options=options, wishes=wishes, is_by_choice=True)
    packing = solve_unproven(asked, stopwatch=stopwatch).packing
    home = {pod.key: candidate.claim.metadata.name for candidate in retired for pod in candidate.pods}
    # Pods that tolerate every taint are let onto closed nodes too, and nodes without a Node yet cannot be closed.
    open_to_moves = (placement for placement in packing.existing if placement.node in judged.destinations)
    placed = set(placed_pods(open_to_moves, packing.launches))
    budgets = Coverage(problem.packing.snapshot.disruption_budgets)
    return SimulatedMoves(
        candidates=tuple(retired),
        existing=tuple(placements_of(packing.existing, home)),
        launches=tuple(launch for launch in packing.launches if not home.keys().isdisjoint(launch.pods)),
        stuck=frozenset(
            candidate.claim.metadata.name
            for candidate in retired
            for pod in candidate.pods
            if pod.key not in placed and must_move(pod, budgets, problem.packing.snapshot.now)
        ),
    )


def without_stuck(result: SimulatedMoves) -> SimulatedMoves:
    """The simulation without the candidates that are stuck, nor those that share a launch with them."""
    home = {pod.key: candidate.claim.metadata.name for candidate in result.candidates for pod in candidate.pods}
    stuck, before = set(result.stuck), -1
    while len(stuck) != before:
        before = len(stuck)
        for launch in result.launches:
            sharing = {home[pod] for pod in launch.pods if pod in home}
            stuck |= sharing if sharing & stuck else set()
    going = {pod for pod, name in home.items() if name not in stuck}
    return SimulatedMoves(
        candidates=tuple(one for one in result.candidates if one.claim.metadata.name not in stuck),
        existing=tuple(placements_of(result.existing, going)),
        launches=tuple(launch for launch in result.launches if not going.isdisjoint(launch.pods)),
        stuck=frozenset(stuck),
    )


def idle(model: ConsolidationModel, result: SimulatedMoves) -> Iterator[Candidate]:
    """Empty nodes that are free of charge, so that the optimiser sees no gain, and that the simulation has no use for.

    They go as well: a reservation has others to serve, and what nobody knows the price of costs something all the same.
    """
    going = {candidate.claim.metadata.name for candidate in result.candidates}
    empty = left_empty(model, going, {placement.node for placement in result.existing})
    return (candidate for candidate in empty if candidate.price < NEGLIGIBLE)


def left_empty(model: ConsolidationModel, going: Container[str], filled: Container[str]) -> Iterator[Candidate]:
    """Empty nodes that nothing is moved to. ``going``: names of claims; ``filled``: of nodes."""
    for candidate in filter(None, model.candidates):
        is_idle = DisruptionReason.EMPTY in candidate.reasons and not candidate.pods
        if is_idle and candidate.claim.metadata.name not in going and candidate.view.node not in filled:
            yield candidate


def _closed(snapshot: Snapshot, judged: Candidates) -> Snapshot:
    """The snapshot, in which nodes that may not receive moved pods take no pods at all."""
    nodes = tuple(
        node if node.metadata.name in judged.destinations or node.spec.unschedulable else cordoned(node)
        for node in snapshot.nodes
    )
    return replace(snapshot, nodes=nodes)


def wishes_of(model: ConsolidationModel, choice: Consolidation) -> Wishes:
    """Where the optimiser put pods like these.

    Pods of the same node follow each other, so that those for which new nodes are bought come from few old ones.
    """
    nodes: dict[str, str] = {}
    moving: list[list[str]] = [[] for _ in choice.inflow]
    for item, index in sorted(model.pods):
        if not choice.keep[index]:
            moving[item] += model.pods[item, index]
    for item, pods in enumerate(moving):
        for index in choice.inflow[item].nonzero()[0]:
            count = int(choice.inflow[item, index])
            nodes |= dict.fromkeys(pods[:count], model.nodes[index].node)
            del pods[:count]
    launches = []
    for pattern in choice.new:
        for _ in range(pattern.copies):
            dealt = []
            for item in np.flatnonzero(pattern.counts):
                count = int(pattern.counts[item])
                dealt.append((model.domains[item], tuple(moving[item][:count])))
                del moving[item][:count]
            launches.append(WishedLaunch(*model.new[pattern.bin_type - len(model.nodes)], tuple(dealt)))
    return Wishes(nodes, tuple(launches))
