"""How many pods that a selector matches run in each domain of a topology key."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from joinery.apis.core import LabelSelector, PodAffinityTerm
from joinery.apis.labels import ZONE
from joinery.verification.final_state import FinalState
from joinery.verification.nodes import EquivalenceClass, FinalNode
from joinery.verification.predicates import Labels, selector_matches
from joinery.verification.volumes import Volumes

NAMESPACE_NAME = "kubernetes.io/metadata.name"


@dataclass
class Census:
    """Counts over the final state. Classes are indexed by their labels, so that a selector looks at few of them."""

    state: FinalState
    _by_label: dict[tuple[str, str], list[EquivalenceClass]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for pod_class in self.state.classes.values():
            for pair in pod_class.labels.items():
                self._by_label.setdefault(pair, []).append(pod_class)

    def matching(self, selector: LabelSelector | None, namespaces: frozenset[str] | None) -> list[EquivalenceClass]:
        """The classes that the selector matches in these namespaces (None: in all)."""
        if selector is None:
            return []
        pairs = list(selector.match_labels.items())
        candidates: Iterable[EquivalenceClass] = (
            self._by_label.get(pairs[0], ()) if pairs else self.state.classes.values()
        )
        return [
            pod_class
            for pod_class in candidates
            if (namespaces is None or pod_class.namespace in namespaces)
            and selector_matches(selector, pod_class.labels)
        ]

    def namespaces(self, term: PodAffinityTerm, owner: str) -> frozenset[str] | None:
        """Where a term looks: the namespaces listed, those selected, or without either the pod's own. None: in all."""
        selector = term.namespace_selector
        if selector is None:
            return frozenset(term.namespaces or [owner])
        if not selector.match_labels and not selector.match_expressions:
            return None
        chosen = {name for name, labels in self._namespace_labels.items() if selector_matches(selector, labels)}
        return frozenset(chosen | set(term.namespaces))

    def zones_of_claims(self, pod_class: EquivalenceClass) -> list[frozenset[str]]:
        """For each unbound claim that the class's pods share with others,
        the zones of its users: its volume will be there.
        """
        if not pod_class.pod.spec.volumes:
            return []
        claims = [name for name in self._volumes.claims_of(pod_class) if name in self._users]
        shared = [name for name in claims if sum(sum(user.places.values()) for user in self._users[name]) > 1]
        return [
            frozenset(node.labels[ZONE] for user in self._users[name] for node in user.places if ZONE in node.labels)
            for name in shared
        ]

    @cached_property
    def _volumes(self) -> Volumes:
        return Volumes(self.state)

    @cached_property
    def _users(self) -> Mapping[str, Sequence[EquivalenceClass]]:
        """The classes that use each claim whose first user will decide its zone."""
        users: dict[str, list[EquivalenceClass]] = {}
        for pod_class in self.state.classes.values():
            for name in self._volumes.claims_of(pod_class):
                if self._volumes.binds_zone(pod_class, name):
                    users.setdefault(name, []).append(pod_class)
        return users

    @property
    def _namespace_labels(self) -> Mapping[str, Labels]:
        labels = {n.metadata.name: n.metadata.labels for n in self.state.problem.snapshot.namespaces}
        names = labels.keys() | {pod_class.namespace for pod_class in self.state.classes.values()}
        return {name: {NAMESPACE_NAME: name, **labels.get(name, {})} for name in names}


def by_domain(classes: Iterable[EquivalenceClass], key: str) -> dict[str, int]:
    """Pods of the classes, by the value that their nodes have for the key."""
    counts: dict[str, int] = {}
    for node, number in places(classes):
        domain = node.labels.get(key)
        if domain is not None:
            counts[domain] = counts.get(domain, 0) + number
    return counts


def places(classes: Iterable[EquivalenceClass]) -> Iterator[tuple[FinalNode, int]]:
    """Where pods of the classes run, and how many."""
    for pod_class in classes:
        yield from pod_class.places.items()
