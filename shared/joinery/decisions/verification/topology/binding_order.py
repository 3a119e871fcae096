"""An order of binding for required pod affinity (kube-scheduler InterPodAffinity).

Pods that need each other start with one of them, and kube-scheduler lets that one in only while nothing that its terms
match runs anywhere. A plan in which no pod may come first can never be bound.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from operator import or_

from joinery.decisions.verification.final_state import FinalState
from joinery.decisions.verification.labelled import as_set
from joinery.decisions.verification.nodes import EquivalenceClass, FinalNode
from joinery.decisions.verification.topology.affinity import RequiredNeighbours
from joinery.decisions.verification.topology.census import ClassSet, includes
from joinery.decisions.verification.violation import Violation, ViolationCode, misplaced

#: So many ways to start groups are compared with each other; of more, some that would do may not be found.
_MOST_COMPARED = 100
#: So many of the classes that a group waits for are remembered one by one.
_MOST_NAMED = 64

#: A topology key and its domain; None for any domain.
Place = tuple[str, str | None]


@dataclass(frozen=True, eq=False)
class _Step:
    """The planned pods of one class in one set of domains. What is true of one is true of all.

    ``needs``: where they need neighbours.
    """

    group: RequiredNeighbours
    needs: tuple[Place, ...]
    nodes: Sequence[FinalNode]


#: For each step that may start: the steps that could be bound once it is, itself among them.
Reached = Mapping[_Step, Sequence[_Step]]


def check_order(state: FinalState, groups: Sequence[RequiredNeighbours]) -> Iterator[Violation]:
    """There is an order in which kube-scheduler could bind the planned pods.

    First bind all pods that need no start: those that require no neighbours, and then those that find theirs. Of the
    steps that are stuck some must start their group. In the order sought these come before everything else, because
    pods that run already keep a group from starting.
    """
    final, beginning = _BoundPods(state, groups), _BoundPods(state, groups)
    final.bind_the_rest()
    waiting = dict.fromkeys(final.steps)
    final.bind([step for step in waiting if final.finds_neighbours(step)], waiting)
    while waiting:
        reached = _reached(final, [step for step in waiting if beginning.may_start(step)], waiting)
        starters = _started(beginning, _sources(reached))
        if not starters:
            break
        final.bind(starters, waiting)
    for step in waiting:
        message = "no order of binding lets the pod's required affinity be met when its turn comes"
        yield misplaced(ViolationCode.POD_AFFINITY, step.group.owner, step.nodes[0], message)


def _reached(state: "_BoundPods", starts: Sequence[_Step], waiting: Mapping[_Step, None]) -> Reached:
    """What each step leads to. Of very many, those are left out that one before them leads to."""
    reached: dict[_Step, Sequence[_Step]] = {}
    covered: set[_Step] = set()
    left = dict(waiting)
    for start in starts:
        if len(starts) <= _MOST_COMPARED or start not in covered:
            bound = state.bind([start], left)
            reached[start] = bound
            covered.update(bound)
            state.release(bound)
            left.update(dict.fromkeys(bound))
    return reached


def _sources(reached: Reached) -> Reached:
    """The steps that can follow only each other. Of each such set one must start; the rest follow."""
    leads: dict[_Step, set[_Step]] = {step: set() for step in reached}
    for step, followers in reached.items():
        for follower in followers:
            if follower in leads:
                leads[follower].add(step)
    return {step: followers for step, followers in reached.items() if leads[step] <= set(followers)}


def _started(beginning: "_BoundPods", sources: Reached) -> list[_Step]:
    """One step of each source that can start, in an order in which they shut each other out as little as possible."""
    left, started = dict.fromkeys(sources), list[_Step]()
    while left:
        first = _least_excluding(list(left), sources) if len(left) <= _MOST_COMPARED else next(iter(left))
        if beginning.may_start(first):
            beginning.bind([first])
            started.append(first)
            for step in sources[first]:
                left.pop(step, None)
        else:
            del left[first]
    return started


def _least_excluding(left: Sequence[_Step], sources: Reached) -> _Step:
    """A step that, once it is bound, lets all others start that it does not lead to; else the first."""
    candidates = (
        step
        for step in left
        if not any(includes(other.group.matched, step.group.owner) for other in left if other not in sources[step])
    )
    return next(candidates, left[0])


class _BoundPods:
    """Which classes have pods bound in each domain, while the planned pods are bound one after another."""

    def __init__(self, state: FinalState, groups: Sequence[RequiredNeighbours]) -> None:
        self._keys = {key for group in groups for key in group.keys}
        self._requiring = as_set(group.owner.index for group in groups)
        self._relevant = reduce(or_, (group.matched for group in groups), 0)
        self._classes = [pod_class for pod_class in state.classes.values() if includes(self._relevant, pod_class)]
        self._pods: dict[tuple[int, Place], int] = defaultdict(int)
        self._present: dict[Place, ClassSet] = defaultdict(int)
        for pod_class in self._classes:
            for node, count in state.places(pod_class).items():
                self._add(pod_class, node, count - len(node.planned.get(pod_class, ())))
        self.steps = [step for group in groups for step in _steps(group)]
        self._index(groups)

    def _index(self, groups: Sequence[RequiredNeighbours]) -> None:
        """Who may have waited for a class: of groups that match few that is remembered, others are tried each time."""
        self._steps_at: dict[tuple[RequiredNeighbours, Place], list[_Step]] = defaultdict(list)
        for step in self.steps:
            for place in step.needs:
                self._steps_at[step.group, place].append(step)
        self._waiting_for: dict[int, list[RequiredNeighbours]] = defaultdict(list)
        self._undecided = list[RequiredNeighbours]()
        for group in groups:
            named = group.matched & self._requiring
            if named.bit_count() > _MOST_NAMED:
                self._undecided.append(group)
                continue
            while named:
                self._waiting_for[named.bit_length() - 1].append(group)
                named ^= 1 << named.bit_length() - 1

    def _add(self, pod_class: EquivalenceClass, node: FinalNode, count: int) -> None:
        for key in self._keys & node.labels.keys():
            for place in ((key, None), (key, node.labels[key])):
                self._pods[pod_class.index, place] += count
                is_there = self._pods[pod_class.index, place] > 0
                if is_there is not includes(self._present[place], pod_class):
                    self._present[place] ^= 1 << pod_class.index

    def bind(self, steps: Iterable[_Step], waiting: dict[_Step, None] | None = None) -> list[_Step]:
        """Bind every pod of the steps, and then step after step of those ``waiting`` that find their neighbours.

        Returns all of them; they wait no more.
        """
        bound, ready = list[_Step](), list(steps)
        while ready:
            for step in ready:
                self._count(step, 1)
                bound.append(step)
                if waiting is not None:
                    del waiting[step]
            nearby = dict.fromkeys(other for step in ready for other in self._around(step)) if waiting else {}
            ready = [step for step in nearby if waiting and step in waiting and self.finds_neighbours(step)]
        return bound

    def release(self, steps: Iterable[_Step]) -> None:
        """Take the pods of the steps back."""
        for step in steps:
            self._count(step, -1)

    def _count(self, step: _Step, times: int) -> None:
        owner = step.group.owner
        if includes(self._relevant, owner):
            for node in step.nodes:
                self._add(owner, node, times * len(node.planned[owner]))

    def _around(self, step: _Step) -> Iterator[_Step]:
        """The steps that may have found a neighbour in this one."""
        places = {(key, node.labels[key]) for node in step.nodes for key in self._keys & node.labels.keys()}
        for group in chain(self._waiting_for.get(step.group.owner.index, ()), self._undecided):
            for place in places:
                yield from self._steps_at.get((group, place), ())

    def bind_the_rest(self) -> None:
        """Bind the planned pods that require no neighbours: they may come at any time."""
        for pod_class in self._classes:
            for node in pod_class.planned_on if not includes(self._requiring, pod_class) else ():
                self._add(pod_class, node, len(node.planned[pod_class]))

    def finds_neighbours(self, step: _Step) -> bool:
        """Whether the neighbours are there: for each key, somewhere in its domain."""
        return all(self._present.get(place, 0) & step.group.matched for place in step.needs)

    def may_start(self, step: _Step) -> bool:
        """Whether kube-scheduler lets it in without a neighbour: it matches itself, and nothing that it matches
        runs on a node with its keys.
        """
        is_alone = not any(self._present.get((key, None), 0) & step.group.matched for key in step.group.keys)
        return step.group.matches_itself and is_alone


def _steps(group: RequiredNeighbours) -> Iterator[_Step]:
    by_place: dict[tuple[str, ...], list[FinalNode]] = defaultdict(list)
    for node in group.owner.planned_on:
        by_place[tuple(node.labels.get(key, "") for key in group.keys)].append(node)
    for where in sorted(by_place):
        yield _Step(group, tuple(zip(group.keys, where, strict=True)), by_place[where])
