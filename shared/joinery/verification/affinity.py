"""Required pod affinity and anti-affinity (kube-scheduler InterPodAffinity).

Two things are checked beyond each pod's own place. Anti-affinity binds both ways: a pod that runs keeps others out. And
affinity needs an order of binding. Pods that need each other start with one of them, and kube-scheduler lets that one
in only while nothing that its terms match runs anywhere. A plan in which no pod may come first can never be bound.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from joinery.apis.core import LabelSelector, LabelSelectorRequirement, PodAffinity, PodAffinityTerm
from joinery.verification.census import Census, by_domain
from joinery.verification.final_state import FinalState
from joinery.verification.nodes import EquivalenceClass, FinalNode
from joinery.verification.predicates import Labels
from joinery.verification.violation import Violation, ViolationCode, misplaced

_ENCODE = msgspec.json.Encoder().encode


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


def check_anti_affinity(state: FinalState, census: Census) -> Iterator[Violation]:
    """No planned pod shares a domain with a pod that it keeps away, or that keeps it away."""
    for term in anti_affinity_terms(state, census):
        owners, matched = by_domain(term.owners, term.key), by_domain(term.matched, term.key)
        both = by_domain([pod_class for pod_class in term.owners if pod_class in term.matched], term.key)
        for domain in sorted(owners.keys() & matched.keys()):
            if owners[domain] + matched[domain] - both.get(domain, 0) > 1:
                yield from _repelled(term, domain)


@dataclass(frozen=True)
class AntiAffinityTerm:
    """One required term: the classes that have it (``owners``), and those that it keeps away (``matched``)."""

    key: str
    owners: Sequence[EquivalenceClass]
    matched: Sequence[EquivalenceClass]


def anti_affinity_terms(state: FinalState, census: Census) -> list[AntiAffinityTerm]:
    """All terms of required anti-affinity in the final state, equal ones together."""
    owners: dict[bytes, list[EquivalenceClass]] = defaultdict(list)
    terms: dict[bytes, tuple[PodAffinityTerm, frozenset[str] | None]] = {}
    for pod_class in state.classes.values():
        for term in anti_affinity(pod_class):
            where = census.namespaces(term, pod_class.namespace)
            identity = _ENCODE((term.topology_key, term.label_selector, sorted(where) if where is not None else None))
            terms[identity] = (term, where)
            owners[identity].append(pod_class)
    return [
        AntiAffinityTerm(term.topology_key, owners[identity], census.matching(term.label_selector, where))
        for identity, (term, where) in terms.items()
    ]


def _repelled(term: AntiAffinityTerm, domain: str) -> Iterator[Violation]:
    """A violation by the first planned pod in the domain.

    Where only bound pods break the term, the plan is not at fault.
    """
    for pod_class in (*term.matched, *term.owners):
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
        yield from _check_order(groups)


@dataclass(frozen=True, eq=False)
class RequiredNeighbours:
    """A planned class that requires neighbours.

    ``keys``: the topology keys of its terms; ``matched``: the classes that match all of them; ``counts``: their pods by
    key and domain.
    """

    owner: EquivalenceClass
    keys: tuple[str, ...]
    matched: Sequence[EquivalenceClass]
    counts: Mapping[str, Mapping[str, int]]

    @property
    def matches_itself(self) -> bool:
        return self.owner in self.matched

    def lacks(self, node: FinalNode) -> str:
        """What is missing around the node for one of its pods, with everything else in place; empty if nothing is."""
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
        along = sum(node.held.get(pod_class, 0) for pod_class in self.matched)
        alone = own and all(sum(self.counts[k].values()) == own for k in self.keys)
        return not alone and self.counts[key].get(domain, 0) + along <= own


def required_neighbours(state: FinalState, census: Census) -> list[RequiredNeighbours]:
    groups = []
    for pod_class in state.classes.values():
        terms = _affinity(pod_class)
        if terms and next(pod_class.planned_on, None) is not None:
            matched = _matching_all(pod_class, terms, census)
            keys = tuple(dict.fromkeys(term.topology_key for term in terms))
            groups.append(RequiredNeighbours(pod_class, keys, matched, {key: by_domain(matched, key) for key in keys}))
    return groups


def _matching_all(
    pod_class: EquivalenceClass, terms: Sequence[PodAffinityTerm], census: Census
) -> list[EquivalenceClass]:
    """kube-scheduler counts a neighbour only if all terms of the pod match it."""
    sets = [census.matching(t.label_selector, census.namespaces(t, pod_class.namespace)) for t in terms]
    return [pod_class for pod_class in sets[0] if all(pod_class in other for other in sets[1:])]


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
    return frozenset.intersection(*(frozenset(by_domain(matched, key)) for key in wanted))


@dataclass(frozen=True, eq=False)
class _Step:
    """The planned pods of one class in one set of domains. What holds for one of them holds for all."""

    group: RequiredNeighbours
    where: tuple[str, ...]
    nodes: tuple[FinalNode, ...]


Reached = Mapping[_Step, frozenset[_Step]]
"""For each step that may start: the steps that could be bound once it is, itself among them."""


def _check_order(groups: Sequence[RequiredNeighbours]) -> Iterator[Violation]:
    """Look for an order in which kube-scheduler could bind the planned pods.

    First bind all pods that need no start: those that require no neighbours, and then those that find theirs. Of the
    steps that are stuck some must start their group. In the order sought these come before everything else, because
    pods that run already keep a group from starting.
    """
    final, beginning = _BoundPods(groups), _BoundPods(groups)
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


def _admitted(state: "_BoundPods", waiting: Sequence[_Step]) -> list[_Step]:
    """Bind step after step for as long as one finds its neighbours. Returns the steps that are left."""
    left = list(waiting)
    while ready := {step for step in left if state.welcomes(step)}:
        for step in ready:
            state.bind(step)
        left = [step for step in left if step not in ready]
    return left


def _steps(group: RequiredNeighbours) -> Iterator[_Step]:
    by_place: dict[tuple[str, ...], list[FinalNode]] = defaultdict(list)
    for node in group.owner.planned_on:
        by_place[tuple(node.labels.get(key, "") for key in group.keys)].append(node)
    for where in sorted(by_place):
        yield _Step(group, where, tuple(by_place[where]))


def _reached(state: "_BoundPods", start: _Step, stuck: Sequence[_Step]) -> frozenset[_Step]:
    """The step itself and those that could follow if it were bound."""
    state.bind(start)
    left = set(_admitted(state, [step for step in stuck if step is not start]))
    reached = frozenset(step for step in stuck if step not in left)
    for step in reached:
        state.bind(step, times=-1)
    return reached


def _sources(reached: Reached) -> Reached:
    """The steps that can follow only each other. Of each such set one must start; the rest follow."""
    leads: dict[_Step, set[_Step]] = {step: set() for step in reached}
    for step, followers in reached.items():
        for follower in followers & reached.keys():
            leads[follower].add(step)
    return {step: followers for step, followers in reached.items() if leads[step] <= followers}


def _started(beginning: "_BoundPods", sources: Reached) -> list[_Step]:
    """One step of each source that can start, in an order in which they shut each other out as little as possible."""
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


def _shuts_out(bound: _Step, waiting: _Step) -> bool:
    """Whether the waiting step could no longer start once the other one is bound."""
    return bound.group.owner in waiting.group.matched


class _BoundPods:
    """How many pods of each class are bound in each domain, while the planned pods are bound one after another."""

    def __init__(self, groups: Sequence[RequiredNeighbours]) -> None:
        self._keys = {key for group in groups for key in group.keys}
        self._needy = {group.owner for group in groups}
        self._relevant = {pod_class for group in groups for pod_class in group.matched}
        self._total: dict[tuple[EquivalenceClass, str], int] = defaultdict(int)
        self._at: dict[tuple[EquivalenceClass, str, str], int] = defaultdict(int)
        for pod_class in self._relevant:
            for node, count in pod_class.places.items():
                self._add(pod_class, node, count - len(node.planned.get(pod_class, ())))

    def _add(self, pod_class: EquivalenceClass, node: FinalNode, count: int) -> None:
        for key in self._keys & node.labels.keys():
            self._total[pod_class, key] += count
            self._at[pod_class, key, node.labels[key]] += count

    def bind(self, step: _Step, times: int = 1) -> None:
        """Every pod of the step; -1 ``times`` takes them back."""
        if step.group.owner in self._relevant:
            for node in step.nodes:
                self._add(step.group.owner, node, times * len(node.planned[step.group.owner]))

    def bind_the_rest(self) -> None:
        """Bind the planned pods that require no neighbours: they may come at any time."""
        for pod_class in self._relevant - self._needy:
            for node in pod_class.planned_on:
                self._add(pod_class, node, len(node.planned[pod_class]))

    def welcomes(self, step: _Step) -> bool:
        """Whether the neighbours are there: for each key, somewhere in its domain."""
        return all(
            any(self._at.get((pod_class, key, value), 0) > 0 for pod_class in step.group.matched)
            for key, value in zip(step.group.keys, step.where, strict=True)
        )

    def may_start(self, step: _Step) -> bool:
        """Whether kube-scheduler lets it in without a neighbour: it matches itself,
        and nothing that it matches runs on a node with its keys.
        """
        counted = ((pod_class, key) for pod_class in step.group.matched for key in step.group.keys)
        return step.group.matches_itself and not any(self._total.get(pair, 0) > 0 for pair in counted)
