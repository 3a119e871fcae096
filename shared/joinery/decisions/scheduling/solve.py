"""The packing core's one door: ``solve(problem)``.

A packing is an ``attempt`` by a strategy. Four things lead to further attempts, the first in the outermost loop:

1. gangs of which too few pods have a place: they are left out, or gathered elsewhere (``gangs.together``);
2. pods whose node is going and that found no other place: they stay, and rules count them where they are (``_packed``);
3. a strategy that might place more pods, or cost less (``_search``, ``strategies.alternatives``);
4. domains that a packing opened without having counted them (``_consistent``, ``strategies.repairs``).

Most problems need one attempt.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from joinery.decisions.optimizer.effort import Effort
from joinery.decisions.scheduling.attempt import PackingAttempt, Strategy, attempt, first_fit
from joinery.decisions.scheduling.gangs import together
from joinery.decisions.scheduling.packing import Packing, Unplaced, Unproven
from joinery.decisions.scheduling.problem import Problem
from joinery.decisions.scheduling.strategies import alternatives, cheaper_alternatives, repairs

#: Times that a repaired packing is repaired once more, because each may open further domains.
_ROUNDS = 4

#: Seconds after the time limit for which pods are still placed. What comes after that takes half a second at most, for
#: ten thousand pods, so no plan outlasts its limit by more than a second, unless placing began late.
GRACE = 0.5


#: Seconds since some beginning. The core has no clock of its own.
Stopwatch = Callable[[], float]


def solve(
    problem: Problem,
    *,
    stopwatch: Stopwatch = lambda: 0.0,
    refused: Mapping[str, Unplaced] = MappingProxyType({}),
    bounded_at: Problem | None = None,
) -> Packing:
    """Where every pending pod goes and what to buy for it, with a lower bound on its cost.

    Pure and deterministic: one problem gives one packing, whatever the order of its objects, unless the time limit
    strikes. ``stopwatch`` gives the seconds since the caller began; pods that are ``refused`` are not packed.
    ``bounded_at``: the same problem with the prices that the bound is of, where nodes are chosen by others. A pod
    without a place is a result with reasons, never an exception.
    """
    return solve_unproven(problem, stopwatch=stopwatch, refused=refused, bounded_at=bounded_at).prove()


def solve_unproven(
    problem: Problem,
    *,
    stopwatch: Stopwatch = lambda: 0.0,
    refused: Mapping[str, Unplaced] = MappingProxyType({}),
    bounded_at: Problem | None = None,
) -> Unproven:
    """The packing of ``solve``, before its bound is proven. A bound is a part of the search where it decides whether
    pods are packed in one more way; elsewhere nobody has asked for it yet.
    """
    answers = problem.snapshot.known.answers
    effort = Effort.until(problem.options.time_limit, stopwatch, problem.options.seed, GRACE, answers=answers)
    best, left = together(problem, refused, lambda asked, without: _packed(asked, without, effort), effort)
    unplaced = tuple(sorted((*best.packing.unplaced, *left.values()), key=lambda pod: pod.pod))
    return Unproven(
        replace(best.packing, unplaced=unplaced), lambda: replace(best.bounded(bounded_at), unplaced=unplaced)
    )


def _packed(
    problem: Problem, refused: Mapping[str, Unplaced], effort: Effort
) -> tuple[PackingAttempt, Mapping[str, Unplaced]]:
    """The best packing, and the pods that are not in it: those refused, and those that stay where they are."""
    driver = _Driver(problem, effort)
    staying = dict(refused)
    while True:
        best = driver.search(Strategy(staying=frozenset(staying)))
        newly_staying = {pod.pod: pod for pod in best.packing.unplaced if pod.pod in best.staying}
        if not newly_staying or effort.is_late():
            return best, staying
        staying |= newly_staying


def _with_share_cost(best: PackingAttempt, usual: PackingAttempt) -> PackingAttempt:
    """The best packing. Where it buys nothing on spot for shares on demand, with what that costs beside the usual one,
    which is made as if there were none.
    """
    if not best.strategy.on_demand:
        return best
    cost = best.packing.hourly - (usual.packing.hourly - usual.packing.share_cost)
    return replace(best, packing=replace(best.packing, share_cost=max(0.0, cost)))


@dataclass(frozen=True)
class _Driver:
    problem: Problem
    effort: Effort

    def search(self, strategy: Strategy) -> PackingAttempt:
        """The best of this strategy's packing and those of its alternatives, as long as there is something to gain."""
        usual = self._consistent(strategy)
        was_left = bool(usual.packer.left)
        best = self._best(usual, alternatives(strategy, usual), was_left=was_left)
        # Whom no strategy places is no reason to pay more for the others.
        others = cheaper_alternatives(best.strategy, best) if was_left else ()
        return _with_share_cost(self._best(best, others, was_left=False), usual)

    def _best(self, best: PackingAttempt, others: Iterable[Strategy], *, was_left: bool) -> PackingAttempt:
        """Of the attempt and those by other strategies. ``was_left``: they are to place more pods, at any price."""
        untried = iter(others)
        while not self.effort.is_over() and (best.packer.left or not was_left):
            alternative = next(untried, None)
            # Whether nothing is cheaper takes a proof, which is not begun where there is nothing to try.
            if alternative is None or (not was_left and best.is_cheapest):
                break
            # First-fit alone tells whether the alternative places more pods; most do not, and it is the cheap part.
            if was_left:
                packer = first_fit(self.problem, alternative, self.effort)
                if packer.left_by_priority >= best.packer.left_by_priority:
                    continue
            other = self._consistent(alternative)
            if other.rank(by_price=not was_left) < best.rank(by_price=not was_left):
                best = other
        return best

    def _consistent(self, strategy: Strategy) -> PackingAttempt:
        """A packing that opens no domain which it has not counted, or the best of those that were repaired."""
        first = attempt(self.problem, strategy, self.effort)
        return min(self._repaired(first), key=PackingAttempt.rank) if first.unforeseen else first

    def _repaired(self, first: PackingAttempt) -> Iterator[PackingAttempt]:
        for repair in repairs(first):
            repaired = attempt(self.problem, repair, self.effort)
            for _ in range(_ROUNDS):
                if not repaired.unforeseen or self.effort.is_late():
                    break
                unforeseen = repaired.strategy.unforeseen | repaired.unforeseen
                repaired = attempt(self.problem, replace(repaired.strategy, unforeseen=unforeseen), self.effort)
            yield repaired
            if self.effort.is_late() or (self.effort.is_over() and not repaired.unforeseen):
                # A plan that keeps its spreads is owed for a while after the limit; a better one is not.
                break
