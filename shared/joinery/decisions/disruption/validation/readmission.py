"""Which commands may still begin, by the rules for candidates and the limits of NodePools.

A decision takes up to minutes. Meanwhile somebody may have stopped disruption or protected a node or a pod, a budget of
pods may be used up, and a node that broke or was interrupted counts against the budgets of its NodePool. So whoever
begins commands asks all of it again, in the cluster as it is now (Karpenter disruption, validation). Where the moved
pods would go is checked by ``disruption.validation.verified``.
"""

from collections.abc import Iterable

from joinery.decisions.disruption.candidates import Candidates, candidates
from joinery.decisions.disruption.decision import DecidedCommand, ObjectionCode
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.decisions.disruption.validation.budget_check import BudgetCheck
from joinery.decisions.disruption.validation.verified import Dropped, Failure, Validation
from joinery.objects.karpenter.disruption import DisruptionReason

#: The node is as it was: it is only not to go just now.
_WAITS = frozenset({ObjectionCode.NOMINATED, ObjectionCode.STOPPED})


def readmit(commands: Iterable[DecidedCommand], problem: DisruptionProblem) -> Validation:
    """Ask about the commands in their order. ``problem``: of the decision, with the snapshot of now."""
    judged = candidates(problem)
    rules = _Rules(judged)
    budgets = BudgetCheck(problem, judged.nodes)
    valid: list[DecidedCommand] = []
    dropped: list[Dropped] = []
    for command in commands:
        if objection := rules.objection(command):
            dropped.append(objection)
        elif why := budgets.objection(command):
            dropped.append(Dropped(command, why, Failure.BUDGET))
        else:
            budgets.take(command)
            valid.append(command)
    return Validation(tuple(valid), tuple(dropped))


class _Rules:
    """The rules for candidates, asked about commands."""

    def __init__(self, judged: Candidates) -> None:
        self._reasons = {candidate.claim.metadata.name: candidate.reasons for candidate in judged.candidates}
        self._held = {held.node_claim: held for held in reversed(judged.held)}

    def objection(self, command: DecidedCommand) -> Dropped | None:
        """Why one of its nodes may not go any more; None if all may."""
        stays = next((name for name in command.retire if not self._may_go(name, command.reason)), "")
        if not stays:
            return None
        held = self._held.get(stays)
        why = f"{stays} stays: {held.message if held else 'it is no candidate any more'}"
        return Dropped(command, why, Failure.BUDGET if held and held.code in _WAITS else Failure.CHURN)

    def _may_go(self, name: str, reason: DisruptionReason) -> bool:
        reasons = self._reasons.get(name, frozenset())
        # A node that only drift may disrupt has pods that nothing else may.
        return bool(reasons if reason is DisruptionReason.DRIFTED else reasons - {DisruptionReason.DRIFTED})
