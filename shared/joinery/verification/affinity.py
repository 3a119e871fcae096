"""Required pod affinity and anti-affinity: what a pod asks of its neighbours, and what they ask of it.

Two things are checked beyond each pod's own place. Anti-affinity binds both ways: a pod that runs keeps others out. And
affinity needs an order: a group whose members need each other starts with one pod, which kube-scheduler lets in only while
nothing that its terms match runs anywhere; a plan in which no pod may come first can never be bound.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from joinery.apis.core import LabelSelector, LabelSelectorRequirement, PodAffinity, PodAffinityTerm
from joinery.verification.census import Census, by_domain
from joinery.verification.final_state import World
from joinery.verification.nodes import FinalNode, PodClass
from joinery.verification.predicates import Labels
from joinery.verification.violation import Violation, ViolationCode, misplaced

_ENCODE = msgspec.json.Encoder().encode


def required_terms(side: PodAffinity | None, labels: Labels) -> list[PodAffinityTerm]:
    """The required terms, with (mis)matchLabelKeys written into their selectors."""
    return [_merged(t, labels) for t in side.required_during_scheduling_ignored_during_execution] if side else []


def _merged(term: PodAffinityTerm, labels: Labels) -> PodAffinityTerm:
    if term.label_selector is None or not (term.match_label_keys or term.mismatch_label_keys):
        return term
    wanted = [("In", key) for key in term.match_label_keys] + [("NotIn", key) for key in term.mismatch_label_keys]
    more = [LabelSelectorRequirement(key=k, operator=o, values=[labels[k]]) for o, k in wanted if k in labels]
    expressions = [*term.label_selector.match_expressions, *more]
    selector = LabelSelector(match_labels=term.label_selector.match_labels, match_expressions=expressions)
    return msgspec.structs.replace(term, label_selector=selector)


def _affinity(found: PodClass) -> list[PodAffinityTerm]:
    affinity = found.pod.spec.affinity
    return required_terms(affinity.pod_affinity, found.labels) if affinity else []


def anti_affinity(found: PodClass) -> list[PodAffinityTerm]:
    """What the class keeps away from itself."""
    affinity = found.pod.spec.affinity
    return required_terms(affinity.pod_anti_affinity, found.labels) if affinity else []


def check_anti_affinity(world: World, census: Census) -> Iterator[Violation]:
    """No pod of the plan shares a domain with one that it, or that other, keeps away."""
    for term in repellents(world, census):
        owners, matched = by_domain(term.owners, term.key), by_domain(term.matched, term.key)
        both = by_domain([found for found in term.owners if found in term.matched], term.key)
        for domain in sorted(owners.keys() & matched.keys()):
            if owners[domain] + matched[domain] - both.get(domain, 0) > 1:
                yield from _repelled(term, domain)


@dataclass(frozen=True)
class Repellent:
    """A term of anti-affinity: the classes that have it, and those it keeps away."""

    key: str
    owners: Sequence[PodClass]
    matched: Sequence[PodClass]


def repellents(world: World, census: Census) -> list[Repellent]:
    """All terms of required anti-affinity in the final state, equal ones together."""
    owners: dict[bytes, list[PodClass]] = defaultdict(list)
    terms: dict[bytes, tuple[PodAffinityTerm, frozenset[str] | None]] = {}
    for found in world.classes.values():
        for term in anti_affinity(found):
            where = census.namespaces(term, found.namespace)
            identity = _ENCODE((term.topology_key, term.label_selector, sorted(where) if where is not None else None))
            terms[identity] = (term, where)
            owners[identity].append(found)
    return [
        Repellent(term.topology_key, owners[identity], census.matching(term.label_selector, where))
        for identity, (term, where) in terms.items()
    ]


def _repelled(term: Repellent, domain: str) -> Iterator[Violation]:
    """The first pod of the plan in the domain; where only bound pods are at odds, nothing is the plan's fault."""
    for found in (*term.matched, *term.owners):
        for node in found.planned_on:
            if node.labels.get(term.key) == domain:
                message = f"another pod in {term.key}={domain} and this one keep apart (anti-affinity)"
                yield misplaced(ViolationCode.POD_ANTI_AFFINITY, found, node, message)
                return


def check_affinity(world: World, census: Census) -> Iterator[Violation]:
    """Every pod of the plan has the neighbours it requires, and some order of binding gets there."""
    groups = affinity_groups(world, census)
    for group in groups:
        for node in group.owner.planned_on:
            problem = group.lacks(node)
            if problem:
                yield misplaced(ViolationCode.POD_AFFINITY, group.owner, node, problem)
    if groups:
        yield from _check_order(groups)


@dataclass(frozen=True, eq=False)
class Group:
    """A class of the plan that requires neighbours, its terms' keys, and the classes that match all of its terms."""

    owner: PodClass
    keys: tuple[str, ...]
    matched: Sequence[PodClass]
    counts: Mapping[str, Mapping[str, int]]

    @property
    def matches_itself(self) -> bool:
        return self.owner in self.matched

    def lacks(self, node: FinalNode) -> str:
        """What is missing around the node, with everything but one of its own pods in place."""
        missing = next((key for key in self.keys if key not in node.labels), None)
        if missing:
            return f"its affinity is over {missing}, a label that the node lacks"
        own = 1 if self.matches_itself else 0
        if own and all(sum(self.counts[key].values()) == own for key in self.keys):
            return ""
        lonely = next((key for key in self.keys if self.counts[key].get(node.labels[key], 0) <= own), None)
        return f"no pod that its affinity requires runs in {lonely}={node.labels[lonely]}" if lonely else ""

    def lacks_elsewhere(self, node: FinalNode, key: str, domain: str) -> bool:
        """Whether the neighbours would be missing if the node came up in another domain of the key."""
        if key not in self.keys or node.labels.get(key) == domain:
            return False
        own = 1 if self.matches_itself else 0
        along = sum(node.held.get(found, 0) for found in self.matched)
        alone = own and all(sum(self.counts[k].values()) == own for k in self.keys)
        return not alone and self.counts[key].get(domain, 0) + along <= own


def affinity_groups(world: World, census: Census) -> list[Group]:
    groups = []
    for found in world.classes.values():
        terms = _affinity(found)
        if terms and next(found.planned_on, None) is not None:
            matched = _matching_all(found, terms, census)
            keys = tuple(dict.fromkeys(term.topology_key for term in terms))
            groups.append(Group(found, keys, matched, {key: by_domain(matched, key) for key in keys}))
    return groups


def _matching_all(found: PodClass, terms: Sequence[PodAffinityTerm], census: Census) -> list[PodClass]:
    """kube-scheduler counts a neighbour only if all terms of the pod match it."""
    sets = [census.matching(t.label_selector, census.namespaces(t, found.namespace)) for t in terms]
    return [one for one in sets[0] if all(one in other for other in sets[1:])]


def domains_with_neighbours(found: PodClass, keys: Collection[str], census: Census) -> frozenset[str] | None:
    """The domains of these keys where pods run that the class's required affinity names; None without such an affinity."""
    terms = _affinity(found)
    wanted = {term.topology_key for term in terms} & set(keys)
    if not wanted:
        return None
    matched = _matching_all(found, terms, census)
    return frozenset.intersection(*(frozenset(by_domain(matched, key)) for key in wanted))


@dataclass(frozen=True, eq=False)
class _Step:
    """Pods of one group in one place: what holds for one of them holds for all."""

    group: Group
    where: tuple[str, ...]
    nodes: tuple[FinalNode, ...]


Reached = Mapping[_Step, frozenset[_Step]]
"""Which steps could be bound if that one were, itself among them."""


def _check_order(groups: Sequence[Group]) -> Iterator[Violation]:
    """Bind what needs no start: pods that require nobody, and who finds neighbours then. What is stuck must have some that start.

    Those come before all else, because pods that run shut starters out, and help whoever follows.
    """
    final, beginning = _Bound(groups), _Bound(groups)
    final.bind_the_rest()
    stuck = _admitted(final, [step for group in groups for step in _steps(group)])
    while stuck:
        reached = {step: _reached(final, step, stuck) for step in stuck if beginning.may_start(step)}
        starters = _started(beginning, _sources(reached))
        if not starters:
            break
        for step in starters:
            final.bind(step)
        stuck = _admitted(final, [step for step in stuck if step not in starters])
    for step in stuck:
        message = "no order of binding lets the pod's required affinity be met when its turn comes"
        yield misplaced(ViolationCode.POD_AFFINITY, step.group.owner, step.nodes[0], message)


def _admitted(state: "_Bound", waiting: Sequence[_Step]) -> list[_Step]:
    """Bind one step after another, as long as any finds its neighbours there. The steps that are left."""
    left = list(waiting)
    while ready := {step for step in left if state.welcomes(step)}:
        for step in ready:
            state.bind(step)
        left = [step for step in left if step not in ready]
    return left


def _steps(group: Group) -> Iterator[_Step]:
    by_place: dict[tuple[str, ...], list[FinalNode]] = defaultdict(list)
    for node in group.owner.planned_on:
        by_place[tuple(node.labels.get(key, "") for key in group.keys)].append(node)
    for where in sorted(by_place):
        yield _Step(group, where, tuple(by_place[where]))


def _reached(state: "_Bound", start: _Step, stuck: Sequence[_Step]) -> frozenset[_Step]:
    """The step itself and those that could follow if it were bound."""
    state.bind(start)
    left = set(_admitted(state, [step for step in stuck if step is not start]))
    reached = frozenset(step for step in stuck if step not in left)
    for step in reached:
        state.bind(step, times=-1)
    return reached


def _sources(reached: Reached) -> Reached:
    """The steps that follow nobody but each other: of those that reach each other one must start, and the rest need not."""
    leads: dict[_Step, set[_Step]] = {step: set() for step in reached}
    for step, followers in reached.items():
        for follower in followers & reached.keys():
            leads[follower].add(step)
    return {step: followers for step, followers in reached.items() if leads[step] <= followers}


def _started(beginning: "_Bound", sources: Reached) -> list[_Step]:
    """One of each source that can start, in an order in which as few as possible shut out others."""
    left, started = list(sources), []
    while left:
        harmless = (s for s in left if not any(_shuts_out(s, other) for other in left if other not in sources[s]))
        first = next(harmless, left[0])
        if beginning.may_start(first):
            beginning.bind(first)
            started.append(first)
            left = [step for step in left if step not in sources[first]]
        else:
            left.remove(first)
    return started


def _shuts_out(one: _Step, other: _Step) -> bool:
    """Whether the other could no longer start once this one is there."""
    return one.group.owner in other.group.matched


class _Bound:
    """How many pods of each class are bound where, while the plan's pods come one after another."""

    def __init__(self, groups: Sequence[Group]) -> None:
        self._keys = {key for group in groups for key in group.keys}
        self._needy = {group.owner for group in groups}
        self._relevant = {found for group in groups for found in group.matched}
        self._total: dict[tuple[PodClass, str], int] = defaultdict(int)
        self._at: dict[tuple[PodClass, str, str], int] = defaultdict(int)
        for found in self._relevant:
            for node, count in found.places.items():
                self._add(found, node, count - len(node.planned.get(found, ())))

    def _add(self, found: PodClass, node: FinalNode, count: int) -> None:
        for key in self._keys & node.labels.keys():
            self._total[found, key] += count
            self._at[found, key, node.labels[key]] += count

    def bind(self, step: _Step, times: int = 1) -> None:
        """Every pod of the step; -1 ``times`` takes them back."""
        if step.group.owner in self._relevant:
            for node in step.nodes:
                self._add(step.group.owner, node, times * len(node.planned[step.group.owner]))

    def bind_the_rest(self) -> None:
        """The plan's pods that require no neighbours may come at any time."""
        for found in self._relevant - self._needy:
            for node in found.planned_on:
                self._add(found, node, len(node.planned[found]))

    def welcomes(self, step: _Step) -> bool:
        """Whether the neighbours are there: for each key, somewhere in its domain."""
        return all(
            any(self._at.get((found, key, value), 0) > 0 for found in step.group.matched)
            for key, value in zip(step.group.keys, step.where, strict=True)
        )

    def may_start(self, step: _Step) -> bool:
        """Whether it matches itself, and nothing that it matches runs where its terms look: on nodes with one of their keys."""
        counted = ((found, key) for found in step.group.matched for key in step.group.keys)
        return step.group.matches_itself and not any(self._total.get(pair, 0) > 0 for pair in counted)
