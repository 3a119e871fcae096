"""Which nodes earn their price: ``decide(problem)``.

1. ``candidates``: which nodes may go at all, and for what.
2. ``consolidation.model`` and ``optimizer.consolidation``: which of them should, all at once, so that the price of
   nodes and of moves is least; with a bound.
3. ``consolidation.trial``: where their pods really go, by the packing core. A node whose pods have no other place
   stays, and the rest is tried again.
4. ``consolidation.grouping``: commands that are each right by themselves, and worth their moves. ``validation`` checks
   them by the code that checks every plan.
5. ``balance``: whether Balanced NodePools agree; ``admission``: what the budgets of NodePools let start now. The other
   nodes are held.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from joinery.disruption.admission import admit
from joinery.disruption.balance import approved
from joinery.disruption.candidates import Candidate, Candidates, candidates
from joinery.disruption.consolidation.grouping import commands_of, is_worth_it
from joinery.disruption.consolidation.model import Model, model_of
from joinery.disruption.consolidation.trial import Trial, trial
from joinery.disruption.disruptions import CurvePoint, Disruption, Disruptions, Held, HeldCode
from joinery.disruption.problem import DisruptionProblem
from joinery.disruption.validation import validate
from joinery.optimizer.consolidation.choice import Consolidation, consolidate
from joinery.optimizer.effort import Effort
from joinery.scheduling.problem import WishedLaunch, Wishes
from joinery.scheduling.solve import Stopwatch

_ROUNDS = 8
"""Trials at most: each leaves out nodes that cannot go, or are not worth it."""


def decide(problem: DisruptionProblem, *, stopwatch: Stopwatch = lambda: 0.0) -> Disruptions:
    """The commands that make the cluster cheapest, in the order in which they should be carried out."""
    judged = candidates(problem)
    before = sum(judged.prices.values())
    limit = problem.options.time_limit
    effort = Effort(seed=problem.packing.options.seed, is_time_up=lambda: limit is not None and stopwatch() >= limit)
    plan = _Planner(problem, judged, effort, stopwatch).plan()
    balanced = approved(plan.commands, problem, judged)
    admitted = admit(balanced.commands, problem, judged.nodes)
    after = before - sum(command.savings for command in admitted.commands)
    bound, gap = _bounded(plan, admitted.commands, before, after)
    return Disruptions(
        commands=admitted.commands,
        held=(*judged.held, *plan.held, *balanced.held, *admitted.held),
        before=before,
        after=after,
        lower_bound=bound,
        gap=gap,
        curve=_curve(before, admitted.commands),
        method=plan.method,
        limit_struck=effort.struck,
    )


@dataclass(frozen=True)
class _Plan:
    """``saved_at_most``: $/h that no choice among the candidates saves more than, moves considered. ``moves``: $/h."""

    commands: tuple[Disruption, ...] = ()
    held: tuple[Held, ...] = ()
    saved_at_most: float = 0.0
    method: str = "bound"


class _Planner:
    def __init__(self, problem: DisruptionProblem, judged: Candidates, effort: Effort, stopwatch: Stopwatch) -> None:
        self._problem, self._judged, self._effort, self._stopwatch = problem, judged, effort, stopwatch
        self._by_name = {candidate.claim.metadata.name: candidate for candidate in judged.candidates}

    def plan(self) -> _Plan:
        """The commands, budgets apart."""
        if not self._by_name:
            return _Plan(method="no candidates")
        model = model_of(self._problem, self._judged, self._judged.candidates)
        choice = consolidate(model.instance, self._effort)
        saved_at_most = max(0.0, model.instance.cost_as_it_is - choice.bound)
        retired = [one for one, kept in zip(model.candidates, choice.keep, strict=True) if one is not None and not kept]
        commands = self._tried(retired, _wishes(model, choice))
        gone = {name for command in commands for name in command.retire}
        held = tuple(
            Held(name, HeldCode.NOT_WORTH_IT, "it is worth its price: to move its pods saves too little")
            for name in self._by_name
            if name not in gone
        )
        return _Plan(commands, held, saved_at_most, choice.method)

    def _tried(self, retired: list[Candidate], wishes: Wishes) -> tuple[Disruption, ...]:
        """The commands of a trial in which every pod has a place, and that are worth it."""
        for _ in range(_ROUNDS):
            if not retired:
                break
            result = trial(self._problem, self._judged, retired, wishes, self._stopwatch)
            if not result.stuck:
                return self._right(self._worthwhile(result))
            retired = [one for one in retired if one.claim.metadata.name not in result.stuck]
        return ()

    def _worthwhile(self, result: Trial) -> tuple[Disruption, ...]:
        return tuple(
            command
            for command in commands_of(result)
            if is_worth_it(command, (self._by_name[name] for name in command.retire))
        )

    def _right(self, commands: tuple[Disruption, ...]) -> tuple[Disruption, ...]:
        """The commands that the independent check agrees with."""
        return validate(self._problem.packing, commands, self._problem.packing.snapshot).valid


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


def _bounded(plan: _Plan, commands: Iterable[Disruption], before: float, after: float) -> tuple[float, float]:
    """The lower bound in $/h, moves considered, and how far price and moves are above it."""
    bound = before - plan.saved_at_most
    moves = sum(command.move_price for command in commands)
    return bound, max(0.0, (after + moves - bound) / bound) if bound > 0 else 0.0


def _curve(before: float, commands: Iterable[Disruption]) -> tuple[CurvePoint, ...]:
    """What the cluster costs after each prefix of the commands, by evictions."""
    points = {0: before}
    pods, cost = 0, before
    for command in commands:
        pods, cost = pods + len(command.pods), cost - command.savings
        points[pods] = cost
    return tuple(CurvePoint(at, price, is_chosen=at == pods) for at, price in points.items())
