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

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from joinery.apis.core import LabelSelector, LabelSelectorRequirement, Pod, TopologySpreadConstraint
from joinery.apis.labels import ALIASES, ZONE
from joinery.verification.affinity import domains_with_neighbours
from joinery.verification.census import Census
from joinery.verification.final_state import FinalState
from joinery.verification.nodes import EquivalenceClass, FinalNode
from joinery.verification.predicates import is_choosy, refused_taint
from joinery.verification.purchasable import Purchasable
from joinery.verification.violation import Violation, ViolationCode, misplaced

_ZONE_KEYS = {ZONE} | {alias for alias, key in ALIASES.items() if key == ZONE}


def hard_spread(pod: Pod) -> list[TopologySpreadConstraint]:
    """The constraints that must hold."""
    return [c for c in pod.spec.topology_spread_constraints if c.when_unsatisfiable == "DoNotSchedule"]


def check_spread(state: FinalState, census: Census, purchasable: Purchasable) -> Iterator[Violation]:
    """Every planned pod keeps each of its own constraints, with all other pods in place."""
    for pod_class in state.classes.values():
        constraints = hard_spread(pod_class.pod)
        if constraints and next(pod_class.planned_on, None) is not None:
            for constraint in constraints:
                counts = spread_counts(state, pod_class, constraint, census=census, purchasable=purchasable)
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
    counted: Sequence[EquivalenceClass] = ()

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
        along = sum(node.held.get(pod_class, 0) for pod_class in self.counted if not pod_class.is_terminating)
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


def spread_counts(
    state: FinalState,
    pod_class: EquivalenceClass,
    constraint: TopologySpreadConstraint,
    *,
    census: Census,
    purchasable: Purchasable,
) -> SpreadCounts:
    """Count the pods that the constraint looks at, in every domain that it looks at."""
    eligible = set(eligible_nodes(state, pod_class, constraint, [c.topology_key for c in hard_spread(pod_class.pod)]))
    key = constraint.topology_key
    counts = dict.fromkeys((node.labels[key] for node in eligible), 0)
    actual = len(counts)
    selector = spread_selector(constraint, pod_class)
    counted = census.matching(selector, frozenset({pod_class.namespace}))
    if key in _ZONE_KEYS and (empty := _zones(pod_class, census, purchasable) - counts.keys()):
        brought = purchasable.newcomers(pod_class, counted)
        counts |= {zone: brought.get(zone, 0) for zone in empty}
    for other in counted:
        if not other.is_terminating:
            for node, number in other.places.items():
                if node in eligible:
                    counts[node.labels[key]] += number
    return SpreadCounts(
        constraint, counts, actual, counts_itself=pod_class in counted and not pod_class.is_terminating, counted=counted
    )


def _zones(pod_class: EquivalenceClass, census: Census, purchasable: Purchasable) -> frozenset[str]:
    """The zones in which a node could be launched for the pod,
    less those that its affinity or a shared claim excludes.
    """
    neighbours = domains_with_neighbours(pod_class, _ZONE_KEYS, census)
    sold = purchasable.zones_for(pod_class)
    zones = sold if neighbours is None else sold & neighbours
    zones -= {domain for key, domain in census.state.packing.passed_over if key == ZONE}
    return zones.intersection(*census.zones_of_claims(pod_class))


def eligible_nodes(
    state: FinalState, pod_class: EquivalenceClass, constraint: TopologySpreadConstraint, keys: Sequence[str]
) -> Iterator[FinalNode]:
    """The nodes that count: they have all of these topology keys, and the constraint's nodeAffinityPolicy and
    nodeTaintsPolicy admit them.
    """
    spec = pod_class.pod.spec
    is_choosy_here = constraint.node_affinity_policy != "Ignore" and is_choosy(spec)
    selection = state.selections.of(spec) if is_choosy_here else None
    minds_taints = constraint.node_taints_policy == "Honor"
    for node in state.nodes:
        if any(key not in node.labels for key in keys):
            continue
        if selection is not None and not selection.selects(node.labels, node.name):
            continue
        if minds_taints and refused_taint(node.taints, spec.tolerations) is not None:
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
