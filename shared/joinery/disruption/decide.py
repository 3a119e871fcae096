"""Which nodes earn their price: ``decide(problem)``.

1. ``candidates``: which nodes may go at all, and for what.
2. ``consolidation.model`` and ``optimizer.consolidation``: which of them should, all at once, so that the price of
   nodes and of moves is least; with a bound.
3. ``consolidation.trial``: where their pods really go, by the packing core. A node whose pods have no other place
   stays, and the rest is tried again.
4. ``consolidation.grouping``: commands that are each right by themselves, and worth their moves. ``validation``: by the
   code that checks every plan.
5. ``balance``: whether Balanced NodePools agree; ``admission``: what the budgets of NodePools let start now. The other
   nodes are held.
"""

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from joinery.apis.disruption import DisruptionReason
from joinery.apis.policies import TerminateFirst
from joinery.disruption.admission import Admission, admit
from joinery.disruption.balance import approved
from joinery.disruption.canaries import held_back, image_for
from joinery.disruption.candidates import Candidate, Candidates, candidates
from joinery.disruption.consolidation.bonds import bonds_of
from joinery.disruption.consolidation.compiling import Ground, loosened, model_of
from joinery.disruption.consolidation.curve import merged, others, prefixes
from joinery.disruption.consolidation.grouping import commands_of, is_worth_it
from joinery.disruption.consolidation.model import Model, hourly, limited, unforced, without_new
from joinery.disruption.consolidation.preferences import agreeable
from joinery.disruption.consolidation.replacements import Replacements
from joinery.disruption.consolidation.trial import trial
from joinery.disruption.disruptions import CurvePoint, Disruption, Disruptions, Held, HeldCode, Refused
from joinery.disruption.problem import DisruptionProblem
from joinery.disruption.terminate_first import ending, in_its_place, needs_its_place
from joinery.disruption.validation import validate, violations_of
from joinery.optimizer.consolidation.choice import consolidate
from joinery.optimizer.consolidation.instance import Consolidation
from joinery.optimizer.consolidation.relaxation import KeepRelaxation
from joinery.optimizer.effort import Effort
from joinery.scheduling.problem import WishedLaunch, Wishes
from joinery.scheduling.solve import Stopwatch
from joinery.verification.violation import ViolationCode

_DRIFTED = DisruptionReason.DRIFTED
_STATES = 12
"""States on the way that are checked, where rules over pods might hold in the last one only."""
_ROUNDS = 8
"""Trials at most: each leaves out nodes that cannot go, or are not worth it."""


def decide(problem: DisruptionProblem, *, stopwatch: Stopwatch = lambda: 0.0) -> Disruptions:
    """The commands that make the cluster cheapest, in the order in which they should be carried out."""
    judged = candidates(problem)
    before = sum(judged.prices.values())
    limit = problem.options.time_limit
    effort = Effort(seed=problem.packing.options.seed, is_time_up=lambda: limit is not None and stopwatch() >= limit)
    plan = _Planner(problem, judged, effort, stopwatch).plan()
    after = before - sum(command.savings for command in plan.commands)
    bound, gap = _bounded(plan, before, after)
    return Disruptions(
        commands=plan.commands,
        held=(*judged.held, *plan.held),
        refused=plan.refused,
        before=before,
        after=after,
        lower_bound=bound,
        gap=gap,
        curve=merged(prefixes(before, plan.commands), plan.others),
        method=plan.method,
        limit_struck=effort.struck,
    )


@dataclass(frozen=True)
class _Plan:
    """``held``: the candidates that stay, and why. ``refused``: see ``Disruptions``. ``moves``: $/h that the
    evictions count as. ``saved_at_most``: $/h; no choice among the candidates saves more, moves considered.
    ``others``: what other prices of a move would lead to.
    """

    commands: tuple[Disruption, ...] = ()
    held: tuple[Held, ...] = ()
    refused: tuple[Refused, ...] = ()
    moves: float = 0.0
    saved_at_most: float = 0.0
    others: tuple[CurvePoint, ...] = ()
    method: str = "no candidates"


class _Planner:
    """``_holds``: by name of the claim, why a candidate stays, if it does after all: the first reason that came up.
    ``_refused``: by their claims' names, commands that the check found wrong.
    """

    def __init__(self, problem: DisruptionProblem, judged: Candidates, effort: Effort, stopwatch: Stopwatch) -> None:
        self._problem, self._judged, self._effort, self._stopwatch = problem, judged, effort, stopwatch
        self._by_name = {candidate.claim.metadata.name: candidate for candidate in judged.candidates}
        self._budgets = Admission(problem, judged.nodes)
        self._replacements = Replacements(problem)
        self._is_purchase_refused = self._is_budget_exceeded = False
        self._holds: dict[str, Held] = {}
        self._refused: dict[tuple[str, ...], Refused] = {}

    def plan(self) -> _Plan:
        """The commands that budgets, and NodePools with the Balanced policy, let start now."""
        closed = {name: held for name, one in self._by_name.items() if (held := self._closed_by_budgets(name, one))}
        self._hold(closed.values())
        self._heed_trials(closed)
        in_place = self._in_full_reservations(closed)
        chosen = [one for name, one in self._by_name.items() if one.reasons and name not in closed]
        plan = self._planned(chosen)
        return self._joined(plan, [*in_place, *self._scarce(plan, closed)])

    def _planned(self, chosen: Sequence[Candidate]) -> _Plan:
        if not chosen:
            return _Plan(held=self._told(set()))
        ground = Ground(self._problem, self._judged, chosen)
        model = model_of(ground)
        choice = consolidate(model.instance, self._effort)
        commands = max((self._commands(model, choice), *self._smaller(model, choice)), key=self._rank)
        gone = {name for command in commands for name in command.retire}
        return _Plan(
            commands=commands,
            held=self._told(gone),
            refused=tuple(one for one in self._refused.values() if gone.isdisjoint(one.command.retire)),
            moves=sum(hourly(self._by_name[name]) for name in gone),
            saved_at_most=_saved_at_most(unforced(loosened(ground, model), gone), model, choice.bound),
            others=self._others(model) if gone else (),
            method=choice.method,
        )

    def _rank(self, commands: Sequence[Disruption]) -> tuple[int, float]:
        """Larger is better: how many drifted nodes go, which must; then $/h saved, less what the moves count as."""
        members = [self._by_name[name] for command in commands for name in command.retire]
        drifted = sum(DisruptionReason.DRIFTED in member.reasons for member in members)
        return drifted, sum(command.savings for command in commands) - sum(map(hourly, members))

    def _told(self, gone: Container[str]) -> tuple[Held, ...]:
        """Why each candidate stays that does not go."""
        return tuple(
            self._holds.get(name) or _unchosen(candidate)
            for name, candidate in self._by_name.items()
            if name not in gone
        )

    def _hold(self, holds: Iterable[Held]) -> None:
        for held in holds:
            self._holds.setdefault(held.node_claim, held)

    def _smaller(self, model: Model, choice: Consolidation) -> Iterator[tuple[Disruption, ...]]:
        """Smaller plans, where commands of the whole one may not start, and so never would."""
        if self._is_budget_exceeded and not self._effort.is_over():
            yield self._commands(model, consolidate(limited(model, choice, self._left), self._effort))
        if self._is_purchase_refused and not self._effort.is_over():
            yield self._commands(model, consolidate(without_new(model), self._effort))

    def _others(self, model: Model) -> tuple[CurvePoint, ...]:
        is_asked = self._problem.options.curve
        return others(model, sum(self._judged.prices.values()), self._effort) if is_asked else ()

    def _heed_trials(self, closed: Container[str]) -> None:
        """Drifted nodes that wait for the trial of an image do not go for their drift.

        Before the plan, because it forces drifted nodes out together, and few of them may be one command too large.
        """
        drifted = [
            one
            for name, one in self._by_name.items()
            if _DRIFTED in one.reasons and name not in closed and not self._objection(name, _DRIFTED)
        ]
        for name, why in held_back(drifted, self._budgets.trials, self._problem.packing.snapshot).items():
            self._hold([Held(name, HeldCode.CANARY, why, _DRIFTED)])
            candidate = self._by_name[name]
            self._by_name[name] = replace(candidate, reasons=candidate.reasons - {_DRIFTED})

    def _in_full_reservations(self, closed: Container[str]) -> Sequence[Disruption]:
        """Commands for drifted nodes that can only be replaced in the place that they hold. Nothing else is planned
        for these nodes, nor onto them.
        """
        packing, default = self._problem.packing, self._problem.options.terminate_first
        commands = [
            command
            for one in ending(self._by_name.values(), default, TerminateFirst.RESERVED)
            if one.claim.metadata.name not in closed and needs_its_place(one, packing)
            if (command := in_its_place(one, packing, self._stopwatch)) is not None
        ]
        for name in (name for command in commands for name in command.retire):
            node = self._by_name[name].view.node
            self._by_name[name] = replace(self._by_name[name], reasons=frozenset())
            judged = self._judged
            self._judged = replace(judged, destinations=judged.destinations - {node}, resting=judged.resting - {node})
        return commands

    def _scarce(self, plan: _Plan, closed: Container[str]) -> Sequence[Disruption]:
        """Commands for drifted nodes whose pods have no other place than the one that they have."""
        packing, default = self._problem.packing, self._problem.options.terminate_first
        stuck = {held.node_claim for held in plan.held if held.code is HeldCode.NO_PLACE}
        filled = {placement.node for command in plan.commands for placement in command.existing}
        commands = (
            in_its_place(one, packing, self._stopwatch)
            for one in ending(self._by_name.values(), default, TerminateFirst.SCARCE)
            if one.claim.metadata.name in stuck and one.claim.metadata.name not in closed
            if one.view.node not in filled
        )
        return [command for command in commands if command is not None]

    def _joined(self, plan: _Plan, ended: Sequence[Disruption]) -> _Plan:
        """The plan, and as many of the commands that end nodes first as budgets let start beside it."""
        if not ended:
            return plan
        admitted = admit((*plan.commands, *ended), self._problem, self._judged.nodes)
        begun = tuple(command for command in admitted.commands if command.terminates_first)
        names = {name for command in ended for name in command.retire}
        return replace(
            plan,
            commands=(*plan.commands, *begun),
            held=(*(held for held in plan.held if held.node_claim not in names), *admitted.held),
            moves=plan.moves + sum(hourly(self._by_name[name]) for command in begun for name in command.retire),
        )

    def _closed_by_budgets(self, name: str, candidate: Candidate) -> Held | None:
        """The budget that holds it, where those of its NodePool let none go for any reason that it could go for."""
        objections = {reason: self._objection(name, reason) for reason in sorted(candidate.reasons)}
        if not all(objections.values()):
            return None
        reason, objection = next(iter(objections.items()))
        return Held(name, HeldCode.BUDGET, objection, reason)

    def _objection(self, name: str, reason: DisruptionReason) -> str:
        """Why budgets let none like this node go for that reason; empty if they let one go."""
        return self._budgets.objection(Disruption(reason=reason, message="", retire=(name,)))

    def _left(self, candidate: Candidate) -> int:
        """How many nodes of the candidate's NodePool may go now."""
        pool = candidate.pool.metadata.name
        left = min(self._budgets.left(pool, reason) for reason in candidate.reasons)
        trial_of_image = self._budgets.trials.open(*image_for(candidate.claim, self._problem.packing.snapshot))
        return left if trial_of_image is None else min(left, trial_of_image.room)

    def _commands(self, model: Model, choice: Consolidation) -> tuple[Disruption, ...]:
        """The commands of a trial in which every pod has a place, that are worth it and may start now."""
        retired = [one for one, kept in zip(model.candidates, choice.keep, strict=True) if one is not None and not kept]
        wishes = _wishes(model, choice)
        for _ in range(_ROUNDS):
            if not retired:
                break
            result = trial(self._problem, self._judged, retired, wishes, self._stopwatch)
            if not result.stuck:
                commands = self._worthwhile(commands_of(result, bonds_of(result, model)))
                right = self._agreeable(self._right(commands, model, is_whole=True))
                admitted = self._admitted(right)
                # Budgets may have held what would have made room under a limit.
                return admitted if len(admitted) == len(right) else self._right(admitted, model)
            self._hold(Held(name, HeldCode.NO_PLACE, "its pods have no other place") for name in sorted(result.stuck))
            retired = [one for one in retired if one.claim.metadata.name not in result.stuck]
        return ()

    def _worthwhile(self, commands: Iterable[Disruption]) -> tuple[Disruption, ...]:
        """The commands that repay their moves, and may replace spot nodes as they do."""
        worthwhile = []
        for command in commands:
            members = [self._by_name[name] for name in command.retire]
            if not is_worth_it(command, members):
                continue
            if objection := self._replacements.objection(command, members):
                self._is_purchase_refused = True
                self._hold(Held(name, HeldCode.POLICY, objection, command.reason) for name in command.retire)
            else:
                worthwhile.append(self._replacements.affordable(command, members))
        return tuple(worthwhile)

    def _right(self, commands: Sequence[Disruption], model: Model, *, is_whole: bool = False) -> tuple[Disruption, ...]:
        """The commands that the independent check agrees with, one after another.

        ``is_whole``: these are all of a plan, so that what does not hold is a mistake. A part of them may be wrong
        because what would have made room under a limit is not among them.

        Where no rule over pods and no limit is in the cluster, room is all that they share, and the last state tells of
        all. What does not hold in its turn is tried once more after all others: they may make room under a limit.
        """
        packing = self._problem.packing
        is_limited = any(pool.spec.limits for pool in packing.snapshot.node_pools)
        states = _STATES if model.is_strict or (is_limited and any(command.launches for command in commands)) else 1
        checked = validate(packing, commands, packing.snapshot, states=states)
        if checked.valid and checked.dropped:
            last = (*checked.valid, *(command for command, _ in checked.dropped))
            checked = validate(packing, last, packing.snapshot, states=states)
        for command, why in checked.dropped:
            message = f"its command does not pass the check of all rules: {why}"
            self._hold(Held(name, HeldCode.NO_PLACE, message) for name in command.retire)
            if is_whole and self._is_mistake(command, checked.valid):
                self._refused[command.retire] = Refused(command, why)
        return checked.valid

    def _agreeable(self, commands: Sequence[Disruption]) -> Sequence[Disruption]:
        """The commands after which pods have no less of what they prefer than before."""
        judged = agreeable(self._problem.packing, commands)
        for command, why in judged.dropped:
            self._hold(Held(name, HeldCode.PREFERENCE, why, command.reason) for name in command.retire)
        return judged.commands

    def _is_mistake(self, command: Disruption, valid: Sequence[Disruption]) -> bool:
        """Whether the command breaks more than a limit, for which there may be room in no order of the commands."""
        violations = violations_of(self._problem.packing, [*valid, command])
        return any(violation.code is not ViolationCode.LIMITS for violation in violations)

    def _admitted(self, commands: Sequence[Disruption]) -> tuple[Disruption, ...]:
        """The commands that Balanced NodePools and budgets let start now."""
        balanced = approved(commands, self._problem, self._judged)
        admitted = admit(balanced.commands, self._problem, self._judged.nodes)
        self._is_budget_exceeded = self._is_budget_exceeded or bool(admitted.held)
        self._is_purchase_refused |= any(held.code is HeldCode.CANARY for held in admitted.held)
        self._hold((*balanced.held, *admitted.held))
        return admitted.commands


def _unchosen(candidate: Candidate) -> Held:
    """Why nothing is done about a candidate that no rule holds. A drifted one must go, if its pods can."""
    name = candidate.claim.metadata.name
    if _DRIFTED in candidate.reasons:
        return Held(name, HeldCode.NO_PLACE, "its pods have no other place", _DRIFTED)
    return Held(name, HeldCode.NOT_WORTH_IT, "it is worth its price: to move its pods saves too little")


def _wishes(model: Model, choice: Consolidation) -> Wishes:
    """Where the optimiser put pods like these.

    Pods of the same node follow each other, so that those for which new nodes are bought come from few old ones.
    """
    nodes: dict[str, str] = {}
    gone = np.flatnonzero(~choice.keep)
    moving = [
        [pod for index in gone for pod in model.pods.get((item, int(index)), ())] for item in range(len(choice.inflow))
    ]
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


def _saved_at_most(loose: Model, model: Model, bound: float) -> float:
    """$/h. The ``bound`` of a model that takes rules more strictly than they are is none, so the looser one is solved.

    Negative where drift forces more to be spent. In ``loose`` a drifted node that could not go all the same is forced
    no longer, or its penalty would count as money.
    """
    if loose is not model:
        relaxed = KeepRelaxation(loose.instance).solve() if len(loose.instance.bins.demands) else None
        bound = relaxed.cost if relaxed else 0.0
    return loose.instance.cost_as_it_is - loose.forced - bound


def _bounded(plan: _Plan, before: float, after: float) -> tuple[float, float]:
    """The lower bound in $/h, moves considered, and how far price and moves are above it."""
    bound = before - plan.saved_at_most
    return bound, max(0.0, (after + plan.moves - bound) / bound) if bound > 0 else 0.0
