"""Which nodes are deleted, and which replaced by cheaper ones: ``decide(problem)``.

1. ``waiting``: which pods that wait need no new node. ``candidates``: which nodes may go at all, and for what.
2. ``consolidation.model`` and ``optimizer.consolidation``: which of them should, all at once, so that the price of
   nodes and of moves is least; with a bound.
3. ``consolidation.simulation``: where their pods really go, by the packing core. A node whose pods have no other place
   stays, and the rest is tried again.
4. ``consolidation.grouping``: commands that are each right by themselves.
5. ``review``: which of them are worth their moves, pass the check of all rules, and may start now. The other nodes are
   held.
"""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from joinery.decisions.disruption.candidates import Candidate, Candidates, candidates
from joinery.decisions.disruption.consolidation.choosing import Chosen, chosen
from joinery.decisions.disruption.consolidation.compiling import loosened
from joinery.decisions.disruption.consolidation.curve import merged, points_at_other_prices, prefixes
from joinery.decisions.disruption.consolidation.grouping import bonds_of, commands_of
from joinery.decisions.disruption.consolidation.model import (
    Model,
    hourly,
    kept_but_must_go,
    limited,
    unforced,
    without,
    without_new,
)
from joinery.decisions.disruption.consolidation.simulation import (
    Simulation,
    idle,
    left_empty,
    simulate,
    wishes_of,
    without_stuck,
)
from joinery.decisions.disruption.decision import (
    CurvePoint,
    DecidedCommand,
    DisruptionDecision,
    ObjectionCode,
    Refused,
    StayingNode,
)
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.decisions.disruption.terminate_first import ended_in_full_reservations, ended_where_scarce
from joinery.decisions.disruption.validation.budget_check import BudgetCheck, admit
from joinery.decisions.disruption.validation.canaries import held_back, image_for
from joinery.decisions.disruption.validation.validate import Review
from joinery.decisions.disruption.waiting import settled
from joinery.decisions.optimizer.consolidation.choice import consolidate
from joinery.decisions.optimizer.consolidation.instance import Consolidation
from joinery.decisions.optimizer.consolidation.relaxation import KeepRelaxation
from joinery.decisions.optimizer.effort import Effort
from joinery.decisions.scheduling.solve import GRACE, Stopwatch
from joinery.objects.karpenter.disruption import DisruptionReason

_DRIFTED = DisruptionReason.DRIFTED
_ROUNDS = 8
"""Trials at most: each leaves out nodes that cannot go, or are not worth it."""
_FAR = 0.01
"""A bound that is farther below the choice, as a share of it, is proven with more care where that takes little time."""
_FIRST, _SEARCHING = 0.4, 0.6
"""Parts of the time limit after which the first search, and all of them, end: trials and checks come after that."""
_PODS_AT_LEAST, _PODS_A_SECOND = 2_000, 2_000
"""Of nodes that go, in one trial: a thousand and their check take a tenth of a second, or two."""
_SMALLER = 3
"""Plans at most that leave more and more nodes out because of limits. In a large cluster each takes seconds."""


def decide(problem: DisruptionProblem, *, stopwatch: Stopwatch = lambda: 0.0) -> DisruptionDecision:
    """The commands that make the cluster cheapest, in the order in which they should be carried out."""
    problem, awaited = settled(problem, stopwatch)
    judged = candidates(problem, awaited)
    before = sum(judged.prices.values())
    effort = _effort(problem, _SEARCHING, stopwatch)
    plan = _Planner(problem, judged, effort, stopwatch).plan()
    points = prefixes(before, plan.commands, {one.claim.metadata.name: hourly(one) for one in judged.candidates})
    chosen = points[-1]
    bound, gap = _bounded(plan, before, chosen)
    return DisruptionDecision(
        commands=plan.commands,
        held=(*judged.held, *plan.held),
        refused=plan.refused,
        before=before,
        after=chosen.hourly,
        moves=chosen.moves,
        lower_bound=bound,
        gap=gap,
        curve=merged(points, plan.other_points),
        method=plan.method,
        limit_struck=effort.struck,
        prices=judged.prices,
        eligible=Counter(reason for candidate in judged.candidates for reason in candidate.reasons),
    )


def _effort(problem: DisruptionProblem, part: float, stopwatch: Stopwatch) -> Effort:
    """That searches for a part of the time limit. Once it is late, nothing more is tried or checked."""
    limit, seed = problem.options.time_limit, problem.packing.options.seed
    if limit is None:
        return Effort.until(None, stopwatch, seed)
    return Effort.until(part * limit, stopwatch, seed, grace=GRACE + limit - part * limit)


@dataclass(frozen=True)
class _Plan:
    """``held``: the candidates that stay, and why. ``refused``: see ``DisruptionDecision``. ``saved_at_most``: $/h; no
    choice among the candidates saves more, moves considered. ``other_points``: what other prices of a move would lead
    to.
    """

    commands: tuple[DecidedCommand, ...] = ()
    held: tuple[StayingNode, ...] = ()
    refused: tuple[Refused, ...] = ()
    saved_at_most: float = 0.0
    other_points: tuple[CurvePoint, ...] = ()
    method: str = "no candidates"


class _Planner:
    def __init__(self, problem: DisruptionProblem, judged: Candidates, effort: Effort, stopwatch: Stopwatch) -> None:
        self._problem, self._judged, self._effort, self._stopwatch = problem, judged, effort, stopwatch
        self._by_name = {candidate.claim.metadata.name: candidate for candidate in judged.candidates}
        self._budgets = BudgetCheck(problem, judged.nodes)
        self._review = Review(problem, judged, self._by_name, effort)

    def plan(self) -> _Plan:
        """The commands that budgets, and NodePools with the Balanced policy, let start now."""
        closed = self._closed_by_budgets()
        self._hold_for_image_trials(closed)
        ended_in_place = self._ended_in_full_reservations(closed)
        plan = self._planned(
            [candidate for name, candidate in self._by_name.items() if candidate.reasons and name not in closed]
        )
        return self._with_ended_first(plan, [*ended_in_place, *self._ended_where_scarce(plan, closed)])

    def _planned(self, candidates: Sequence[Candidate]) -> _Plan:
        """The plan for these candidates, replacements first."""
        if not candidates:
            return _Plan(held=self._stays(set()))
        first = _effort(self._problem, _FIRST, self._stopwatch)
        best = chosen(self._problem, self._judged, candidates, first, self._effort)
        model, choice = best.model, best.choice
        plans = tuple(self._plans(best))
        commands = max(plans, key=self._rank)
        self._hold_for_want_of_budget(commands, plans)
        gone = {name for command in commands for name in command.retire}
        # Where time is up, nothing is proven.
        loose = model if self._effort.is_over() else loosened(best.ground, model)
        if loose is not model or not model.is_strict:
            self._review.hold(_without_place(name) for name in _immovable(loose) if not self._by_name[name].is_drifted)
        return _Plan(
            commands=commands,
            held=self._stays(gone, best),
            refused=tuple(
                refused for refused in self._review.refused.values() if gone.isdisjoint(refused.command.retire)
            ),
            saved_at_most=_saved_at_most(unforced(loose, gone), model, choice, self._effort),
            other_points=self._other_points(model) if gone else (),
            method=choice.method,
        )

    def _plans(self, best: Chosen) -> Iterator[tuple[DecidedCommand, ...]]:
        """Plans of the choice, and smaller ones. Nodes that must go do so even where there was no time for a choice."""
        model, must_go = best.model, [candidate for candidate in best.left_out if candidate.is_drifted]
        if best.is_rough:
            yield self._commands(model, kept_but_must_go(model, best.choice), must_go)
            if self._effort.is_late():
                return
        yield self._commands(model, best.choice, must_go)
        yield from self._smaller_plans(model, best.choice)

    def _rank(self, commands: Sequence[DecidedCommand]) -> tuple[int, float]:
        """Larger is better: how many drifted nodes go, which must; then $/h saved, less what the moves count as."""
        members = [self._by_name[name] for command in commands for name in command.retire]
        drifted = sum(member.is_drifted for member in members)
        return drifted, sum(command.savings for command in commands) - sum(map(hourly, members))

    def _hold_for_want_of_budget(
        self, chosen: Sequence[DecidedCommand], plans: Sequence[Sequence[DecidedCommand]]
    ) -> None:
        """Nodes that go by another plan alone stay because the chosen one uses their budgets up, if it does."""
        budgets = BudgetCheck(self._problem, self._judged.nodes)
        gone = {name for command in chosen for name in command.retire}
        for command in chosen:
            budgets.take(command)
        for command in (command for plan in plans for command in plan if command not in chosen):
            others = tuple(name for name in command.retire if name not in gone)
            rest = replace(command, retire=others)
            if others and (objection := budgets.objection(rest)):
                self._review.hold(StayingNode(name, budgets.code(rest), objection, command.reason) for name in others)

    def _stays(self, gone: Container[str], best: Chosen | None = None) -> tuple[StayingNode, ...]:
        """Why each candidate stays that does not go."""
        left_out = {candidate.claim.metadata.name for candidate in best.left_out} if best else set[str]()
        is_rough = best is not None and best.is_rough
        return tuple(
            self._review.holds.get(name) or (_late if is_rough or name in left_out else _unchosen)(candidate)
            for name, candidate in self._by_name.items()
            if name not in gone
        )

    def _smaller_plans(self, model: Model, choice: Consolidation) -> Iterator[tuple[DecidedCommand, ...]]:
        """Smaller plans, where commands of the whole one may not start, and so never would."""
        if self._review.is_budget_exceeded and not self._effort.is_over():
            yield self._commands(model, consolidate(limited(model, choice, self._budget_left), self._effort))
        has_frugal = self._review.is_purchase_refused and not self._effort.is_over()
        if has_frugal:
            yield self._commands(model, consolidate(without_new(model), self._effort))
        if self._review.are_companions_refused and not self._effort.is_over():
            yield self._commands(model, consolidate(limited(model, choice, self._budget_left_for_drift), self._effort))
        yield from self._within_limits(model, has_frugal=has_frugal)

    def _within_limits(self, model: Model, *, has_frugal: bool) -> Iterator[tuple[DecidedCommand, ...]]:
        """Plans of fewer nodes, where the limits of NodePools leave no room for what the whole one buys.

        The optimiser knows no limits. First what buys nothing, which makes room under a limit for a later decision,
        unless there is such a plan (``has_frugal``); then whatever is best if the nodes stay that had no place.
        """
        unplaced = self._review.unplaced
        if not unplaced or not self._review.is_limited or self._effort.is_over():
            return
        if not has_frugal:
            yield self._commands(model, consolidate(without_new(model), self._effort))
        for _ in range(_SMALLER):
            left_out = frozenset(unplaced)
            if self._effort.is_over():
                break
            yield self._commands(model, consolidate(without(model, left_out), self._effort))
            if left_out == unplaced:
                break

    def _other_points(self, model: Model) -> tuple[CurvePoint, ...]:
        if not self._problem.options.curve:
            return ()
        return points_at_other_prices(model, sum(self._judged.prices.values()), self._effort)

    def _hold_for_image_trials(self, closed: Container[str]) -> None:
        """Drifted nodes that wait for the trial of an image do not go for their drift.

        Before the plan, because it forces drifted nodes out together, and few of them may be one command too large.
        """
        drifted = [
            candidate
            for name, candidate in self._by_name.items()
            if candidate.is_drifted and name not in closed and not self._objection(name, _DRIFTED)
        ]
        for name, why in held_back(drifted, self._budgets.trials, self._problem.packing.snapshot).items():
            self._review.hold([StayingNode(name, ObjectionCode.CANARY, why, _DRIFTED)])
            candidate = self._by_name[name]
            self._by_name[name] = replace(candidate, reasons=candidate.reasons - {_DRIFTED})

    def _ended_in_full_reservations(self, closed: Container[str]) -> Sequence[DecidedCommand]:
        """Commands for drifted nodes that can only be replaced in the place that they hold. Nothing else is planned
        for these nodes, nor onto them.
        """
        free = [candidate for name, candidate in self._by_name.items() if name not in closed]
        commands = ended_in_full_reservations(free, self._problem, self._stopwatch, self._effort.is_over)
        for name in (name for command in commands for name in command.retire):
            node = self._by_name[name].view.node
            self._by_name[name] = replace(self._by_name[name], reasons=frozenset())
            judged = self._judged
            self._judged = replace(judged, destinations=judged.destinations - {node}, resting=judged.resting - {node})
        return commands

    def _ended_where_scarce(self, plan: _Plan, closed: Container[str]) -> Sequence[DecidedCommand]:
        """Commands for drifted nodes whose pods have no other place than the one that they have."""
        stuck = {held.node_claim for held in plan.held if held.code is ObjectionCode.NO_PLACE}
        filled = _filled(plan.commands)
        free = [
            candidate
            for name, candidate in self._by_name.items()
            if name in stuck and name not in closed and candidate.view.node not in filled
        ]
        return ended_where_scarce(free, self._problem, self._stopwatch, self._effort.is_late)

    def _with_ended_first(self, plan: _Plan, ended: Sequence[DecidedCommand]) -> _Plan:
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
        )

    def _closed_by_budgets(self) -> Container[str]:
        """The names of candidates that no budget of their NodePools lets go. The others go for what budgets let them.

        Before the plan, because it forces drifted nodes out: where no more may go for drift, they may still be empty,
        or worth it.
        """
        closed = set()
        for name, candidate in self._by_name.items():
            objections = {reason: why for reason in sorted(candidate.reasons) if (why := self._objection(name, reason))}
            self._review.hold(
                StayingNode(name, self._budgets.code(_alone(candidate, reason)), why, reason)
                for reason, why in objections.items()
            )
            if candidate.reasons <= objections.keys():
                closed.add(name)
            elif objections:
                self._by_name[name] = replace(candidate, reasons=candidate.reasons - objections.keys())
        return closed

    def _objection(self, name: str, reason: DisruptionReason) -> str:
        """Why budgets let none like this node go for that reason; empty if they let one go."""
        return self._budgets.objection(_alone(self._by_name[name], reason))

    def _budget_left(self, candidate: Candidate) -> int:
        """How many nodes of the candidate's NodePool may go now."""
        pool = candidate.pool.metadata.name
        left = min(self._budgets.left(pool, reason) for reason in candidate.reasons)
        trial_of_image = self._budgets.trials.open(*image_for(candidate.claim, self._problem.packing.snapshot))
        return left if trial_of_image is None else min(left, trial_of_image.room)

    def _budget_left_for_drift(self, candidate: Candidate) -> int:
        """The same for drifted nodes, and none of the others."""
        return self._budget_left(candidate) if candidate.is_drifted else 0

    def _commands(
        self, model: Model, choice: Consolidation, more: Sequence[Candidate] = ()
    ) -> tuple[DecidedCommand, ...]:
        """The commands of a trial in which every pod has a place, that are worth it and may start now. ``more``: what
        is to go besides what the choice retires.
        """
        placed = self._trial(model, choice, more)
        whole = replace(placed, candidates=(*placed.candidates, *idle(model, placed)))
        if not whole.candidates:
            return ()
        commands = commands_of(whole, bonds_of(placed, model))
        started = self._review.startable(commands, model)
        unfilled = () if self._effort.is_late() else self._not_filled(model, commands, started)
        return self._review.startable((*commands_of(Simulation(unfilled)), *started), model) if unfilled else started

    def _not_filled(
        self, model: Model, commands: Sequence[DecidedCommand], started: Sequence[DecidedCommand]
    ) -> tuple[Candidate, ...]:
        """Empty nodes that were to be filled by commands that do not start. They go, unless these only wait."""
        going = {name for command in started for name in command.retire}
        coming = [command for command in commands if going.issuperset(command.retire) or self._review.waits(command)]
        wanted, filled = _filled(commands), _filled(coming)
        return tuple(candidate for candidate in left_empty(model, going, filled) if candidate.view.node in wanted)

    def _trial(self, model: Model, choice: Consolidation, more: Sequence[Candidate]) -> Simulation:
        """The trial of what the choice retires, without the nodes whose pods have no other place."""
        retired = [
            candidate
            for candidate, is_kept in zip(model.candidates, choice.keep, strict=True)
            if candidate is not None and not is_kept
        ]
        retired = self._in_time([*retired, *more])
        wishes = wishes_of(model, choice)
        for _ in range(_ROUNDS):
            if not retired:
                break
            result = simulate(self._problem, self._judged, retired, wishes, self._stopwatch)
            if not result.stuck:
                return result
            if self._effort.is_late():
                rest = without_stuck(result)
                self._review.hold(_late(self._by_name[name]) for name in sorted(rest.stuck))
                return rest
            self._review.unplaced |= result.stuck
            self._review.hold(map(_without_place, sorted(result.stuck)))
            retired = [candidate for candidate in retired if candidate.claim.metadata.name not in result.stuck]
        return Simulation()

    def _in_time(self, retired: Sequence[Candidate]) -> list[Candidate]:
        """As many of these as there is time to find places for: what must go first, then what saves most."""
        limit, pods = self._problem.options.time_limit, 0
        if limit is None:
            return list(retired)
        going = list[Candidate]()
        for one in sorted(retired, key=lambda it: (not it.is_drifted, hourly(it) - it.price)):
            pods += len(one.pods)
            if pods > _PODS_AT_LEAST + _PODS_A_SECOND * limit:
                self._review.hold([_late(one)])
            else:
                going.append(one)
        return going


def _filled(commands: Iterable[DecidedCommand]) -> frozenset[str]:
    """The nodes that pods are moved to."""
    return frozenset(placement.node for command in commands for placement in command.existing)


def _alone(candidate: Candidate, reason: DisruptionReason) -> DecidedCommand:
    """A command that retires the node and buys nothing, to ask whether there is room for it."""
    pods = tuple(pod.key for pod in candidate.pods)
    return DecidedCommand(reason=reason, message="", retire=(candidate.claim.metadata.name,), pods=pods)


def _unchosen(candidate: Candidate) -> StayingNode:
    """Why nothing is done about a candidate that no rule holds. A drifted one must go, if its pods can."""
    name = candidate.claim.metadata.name
    if candidate.is_drifted:
        return _without_place(name, _DRIFTED)
    return StayingNode(name, ObjectionCode.NOT_WORTH_IT, "it is worth its price: to move its pods saves too little")


def _late(candidate: Candidate) -> StayingNode:
    """Why nothing is done about a candidate that there was no time for."""
    text = "time was up before all of its pods had another place; the next decision tries again"
    return StayingNode(candidate.claim.metadata.name, ObjectionCode.TIME_LIMIT, text)


def _without_place(name: str, disruption: DisruptionReason | None = None) -> StayingNode:
    return StayingNode(name, ObjectionCode.NO_PLACE, "its pods have no other place", disruption)


def _immovable(loose: Model) -> list[str]:
    """The names of claims with pods that no rule lets go anywhere else."""
    candidates = (loose.candidates[index] for index in sorted(loose.immovable))
    return [candidate.claim.metadata.name for candidate in candidates if candidate is not None]


def _saved_at_most(loose: Model, model: Model, choice: Consolidation, effort: Effort) -> float:
    """$/h. The bound of a model that takes rules more strictly than they are is none, so the looser one is solved.

    Negative where drift forces more to be spent. In ``loose`` a drifted node that could not go all the same is forced
    no longer, or its penalty would count as money.
    """
    instance, bound = loose.instance, choice.bound if loose is model and not model.is_strict else 0.0
    if effort.is_over():
        return instance.cost_as_it_is - loose.forced - bound
    if len(instance.bins.demands) and (loose is not model or choice.cost > bound * (1 + _FAR)):
        relaxation = KeepRelaxation(instance, effort.patience())
        if loose is not model:
            relaxed = relaxation.solve()
            bound = relaxed.cost if relaxed else 0.0
        if choice.cost > bound * (1 + _FAR) and not effort.is_over():
            bound = max(bound, relaxation.bound_of_whole_bins())
    return instance.cost_as_it_is - loose.forced - bound


def _bounded(plan: _Plan, before: float, chosen: CurvePoint) -> tuple[float, float]:
    """The lower bound in $/h, moves considered, and how far price and moves are above it."""
    bound = before - plan.saved_at_most
    return bound, max(0.0, (chosen.hourly + chosen.moves - bound) / bound) if bound > 0 else 0.0
