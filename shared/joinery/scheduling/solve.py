"""The packing core's one door: ``solve(problem)``."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType

from joinery.optimizer.effort import Effort
from joinery.scheduling.explain.reasons import reasons_for
from joinery.scheduling.firstfit.firstfit import FirstFit
from joinery.scheduling.firstfit.groups import Stray
from joinery.scheduling.firstfit.manners import (
    USUAL,
    Manner,
    both_near_and_spread,
    manners_for_left,
    manners_for_price,
    zones_without_neighbours,
)
from joinery.scheduling.firstfit.strays import Place, closable, closed, strays, unbuyable
from joinery.scheduling.firstfit.workspace import Workspace
from joinery.scheduling.launches import Slack, launch_of
from joinery.scheduling.optimise.bound import Bounds, bounds
from joinery.scheduling.optimise.improve import cheaper
from joinery.scheduling.packing import ExistingPlacement, Launch, Packing, Relaxed, Unplaced
from joinery.scheduling.problem import Problem

_ROUNDS = 4
_SMALL = 40
"""Pods up to which other ways to go about a packing are tried for its price, or for pods that are left."""
_PROVEN = 1e-6
"""A plan this close to its bound, as a share, is as cheap as any."""

Stopwatch = Callable[[], float]
"""Seconds since some beginning. The core has no clock of its own."""


def solve(
    problem: Problem,
    *,
    stopwatch: Stopwatch = lambda: 0.0,
    refused: Mapping[str, Unplaced] = MappingProxyType({}),
) -> Packing:
    """Where every pending pod goes and what to buy for it.

    Pure and deterministic: one problem gives one packing, whatever the order of its objects, unless the time limit strikes.
    ``stopwatch`` gives the seconds since the caller began; pods that are ``refused`` are not packed. Costs about a second for ten
    thousand pods in fifty classes. A pod without a place is a result with reasons, never an exception.
    """
    limit = problem.options.time_limit
    effort = Effort(seed=problem.options.seed, is_time_up=lambda: limit is not None and stopwatch() >= limit)
    staying = dict(refused)
    while True:
        found = _settled(_Asked(problem, staying=frozenset(staying)), effort)
        more = {one.pod: one for one in found.packing.unplaced if one.pod in found.staying}
        if not more:
            break
        staying |= more
    unplaced = sorted((*found.packing.unplaced, *staying.values()), key=lambda one: one.pod)
    return replace(found.bounded(), unplaced=tuple(unplaced))


@dataclass(frozen=True)
class _Asked:
    """A problem, with what earlier attempts found (``Workspace``), and the places that are closed to everybody."""

    problem: Problem
    strays: frozenset[Stray] = frozenset()
    staying: frozenset[str] = frozenset()
    closed: frozenset[Place] = frozenset()
    manner: Manner = USUAL


@dataclass(frozen=True, kw_only=True)
class _Attempt:
    """A packing without its bound, how many pods of each priority it leaves, and what it found out that it had not reckoned with.

    ``work`` and ``packer``: what made it. ``strays``: domains; ``closable``: those of them that can be kept out of the plan altogether. ``is_uneven``: DaemonSets' pods of its
    new nodes break a spread. ``staying``: pods that it left on a node that is going, where rules count them until the node is gone.
    """

    asked: _Asked
    packing: Packing
    work: Workspace
    packer: FirstFit
    left: list[tuple[int, int]]
    is_uneven: bool
    strays: frozenset[Stray]
    closable: frozenset[Place]
    staying: frozenset[str]

    @cached_property
    def proven(self) -> Bounds:
        """What nodes for these pods can cost; places that the packing closed are open to others."""
        pools = Workspace(self.asked.problem).pools if self.asked.closed else self.work.pools
        return bounds(self.work, self.packer.bought, pools, self.packing.hourly)

    @property
    def is_cheapest(self) -> bool:
        """Whether nothing is cheaper that keeps what this keeps."""
        return self.packing.hourly <= self.proven.kept * (1 + _PROVEN)

    def bounded(self) -> Packing:
        """The packing with its bounds."""
        proven = self.proven
        return replace(self.packing, lower_bound=proven.hard, kept_bound=proven.kept, weaknesses=proven.weaknesses)

    def rank(self, *, by_price: bool = True) -> tuple[object, ...]:
        """The better the less, in the order in which things come first in a plan: without strays, pods placed, preferences, existing
        capacity, weight, and if it is to decide, price.
        """
        packing = self.packing
        given_up = sum(len(one.dropped) for one in packing.relaxed)
        weights = Counter[int]()
        for node in self.packer.bought:
            weights[node.pool.weight] += len(node.pods)
        lightest_last = [(-weight, -count) for weight, count in sorted(weights.items(), reverse=True)]
        standing = -sum(len(one.pods) for one in packing.existing)
        cost = round(packing.hourly + packing.resilience_cost, 9) if by_price else 0
        is_wrong = bool(self.strays) or self.is_uneven
        return is_wrong, self.left, given_up, standing, lightest_last, cost, len(packing.launches) * by_price


def _settled(asked: _Asked, effort: Effort) -> _Attempt:
    """The best of the usual packing and, where they might help, of some that were gone about in other manners."""
    best = _without_surprise(asked, effort)
    was_left = bool(best.packer.left)
    for choice in _other_ways(asked, best):
        if effort.is_over() or (not best.packer.left if was_left else best.is_cheapest):
            break
        if was_left and _left_by_priority(_first_fit(choice)[1]) >= best.left:
            continue
        other = _without_surprise(choice, effort)
        if other.rank(by_price=not was_left) < best.rank(by_price=not was_left):
            best = other
    return best


def _other_ways(asked: _Asked, usual: _Attempt) -> Iterator[_Asked]:
    """What to try for pods that are left, or else for a lower price."""
    left, work = tuple(usual.packer.left), usual.work
    if work.topology.settling:
        yield replace(asked, manner=Manner(heedless=True))
    is_small = len(work.pending) <= _SMALL
    if any(both_near_and_spread(pods, work.topology) for pods in left):
        yield replace(asked, manner=Manner(dealing="ahead"))
        if closed := zones_without_neighbours(work.possible, work.topology):
            yield replace(asked, closed=closed)
    if out_of_reach := unbuyable(work, left, usual.packer.bought):
        yield replace(asked, closed=asked.closed | out_of_reach)
    if is_small:
        others = manners_for_left(left, work.topology) if left else manners_for_price(usual.packer.bought)
        yield from (replace(asked, manner=manner) for manner in others)


def _without_surprise(asked: _Asked, effort: Effort) -> _Attempt:
    """A packing without strays, or the best there is."""
    first = _attempt(asked, effort)
    return min(_without_strays(asked, first, effort), key=_Attempt.rank) if first.strays else first


def _without_strays(asked: _Asked, first: _Attempt, effort: Effort) -> Iterator[_Attempt]:
    """Packings that reckon with what the first one found: as domains, and closed to everybody."""
    choices = [replace(asked, strays=first.strays)]
    if first.closable:
        choices.append(replace(asked, closed=first.closable))
    for choice in choices:
        found = _attempt(choice, effort)
        for _ in range(_ROUNDS):
            if not found.strays:
                break
            choice = replace(choice, strays=choice.strays | found.strays)
            found = _attempt(choice, effort)
        yield found


def _attempt(asked: _Asked, effort: Effort) -> _Attempt:
    work, packer = _first_fit(asked)
    better = None if asked.problem.options.first_fit_only else cheaper(work, packer.nodes, effort)
    if better is not None:
        packer.go_on(better.buyer)
    packer.fill_up()
    packer.nodes.note_usage()
    packing = Packing(
        existing=_existing(work),
        launches=_launches(work, packer),
        unplaced=_unplaced(work, packer),
        relaxed=tuple(Relaxed(pod, packer.relaxed[pod]) for pod in sorted(packer.relaxed)),
        pool_reasons=work.rejected_pools,
        method="assignment" if better else "first-fit",
        limit_struck=effort.struck,
        passed_over=asked.closed,
        resilience_cost=better.resilience_cost if better else 0.0,
    )
    found = strays(work, packer.bought, packing.launches)
    return _Attempt(
        asked=asked,
        packing=packing,
        work=work,
        packer=packer,
        left=_left_by_priority(packer),
        is_uneven=work.topology.is_uneven or _drifts(work, packer),
        strays=found,
        closable=closable(work, found),
        staying=_staying(work, packer),
    )


def _drifts(work: Workspace, packer: FirstFit) -> bool:
    """Whether a new node may bring DaemonSets' pods that a spread counts into one domain or another."""
    keys = {group.rule.key for group in work.topology.settling}
    nodes = packer.bought if keys else ()
    return any(not keys <= {key for batch in node.placed for key in batch.domains} for node in nodes)


def _staying(work: Workspace, packer: FirstFit) -> frozenset[str]:
    """Pods without a new place whose node is going, if any rule about pods is theirs or looks at them."""
    left = [*packer.left.items(), *((pods, pods.pods) for pods in work.classes if pods.problems)]
    return frozenset(
        name for pods, names in left for name in names if name not in work.waiting and work.topology.minds(pods)
    )


def _first_fit(asked: _Asked) -> tuple[Workspace, FirstFit]:
    """Large pods first, which packs best. Where room is bounded and pods are left out, small ones first if that places more."""
    work, packer = _run(asked)
    if packer.left and (not work.pools or any(pool.limits for pool in work.pools)):
        other_work, other = _run(replace(asked, manner=replace(asked.manner, smallest_first=True)))
        if _left_by_priority(other) < _left_by_priority(packer):
            work, packer = other_work, other
    return work, packer


def _run(asked: _Asked) -> tuple[Workspace, FirstFit]:
    problem = closed(asked.problem, asked.closed) if asked.closed else asked.problem
    work = Workspace(problem, asked.strays, asked.staying)
    packer = FirstFit(work, asked.manner)
    packer.run()
    return work, packer


def _left_by_priority(packer: FirstFit) -> list[tuple[int, int]]:
    """How many pods of each priority have no place, highest first: comparing two such lists compares plans."""
    left: Counter[int] = Counter()
    for pods in packer.classes:
        left[pods.priority] += len(packer.left.get(pods, ()))
    return [(-priority, left[priority]) for priority in sorted(left, reverse=True)]


def _existing(work: Workspace) -> tuple[ExistingPlacement, ...]:
    return tuple(
        ExistingPlacement(
            node.view.node, node.view.claim, tuple(sorted(pod for _, batch in node.placed for pod in batch))
        )
        for node in work.nodes
        if node.placed
    )


def _launches(work: Workspace, packer: FirstFit) -> tuple[Launch, ...]:
    slack = Slack(work.pools)
    names = _LaunchNames(work)
    known: dict[Hashable, Launch] = {}
    launches = []
    for node in packer.bought:
        name = names.next(node.pool.name)
        like = known.get(node.recipe)
        if like is None:
            like = known[node.recipe] = launch_of(node, name, work, slack)
        launches.append(replace(like, name=name, pods=node.pods))
    return tuple(launches)


class _LaunchNames:
    """Pools' names with numbers, past those that nodes and claims of the cluster have already."""

    def __init__(self, work: Workspace) -> None:
        self._taken = {name for view in work.views for name in (view.node, view.claim)}
        self._numbers: Counter[str] = Counter()

    def next(self, pool: str) -> str:
        self._numbers[pool] += 1
        name = f"{pool}-{self._numbers[pool]}"
        return self.next(pool) if name in self._taken else name


def _unplaced(work: Workspace, packer: FirstFit) -> tuple[Unplaced, ...]:
    left = [*packer.left.items(), *((pods, pods.pods) for pods in work.classes if pods.problems)]
    found = []
    for pods, names in left:
        reasons = reasons_for(work, pods)
        found += [Unplaced(name, reasons) for name in names]
    return tuple(sorted(found, key=lambda unplaced: unplaced.pod))
