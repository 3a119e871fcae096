"""Plans that are tried: the whole choice, and smaller ones where commands of larger ones may not start.

A plan is a choice of the optimiser, a simulation in which every pod has a place, and the commands of it that may start
now. The optimiser knows no budgets, no limits and no shares on demand. So where some commands may not start, and never
would, variants of its problem are tried that allow less (``_SMALLER_PLANS``). Each is tried once; ``decide`` takes the
best plan.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from joinery.decisions.disruption.candidates import Candidate, Candidates
from joinery.decisions.disruption.consolidation.choosing import Chosen
from joinery.decisions.disruption.consolidation.grouping import bonds_of, commands_of
from joinery.decisions.disruption.consolidation.model import (
    ConsolidationModel,
    PlanVariant,
    hourly,
    kept_but_must_go,
    within,
)
from joinery.decisions.disruption.consolidation.simulation import (
    SimulatedMoves,
    idle,
    left_empty,
    simulate,
    wishes_of,
    without_stuck,
)
from joinery.decisions.disruption.decision import DecidedCommand, Rejection, RejectionCause, StayingNode
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.decisions.disruption.validation.budget_check import BudgetCheck
from joinery.decisions.disruption.validation.eligible import room_for
from joinery.decisions.disruption.validation.validate import StartRules, nodes_of
from joinery.decisions.optimizer.consolidation.choice import consolidate
from joinery.decisions.optimizer.consolidation.instance import Consolidation
from joinery.decisions.optimizer.effort import Effort
from joinery.decisions.scheduling.solve import Stopwatch
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.objections import Objection, ObjectionCode

#: Simulations at most: each leaves out nodes that cannot go.
_ROUNDS = 8
#: Of nodes that go, in one simulation: a thousand and their check take a tenth of a second, or two.
_PODS_AT_LEAST, _PODS_A_SECOND = 2_000, 2_000
#: What keeps a command from starting that may start in a later decision, as it is.
_FOR_NOW = (ObjectionCode.BUDGET, ObjectionCode.POD_DISRUPTION_BUDGET, ObjectionCode.CANARY)
NO_PLACE = Objection(ObjectionCode.NO_PLACE, "its pods have no other place")
LATE = Objection(
    ObjectionCode.TIME_LIMIT, "time was up before all of its pods had another place; the next decision tries again"
)


@dataclass(frozen=True)
class Attempt:
    """A plan that was tried.

    ``commands``: those that may start now. ``rejected``: the others. ``staying``: nodes that were to go, in the
    order in which that came up.
    """

    commands: tuple[DecidedCommand, ...] = ()
    rejected: tuple[Rejection, ...] = ()
    staying: tuple[StayingNode, ...] = ()


@dataclass(frozen=True)
class Planner:
    """What all plans of one decision are made from.

    ``found``: all nodes; their destinations are those that plans may use. ``rules``: what is asked about commands.
    """

    problem: DisruptionProblem
    found: Candidates
    rules: StartRules
    effort: Effort
    stopwatch: Stopwatch

    @cached_property
    def budgets(self) -> BudgetCheck:
        """What budgets allow while nothing has been taken."""
        return BudgetCheck(self.problem, self.found.nodes)

    def attempts(self, chosen: Chosen) -> Sequence[Attempt]:
        """Plans of the choice, and smaller ones. Nodes that must go do so even where there was no time for a choice."""
        model, choice = chosen.model, chosen.choice
        must_go = [candidate for candidate in chosen.left_out if candidate.is_drifted]
        attempts: list[Attempt] = []
        if chosen.is_rough:
            attempts.append(self._attempt(model, kept_but_must_go(model, choice), must_go))
            if self.effort.is_late():
                return attempts
        attempts.append(self._attempt(model, choice, must_go))
        tried = set[PlanVariant]()
        for is_wanted, variant_of in _SMALLER_PLANS:
            if not self.effort.is_over() and is_wanted(self, attempts):
                variant = variant_of(self, chosen, attempts)
                if variant not in tried:
                    tried.add(variant)
                    attempts.append(self._attempt(model, consolidate(variant.of(model), self.effort)))
        return attempts

    def _attempt(self, model: ConsolidationModel, choice: Consolidation, more: Iterable[Candidate] = ()) -> Attempt:
        """The plan of a choice. ``more``: what is to go besides what it retires."""
        retired = [
            candidate
            for candidate, is_kept in zip(model.candidates, choice.keep, strict=True)
            if candidate is not None and not is_kept
        ]
        in_time, late = self._in_time([*retired, *more])
        simulated, stuck = self._simulated(model, choice, in_time)
        staying = (*(StayingNode(one.claim.metadata.name, LATE) for one in late), *stuck)
        whole = replace(simulated, candidates=(*simulated.candidates, *idle(model, simulated)))
        if not whole.candidates:
            return Attempt(staying=staying)
        commands = commands_of(whole, bonds_of(simulated, model))
        started = self.rules.startable(commands, has_rules=model.is_strict)
        rejected = started.rejected
        unfilled = () if self.effort.is_late() else _not_filled(model, commands, started.commands, rejected)
        if unfilled:
            with_unfilled = (*commands_of(SimulatedMoves(unfilled)), *started.commands)
            started = self.rules.startable(with_unfilled, has_rules=model.is_strict)
            rejected += started.rejected
        nodes = (node for rejection in rejected for node in nodes_of(rejection))
        return Attempt(started.commands, rejected, (*staying, *nodes))

    def _simulated(
        self, model: ConsolidationModel, choice: Consolidation, retired: Sequence[Candidate]
    ) -> tuple[SimulatedMoves, Sequence[StayingNode]]:
        """What becomes of the cluster without these, but for the nodes whose pods have no other place."""
        wishes, staying = wishes_of(model, choice), list[StayingNode]()
        for _ in range(_ROUNDS):
            if not retired:
                break
            result = simulate(self.problem, self.found, retired, wishes, self.stopwatch)
            if not result.stuck:
                return result, staying
            if self.effort.is_late():
                rest = without_stuck(result)
                return rest, [*staying, *(StayingNode(name, LATE) for name in sorted(rest.stuck))]
            staying += [StayingNode(name, NO_PLACE) for name in sorted(result.stuck)]
            retired = [candidate for candidate in retired if candidate.claim.metadata.name not in result.stuck]
        return SimulatedMoves(), staying

    def _in_time(self, retired: Iterable[Candidate]) -> tuple[Sequence[Candidate], Sequence[Candidate]]:
        """As many of these as there is time to find places for, what must go first, then what saves most; and the
        others.
        """
        limit, pods = self.problem.options.time_limit, 0
        if limit is None:
            return list(retired), ()
        in_time, late = list[Candidate](), list[Candidate]()
        for one in sorted(retired, key=lambda it: (not it.is_drifted, hourly(it) - it.price)):
            pods += len(one.pods)
            (late if pods > _PODS_AT_LEAST + _PODS_A_SECOND * limit else in_time).append(one)
        return in_time, late


def filled_by(commands: Iterable[DecidedCommand]) -> frozenset[str]:
    """The nodes that pods are moved to."""
    return frozenset(placement.node for command in commands for placement in command.existing)


def _not_filled(
    model: ConsolidationModel,
    commands: Sequence[DecidedCommand],
    started: Sequence[DecidedCommand],
    rejected: Iterable[Rejection],
) -> tuple[Candidate, ...]:
    """Empty nodes that were to be filled by commands that do not start. They go, unless these only wait."""
    going = {name for command in started for name in command.retire}
    waits = {name for one in rejected if one.objection.code in _FOR_NOW for name in one.command.retire}
    coming = [it for it in commands if going.issuperset(it.retire) or not waits.isdisjoint(it.retire)]
    wanted, filled = filled_by(commands), filled_by(coming)
    return tuple(candidate for candidate in left_empty(model, going, filled) if candidate.view.node in wanted)


# --- smaller plans: when one is tried, and what it allows ---


def _rejected(attempts: Iterable[Attempt], cause: RejectionCause) -> Sequence[Rejection]:
    return [rejection for attempt in attempts for rejection in attempt.rejected if rejection.cause is cause]


def _exceeds_budgets(planner: Planner, attempts: Sequence[Attempt]) -> bool:
    return bool(_rejected(attempts, RejectionCause.BUDGET))


def _buys_what_is_refused(planner: Planner, attempts: Sequence[Attempt]) -> bool:
    budgets = _rejected(attempts, RejectionCause.BUDGET)
    is_on_trial = any(rejection.objection.code is ObjectionCode.CANARY for rejection in budgets)
    return is_on_trial or bool(_rejected(attempts, RejectionCause.REPLACEMENT))


def _takes_others_along_with_drift(planner: Planner, attempts: Sequence[Attempt]) -> bool:
    balanced = _rejected(attempts, RejectionCause.BALANCE)
    return any(rejection.command.reason is DisruptionReason.DRIFTED for rejection in balanced)


def _lacks_room_under_limits(planner: Planner, attempts: Sequence[Attempt]) -> bool:
    return planner.rules.has_limits and bool(_staying_for(ObjectionCode.NO_PLACE, attempts))


def _breaks_shares(planner: Planner, attempts: Sequence[Attempt]) -> bool:
    return planner.rules.has_shares and bool(_staying_for(ObjectionCode.ON_DEMAND_SHARE, attempts))


def _staying_for(code: ObjectionCode, attempts: Iterable[Attempt]) -> frozenset[str]:
    nodes = (node for attempt in attempts for node in attempt.staying)
    return frozenset(node.node_claim for node in nodes if node.objection.code is code)


def _within_budgets(planner: Planner, chosen: Chosen, attempts: Sequence[Attempt]) -> PlanVariant:
    def room(candidate: Candidate) -> int:
        return room_for(candidate, planner.budgets, planner.problem)

    return PlanVariant(within(chosen.model, chosen.choice, room))


def _drifted_within_budgets(planner: Planner, chosen: Chosen, attempts: Sequence[Attempt]) -> PlanVariant:
    def room(candidate: Candidate) -> int:
        return room_for(candidate, planner.budgets, planner.problem) if candidate.is_drifted else 0

    return PlanVariant(within(chosen.model, chosen.choice, room))


def _buying_nothing(planner: Planner, chosen: Chosen, attempts: Sequence[Attempt]) -> PlanVariant:
    """It makes room under a limit, too, for a later decision."""
    return PlanVariant(buys=False)


def _without_what_had_no_place(planner: Planner, chosen: Chosen, attempts: Sequence[Attempt]) -> PlanVariant:
    return _without(_staying_for(ObjectionCode.NO_PLACE, attempts), chosen)


def _without_what_shares_want(planner: Planner, chosen: Chosen, attempts: Sequence[Attempt]) -> PlanVariant:
    return _without(_staying_for(ObjectionCode.ON_DEMAND_SHARE, attempts), chosen)


def _without(names: frozenset[str], chosen: Chosen) -> PlanVariant:
    candidates = (one.claim.metadata.name for one in chosen.model.candidates if one is not None)
    return PlanVariant(frozenset(candidates) - names)


_Wanted = Callable[[Planner, Sequence[Attempt]], bool]
_VariantOf = Callable[[Planner, Chosen, Sequence[Attempt]], PlanVariant]
_SMALLER_PLANS: tuple[tuple[_Wanted, _VariantOf], ...] = (
    (_exceeds_budgets, _within_budgets),
    (_buys_what_is_refused, _buying_nothing),
    (_takes_others_along_with_drift, _drifted_within_budgets),
    (_breaks_shares, _without_what_shares_want),
    (_lacks_room_under_limits, _buying_nothing),
    # Each leaves more out. Three at most: in a large cluster each takes seconds.
    (_lacks_room_under_limits, _without_what_had_no_place),
    (_lacks_room_under_limits, _without_what_had_no_place),
    (_lacks_room_under_limits, _without_what_had_no_place),
)
