"""How many pods that a selector matches run in each domain of a topology key."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from joinery.apis.core import LabelSelector, PodAffinityTerm
from joinery.scheduling.verify_nodes import FinalNode
from joinery.scheduling.verify_rules import Labels, selector_matches
from joinery.scheduling.verify_world import PodClass, World

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
