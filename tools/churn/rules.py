"""Rules of consolidation: what each of them makes of one moment of the cluster."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from joinery.decisions.disruption.candidates import candidates
from joinery.decisions.disruption.decide import decide
from joinery.decisions.disruption.decision import DecidedCommand
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.decisions.disruption.validation.budget_check import BudgetCheck
from joinery.decisions.scheduling.packing import ExistingPlacement, Launch
from joinery.objects.karpenter.disruption import DisruptionReason


@dataclass(frozen=True, kw_only=True)
class Command:
    """Nodes that go together.

    retire, launches   names of NodeClaims that go, and what is bought before they do
    existing           where pods would go on nodes that stay
    savings            $/h
    moves              dollars that its evictions count as, by the product's prices
    """

    reason: DisruptionReason
    retire: tuple[str, ...]
    launches: tuple[Launch, ...]
    existing: tuple[ExistingPlacement, ...]
    savings: float
    moves: float


class Rule(Protocol):
    """``validation``: seconds after which a decision is looked at once more before it begins; 0 for at once.

    ``steers``: whether new nodes are kept for the pods that they were bought for.
    """

    validation: int
    steers: bool

    def decide(self, problem: DisruptionProblem) -> Sequence[Command]:
        """What begins now, or is to be validated."""
        ...

    def validated(self, commands: Sequence[Command], problem: DisruptionProblem) -> Sequence[Command]:
        """Those of the commands that are still right."""
        ...


class Never:
    """No node ever goes."""

    validation, steers = 0, True

    def decide(self, problem: DisruptionProblem) -> Sequence[Command]:
        return ()

    def validated(self, commands: Sequence[Command], problem: DisruptionProblem) -> Sequence[Command]:
        return commands


class WhenEmpty(Never):
    """Empty nodes go, and no others: what ``consolidationPolicy: WhenEmpty`` comes to."""

    def decide(self, problem: DisruptionProblem) -> Sequence[Command]:
        judged = candidates(problem)
        budgets = BudgetCheck(problem, judged.nodes)
        commands = []
        for candidate in judged.candidates:
            name, reason = candidate.claim.metadata.name, DisruptionReason.EMPTY
            command = DecidedCommand(reason=reason, message="", retire=(name,), savings=candidate.price)
            if reason in candidate.reasons and not budgets.objection(command):
                budgets.take(command)
                commands.append(_of(command))
        return commands


class Joinery(Never):
    """``disruption.decide``, as the disruption door asks it."""

    def decide(self, problem: DisruptionProblem) -> Sequence[Command]:
        return [_of(command) for command in decide(problem).commands]


def _of(command: DecidedCommand) -> Command:
    return Command(
        reason=command.reason,
        retire=command.retire,
        launches=command.launches,
        existing=command.existing,
        savings=command.savings,
        moves=command.move_price,
    )
