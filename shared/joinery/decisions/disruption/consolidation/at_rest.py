"""Whether a cluster has nothing to gain: asked before anything is compiled, because most clusters are asked again and
again and mostly have nothing.

Sums of resources prove it where nodes are full of what they were bought for (``optimizer.consolidation.room``). Whoever
wants to know what else could be gained has to solve the problem.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from joinery.decisions.disruption.candidates import Candidate, Candidates
from joinery.decisions.disruption.consolidation.model import NEGLIGIBLE, hourly
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.decisions.optimizer.consolidation.room import SumsOfRoom
from joinery.decisions.optimizer.effort import Effort
from joinery.decisions.scheduling.constraints.budgets import Coverage
from joinery.decisions.scheduling.constraints.resources import requests_of
from joinery.decisions.scheduling.constraints.volumes import Volumes
from joinery.decisions.scheduling.firstfit.existing_node import NodeRoom
from joinery.decisions.scheduling.firstfit.pending import must_move
from joinery.decisions.scheduling.pools.builder import build_pools
from joinery.decisions.scheduling.pools.daemonsets import read_daemons
from joinery.decisions.scheduling.pools.market import Axis, offered_by
from joinery.objects.kubernetes.quantity import Resources, total
from joinery.objects.snapshot.nodes import NodeView

#: Nodes of a first look. What they could gain by themselves, all can.
_SAMPLE = 100


def is_at_rest(problem: DisruptionProblem, judged: Candidates, going: Sequence[Candidate], effort: Effort) -> bool:
    """Whether it is proven that no choice among these candidates saves anything, moves considered."""
    if any(candidate.is_drifted or not candidate.pods or candidate.price <= NEGLIGIBLE for candidate in going):
        return False
    cluster = _Cluster.of(problem, judged, going)
    step = max(1, len(cluster.nodes) // _SAMPLE)
    looks = [cluster.nodes[::step], cluster.nodes] if step > 1 else [cluster.nodes]
    return all(cluster.sums(nodes).most_gain(effort.patience()) <= NEGLIGIBLE for nodes in looks)


@dataclass(frozen=True)
class _Cluster:
    """``nodes``: those that may go or receive pods; ``by_claim``: the candidates among them."""

    problem: DisruptionProblem
    judged: Candidates
    nodes: Sequence[NodeView]
    by_claim: dict[str, Candidate]
    budgets: Coverage

    @classmethod
    def of(cls, problem: DisruptionProblem, judged: Candidates, going: Sequence[Candidate]) -> "_Cluster":
        by_claim = {candidate.claim.metadata.name: candidate for candidate in going}
        nodes = [view for view in judged.nodes if view.claim in by_claim or view.node in judged.destinations]
        budgets = Coverage(problem.packing.snapshot.disruption_budgets)
        return cls(problem, judged, nodes, by_claim, budgets)

    def sums(self, nodes: Sequence[NodeView]) -> SumsOfRoom:
        """What these nodes hold, and what can be bought."""
        packing = self.problem.packing
        snapshot = packing.snapshot
        residents = [self._residents(view) for view in nodes]
        daemons = read_daemons(snapshot.daemons, snapshot.daemon_pods)
        axis = Axis.of(residents, (*map(offered_by, packing.kinds), *(view.allocatable for view in nodes)))
        room = NodeRoom(axis, daemons, Volumes(snapshot), {}, {}, {})
        # As if all pods moved: so many may share a new node at most.
        pools, _ = build_pools(packing, axis, daemons, self.judged.nodes, len(snapshot.pods))
        keeping = [0.0 if (it := self.by_claim.get(view.claim)) is None else it.price - hourly(it) for view in nodes]
        free = room.free(nodes)
        free[[view.node not in self.judged.destinations for view in nodes]] = 0
        least = [pool.market.prices[:, pool.columns].min(axis=1, initial=np.inf) for pool in pools]
        sold = [pool.types & np.isfinite(prices) for pool, prices in zip(pools, least, strict=True)]
        return SumsOfRoom(
            keeping=np.array(keeping),
            residents=axis.matrix(residents),
            free=np.maximum(free, 0),
            costs=np.concatenate([np.zeros(0), *(prices[types] for prices, types in zip(least, sold, strict=True))]),
            capacities=np.concatenate(
                [axis.matrix(()), *(it.room[types] for it, types in zip(pools, sold, strict=True))]
            ),
        )

    def _residents(self, view: NodeView) -> Resources:
        """What must have another place if the node goes. Pods whose requests nobody can read keep it from going."""
        candidate, snapshot = self.by_claim.get(view.claim), self.problem.packing.snapshot
        pods = candidate.pods if candidate else ()
        return total(requests_of(snapshot.successor(pod)) for pod in pods if must_move(pod, self.budgets, snapshot.now))
