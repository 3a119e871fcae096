"""``consolidationPolicy: Balanced``: whether what a command saves is in proportion to what it disturbs.

A command takes a share of what a NodePool costs, and a share of what it would be to disturb the whole pool. Its
**score** is the first over the second. Every Balanced pool whose nodes it takes must find a score of at least one half;
pools of other policies are not asked (Karpenter disruption, `Balanced`, with k = 2).

What it would be to disturb a node is 1, and what evicting its pods costs on top (Karpenter `RescheduleDisruptionCost`):
so a node is never disturbed for nothing. Of a node that is no candidate all pods count that are no DaemonSet's, as
Karpenter counts there. A command across pools is credited to each by its share of the price of the nodes that go.

Empty nodes are given up under every policy, so ``Empty`` commands are not asked about, nor are drifted nodes. A node
that goes along with drifted ones is, with its share of what the command saves.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from joinery.decisions.disruption.candidates import Candidate, Candidates
from joinery.decisions.disruption.decision import (
    THRESHOLD,
    Balance,
    DecidedCommand,
    Rejection,
    RejectionCause,
    Validation,
)
from joinery.decisions.disruption.moves import eviction_cost
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.objections import Objection, ObjectionCode
from joinery.objects.snapshot.nodes import NodeView
from joinery.objects.snapshot.pods import comes_with_node, priorities_of

POLICY = "Balanced"
_DRIFTED = DisruptionReason.DRIFTED


def approved(commands: Iterable[DecidedCommand], problem: DisruptionProblem, judged: Candidates) -> Validation:
    """The commands to which every Balanced pool agrees, with what these say of them.

    ``judged``: all nodes of the problem.
    """
    balances = Balances(problem, judged)
    chosen: list[DecidedCommand] = []
    rejected: list[Rejection] = []
    for command in commands:
        asked = balances.of(command)
        if objection := _objection(asked):
            rejected.append(Rejection(command, RejectionCause.BALANCE, objection))
        else:
            chosen.append(replace(command, balances=asked))
    return Validation(tuple(chosen), tuple(rejected))


class Balances:
    """Asks the Balanced pools of one problem about commands. Its totals are computed once (Karpenter: per pass)."""

    def __init__(self, problem: DisruptionProblem, judged: Candidates) -> None:
        snapshot = problem.packing.snapshot
        self._priorities = priorities_of(snapshot.priority_classes)
        self._balanced = {
            pool.metadata.name
            for pool in snapshot.node_pools
            if pool.spec.disruption.consolidation_policy == POLICY and not pool.is_static
        }
        self._candidates = {candidate.claim.metadata.name: candidate for candidate in judged.candidates}
        self._costs: dict[str, float] = defaultdict(float)
        self._disturbances: dict[str, float] = defaultdict(float)
        for view in judged.nodes if self._balanced else ():
            if view.pool in self._balanced:
                self._costs[view.pool] += judged.prices.get(view.claim, 0.0)
                self._disturbances[view.pool] += self._disturbance(view)

    def of(self, command: DecidedCommand) -> tuple[Balance, ...]:
        """The command in the eyes of every Balanced pool that is asked about it, by their names."""
        if command.reason is DisruptionReason.EMPTY:
            return ()
        taken = [self._candidates[name] for name in command.retire if name in self._candidates]
        price = sum(candidate.price for candidate in taken)
        if command.reason is _DRIFTED:
            taken = [one for one in taken if _DRIFTED not in one.reasons and not one.is_empty]
        pools = sorted({candidate.view.pool for candidate in taken} & self._balanced)
        return tuple(self._balance(pool, taken, command.savings, price) for pool in pools)

    def objection(self, command: DecidedCommand) -> Objection | None:
        """Why a Balanced pool does not agree, as a sentence about it."""
        return _objection(self.of(command))

    def _balance(self, pool: str, taken: Iterable[Candidate], savings: float, price: float) -> Balance:
        own = [candidate for candidate in taken if candidate.view.pool == pool]
        credited = savings * sum(candidate.price for candidate in own) / price if price else 0.0
        disturbed = sum(self._disturbance(candidate.view) for candidate in own)
        cost, whole = self._costs[pool], self._disturbances[pool]
        if cost <= 0 or whole <= 0:
            return Balance(pool, 0.0, 0.0)
        return Balance(pool, credited / cost, disturbed / whole)

    def _disturbance(self, view: NodeView) -> float:
        candidate = self._candidates.get(view.claim)
        pods = candidate.pods if candidate else [pod for pod in view.pods if not comes_with_node(pod)]
        return 1.0 + sum(max(0.0, eviction_cost(pod, self._priorities)) for pod in pods)


def _objection(balances: Iterable[Balance]) -> Objection | None:
    """Of the first pool that does not agree."""
    refused = next((balance for balance in balances if not balance.is_approved), None)
    if refused is None:
        return None
    why = f"NodePool {refused.pool} is Balanced: {refused}, and it takes {THRESHOLD:g}"
    return Objection(ObjectionCode.POLICY, why)
