"""Rules of consolidation: what each of them makes of one moment of the cluster."""

from collections.abc import Sequence
from typing import Protocol

from joinery.decisions.disruption.candidates import candidates
from joinery.decisions.disruption.decide import decide
from joinery.decisions.disruption.decision import DecidedCommand
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.decisions.disruption.validation.budget_check import BudgetCheck
from joinery.objects.karpenter.disruption import DisruptionReason


class Rule(Protocol):
    """``validation``: seconds after which a decision is looked at once more before it begins; 0 for at once.

    ``steers``: whether new nodes are kept for the pods that they were bought for.
    """

    validation: int
    steers: bool

    def decide(self, problem: DisruptionProblem) -> Sequence[DecidedCommand]:
        """What begins now, or is to be validated."""
        ...

    def validated(self, commands: Sequence[DecidedCommand], problem: DisruptionProblem) -> Sequence[DecidedCommand]:
        """Those of the commands that are still right."""
        ...


class Never:
    """No node ever goes."""

    validation, steers = 0, True

    def decide(self, problem: DisruptionProblem) -> Sequence[DecidedCommand]:
        return ()

    def validated(self, commands: Sequence[DecidedCommand], problem: DisruptionProblem) -> Sequence[DecidedCommand]:
        return commands


class WhenEmpty(Never):
    """Empty nodes go, and no others: what ``consolidationPolicy: WhenEmpty`` comes to."""

    def decide(self, problem: DisruptionProblem) -> Sequence[DecidedCommand]:
        judged = candidates(problem)
        budgets = BudgetCheck(problem, judged.nodes)
        commands = []
        for candidate in judged.candidates:
            name, reason = candidate.claim.metadata.name, DisruptionReason.EMPTY
            command = DecidedCommand(reason=reason, message="", retire=(name,), savings=candidate.price)
            if reason in candidate.reasons and not budgets.objection(command):
                budgets.take(command)
                commands.append(command)
        return commands


class Joinery(Never):
    """``disruption.decide``, as the disruption door asks it."""

    def decide(self, problem: DisruptionProblem) -> Sequence[DecidedCommand]:
        return decide(problem).commands
