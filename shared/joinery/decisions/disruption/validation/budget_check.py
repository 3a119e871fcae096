"""Which commands of a decision may start now, by budgets and rates of NodePools, rates of workloads, trials of images.

Commands are asked about in their order. One is admitted only if every NodePool that it takes nodes from has room for
all of them, for the command's reason. What an admitted command takes counts against the commands after it, whatever
their reasons, because a node that goes uses up every budget (``lifecycle.state.budgets``). A command that has no room
does not hold up those after it: each is right by itself. One that would make a share on demand short is asked about
after all others: these may bring the nodes that it takes away.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from joinery.decisions.disruption.decision import DecidedCommand, Rejection, RejectionCause, Validation
from joinery.decisions.disruption.gangs import RunningGangs
from joinery.decisions.disruption.pool_shares import RunningShares
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.decisions.disruption.validation.canaries import CanaryLimit
from joinery.decisions.disruption.validation.eviction_rates import EvictionRates
from joinery.decisions.lifecycle.pools.canary import ImageTrials
from joinery.decisions.lifecycle.state.budgets import Allowance, PoolNodes, allowance, pool_nodes
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.objections import Objection, ObjectionCode
from joinery.objects.snapshot.claims import DRIFTED
from joinery.objects.snapshot.nodes import NodeView


def admit(commands: Sequence[DecidedCommand], problem: DisruptionProblem, nodes: Iterable[NodeView]) -> Validation:
    """Ask about each command in turn. ``nodes``: all of the problem's snapshot (``Candidates.nodes``)."""
    views = tuple(nodes)
    budgets, shares = BudgetCheck(problem, views), RunningShares(problem.packing.snapshot, views)
    admitted: list[DecidedCommand] = []
    rejected: list[Rejection] = []
    too_early: list[DecidedCommand] = []

    def ask(command: DecidedCommand) -> None:
        if objection := budgets.objection(command) or shares.objection(command):
            rejected.append(Rejection(command, RejectionCause.BUDGET, objection))
        else:
            budgets.take(command)
            shares.take(command)
            admitted.append(command)

    for command in commands:
        if shares.objection(command):
            too_early.append(command)
        else:
            ask(command)
    for command in too_early:
        ask(command)
    return Validation(tuple(admitted), tuple(rejected))


class BudgetCheck:
    """What the budgets still allow, while commands are taken one after another."""

    def __init__(self, problem: DisruptionProblem, nodes: Iterable[NodeView]) -> None:
        views = tuple(nodes)
        self._snapshot = problem.packing.snapshot
        self._is_bound = not problem.options.ignore_budgets
        self._pool_of = {view.claim: view.pool for view in views if view.claim}
        drifted = (claim for claim in self._snapshot.managed_claims if claim.is_true(DRIFTED))
        self._drifted = {claim.metadata.name for claim in drifted}
        self._counts = pool_nodes(views)
        self._evictions = EvictionRates(self._snapshot, views)
        self._canaries = CanaryLimit(problem)
        self._gangs = RunningGangs(self._snapshot)
        self._taken: Counter[str] = Counter()
        self._allowances: dict[tuple[str, DisruptionReason], Allowance] = {}

    def objection(self, command: DecidedCommand) -> Objection | None:
        """Why the command may not start now: what a NodePool, a workload, the trial of an image, or a gang says."""
        if not self._is_bound:
            return None
        return (
            self._pool_objection(command)
            or self._evictions.objection(command)
            or self._canaries.objection(command)
            or (self._gangs.objection(command.pods) if command.reason is DisruptionReason.UNDERUTILIZED else None)
        )

    @property
    def trials(self) -> ImageTrials:
        """The trials of images that bind commands."""
        return self._canaries.trials

    def _pool_objection(self, command: DecidedCommand) -> Objection | None:
        """Which NodePool has no room for the command."""
        for reason, names in self._asked(command):
            for pool, count in Counter(self._pool_of.get(name, "") for name in names).items():
                most = self._allowance(pool, reason)
                left = most.allowed - self._taken[pool]
                if count > left:
                    before = f"; commands before it take {self._taken[pool]}" if self._taken[pool] else ""
                    asked = f"; its command takes {count}" if count > 1 else ""
                    return Objection(ObjectionCode.BUDGET, f"NodePool {pool}: {most.why}{before}{asked}")
        return None

    def _asked(self, command: DecidedCommand) -> Iterator[tuple[DisruptionReason, Sequence[str]]]:
        """For which reasons budgets have to let which of the command's nodes go.

        A command for drift may take nodes along that have not drifted, because their pods share what is bought. Budgets
        for consolidation protect these as well.
        """
        yield command.reason, command.retire
        if command.reason is DisruptionReason.DRIFTED:
            yield DisruptionReason.UNDERUTILIZED, [name for name in command.retire if name not in self._drifted]

    def left(self, pool: str, reason: DisruptionReason) -> int:
        """How many more nodes of the NodePool may go for the reason; never negative."""
        return max(0, self._allowance(pool, reason).allowed - self._taken[pool])

    def take(self, command: DecidedCommand) -> None:
        """The command starts, so its nodes count from now on."""
        self._taken.update(self._pool_of.get(name, "") for name in command.retire)
        self._evictions.take(command)
        self._gangs.take(command.pods)
        self._canaries.take(command)

    def _allowance(self, pool: str, reason: DisruptionReason) -> Allowance:
        if (pool, reason) not in self._allowances:
            node_pool = self._snapshot.pools_by_name.get(pool)
            nodes = self._counts.get(pool, PoolNodes())
            self._allowances[pool, reason] = (
                allowance(node_pool, reason, nodes, self._snapshot.managed_claims, self._snapshot.now)
                if node_pool
                else Allowance(0, "it is unknown")
            )
        return self._allowances[pool, reason]
