"""How many pods that a selector matches run in each domain of a topology key.

Each of thousands of classes may have rules of its own about all others. So a set of classes is an integer with a bit
for each (``ClassSet``): to intersect two, or to count one in a domain, takes a microsecond.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import chain

from joinery.decisions.verification.final_state import FinalState
from joinery.decisions.verification.labelled import Labelled, as_set
from joinery.decisions.verification.nodes import EquivalenceClass, FinalNode
from joinery.decisions.verification.storage.volumes import PodVolumes
from joinery.objects.karpenter.labels import ZONE
from joinery.objects.kubernetes.core import LabelSelector, PodAffinityTerm

NAMESPACE_NAME = "kubernetes.io/metadata.name"

#: How many sets of counts are remembered: those of thousands of rules that all differ would fill the memory.
REMEMBERED = 64

#: Classes of the final state: a bit for each, by its index.
ClassSet = int


def includes(classes: ClassSet, pod_class: EquivalenceClass) -> bool:
    """Whether the class is one of the set."""
    return bool(classes >> pod_class.index & 1)


class Census:
    """Counts over the final state."""

    def __init__(self, state: FinalState) -> None:
        self.state = state
        self._classes = list(state.classes.values())
        self._pods = Labelled([pod_class.labels for pod_class in self._classes])
        self._inside: dict[str, ClassSet] = {}
        self._tallies: dict[str, Tally] = {}

    def matching(self, selector: LabelSelector | None, where: ClassSet) -> ClassSet:
        """The classes of these that the selector matches (k8s.io/apimachinery `LabelSelectorAsSelector`)."""
        return self._pods.matching(selector) & where

    def inside(self, namespace: str) -> ClassSet:
        """The classes in the namespace."""
        if namespace not in self._inside:
            self._inside[namespace] = self._namespaces.having(NAMESPACE_NAME, (namespace,))
        return self._inside[namespace]

    def where(self, term: PodAffinityTerm, owner: str) -> ClassSet:
        """Where a term looks: the classes in namespaces listed, in those selected, or without either in the owner's."""
        selector = term.namespace_selector
        if selector is None and not term.namespaces:
            return self.inside(owner)
        return self._namespaces.matching(selector) | self._namespaces.having(NAMESPACE_NAME, term.namespaces)

    @cached_property
    def _namespaces(self) -> "Labelled":
        """The classes by the labels of their namespaces."""
        labels = {n.metadata.name: n.metadata.labels for n in self.state.problem.snapshot.namespaces}
        names = [pod_class.namespace for pod_class in self._classes]
        return Labelled([{NAMESPACE_NAME: name, **labels.get(name, {})} for name in names])

    def tally(self, key: str) -> "Tally":
        """The pods of all nodes by their domain of a key."""
        if key not in self._node_labels:
            return _NONE
        if key not in self._tallies:
            self._tallies[key] = Tally(self.state.nodes, key)
        return self._tallies[key]

    @cached_property
    def _node_labels(self) -> frozenset[str]:
        return frozenset(key for node in self.state.nodes for key in node.labels)

    @cached_property
    def living(self) -> ClassSet:
        """The classes whose pods are not being deleted."""
        return as_set(pod_class.index for pod_class in self._classes if not pod_class.is_terminating)

    def zones_of_claims(self, pod_class: EquivalenceClass) -> list[frozenset[str]]:
        """For each unbound claim that the class's pods share with others,
        the zones of its users: its volume will be there.
        """
        if not pod_class.pod.spec.volumes:
            return []
        return [self._shared[name] for name in self._volumes.claims_of(pod_class) if name in self._shared]

    @cached_property
    def _volumes(self) -> PodVolumes:
        return PodVolumes(self.state)

    @cached_property
    def _shared(self) -> Mapping[str, frozenset[str]]:
        """The zones of each claim that several pods use and whose first user will decide its zone."""
        users: dict[str, list[EquivalenceClass]] = {}
        for pod_class in self._classes:
            for name in self._volumes.claims_of(pod_class):
                if self._volumes.binds_zone(pod_class, name):
                    users.setdefault(name, []).append(pod_class)
        places = {name: [self.state.places(user) for user in listed] for name, listed in users.items()}
        return {
            name: frozenset(node.labels[ZONE] for nodes in there for node in nodes if ZONE in node.labels)
            for name, there in places.items()
            if sum(sum(nodes.values()) for nodes in there) > 1
        }


class Tally:
    """The pods of some nodes by their domain of a topology key; nodes without the label are left out.

    It knows by domain which classes have one pod there, which two, and so on.
    """

    def __init__(self, nodes: Iterable[FinalNode], key: str) -> None:
        self._nodes: dict[str, list[FinalNode]] = defaultdict(list)
        planned: dict[str, set[int]] = defaultdict(set)
        for node in nodes:
            if key in node.labels:
                self._nodes[node.labels[key]].append(node)
                if node.planned:
                    planned[node.labels[key]].update(pod_class.index for pod_class in node.planned)
        self._planned = {domain: as_set(here) for domain, here in planned.items()}
        self._by_domain: dict[str, Mapping[int, ClassSet]] = {}
        self._counts: dict[ClassSet, dict[str, int]] = {}

    def _in(self, domain: str) -> Mapping[int, ClassSet]:
        """By a number of pods, the classes that have so many in the domain: few of thousands of hosts are asked for."""
        if domain not in self._by_domain:
            self._by_domain[domain] = _by_number(_pods_on(self._nodes.get(domain, ())))
        return self._by_domain[domain]

    @cached_property
    def _everywhere(self) -> Mapping[int, ClassSet]:
        return _by_number(_pods_on(chain.from_iterable(self._nodes.values())))

    def number(self, classes: ClassSet, domain: str) -> int:
        """How many pods of the classes run in the domain."""
        return _number(self._in(domain), classes) if domain in self._nodes else 0

    def planned(self, domain: str) -> ClassSet:
        """The classes of which the plan puts pods into the domain."""
        return self._planned.get(domain, 0)

    def total(self, classes: ClassSet) -> int:
        """How many pods of the classes run in all domains together."""
        return _number(self._everywhere, classes)

    def counts(self, classes: ClassSet) -> Mapping[str, int]:
        """How many pods of the classes run in each domain, also where there are none."""
        if classes not in self._counts:
            if len(self._counts) >= REMEMBERED:
                self._counts.clear()
            self._counts[classes] = {domain: self.number(classes, domain) for domain in self._nodes}
        return self._counts[classes]


def _pods_on(nodes: Iterable[FinalNode]) -> Mapping[int, int]:
    """How many pods of each class run on the nodes together, by its index."""
    pods: dict[int, int] = defaultdict(int)
    for node in nodes:
        for pod_class, number in node.pods.items():
            pods[pod_class.index] += number
    return pods


def _by_number(pods: Mapping[int, int]) -> Mapping[int, ClassSet]:
    by_number: dict[int, list[int]] = {}
    for index, number in pods.items():
        by_number.setdefault(number, []).append(index)
    return {number: as_set(indices) for number, indices in by_number.items()}


def _number(by_number: Mapping[int, ClassSet], classes: ClassSet) -> int:
    return sum(number * (classes & some).bit_count() for number, some in by_number.items())


_NONE = Tally((), "")
