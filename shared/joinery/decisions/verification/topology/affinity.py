"""Required pod affinity and anti-affinity (kube-scheduler InterPodAffinity).

Anti-affinity binds both ways: a pod that runs keeps others out. Affinity needs an order of binding as well
(``binding_order``).
"""

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import chain
from operator import and_

import msgspec

from joinery.decisions.verification.final_state import FinalState
from joinery.decisions.verification.labelled import as_set
from joinery.decisions.verification.nodes import EquivalenceClass, FinalNode
from joinery.decisions.verification.predicates import Labels
from joinery.decisions.verification.topology.census import Census, ClassSet, Tally, includes
from joinery.decisions.verification.violation import Violation, ViolationCode, misplaced
from joinery.objects.kubernetes.core import LabelSelector, LabelSelectorRequirement, PodAffinity, PodAffinityTerm

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
    planned = as_set(pod_class.index for pod_class in state.planned)
    for term in terms:
        concerned = term.owned_by | term.matched
        for domain in _domains(state, term) if term.matched and concerned & planned else ():
            # Where only bound pods break the term, the plan is not at fault.
            is_at_fault = concerned & term.tally.planned(domain)
            if is_at_fault and term.tally.number(term.matched, domain) and term.tally.number(concerned, domain) > 1:
                yield from _repelled(state, term, domain)


def _domains(state: FinalState, term: AntiAffinityTerm) -> list[str]:
    """Where pods with the term run."""
    nodes = (node for owner in term.owners for node in state.places(owner))
    return sorted({node.labels[term.key] for node in nodes if term.key in node.labels})


def _repelled(state: FinalState, term: AntiAffinityTerm, domain: str) -> Iterator[Violation]:
    """A violation by the first planned pod in the domain."""
    matched = (pod_class for pod_class in state.classes.values() if includes(term.matched, pod_class))
    for pod_class in chain(matched, term.owners):
        for node in pod_class.planned_on:
            if node.labels.get(term.key) == domain:
                message = f"another pod in {term.key}={domain} and this one keep apart (anti-affinity)"
                yield misplaced(ViolationCode.POD_ANTI_AFFINITY, pod_class, node, message)
                return


def check_affinity(groups: "Iterable[RequiredNeighbours]") -> Iterator[Violation]:
    """Every planned pod has the neighbours that it requires."""
    for group in groups:
        for node in group.owner.planned_on:
            problem = group.lacks(node)
            if problem:
                yield misplaced(ViolationCode.POD_AFFINITY, group.owner, node, problem)


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
        along = sum(number for pod_class, number in node.pods.items() if includes(self.matched, pod_class))
        return not self._is_alone and not self._has_neighbour(key, domain, along)


def required_neighbours(state: FinalState, census: Census) -> list[RequiredNeighbours]:
    """The planned classes with required affinity."""
    groups = []
    for pod_class in state.planned:
        if terms := _affinity(pod_class):
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
