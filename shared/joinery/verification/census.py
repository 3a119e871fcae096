"""How many pods that a selector matches run in each domain of a topology key."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from joinery.apis.core import LabelSelector, PodAffinityTerm
from joinery.apis.labels import ZONE
from joinery.verification.final_state import World
from joinery.verification.nodes import FinalNode, PodClass
from joinery.verification.predicates import Labels, selector_matches
from joinery.verification.volumes import Volumes

NAMESPACE_NAME = "kubernetes.io/metadata.name"


@dataclass
class Census:
    """Counts over the final state. Classes are found by their labels, so that a selector looks at few of them."""

    world: World
    _by_label: dict[tuple[str, str], list[PodClass]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for found in self.world.classes.values():
            for pair in found.labels.items():
                self._by_label.setdefault(pair, []).append(found)

    def matching(self, selector: LabelSelector | None, namespaces: frozenset[str] | None) -> list[PodClass]:
        """The classes that the selector matches in these namespaces (None: in all)."""
        if selector is None:
            return []
        pairs = list(selector.match_labels.items())
        candidates: Iterable[PodClass] = self._by_label.get(pairs[0], ()) if pairs else self.world.classes.values()
        return [
            found
            for found in candidates
            if (namespaces is None or found.namespace in namespaces) and selector_matches(selector, found.labels)
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

    def zones_of_claims(self, found: PodClass) -> list[frozenset[str]]:
        """For each unbound claim that the class's pods share with others, the zones of its users: its volume will be there."""
        if not found.pod.spec.volumes:
            return []
        used = ([f.places for f in self._users[name]] for name in self._volumes.claims_of(found) if name in self._users)
        together = [listed for listed in used if sum(sum(one.values()) for one in listed) > 1]
        return [frozenset(n.labels[ZONE] for one in listed for n in one if ZONE in n.labels) for listed in together]

    @cached_property
    def _volumes(self) -> Volumes:
        return Volumes(self.world)

    @cached_property
    def _users(self) -> Mapping[str, Sequence[PodClass]]:
        """The classes that use each claim whose first user will decide its zone."""
        users: dict[str, list[PodClass]] = {}
        for found in self.world.classes.values():
            for name in self._volumes.claims_of(found):
                if self._volumes.binds_zone(found, name):
                    users.setdefault(name, []).append(found)
        return users

    @property
    def _namespace_labels(self) -> Mapping[str, Labels]:
        known = {n.metadata.name: n.metadata.labels for n in self.world.problem.snapshot.namespaces}
        names = known.keys() | {found.namespace for found in self.world.classes.values()}
        return {name: {NAMESPACE_NAME: name, **known.get(name, {})} for name in names}


def by_domain(classes: Iterable[PodClass], key: str) -> dict[str, int]:
    """Pods of the classes, by the value that their nodes have for the key."""
    counts: dict[str, int] = {}
    for node, number in places(classes):
        domain = node.labels.get(key)
        if domain is not None:
            counts[domain] = counts.get(domain, 0) + number
    return counts


def places(classes: Iterable[PodClass]) -> Iterator[tuple[FinalNode, int]]:
    """Where pods of the classes run, and how many."""
    for found in classes:
        yield from found.places.items()
