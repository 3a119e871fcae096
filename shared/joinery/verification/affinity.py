"""Required pod affinity and anti-affinity (kube-scheduler InterPodAffinity).

Two things are checked beyond each pod's own place. Anti-affinity binds both ways: a pod that runs keeps others out. And
affinity needs an order of binding. Pods that need each other start with one of them, and kube-scheduler lets that one
in only while nothing that its terms match runs anywhere. A plan in which no pod may come first can never be bound.
"""

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import chain
from operator import and_, or_

import msgspec

from joinery.apis.core import LabelSelector, LabelSelectorRequirement, PodAffinity, PodAffinityTerm
from joinery.verification.census import Census, ClassSet, Tally, as_set, includes
from joinery.verification.final_state import FinalState
from joinery.verification.nodes import EquivalenceClass, FinalNode
from joinery.verification.predicates import Labels
from joinery.verification.violation import Violation, ViolationCode, misplaced

_ENCODE = msgspec.json.Encoder().encode
#: So many ways to start groups are compared with each other; of more, some that would do may not be found.
_MOST_COMPARED = 100
#: So many of the classes that a group waits for are remembered one by one.
_MOST_NAMED = 64


def required_terms(side: PodAffinity | None, labels: Labels) -> list[PodAffinityTerm]:
    """The required terms, with (mis)matchLabelKeys written into their selectors."""
    return (
        [with_own_labels(t, labels) for t in side.required_during_scheduling_ignored_during_execution] if side else []
    )


def with_own_labels(term: PodAffinityTerm, labels: Labels) -> PodAffinityTerm:
    """The term with the pod's values of (mis)matchLabelKeys written into its selector."""
    if term.label_selector is None or not (term.match_label_keys or term.mismatch_label_keys):
        return term
    wanted = [("In", key) for key in term.match_label_keys] + [("NotIn", key) for key in term.mismatch_label_keys]
    more = [LabelSelectorRequirement(key=k, operator=o, values=[labels[k]]) for o, k in wanted if k in labels]
    expressions = [*term.label_selector.match_expressions, *more]
    selector = LabelSelector(match_labels=term.label_selector.match_labels, match_expressions=expressions)
    return msgspec.structs.replace(term, label_selector=selector)


def _affinity(pod_class: EquivalenceClass) -> list[PodAffinityTerm]:
    affinity = pod_class.pod.spec.affinity
    return required_terms(affinity.pod_affinity, pod_class.labels) if affinity else []


def anti_affinity(pod_class: EquivalenceClass) -> list[PodAffinityTerm]:
    """The required anti-affinity terms of the class."""
    affinity = pod_class.pod.spec.affinity
    return required_terms(affinity.pod_anti_affinity, pod_class.labels) if affinity else []


@dataclass(frozen=True)
class AntiAffinityTerm:
    """One required term: the classes that have it (``owners``), and those that it keeps away (``matched``).

    ``tally``: where pods are by its key.
    """

    key: str
    owners: Sequence[EquivalenceClass]
    matched: ClassSet
    tally: Tally

    @cached_property
    def owned_by(self) -> ClassSet:
        """The owners as a set."""
        return as_set(owner.index for owner in self.owners)


def anti_affinity_terms(state: FinalState, census: Census) -> list[AntiAffinityTerm]:
    """All terms of required anti-affinity in the final state, equal ones together."""
    owners: dict[Hashable, list[EquivalenceClass]] = defaultdict(list)
    terms: dict[Hashable, tuple[PodAffinityTerm, ClassSet]] = {}
    for pod_class in state.classes.values():
        for term in anti_affinity(pod_class):
            where = census.where(term, pod_class.namespace)
            identity = term.topology_key, _ENCODE(term.label_selector), where
            terms[identity] = term, where
            owners[identity].append(pod_class)
    return [
        AntiAffinityTerm(
            term.topology_key,
            owners[identity],
            census.matching(term.label_selector, where),
            census.tally(term.topology_key),
        )
        for identity, (term, where) in terms.items()
    ]


def check_anti_affinity(state: FinalState, terms: Sequence[AntiAffinityTerm]) -> Iterator[Violation]:
    """No planned pod shares a domain with a pod that it keeps away, or that keeps it away."""
    for term in terms:
        concerned = term.owned_by | term.matched
        for domain in _domains(term) if term.matched else ():
            if term.tally.number(term.matched, domain) and term.tally.number(concerned, domain) > 1:
                yield from _repelled(state, term, domain)


def _domains(term: AntiAffinityTerm) -> list[str]:
    """Where pods with the term run."""
    return sorted({n.labels[term.key] for owner in term.owners for n in owner.places if term.key in n.labels})


def _repelled(state: FinalState, term: AntiAffinityTerm, domain: str) -> Iterator[Violation]:
    """A violation by the first planned pod in the domain.

    Where only bound pods break the term, the plan is not at fault.
    """
    matched = (pod_class for pod_class in state.classes.values() if includes(term.matched, pod_class))
    for pod_class in chain(matched, term.owners):
        for node in pod_class.planned_on:
            if node.labels.get(term.key) == domain:
                message = f"another pod in {term.key}={domain} and this one keep apart (anti-affinity)"
                yield misplaced(ViolationCode.POD_ANTI_AFFINITY, pod_class, node, message)
                return


def check_affinity(state: FinalState, census: Census) -> Iterator[Violation]:
    """Every planned pod has the neighbours that it requires, and some order of binding leads there."""
    groups = required_neighbours(state, census)
    for group in groups:
        for node in group.owner.planned_on:
            problem = group.lacks(node)
            if problem:
                yield misplaced(ViolationCode.POD_AFFINITY, group.owner, node, problem)
    if groups:
        yield from _check_order(state, groups)


@dataclass(frozen=True, eq=False)
class RequiredNeighbours:
    """A planned class that requires neighbours.

    ``tallies``: where pods are by the topology keys of its terms; ``matched``: the classes that match all of them.
    """

    owner: EquivalenceClass
    matched: ClassSet
    tallies: Mapping[str, Tally]

    @property
    def keys(self) -> Collection[str]:
        return self.tallies.keys()

    @property
    def matches_itself(self) -> bool:
        return includes(self.matched, self.owner)

    @cached_property
    def _is_alone(self) -> bool:
        """Whether one of its own pods is all that matches."""
        return self.matches_itself and all(tally.total(self.matched) == 1 for tally in self.tallies.values())

    def lacks(self, node: FinalNode) -> str:
        """What is missing around the node for one of its pods, with everything else in place; empty if nothing is."""
        missing = next((key for key in self.keys if key not in node.labels), None)
        if missing:
            return f"its affinity is over {missing}, a label that the node lacks"
        if self._is_alone:
            return ""
        lonely = next((key for key in self.keys if not self._has_neighbour(key, node.labels[key])), None)
        return f"no pod that its affinity requires runs in {lonely}={node.labels[lonely]}" if lonely else ""

    def _has_neighbour(self, key: str, domain: str, along: int = 0) -> bool:
        return self.tallies[key].number(self.matched, domain) + along > int(self.matches_itself)

    def lacks_elsewhere(self, node: FinalNode, key: str, domain: str) -> bool:
        """Whether the neighbours would be missing if the node came up in another domain of the key."""
        if key not in self.keys or node.labels.get(key) == domain:
            return False
        along = sum(number for pod_class, number in node.held.items() if includes(self.matched, pod_class))
        return not self._is_alone and not self._has_neighbour(key, domain, along)


def required_neighbours(state: FinalState, census: Census) -> list[RequiredNeighbours]:
    groups = []
    for pod_class in state.classes.values():
        terms = _affinity(pod_class)
        if terms and next(pod_class.planned_on, None) is not None:
            tallies = {term.topology_key: census.tally(term.topology_key) for term in terms}
            groups.append(RequiredNeighbours(pod_class, _matching_all(pod_class, terms, census), tallies))
    return groups


def _matching_all(pod_class: EquivalenceClass, terms: Sequence[PodAffinityTerm], census: Census) -> ClassSet:
    """kube-scheduler counts a neighbour only if all terms of the pod match it."""
    sets = (census.matching(t.label_selector, census.where(t, pod_class.namespace)) for t in terms)
    return reduce(and_, sets)


def domains_with_neighbours(
    pod_class: EquivalenceClass, keys: Collection[str], census: Census
) -> frozenset[str] | None:
    """The domains of these keys where pods run that the class's required affinity names;
    None without such an affinity.
    """
    terms = _affinity(pod_class)
    wanted = {term.topology_key for term in terms} & set(keys)
    if not wanted:
        return None
    matched = _matching_all(pod_class, terms, census)
    counts = (census.tally(key).counts(matched) for key in wanted)
    return frozenset.intersection(*(frozenset(domain for domain in each if each[domain]) for each in counts))


Place = tuple[str, str | None]
"""A topology key and its domain; None for any domain."""


@dataclass(frozen=True, eq=False)
class _Step:
    """The planned pods of one class in one set of domains. What holds for one of them holds for all.

    ``needs``: where they need neighbours.
    """

    group: RequiredNeighbours
    needs: tuple[Place, ...]
    nodes: Sequence[FinalNode]


Reached = Mapping[_Step, Sequence[_Step]]
"""For each step that may start: the steps that could be bound once it is, itself among them."""


def _check_order(state: FinalState, groups: Sequence[RequiredNeighbours]) -> Iterator[Violation]:
    """Look for an order in which kube-scheduler could bind the planned pods.

    First bind all pods that need no start: those that require no neighbours, and then those that find theirs. Of the
    steps that are stuck some must start their group. In the order sought these come before everything else, because
    pods that run already keep a group from starting.
    """
    final, beginning = _BoundPods(state, groups), _BoundPods(state, groups)
    final.bind_the_rest()
    waiting = dict.fromkeys(final.steps)
    final.bind([step for step in waiting if final.welcomes(step)], waiting)
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
        first = _most_harmless(list(left), sources) if len(left) <= _MOST_COMPARED else next(iter(left))
        if beginning.may_start(first):
            beginning.bind([first])
            started.append(first)
            for step in sources[first]:
                left.pop(step, None)
        else:
            del left[first]
    return started


def _most_harmless(left: Sequence[_Step], sources: Reached) -> _Step:
    """A step that, once it is bound, lets all others start that it does not lead to; else the first."""
    harmless = (
        step
        for step in left
        if not any(includes(other.group.matched, step.group.owner) for other in left if other not in sources[step])
    )
    return next(harmless, left[0])


class _BoundPods:
    """Which classes have pods bound in each domain, while the planned pods are bound one after another."""

    def __init__(self, state: FinalState, groups: Sequence[RequiredNeighbours]) -> None:
        self._keys = {key for group in groups for key in group.keys}
        self._needy = as_set(group.owner.index for group in groups)
        self._relevant = reduce(or_, (group.matched for group in groups), 0)
        self._classes = [pod_class for pod_class in state.classes.values() if includes(self._relevant, pod_class)]
        self._pods: dict[tuple[int, Place], int] = defaultdict(int)
        self._present: dict[Place, ClassSet] = defaultdict(int)
        for pod_class in self._classes:
            for node, count in pod_class.places.items():
                self._add(pod_class, node, count - len(node.planned.get(pod_class, ())))
        self.steps = [step for group in groups for step in _steps(group)]
        self._index(groups)

    def _index(self, groups: Sequence[RequiredNeighbours]) -> None:
        """Who may have waited for a class: of groups that match few that is remembered, the others are asked."""
        self._steps_at: dict[tuple[RequiredNeighbours, Place], list[_Step]] = defaultdict(list)
        for step in self.steps:
            for place in step.needs:
                self._steps_at[step.group, place].append(step)
        self._waiting_for: dict[int, list[RequiredNeighbours]] = defaultdict(list)
        self._undecided = list[RequiredNeighbours]()
        for group in groups:
            named = group.matched & self._needy
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
            ready = [step for step in nearby if waiting and step in waiting and self.welcomes(step)]
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
            for node in pod_class.planned_on if not includes(self._needy, pod_class) else ():
                self._add(pod_class, node, len(node.planned[pod_class]))

    def welcomes(self, step: _Step) -> bool:
        """Whether the neighbours are there: for each key, somewhere in its domain."""
        return all(self._present.get(place, 0) & step.group.matched for place in step.needs)

    def may_start(self, step: _Step) -> bool:
        """Whether kube-scheduler lets it in without a neighbour: it matches itself,
        and nothing that it matches runs on a node with its keys.
        """
        is_alone = not any(self._present.get((key, None), 0) & step.group.matched for key in step.group.keys)
        return step.group.matches_itself and is_alone


def _steps(group: RequiredNeighbours) -> Iterator[_Step]:
    by_place: dict[tuple[str, ...], list[FinalNode]] = defaultdict(list)
    for node in group.owner.planned_on:
        by_place[tuple(node.labels.get(key, "") for key in group.keys)].append(node)
    for where in sorted(by_place):
        yield _Step(group, tuple(zip(group.keys, where, strict=True)), by_place[where])
