"""Karpenter's own rule of consolidation, as its disruption controller decides (Karpenter 1.14).

Candidates, their costs and the budgets are the product's: these rules are Karpenter's in the product too. What differs
is which nodes are tried. Karpenter sorts candidates by price for each eviction, and tries in this order:

1. **emptiness**: all empty nodes at once;
2. **multi-node**: by binary search the longest prefix of that order, of at most 101 nodes, whose pods fit on the other
   nodes and at most one new, cheaper one;
3. **single-node**: one candidate after another, until a command is found.

The first that finds something ends the pass. A command waits for 15 seconds and has to come out the same again.

Its scheduling simulation is the product's packing core here, which packs at least as well as Karpenter's
(``tools.churn.simulated_move``). Karpenter's time limits (one minute for 2, three for 3) are not kept: a cluster of
this size is through before.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest

from joinery.decisions.disruption.candidates import Candidate, candidates
from joinery.decisions.disruption.decision import DecidedCommand
from joinery.decisions.disruption.moves import eviction_cost
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.decisions.disruption.validation.budget_check import BudgetCheck
from joinery.decisions.scheduling.packing import Launch
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.karpenter.labels import ON_DEMAND, SPOT
from joinery.objects.snapshot.pods import priorities_of
from tools.churn.simulated_move import Moved, Mover, Replacement

#: Nodes that multi-node consolidation looks at, beside the first.
_MOST = 100
#: Seconds after which a fruitless pass is made again, though nothing has changed.
_FORGOTTEN = 300
_SPOT_TYPES = 15
EMPTY, UNDERUTILIZED = DisruptionReason.EMPTY, DisruptionReason.UNDERUTILIZED


class Karpenter:
    """Karpenter's rule. It remembers when it last found nothing.

    ``spot_to_spot``: its feature gate SpotToSpotConsolidation, which is off unless somebody turns it on.
    """

    validation, steers = 15, False

    def __init__(self, *, spot_to_spot: bool = False) -> None:
        self._spot_to_spot = spot_to_spot
        self._fruitless: tuple[object, float] | None = None

    def decide(self, problem: DisruptionProblem) -> Sequence[DecidedCommand]:
        """The commands of the first method that finds any."""
        now, state = problem.packing.snapshot.now.timestamp(), _state(problem)
        if self._fruitless and self._fruitless[0] == state and now - self._fruitless[1] < _FORGOTTEN:
            return ()
        attempt = _Pass(problem, spot_to_spot=self._spot_to_spot)
        commands = attempt.commands()
        # Budgets may have room again though nothing has changed that is watched.
        self._fruitless = None if commands or attempt.is_constrained else (state, now)
        return commands

    def validated(self, commands: Sequence[DecidedCommand], problem: DisruptionProblem) -> Sequence[DecidedCommand]:
        """The commands that come out the same again; of empty nodes those that are still empty."""
        attempt = _Pass(problem, spot_to_spot=self._spot_to_spot)
        return [again for command in commands if (again := attempt.validated(command))]


def _state(problem: DisruptionProblem) -> object:
    """What Karpenter watches: pods that are bound or gone, and nodes that come or go."""
    snapshot = problem.packing.snapshot
    pods = frozenset((pod.key, pod.spec.node_name) for pod in snapshot.pods)
    claims = frozenset((claim.metadata.name, claim.status.node_name) for claim in snapshot.managed_claims)
    return pods, claims


class _Pass:
    """One look at the cluster. ``is_constrained``: budgets kept some candidate from being looked at."""

    def __init__(self, asked: DisruptionProblem, *, spot_to_spot: bool) -> None:
        # Karpenter does not ask whether a node has paid for itself.
        problem = replace(asked, options=replace(asked.options, new_nodes_repay=False))
        judged = candidates(problem)
        self._problem, self._spot_to_spot = problem, spot_to_spot
        self._budgets = BudgetCheck(problem, judged.nodes)
        self._mover = Mover(problem, judged)
        self._priorities = priorities_of(problem.packing.snapshot.priority_classes)
        ranked = sorted(judged.candidates, key=lambda one: (-one.price / self._disruption_cost(one), one.view.name))
        self._candidates = {candidate.claim.metadata.name: candidate for candidate in ranked}
        self.is_constrained = False

    def commands(self) -> Sequence[DecidedCommand]:
        """What the first method finds that finds anything."""
        methods: Iterable[Callable[[], DecidedCommand | None]] = (self._empty, self._multi, self._single)
        return [command] if (command := next((one for method in methods if (one := method())), None)) else []

    def validated(self, command: DecidedCommand) -> DecidedCommand | None:
        """The command if it comes out the same again, as far as it does."""
        members = [self._candidates[name] for name in command.retire if name in self._candidates]
        if command.reason is EMPTY:
            still = self._within_budgets([one for one in members if EMPTY in one.reasons], EMPTY)
            return _emptied(still) if still else None
        if len(members) < len(command.retire) or any(UNDERUTILIZED not in one.reasons for one in members):
            return None
        if len(self._within_budgets(members, UNDERUTILIZED)) < len(members):
            return None
        moved = self._mover.move(members)
        if moved is None or bool(moved.new) != bool(command.launches):
            return None
        if moved.new and not set(command.launches[0].instance_types) <= set(moved.new.launch.instance_types):
            return None
        return command

    # --- the three methods ---

    def _empty(self) -> DecidedCommand | None:
        empty = self._within_budgets([one for one in self._candidates.values() if EMPTY in one.reasons], EMPTY)
        return _emptied(empty) if empty else None

    def _multi(self) -> DecidedCommand | None:
        chosen = self._within_budgets(self._underutilized(), UNDERUTILIZED)
        low, high, best = 1, min(_MOST, len(chosen) - 1), None
        while low <= high:
            middle = (low + high) // 2
            command = self._computed(chosen[: middle + 1])
            if command:
                best, low = command, middle + 1
            else:
                high = middle - 1
        return best

    def _single(self) -> DecidedCommand | None:
        for candidate in _interleaved(self._underutilized()):
            if not self._budgets.left(candidate.view.pool, UNDERUTILIZED):
                self.is_constrained = True
            elif command := self._computed([candidate]):
                return command
        return None

    def _underutilized(self) -> list[Candidate]:
        return [one for one in self._candidates.values() if UNDERUTILIZED in one.reasons]

    def _within_budgets(self, members: Sequence[Candidate], reason: DisruptionReason) -> list[Candidate]:
        """In their order, those that the budgets of their NodePools have room for."""
        taken: Counter[str] = Counter()
        within = []
        for candidate in members:
            pool = candidate.view.pool
            if taken[pool] < self._budgets.left(pool, reason):
                taken[pool] += 1
                within.append(candidate)
        self.is_constrained = self.is_constrained or len(within) < len(members)
        return within

    # --- one set of candidates ---

    def _disruption_cost(self, candidate: Candidate) -> float:
        return 1.0 + sum(max(0.0, eviction_cost(pod, self._priorities)) for pod in candidate.pods)

    def _computed(self, members: Sequence[Candidate]) -> DecidedCommand | None:
        """What becomes of the candidates together; None if that is no gain (Karpenter `computeConsolidation`)."""
        price = sum(candidate.price for candidate in members)
        moved = self._mover.move(members, below=price)
        if moved is None:
            return None
        if moved.new is None:
            return _underutilized(members, moved)
        launch = self._cheaper(moved.new, members, price)
        return _underutilized(members, moved, launch) if launch else None

    def _cheaper(self, new: Replacement, members: Sequence[Candidate], price: float) -> Launch | None:
        """The launch, of those of its types that surely cost less; None if there are none."""
        is_from_spot = all(candidate.capacity_type == SPOT for candidate in members)
        if is_from_spot and SPOT in new.capacity_types:
            if not self._spot_to_spot:
                return None
            new = new.of_capacity_type(SPOT)
        types = [name for name in new.launch.instance_types if new.worst_price(name) < price]
        if is_from_spot and SPOT in new.capacity_types and len(members) == 1:
            types = types[:_SPOT_TYPES] if len(types) >= _SPOT_TYPES else []
        if len(members) > 1:
            types = _not_of_the_same(types, new, members)
        if {SPOT, ON_DEMAND} <= new.capacity_types:
            new = new.of_capacity_type(SPOT)
        return new.narrowed(types)


def _not_of_the_same(types: Sequence[str], new: Replacement, members: Sequence[Candidate]) -> list[str]:
    """The types that cost less than the cheapest node that goes and might come back as the same type.

    Else three nodes would become one of their own kind, where to delete two is as good.
    """
    same = [candidate.price for candidate in members if candidate.instance_type in types]
    return [name for name in types if not same or new.worst_price(name) < min(same)]


def _interleaved(members: Iterable[Candidate]) -> Iterator[Candidate]:
    """The candidates of each NodePool in turn."""
    by_pool: dict[str, list[Candidate]] = defaultdict(list)
    for candidate in members:
        by_pool[candidate.view.pool].append(candidate)
    for turn in zip_longest(*by_pool.values()):
        yield from (candidate for candidate in turn if candidate is not None)


def _emptied(members: Sequence[Candidate]) -> DecidedCommand:
    return replace(_underutilized(members, Moved()), reason=EMPTY)


def _underutilized(members: Sequence[Candidate], moved: Moved, *launches: Launch) -> DecidedCommand:
    return DecidedCommand(
        reason=UNDERUTILIZED,
        message="",
        retire=tuple(candidate.claim.metadata.name for candidate in members),
        launches=launches,
        existing=moved.existing,
        savings=sum(candidate.price for candidate in members) - sum(launch.offering.price for launch in launches),
        move_price=sum(candidate.move_price for candidate in members),
    )
