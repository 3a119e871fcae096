"""May a disruption command start, and may it still? Both say of each rejected command why not.

- ``StartRules.startable`` is the end of every plan in ``decide``: commands repay their moves, verification agrees, pods
  keep what they prefer, and NodePools let them start.
- ``still_startable`` is asked before they begin. A decision takes up to minutes. Meanwhile somebody may have stopped
  disruption or protected a node or a pod, a budget of pods may be used up, and a node that broke or was interrupted
  counts against the budgets of its NodePool. So what others may have changed is asked again, in the cluster as it is
  now: verification, the rules for candidates, budgets (Karpenter disruption, validation). Karpenter waits fifteen
  seconds and simulates once more; here no run waits.
"""

from collections.abc import Callable, Iterable, Sequence

from joinery.decisions.disruption.candidates import Candidates, candidates
from joinery.decisions.disruption.consolidation.grouping import is_worth_it
from joinery.decisions.disruption.decision import DecidedCommand, Rejection, RejectionCause, StayingNode, Validation
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.decisions.disruption.validation.balance import approved
from joinery.decisions.disruption.validation.budget_check import admit
from joinery.decisions.disruption.validation.preferences import agreeable
from joinery.decisions.disruption.validation.replacements import Replacements
from joinery.decisions.disruption.validation.verified import verified, violations_of
from joinery.decisions.optimizer.effort import Effort
from joinery.decisions.verification.violation import ViolationCode
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.objections import Objection, ObjectionCode
from joinery.objects.snapshot.snapshot import Snapshot

#: States on the way that are checked, where rules over pods might hold in the last one only.
_STATES = 12
#: What may hold in another order of the commands, or without some of them.
_OF_THE_ORDER = frozenset({ViolationCode.LIMITS, ViolationCode.ON_DEMAND_SHARE})
#: Objections that pass by themselves. They count as budgets, and not as a node that has changed.
_KEPT_FOR_NOW = frozenset({ObjectionCode.NOMINATED, ObjectionCode.STOPPED})


class StartRules:
    """The rules for commands of one decision, asked in the snapshot that it is made from.

    ``has_limits``: whether any NodePool has limits. ``has_shares``: whether any has a share on demand.
    """

    def __init__(self, problem: DisruptionProblem, found: Candidates, effort: Effort) -> None:
        self._problem, self._found, self._effort = problem, found, effort
        self._candidates = {candidate.claim.metadata.name: candidate for candidate in found.candidates}
        self._replacements = Replacements(problem)
        self.has_shares = bool(problem.packing.snapshot.pool_shares)
        self.has_limits = any(pool.spec.limits for pool in problem.packing.snapshot.node_pools)

    def startable(self, commands: Iterable[DecidedCommand], *, has_rules: bool) -> Validation:
        """Those of a plan's commands that may start now. What is not worth its moves is left out without a rejection.

        ``has_rules``: whether more than room and requirements decides where pods may be.
        """
        worthwhile = self._worthwhile(commands)
        right = self._verified(worthwhile.commands, has_rules=has_rules, is_whole=True)
        liked = agreeable(self._problem.packing, right.commands, is_late=self._effort.is_late)
        balanced = approved(liked.commands, self._problem, self._found)
        admitted = admit(balanced.commands, self._problem, self._found.nodes)
        answers = [worthwhile, right, liked, balanced, admitted]
        if len(admitted.commands) != len(liked.commands):
            # What Balanced or a budget left out might have made room under a limit.
            answers.append(self._verified(admitted.commands, has_rules=has_rules))
        rejected = tuple(rejection for answer in answers for rejection in answer.rejected)
        return Validation(answers[-1].commands, rejected)

    def _worthwhile(self, commands: Iterable[DecidedCommand]) -> Validation:
        """The commands that repay their moves, and may replace spot nodes as they do."""
        worthwhile: list[DecidedCommand] = []
        rejected: list[Rejection] = []
        for command in commands:
            members = [self._candidates[name] for name in command.retire]
            if not is_worth_it(command, members):
                continue
            limited = self._replacements.affordable(command, members)
            if objection := self._replacements.objection(limited, members):
                rejected.append(Rejection(command, RejectionCause.REPLACEMENT, objection))
            else:
                worthwhile.append(limited)
        return Validation(tuple(worthwhile), tuple(rejected))

    def _verified(self, commands: Sequence[DecidedCommand], *, has_rules: bool, is_whole: bool = False) -> Validation:
        """The commands that the independent check agrees with, one after another.

        ``is_whole``: these are all of a plan, so that what does not hold is a mistake. Of a part of them one may fail
        because a command that makes room under a limit is missing.

        Where no rule over pods and no limit is in the cluster, room is all that they share, and the last state tells of
        all. What does not hold in its turn is tried once more after all others: they may make room under a limit.
        """
        packing, is_late = self._problem.packing, self._effort.is_late
        buys = any(command.launches for command in commands)
        states = _STATES if has_rules or self.has_shares or (self.has_limits and buys) else 1
        checked = verified(packing, commands, packing.snapshot, states=states, is_late=is_late)
        if checked.commands and checked.rejected and not is_late():
            last = (*checked.commands, *(rejection.command for rejection in checked.rejected))
            checked = verified(packing, last, packing.snapshot, states=states, is_late=is_late)
        if not is_whole:
            return checked
        return Validation(checked.commands, tuple(self._blamed(one, checked.commands) for one in checked.rejected))

    def _blamed(self, rejection: Rejection, valid: Sequence[DecidedCommand]) -> Rejection:
        """The rejection as a mistake, if the command breaks more than a limit or a share on demand, for which there may
        be room in no order of the commands.
        """
        if rejection.cause is RejectionCause.TIME or self._effort.is_late():
            return rejection
        violations = violations_of(self._problem.packing, [*valid, rejection.command])
        is_mistake = any(violation.code not in _OF_THE_ORDER for violation in violations)
        return Rejection(rejection.command, RejectionCause.MISTAKE, rejection.objection) if is_mistake else rejection


def nodes_of(rejection: Rejection) -> Iterable[StayingNode]:
    """The nodes of a command that may not start."""
    command, objection, reason = rejection.command, rejection.objection, rejection.command.reason
    is_share = objection.code is ObjectionCode.ON_DEMAND_SHARE
    if rejection.cause in (RejectionCause.SCHEDULING, RejectionCause.MISTAKE) and not is_share:
        text = f"its command does not pass the check of all rules: {objection}"
        return [StayingNode(name, Objection(objection.code, text)) for name in command.retire]
    return [StayingNode(name, objection, reason) for name in command.retire]


def still_startable(
    commands: Sequence[DecidedCommand],
    problem: DisruptionProblem,
    decided: Snapshot,
    *,
    is_late: Callable[[], bool] = lambda: False,
) -> Validation:
    """Those of a decision's commands that may still start, without pods that have ended.

    ``problem``: of the decision, with the snapshot of now. ``decided``: the snapshot that it was made from.
    """
    right = verified(problem.packing, commands, decided, is_late=is_late)
    allowed = allowed_now(right.commands, problem)
    return Validation(allowed.commands, (*right.rejected, *allowed.rejected))


def allowed_now(commands: Sequence[DecidedCommand], problem: DisruptionProblem) -> Validation:
    """Those that the rules for candidates and the budgets of NodePools allow, asked in their order."""
    found = candidates(problem)
    unchanged = _of_candidates(commands, found)
    admitted = admit(unchanged.commands, problem, found.nodes)
    rejected = {one.command.retire: one for one in (*unchanged.rejected, *admitted.rejected)}
    in_order = (rejected[command.retire] for command in commands if command.retire in rejected)
    return Validation(admitted.commands, tuple(in_order))


def _of_candidates(commands: Iterable[DecidedCommand], found: Candidates) -> Validation:
    """The commands all of whose nodes may still go for their reason."""
    reasons = {candidate.claim.metadata.name: candidate.reasons for candidate in found.candidates}
    # The first objection to a node is the one that counts.
    staying = {node.node_claim: node.objection for node in reversed(found.staying)}

    def may_go(name: str, reason: DisruptionReason) -> bool:
        may = reasons.get(name, frozenset())
        # If drift is the only reason of a node, its pods may be evicted for drift alone.
        return bool(may if reason is DisruptionReason.DRIFTED else may - {DisruptionReason.DRIFTED})

    valid: list[DecidedCommand] = []
    rejected: list[Rejection] = []
    for command in commands:
        stays = next((name for name in command.retire if not may_go(name, command.reason)), None)
        if stays is None:
            valid.append(command)
            continue
        why = staying.get(stays) or Objection(ObjectionCode.CHANGED, "it is no candidate any more")
        cause = RejectionCause.BUDGET if why.code in _KEPT_FOR_NOW else RejectionCause.CHURN
        rejected.append(Rejection(command, cause, Objection(why.code, f"{stays} stays: {why}")))
    return Validation(tuple(valid), tuple(rejected))
