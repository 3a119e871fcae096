"""Zones and capacity types that EC2 may pick for a launch:
its pods must be right in each of them (EC2 API CreateFleet).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from joinery.apis import labels as keys
from joinery.scheduling.packing import Launch
from joinery.verification.affinity import AntiAffinityTerm, RequiredNeighbours, anti_affinity_terms, required_neighbours
from joinery.verification.census import Census, by_domain
from joinery.verification.choices import Choices
from joinery.verification.final_state import FinalState
from joinery.verification.nodes import EquivalenceClass, FinalNode, with_offering
from joinery.verification.predicates import Labels
from joinery.verification.purchasable import Purchasable
from joinery.verification.spread import hard_spread, spread_counts
from joinery.verification.violation import Violation, ViolationCode, misplaced
from joinery.verification.volumes import Volumes

_OFFERED = (keys.ZONE, keys.CAPACITY_TYPE, keys.ZONE_ID)
_OPEN = (*_OFFERED, *(alias for alias, key in keys.ALIASES.items() if key in _OFFERED))


def check_alternatives(
    state: FinalState, census: Census, *, choices: Choices, purchasable: Purchasable
) -> Iterator[Violation]:
    """Check every zone and capacity type that a launch allows besides those that it counts on."""
    trial = _Trial(state, census, purchasable)
    for launch, node in state.launched:
        watchful = [pod_class for pod_class in node.planned if trial.minds(pod_class)]
        for labels in _elsewhere(state, launch, node, choices) if watchful else ():
            for pod_class in watchful:
                problem = trial.problem(pod_class, node, labels)
                if problem:
                    where = f"{labels[keys.ZONE]} as {labels[keys.CAPACITY_TYPE]}"
                    yield misplaced(
                        ViolationCode.ALTERNATIVES, pod_class, node, f"the launch also allows {where}, but {problem}"
                    )


def _elsewhere(state: FinalState, launch: Launch, node: FinalNode, choices: Choices) -> Iterator[Labels]:
    """The node's labels, had it come from another zone or capacity type that the launch allows."""
    places = {place: o for choice in choices.of(launch).values() if choice for place, o in choice.places.items()}
    kind, own = state.types_of(state.pools[launch.node_pool])[launch.offering.instance_type], launch.offering
    for place in sorted(places.keys() - {(own.zone, own.capacity_type, own.reservation)}):
        yield with_offering(node.labels, kind, places[place])


@dataclass(frozen=True)
class _Trial:
    """Tells what would be wrong if one node came up elsewhere, with everything else in place."""

    state: FinalState
    census: Census
    purchasable: Purchasable

    @cached_property
    def _volumes(self) -> Volumes:
        return Volumes(self.state)

    @cached_property
    def _groups(self) -> Mapping[EquivalenceClass, RequiredNeighbours]:
        return {group.owner: group for group in required_neighbours(self.state, self.census)}

    @cached_property
    def _anti_affinity_terms(self) -> Sequence[tuple[AntiAffinityTerm, Mapping[str, int], Mapping[str, int]]]:
        """Terms over what a launch may leave open, with their owners and those kept away by domain."""
        terms = [term for term in anti_affinity_terms(self.state, self.census) if term.key in _OPEN]
        return [(term, by_domain(term.owners, term.key), by_domain(term.matched, term.key)) for term in terms]

    def minds(self, pod_class: EquivalenceClass) -> bool:
        """Whether anything but its own node selection ties the class to a zone or a capacity type."""
        if self._volumes.claims_of(pod_class) or any(c.topology_key in _OPEN for c in hard_spread(pod_class.pod)):
            return True
        group = self._groups.get(pod_class)
        if group and any(key in _OPEN for key in group.keys):
            return True
        return any(pod_class in term.owners or pod_class in term.matched for term, _, _ in self._anti_affinity_terms)

    def problem(self, pod_class: EquivalenceClass, node: FinalNode, labels: Labels) -> str:
        """What would be wrong with the class if its node had these labels, or the empty string."""
        changed = [key for key in _OPEN if labels.get(key) != node.labels.get(key)]
        return (
            self._volumes.problem(pod_class, labels, node.name)
            or self._keeps_apart(pod_class, labels, changed)
            or self._lonely(pod_class, node, labels, changed=changed)
            or self._skewed(pod_class, node, labels, changed=changed)
        )

    def _keeps_apart(self, pod_class: EquivalenceClass, labels: Labels, changed: Sequence[str]) -> str:
        for term, owners, matched in self._anti_affinity_terms:
            domain = labels.get(term.key)
            if term.key not in changed or domain is None:
                continue
            if (pod_class in term.owners and matched.get(domain)) or (pod_class in term.matched and owners.get(domain)):
                return f"a pod in {term.key}={domain} and this one keep apart (anti-affinity)"
        return ""

    def _lonely(self, pod_class: EquivalenceClass, node: FinalNode, labels: Labels, *, changed: Sequence[str]) -> str:
        group = self._groups.get(pod_class)
        lonely = next((key for key in changed if group and group.lacks_elsewhere(node, key, labels[key])), None)
        return f"no pod that its affinity requires runs in {lonely}={labels[lonely]}" if lonely else ""

    def _skewed(self, pod_class: EquivalenceClass, node: FinalNode, labels: Labels, *, changed: Sequence[str]) -> str:
        for constraint in hard_spread(pod_class.pod):
            key = constraint.topology_key
            if key in changed:
                tally = spread_counts(
                    self.state, pod_class, constraint, census=self.census, purchasable=self.purchasable
                )
                problem = tally.moved(node, labels[key]).problem(labels[key])
                if problem:
                    return problem
        return ""
