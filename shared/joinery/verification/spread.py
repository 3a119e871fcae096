"""Topology spread that must not be violated: no domain may be more than ``maxSkew`` fuller than the emptiest.

The domains are those of eligible nodes and, for zones, also those in which an allowed pool could buy a node for the pod:
the scheduler would be content with one zone where only one has nodes, the user would not. A zone in which nothing that
fits is sold within limits is no domain, nor is one that the plan says it passed over, one without the neighbours that the pod's
required affinity over zones names, or one that the volume of a claim, which the pod shares with others, will not be in.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from joinery.apis.core import LabelSelector, LabelSelectorRequirement, Pod, TopologySpreadConstraint
from joinery.apis.labels import ALIASES, ZONE
from joinery.verification.affinity import domains_with_neighbours
from joinery.verification.census import Census
from joinery.verification.final_state import World
from joinery.verification.nodes import FinalNode, PodClass
from joinery.verification.predicates import is_choosy, refused_taint, selects_node
from joinery.verification.purchasable import Market
from joinery.verification.violation import Violation, ViolationCode, misplaced

_ZONE_KEYS = {ZONE} | {alias for alias, key in ALIASES.items() if key == ZONE}


def hard_spread(pod: Pod) -> list[TopologySpreadConstraint]:
    """The constraints that must hold."""
    return [c for c in pod.spec.topology_spread_constraints if c.when_unsatisfiable == "DoNotSchedule"]


def check_spread(world: World, census: Census, market: Market) -> Iterator[Violation]:
    """Every pod of the plan keeps every constraint of its own, with all others in place."""
    for found in world.classes.values():
        constraints = hard_spread(found.pod)
        if constraints and next(found.planned_on, None) is not None:
            for constraint in constraints:
                tally = spread_tally(world, found, constraint, census=census, market=market)
                for node in found.planned_on:
                    problem = tally.problem(node.labels.get(constraint.topology_key))
                    if problem:
                        yield misplaced(ViolationCode.TOPOLOGY_SPREAD, found, node, problem)


@dataclass(frozen=True)
class Tally:
    """Counts per domain for one constraint of one class, the class's own pods included."""

    constraint: TopologySpreadConstraint
    counts: Mapping[str, int]
    actual_domains: int
    counts_itself: bool
    counted: Sequence[PodClass] = ()

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

    def moved(self, node: FinalNode, domain: str) -> "Tally":
        """The counts if the node came up in another domain."""
        along = sum(node.held.get(found, 0) for found in self.counted if not found.is_terminating)
        counts = dict(self.counts)
        counts[node.labels[self.constraint.topology_key]] -= along
        counts[domain] = counts.get(domain, 0) + along
        return replace(self, counts=counts)

    def _least(self, domain: str, here: int) -> int:
        """The scheduler's global minimum as it would be if the pod were not there yet."""
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


def spread_tally(
    world: World, found: PodClass, constraint: TopologySpreadConstraint, *, census: Census, market: Market
) -> Tally:
    """Count the pods that the constraint looks at, in every domain that it looks at."""
    eligible = set(_eligible(world, found, constraint))
    key = constraint.topology_key
    counts = dict.fromkeys((node.labels[key] for node in eligible), 0)
    actual = len(counts)
    selector = _selector(constraint, found)
    counted = census.matching(selector, frozenset({found.namespace}))
    if key in _ZONE_KEYS and (empty := _zones(found, census, market) - counts.keys()):
        brought = market.newcomers(found, counted)
        counts |= {zone: brought.get(zone, 0) for zone in empty}
    for other in counted:
        if not other.is_terminating:
            for node, number in other.places.items():
                if node in eligible:
                    counts[node.labels[key]] += number
    return Tally(
        constraint, counts, actual, counts_itself=found in counted and not found.is_terminating, counted=counted
    )


def _zones(found: PodClass, census: Census, market: Market) -> frozenset[str]:
    """Where a node could be bought for the pod that its own affinity and those with whom it shares a claim let it onto."""
    neighbours = domains_with_neighbours(found, _ZONE_KEYS, census)
    sold = market.zones_for(found)
    zones = sold if neighbours is None else sold & neighbours
    zones -= {domain for key, domain in census.world.packing.passed_over if key == ZONE}
    return zones.intersection(*census.zones_of_claims(found))


def _eligible(world: World, found: PodClass, constraint: TopologySpreadConstraint) -> Iterable[FinalNode]:
    """Nodes with all the keys the pod spreads over, that its policies let it see."""
    keys = [c.topology_key for c in hard_spread(found.pod)]
    spec = found.pod.spec
    choosy = constraint.node_affinity_policy != "Ignore" and is_choosy(spec)
    minds_taints = constraint.node_taints_policy == "Honor"
    for node in world.nodes:
        if any(key not in node.labels for key in keys):
            continue
        if choosy and not selects_node(spec, node.labels, node.name):
            continue
        if minds_taints and refused_taint(node.taints, spec.tolerations) is not None:
            continue
        yield node


def _selector(constraint: TopologySpreadConstraint, found: PodClass) -> LabelSelector | None:
    """The selector with the pod's own values of matchLabelKeys; those alone where there is no selector."""
    selector = constraint.label_selector
    wanted = [key for key in constraint.match_label_keys if key in found.labels]
    if not wanted:
        return selector
    own = [LabelSelectorRequirement(key=key, operator="In", values=[found.labels[key]]) for key in wanted]
    if selector is None:
        return LabelSelector(match_expressions=own)
    return LabelSelector(match_labels=selector.match_labels, match_expressions=[*selector.match_expressions, *own])
