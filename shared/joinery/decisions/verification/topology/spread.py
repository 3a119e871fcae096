"""Topology spread that must hold: no domain has more than ``maxSkew`` pods more than the emptiest (kube-scheduler
PodTopologySpread).

The domains are those of eligible nodes. For zones they are also those in which a NodePool could launch a node for the
pod: kube-scheduler would be content with one zone while only one has nodes, but whoever asks for a spread would not.
These zones are left out:

- where nothing that fits is sold within limits;
- that the plan says it passed over;
- without the neighbours that the pod's required affinity over zones names;
- in which the volume of a claim that the pod shares with others will not be.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import msgspec

from joinery.decisions.verification.final_state import FinalState
from joinery.decisions.verification.nodes import EquivalenceClass, FinalNode
from joinery.decisions.verification.predicates import hard_spread, refused_taint, selects_nodes
from joinery.decisions.verification.purchasable import Purchasable
from joinery.decisions.verification.selections import NodeSelection
from joinery.decisions.verification.topology.affinity import domains_with_neighbours
from joinery.decisions.verification.topology.census import REMEMBERED, Census, ClassSet, Tally, includes
from joinery.decisions.verification.violation import Violation, ViolationCode, misplaced
from joinery.objects.karpenter.labels import ALIASES, ZONE
from joinery.objects.kubernetes.core import (
    LabelSelector,
    LabelSelectorRequirement,
    Toleration,
    TopologySpreadConstraint,
)

_ENCODE = msgspec.json.Encoder().encode
_ZONE_KEYS = {ZONE} | {alias for alias, key in ALIASES.items() if key == ZONE}


def check_spread(state: FinalState, spreads: "Spreads") -> Iterator[Violation]:
    """Every planned pod keeps each of its own constraints, with all other pods in place."""
    for pod_class in state.planned:
        for constraint in hard_spread(pod_class.pod.spec):
            counts = spreads.counts(pod_class, constraint)
            for node in pod_class.planned_on:
                problem = counts.problem(node.labels.get(constraint.topology_key))
                if problem:
                    yield misplaced(ViolationCode.TOPOLOGY_SPREAD, pod_class, node, problem)


@dataclass(frozen=True)
class SpreadCounts:
    """Pods by domain, as one constraint of one class counts them; the class's own pods are included.

    ``actual_domains``: how many domains have eligible nodes; ``counts_itself``: whether the constraint counts the
    class; ``counted``: the classes that it counts.
    """

    constraint: TopologySpreadConstraint
    counts: Mapping[str, int]
    actual_domains: int
    counts_itself: bool
    counted: ClassSet = 0

    def problem(self, domain: str | None) -> str:
        """What is wrong with one of the class's pods being in the domain."""
        key = self.constraint.topology_key
        if domain is None:
            return f"spreads over {key}, a label that the node lacks"
        here = self.counts.get(domain, 0)
        least = self._least(domain, here)
        if here - least <= self.constraint.max_skew:
            return ""
        message = f"{here} pods in {key}={domain}, {least} in the emptiest"
        return f"{message}: a skew of {here - least}, and {self.constraint.max_skew} is allowed"

    def moved(self, node: FinalNode, domain: str) -> "SpreadCounts":
        """The counts if the node came up in another domain."""
        along = sum(number for pod_class, number in node.pods.items() if includes(self.counted, pod_class))
        counts = dict(self.counts)
        counts[node.labels[self.constraint.topology_key]] -= along
        counts[domain] = counts.get(domain, 0) + along
        return replace(self, counts=counts)

    def _least(self, domain: str, here: int) -> int:
        """The scheduler's global minimum (`minMatchNum`) as it would be if the pod were not there yet."""
        if self.actual_domains < (self.constraint.min_domains or 1):
            return 0
        least, second = self._two_least
        if domain not in self.counts:
            return least
        without = here - 1 if self.counts_itself else here
        return min(without, second if here == least else least)

    @cached_property
    def _two_least(self) -> tuple[int, int]:
        """The smallest count, and the smallest without the one domain that has it."""
        ordered = sorted(self.counts.values())[:2]
        return (ordered[0] if ordered else 0), (ordered[-1] if len(ordered) > 1 else ordered[0] if ordered else 0)


@dataclass
class Spreads:
    """What the constraints of all classes count."""

    state: FinalState
    census: Census
    purchasable: Purchasable

    def __post_init__(self) -> None:
        self._eligible = EligiblePods(self.state)
        self._zones: dict[EquivalenceClass, frozenset[str]] = {}
        self._keys: dict[EquivalenceClass, frozenset[str]] = {}

    def counts(self, pod_class: EquivalenceClass, constraint: TopologySpreadConstraint) -> SpreadCounts:
        """Count the pods that the constraint looks at, in every domain that it looks at."""
        if pod_class not in self._keys:
            self._keys[pod_class] = frozenset(c.topology_key for c in hard_spread(pod_class.pod.spec))
        key, census = constraint.topology_key, self.census
        counted = census.matching(spread_selector(constraint, pod_class), census.inside(pod_class.namespace))
        living = counted & census.living
        counts = self._eligible.tally(pod_class, constraint, self._keys[pod_class]).counts(living)
        actual = len(counts)
        if key in _ZONE_KEYS and (empty := self._zones_for(pod_class) - counts.keys()):
            brought = self.purchasable.newcomers(pod_class, counted)
            counts = {**counts, **{zone: brought.get(zone, 0) for zone in empty}}
        return SpreadCounts(constraint, counts, actual, counts_itself=includes(living, pod_class), counted=living)

    def _zones_for(self, pod_class: EquivalenceClass) -> frozenset[str]:
        """The zones in which a node could be launched for the pod,
        less those that its affinity or a shared claim excludes.
        """
        if pod_class not in self._zones:
            neighbours = domains_with_neighbours(pod_class, _ZONE_KEYS, self.census)
            sold = self.purchasable.zones_for(pod_class)
            zones = sold if neighbours is None else sold & neighbours
            zones -= {domain for key, domain in self.state.packing.passed_over if key == ZONE}
            self._zones[pod_class] = zones.intersection(*self.census.zones_of_claims(pod_class))
        return self._zones[pod_class]


class EligiblePods:
    """The pods on the nodes that a constraint counts.

    These have all of certain topology keys, and the constraint's nodeAffinityPolicy and nodeTaintsPolicy admit them.
    """

    def __init__(self, state: FinalState, nodes: Sequence[FinalNode] | None = None) -> None:
        self._state, self._nodes = state, state.nodes if nodes is None else nodes
        self._tallies: dict[Hashable, Tally] = {}

    def tally(self, pod_class: EquivalenceClass, constraint: TopologySpreadConstraint, keys: frozenset[str]) -> Tally:
        """Where the pods on these nodes are by the constraint's key. Constraints that admit the same share it."""
        spec = pod_class.pod.spec
        is_choosy_here = constraint.node_affinity_policy != "Ignore" and selects_nodes(spec)
        selection = self._state.selections.of(spec) if is_choosy_here else None
        tolerations = spec.tolerations if constraint.node_taints_policy == "Honor" else None
        identity = constraint.topology_key, selection, None if tolerations is None else _ENCODE(tolerations), keys
        if identity not in self._tallies:
            if len(self._tallies) >= REMEMBERED:
                self._tallies.clear()
            nodes = self._eligible(selection, tolerations, keys)
            self._tallies[identity] = Tally(nodes, constraint.topology_key)
        return self._tallies[identity]

    def _eligible(
        self, selection: NodeSelection | None, tolerations: Sequence[Toleration] | None, keys: frozenset[str]
    ) -> Iterator[FinalNode]:
        for node in self._nodes:
            if not node.labels.keys() >= keys:
                continue
            if selection is not None and not selection.selects(node.labels, node.name):
                continue
            if tolerations is not None and refused_taint(node.taints, tolerations) is not None:
                continue
            yield node


def spread_selector(constraint: TopologySpreadConstraint, pod_class: EquivalenceClass) -> LabelSelector | None:
    """The selector with the pod's own values of matchLabelKeys; those alone where there is no selector.

    The scheduler counts nothing for a selector that is empty, as if there were none.
    """
    selector = constraint.label_selector
    wanted = [key for key in constraint.match_label_keys if key in pod_class.labels]
    if not wanted:
        return None if selector == LabelSelector() else selector
    own = [LabelSelectorRequirement(key=key, operator="In", values=[pod_class.labels[key]]) for key in wanted]
    if selector is None:
        return LabelSelector(match_expressions=own)
    return LabelSelector(match_labels=selector.match_labels, match_expressions=[*selector.match_expressions, *own])
