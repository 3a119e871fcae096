"""Which nodes are deleted, and which replaced by cheaper ones: ``decide(problem)``.

1. ``waiting``: which pods that wait need no new node. ``candidates``: which nodes may go at all, and for what.
   ``validation.eligible``: for what budgets let them go.
2. ``consolidation.at_rest``: whether anything is to be gained. ``consolidation.compiling`` and
   ``consolidation.choosing``: which of them should go, all at once, so that the price of nodes and of moves is least;
   with a bound.
3. ``consolidation.attempts``: plans of that choice. ``consolidation.simulation`` says where the pods really go, by the
   packing core; a node whose pods have no other place stays. ``consolidation.grouping`` makes commands that are each
   right by themselves, and ``validation`` says which of them may start now.
4. The best plan counts, and ``terminate_first`` adds drifted nodes that cannot be replaced before they end. Of every
   other candidate it is said why it stays.
"""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from joinery.decisions.disruption.candidates import Candidate, Candidates, candidates
from joinery.decisions.disruption.consolidation.at_rest import is_at_rest
from joinery.decisions.disruption.consolidation.attempts import LATE, NO_PLACE, Attempt, Planner, filled_by
from joinery.decisions.disruption.consolidation.choosing import Chosen, chosen
from joinery.decisions.disruption.consolidation.compiling import loosened
from joinery.decisions.disruption.consolidation.curve import merged, points_at_other_prices, prefixes
from joinery.decisions.disruption.consolidation.model import ConsolidationModel, hourly, unforced
from joinery.decisions.disruption.decision import (
    CurvePoint,
    DecidedCommand,
    DisruptionDecision,
    Rejection,
    RejectionCause,
    StayingNode,
)
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.decisions.disruption.terminate_first import ended_in_full_reservations, ended_where_scarce
from joinery.decisions.disruption.validation.budget_check import BudgetCheck, admit
from joinery.decisions.disruption.validation.eligible import eligible, most_to_go
from joinery.decisions.disruption.validation.validate import StartRules, nodes_of
from joinery.decisions.disruption.waiting import with_pods_bound
from joinery.decisions.optimizer.consolidation.choice import BOUND
from joinery.decisions.optimizer.consolidation.instance import Consolidation
from joinery.decisions.optimizer.consolidation.patterns import lower_bound
from joinery.decisions.optimizer.consolidation.relaxation import KeepRelaxation
from joinery.decisions.optimizer.effort import Effort
from joinery.decisions.scheduling.solve import GRACE, Stopwatch
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.objections import Objection, ObjectionCode

_DRIFTED = DisruptionReason.DRIFTED
#: Where the bound is so far below the choice, as a share of it, a tighter one is sought.
_FAR = 0.01
#: Parts of the time limit after which the first search, and all of them, end: simulations and checks come later.
_FIRST, _SEARCHING = 0.4, 0.6


def decide(problem: DisruptionProblem, *, stopwatch: Stopwatch = lambda: 0.0) -> DisruptionDecision:
    """The commands that make the cluster cheapest, in the order in which they should be carried out."""
    problem, awaited = with_pods_bound(problem, stopwatch)
    found = candidates(problem, awaited)
    before = sum(found.prices.values())
    effort = _effort(problem, _SEARCHING, stopwatch)
    may_go = eligible(found, problem)
    ended_first = ended_in_full_reservations(may_go.candidates.values(), problem, stopwatch, effort.is_over)
    others = _without_ended(may_go.candidates, ended_first)
    usable = _without_destinations(found, others, ended_first)
    planner = Planner(problem, usable, StartRules(problem, found, effort), effort, stopwatch)
    plan = _planned(planner, others, may_go.staying)
    scarce = _ended_where_scarce(planner, others, plan)
    plan = _with_ended_first(plan, [*ended_first, *scarce], problem, found)
    points = prefixes(before, plan.commands, {one.claim.metadata.name: hourly(one) for one in found.candidates})
    bound, gap = _bounded(plan, before, points[-1])
    in_budgets = 0.0 if plan.saved_in_budgets is None else max(bound, before - plan.saved_in_budgets)
    return DisruptionDecision(
        commands=plan.commands,
        staying=(*found.staying, *plan.staying),
        mistakes=plan.mistakes,
        before=before,
        after=points[-1].hourly,
        moves=points[-1].moves,
        lower_bound=bound,
        within_budgets=min(in_budgets, points[-1].hourly + points[-1].moves),
        gap=gap,
        curve=merged(points, plan.other_points),
        method=plan.method,
        limit_struck=effort.struck,
        prices=found.prices,
        eligible=Counter(reason for candidate in found.candidates for reason in candidate.reasons),
    )


def _effort(problem: DisruptionProblem, part: float, stopwatch: Stopwatch) -> Effort:
    """That searches for a part of the time limit. Once it is late, nothing more is tried or checked."""
    limit, seed = problem.options.time_limit, problem.packing.options.seed
    answers = problem.packing.snapshot.known.answers
    if limit is None:
        return Effort.until(None, stopwatch, seed, answers=answers)
    return Effort.until(part * limit, stopwatch, seed, grace=GRACE + limit - part * limit, answers=answers)


# --- the plan ---


@dataclass(frozen=True)
class _Plan:
    """``staying``: the candidates that stay, and why. ``mistakes``: see ``DisruptionDecision``. ``saved_at_most``: $/h;
    no choice among the candidates saves more, moves considered. ``saved_in_budgets``: the same of choices within
    budgets; None where they keep nothing. ``other_points``: what other prices of a move would
    lead to.
    """

    commands: tuple[DecidedCommand, ...] = ()
    staying: tuple[StayingNode, ...] = ()
    mistakes: tuple[Rejection, ...] = ()
    saved_at_most: float = 0.0
    saved_in_budgets: float | None = None
    other_points: tuple[CurvePoint, ...] = ()
    method: str = "no candidates"


def _planned(planner: Planner, all_candidates: Mapping[str, Candidate], by_budgets: Iterable[StayingNode]) -> _Plan:
    """The best plan for the candidates that may go. ``by_budgets``: those that budgets keep."""
    problem, effort = planner.problem, planner.effort
    going = [candidate for candidate in all_candidates.values() if candidate.reasons]
    if not going:
        return _Plan(staying=tuple(_staying(all_candidates, set(), by_budgets)))
    if is_at_rest(problem, planner.found, going, effort):
        return _Plan(staying=tuple(_staying(all_candidates, set(), by_budgets)), method=BOUND)
    first = _effort(problem, _FIRST, planner.stopwatch)
    best = chosen(problem, planner.found, going, first, effort)
    attempts = planner.attempts(best)
    commands = max((attempt.commands for attempt in attempts), key=lambda it: _rank(it, all_candidates))
    gone = {name for command in commands for name in command.retire}
    # Where time is up, nothing is proven.
    loose = best.model if effort.is_over() else loosened(best.inputs, best.model)
    known = (
        *by_budgets,
        *(node for attempt in attempts for node in attempt.staying),
        *_for_want_of_budget(commands, attempts, BudgetCheck(problem, planner.found.nodes)),
        *(_immovable(loose) if loose is not best.model or not best.model.is_strict else ()),
    )
    mistakes = {
        one.command.retire: one
        for attempt in attempts
        for one in attempt.rejected
        if one.cause is RejectionCause.MISTAKE and gone.isdisjoint(one.command.retire)
    }
    loose = unforced(loose, gone)
    return _Plan(
        commands=commands,
        staying=tuple(_staying(all_candidates, gone, known, best)),
        mistakes=tuple(mistakes.values()),
        saved_at_most=_saved_at_most(loose, best.model, best.choice, effort),
        saved_in_budgets=_saved_in_budgets(planner, loose, attempts),
        other_points=_other_points(planner, best.model) if gone else (),
        method=best.choice.method,
    )


def _rank(commands: Sequence[DecidedCommand], by_name: Mapping[str, Candidate]) -> tuple[int, float]:
    """Larger is better: how many drifted nodes go, which must; then $/h saved, less what the moves count as."""
    members = [by_name[name] for command in commands for name in command.retire]
    drifted = sum(member.is_drifted for member in members)
    return drifted, sum(command.savings for command in commands) - sum(map(hourly, members))


def _other_points(planner: Planner, model: ConsolidationModel) -> tuple[CurvePoint, ...]:
    if not planner.problem.options.curve:
        return ()
    return points_at_other_prices(model, sum(planner.found.prices.values()), planner.effort)


# --- nodes that end before they are replaced ---


def _without_ended(by_name: Mapping[str, Candidate], ended: Iterable[DecidedCommand]) -> Mapping[str, Candidate]:
    """The candidates. Those that end first have no reason left, so that nothing is planned for them."""
    names = {name for command in ended for name in command.retire}
    return {name: replace(it, reasons=frozenset()) if name in names else it for name, it in by_name.items()}


def _without_destinations(
    found: Candidates, by_name: Mapping[str, Candidate], ended: Iterable[DecidedCommand]
) -> Candidates:
    """All nodes, without those that end first as destinations of pods."""
    nodes = {by_name[name].view.node for command in ended for name in command.retire}
    return replace(found, destinations=found.destinations - nodes)


def _ended_where_scarce(planner: Planner, by_name: Mapping[str, Candidate], plan: _Plan) -> Sequence[DecidedCommand]:
    """Commands for drifted nodes whose pods have no other place than the one that they have."""
    stuck = {one.node_claim for one in plan.staying if one.objection.code is ObjectionCode.NO_PLACE}
    filled = filled_by(plan.commands)
    free = [it for name, it in by_name.items() if name in stuck and it.view.node not in filled]
    return ended_where_scarce(free, planner.problem, planner.stopwatch, planner.effort.is_late)


def _with_ended_first(
    plan: _Plan, ended: Sequence[DecidedCommand], problem: DisruptionProblem, found: Candidates
) -> _Plan:
    """The plan, and as many of the commands that end nodes first as budgets let start beside it."""
    if not ended:
        return plan
    admitted = admit((*plan.commands, *ended), problem, found.nodes)
    begun = tuple(command for command in admitted.commands if command.terminates_first)
    names = {name for command in ended for name in command.retire}
    kept = (node for rejection in admitted.rejected for node in nodes_of(rejection))
    staying = (*(node for node in plan.staying if node.node_claim not in names), *kept)
    return replace(plan, commands=(*plan.commands, *begun), staying=staying)


# --- why the others stay ---


def _staying(
    by_name: Mapping[str, Candidate], gone: Container[str], known: Iterable[StayingNode], best: Chosen | None = None
) -> Iterator[StayingNode]:
    """The first known objection to each candidate that stays."""
    first: dict[str, StayingNode] = {}
    for node in known:
        first.setdefault(node.node_claim, node)
    left_out = {candidate.claim.metadata.name for candidate in best.left_out} if best else set[str]()
    is_rough = best is not None and best.is_rough
    for name, candidate in by_name.items():
        if name not in gone:
            yield first.get(name) or (StayingNode(name, LATE) if is_rough or name in left_out else _unchosen(candidate))


def _unchosen(candidate: Candidate) -> StayingNode:
    """Why nothing is done about a candidate that no rule keeps. A drifted one must go, if its pods can."""
    name = candidate.claim.metadata.name
    if candidate.is_drifted:
        return StayingNode(name, NO_PLACE, _DRIFTED)
    text = "it is worth its price: to move its pods saves too little"
    return StayingNode(name, Objection(ObjectionCode.NOT_WORTH_IT, text))


def _for_want_of_budget(
    commands: Sequence[DecidedCommand], attempts: Iterable[Attempt], budgets: BudgetCheck
) -> Iterator[StayingNode]:
    """Nodes that only another plan would retire, where the best plan uses their budgets up."""
    gone = {name for command in commands for name in command.retire}
    for command in commands:
        budgets.take(command)
    for command in (command for attempt in attempts for command in attempt.commands):
        others = tuple(name for name in command.retire if name not in gone)
        if others and (objection := budgets.objection(replace(command, retire=others))):
            yield from (StayingNode(name, objection, command.reason) for name in others)


def _immovable(loose: ConsolidationModel) -> Iterator[StayingNode]:
    """The nodes with pods that no rule lets go anywhere else; drifted ones go all the same, if they can."""
    for index in sorted(loose.immovable):
        candidate = loose.candidates[index]
        if candidate is not None and not candidate.is_drifted:
            yield StayingNode(candidate.claim.metadata.name, NO_PLACE)


# --- the bound ---


def _saved_at_most(
    loose: ConsolidationModel, model: ConsolidationModel, choice: Consolidation, effort: Effort
) -> float:
    """$/h. Too strict a model proves no bound, so the looser one is solved.

    Negative where drift forces more to be spent. ``loose`` does not force drifted nodes that stay after all, or their
    penalty would count as money.
    """
    instance, bound = loose.instance, choice.bound if loose is model and not model.is_strict else 0.0
    if effort.is_over():
        return instance.cost_as_it_is - loose.forced - bound
    if len(instance.bins.demands) and (loose is not model or choice.cost > bound * (1 + _FAR)):
        bound = max(bound, lower_bound(instance, effort, choice.cost / (1 + _FAR)))
    return instance.cost_as_it_is - loose.forced - bound


def _saved_in_budgets(planner: Planner, loose: ConsolidationModel, attempts: Iterable[Attempt]) -> float | None:
    """$/h, where budgets keep commands of some attempt from starting; None where they do not, or time is up."""
    rejected = (rejection for attempt in attempts for rejection in attempt.rejected)
    if planner.effort.is_over() or not any(one.objection.code is ObjectionCode.BUDGET for one in rejected):
        return None
    quotas = [(np.array(indices), most) for indices, most in most_to_go(loose.candidates, planner.budgets)]
    relaxed = KeepRelaxation(loose.instance, planner.effort.patience(), quotas).solve()
    return loose.instance.cost_as_it_is - loose.forced - relaxed.cost if relaxed else None


def _bounded(plan: _Plan, before: float, chosen: CurvePoint) -> tuple[float, float]:
    """The lower bound in $/h, moves considered, and how far price and moves are above it."""
    bound = before - plan.saved_at_most
    return bound, max(0.0, (chosen.hourly + chosen.moves - bound) / bound) if bound > 0 else 0.0
