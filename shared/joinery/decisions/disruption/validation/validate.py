"""Review: which commands of a trial may start now, and why the others may not.

They repay their moves, the check of all rules agrees, pods keep what they prefer, and NodePools let them start.
"""

from collections.abc import Iterable, Mapping, Sequence

from joinery.decisions.disruption.candidates import Candidate, Candidates
from joinery.decisions.disruption.consolidation.grouping import is_worth_it
from joinery.decisions.disruption.consolidation.model import Model
from joinery.decisions.disruption.decision import DecidedCommand, ObjectionCode, Refused, StayingNode
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.decisions.disruption.validation.balance import approved
from joinery.decisions.disruption.validation.budget_check import admit
from joinery.decisions.disruption.validation.preferences import agreeable
from joinery.decisions.disruption.validation.replacements import Replacements
from joinery.decisions.disruption.validation.verified import OUT_OF_TIME, Failure, validate, violations_of
from joinery.decisions.optimizer.effort import Effort
from joinery.decisions.verification.violation import ViolationCode
from joinery.objects.karpenter.disruption import DisruptionReason

_STATES = 12
"""States on the way that are checked, where rules over pods might hold in the last one only."""


_FOR_NOW = (ObjectionCode.BUDGET, ObjectionCode.POD_DISRUPTION_BUDGET, ObjectionCode.STOPPED, ObjectionCode.CANARY)
"""Why a command is held that may start in a later decision, as it is."""


class Review:
    """What became of the commands of all trials of one decision.

    ``holds``: by name of the claim, why a candidate stays, if it does after all: the first reason that came up.
    ``refused``: by their claims' names, commands that the check found wrong. ``is_budget_exceeded``,
    ``is_purchase_refused``, ``are_companions_refused``: whether commands were held because they exceed a budget,
    because of what they buy, or because of nodes that go along with drifted ones; then a plan of smaller ones, of those
    that buy nothing, or of drifted nodes alone, may do more.
    ``unplaced``: names of claims whose pods a trial, or the check, has found no place for; ``is_limited``: whether
    limits of NodePools may be why.
    """

    def __init__(
        self, problem: DisruptionProblem, judged: Candidates, by_name: Mapping[str, Candidate], effort: Effort
    ) -> None:
        self._problem, self._judged, self._by_name, self._effort = problem, judged, by_name, effort
        self._replacements = Replacements(problem)
        self.holds: dict[str, StayingNode] = {}
        self.refused: dict[tuple[str, ...], Refused] = {}
        self.unplaced: set[str] = set()
        self.is_limited = any(pool.spec.limits for pool in problem.packing.snapshot.node_pools)
        self.is_budget_exceeded = self.is_purchase_refused = self.are_companions_refused = False

    def hold(self, holds: Iterable[StayingNode]) -> None:
        """Note why these stay."""
        for held in holds:
            self.holds.setdefault(held.node_claim, held)

    def waits(self, command: DecidedCommand) -> bool:
        """Whether limits alone keep the command from starting, so that it may start soon."""
        return any(name in self.holds and self.holds[name].code in _FOR_NOW for name in command.retire)

    def startable(self, commands: Iterable[DecidedCommand], model: Model) -> tuple[DecidedCommand, ...]:
        """Those of a trial's commands that may start now."""
        right = self._agreeable(self._right(self._worthwhile(commands), model, is_whole=True))
        admitted = self._admitted(right)
        # Budgets may have held what would have made room under a limit.
        return admitted if len(admitted) == len(right) else self._right(admitted, model)

    def _worthwhile(self, commands: Iterable[DecidedCommand]) -> tuple[DecidedCommand, ...]:
        """The commands that repay their moves, and may replace spot nodes as they do."""
        worthwhile = []
        for command in commands:
            members = [self._by_name[name] for name in command.retire]
            if not is_worth_it(command, members):
                continue
            limited = self._replacements.affordable(command, members)
            if objection := self._replacements.objection(limited, members):
                self.is_purchase_refused = True
                self.hold(StayingNode(name, ObjectionCode.POLICY, objection, command.reason) for name in command.retire)
            else:
                worthwhile.append(limited)
        return tuple(worthwhile)

    def _right(
        self, commands: Sequence[DecidedCommand], model: Model, *, is_whole: bool = False
    ) -> tuple[DecidedCommand, ...]:
        """The commands that the independent check agrees with, one after another.

        ``is_whole``: these are all of a plan, so that what does not hold is a mistake. A part of them may be wrong
        because what would have made room under a limit is not among them.

        Where no rule over pods and no limit is in the cluster, room is all that they share, and the last state tells of
        all. What does not hold in its turn is tried once more after all others: they may make room under a limit.
        """
        packing = self._problem.packing
        buys = any(command.launches for command in commands)
        states = _STATES if model.is_strict or (self.is_limited and buys) else 1
        is_late = self._effort.is_late
        checked = validate(packing, commands, packing.snapshot, states=states, is_late=is_late)
        if checked.valid and checked.dropped and not is_late():
            last = (*checked.valid, *(dropped.command for dropped in checked.dropped))
            checked = validate(packing, last, packing.snapshot, states=states, is_late=is_late)
        for dropped in checked.dropped:
            command, why = dropped.command, dropped.why
            if dropped.failure is Failure.TIME:
                self.hold(StayingNode(name, ObjectionCode.TIME_LIMIT, why, command.reason) for name in command.retire)
                continue
            message = f"its command does not pass the check of all rules: {why}"
            self.hold(StayingNode(name, ObjectionCode.NO_PLACE, message) for name in command.retire)
            self.unplaced.update(command.retire)
            if is_whole and not is_late() and self._is_mistake(command, checked.valid):
                self.refused[command.retire] = Refused(command, why)
        return checked.valid

    def _agreeable(self, commands: Sequence[DecidedCommand]) -> Sequence[DecidedCommand]:
        """The commands after which pods have no less of what they prefer than before."""
        judged = agreeable(self._problem.packing, commands, is_late=self._effort.is_late)
        for command, why in judged.dropped:
            code = ObjectionCode.TIME_LIMIT if why == OUT_OF_TIME else ObjectionCode.PREFERENCE
            self.hold(StayingNode(name, code, why, command.reason) for name in command.retire)
        return judged.commands

    def _is_mistake(self, command: DecidedCommand, valid: Sequence[DecidedCommand]) -> bool:
        """Whether the command breaks more than a limit, for which there may be room in no order of the commands."""
        violations = violations_of(self._problem.packing, [*valid, command])
        return any(violation.code is not ViolationCode.LIMITS for violation in violations)

    def _admitted(self, commands: Sequence[DecidedCommand]) -> tuple[DecidedCommand, ...]:
        """The commands that Balanced NodePools and budgets let start now."""
        balanced = approved(commands, self._problem, self._judged)
        self.are_companions_refused |= any(held.disruption is DisruptionReason.DRIFTED for held in balanced.held)
        admitted = admit(balanced.commands, self._problem, self._judged.nodes)
        self.is_budget_exceeded = self.is_budget_exceeded or bool(admitted.held)
        self.is_purchase_refused |= any(held.code is ObjectionCode.CANARY for held in admitted.held)
        self.hold((*balanced.held, *admitted.held))
        return admitted.commands
