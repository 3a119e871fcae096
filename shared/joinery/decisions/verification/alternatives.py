"""Zones and capacity types that EC2 may pick for a launch: its pods must be right in each (EC2 API CreateFleet)."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from joinery.decisions.scheduling.packing import Launch
from joinery.decisions.verification.final_state import FinalState
from joinery.decisions.verification.launch_options import LaunchOptions
from joinery.decisions.verification.nodes import EquivalenceClass, FinalNode, with_offering
from joinery.decisions.verification.predicates import Labels, hard_spread
from joinery.decisions.verification.storage.volumes import PodVolumes
from joinery.decisions.verification.topology.affinity import AntiAffinityTerm, RequiredNeighbours, required_neighbours
from joinery.decisions.verification.topology.census import includes
from joinery.decisions.verification.topology.spread import Spreads
from joinery.decisions.verification.violation import Violation, ViolationCode, misplaced
from joinery.objects.karpenter import labels as keys

_OFFERED = (keys.ZONE, keys.CAPACITY_TYPE, keys.ZONE_ID)
_OPEN = (*_OFFERED, *(alias for alias, key in keys.ALIASES.items() if key in _OFFERED))


def check_alternatives(
    state: FinalState, *, options: LaunchOptions, spreads: Spreads, repulsions: Sequence[AntiAffinityTerm]
) -> Iterator[Violation]:
    """Check every zone and capacity type that a launch allows besides those that it counts on."""
    relocation = _Relocation(state, spreads, repulsions)
    for launch, node in state.launched:
        sensitive = [pod_class for pod_class in node.planned if relocation.concerns(pod_class)]
        for labels in _elsewhere(state, launch, node, options) if sensitive else ():
            for pod_class in sensitive:
                problem = relocation.problem(pod_class, node, labels)
                if problem:
                    where = f"{labels[keys.ZONE]} as {labels[keys.CAPACITY_TYPE]}"
                    yield misplaced(
                        ViolationCode.ALTERNATIVES, pod_class, node, f"the launch also allows {where}, but {problem}"
                    )


def _elsewhere(state: FinalState, launch: Launch, node: FinalNode, options: LaunchOptions) -> Iterator[Labels]:
    """The node's labels, had it come from another zone or capacity type that the launch allows."""
    places = {place: o for option in options.usable(launch) for place, o in option.places.items()}
    kind, own = state.types_of(state.pools[launch.node_pool])[launch.offering.instance_type], launch.offering
    for place in sorted(places.keys() - {(own.zone, own.capacity_type, own.reservation)}):
        yield with_offering(node.labels, kind, places[place])


@dataclass(frozen=True)
class _Relocation:
    """What would be wrong if one node came up elsewhere, with everything else in place."""

    state: FinalState
    spreads: Spreads
    repulsions: Sequence[AntiAffinityTerm]

    @cached_property
    def _volumes(self) -> PodVolumes:
        return PodVolumes(self.state)

    @cached_property
    def _groups(self) -> Mapping[EquivalenceClass, RequiredNeighbours]:
        return {group.owner: group for group in required_neighbours(self.state, self.spreads.census)}

    @cached_property
    def _keeping_apart(self) -> Mapping[int, Sequence[AntiAffinityTerm]]:
        """By index of a class: the terms over what a launch may leave open that it has, or that keep it away."""
        terms: dict[int, list[AntiAffinityTerm]] = defaultdict(list)
        for term in self.repulsions:
            if term.key in _OPEN and term.matched:
                for pod_class in self.state.classes.values():
                    if includes(term.owned_by | term.matched, pod_class):
                        terms[pod_class.index].append(term)
        return terms

    def concerns(self, pod_class: EquivalenceClass) -> bool:
        """Whether anything but its own node selection ties the class to a zone or a capacity type."""
        if self._volumes.claims_of(pod_class) or any(c.topology_key in _OPEN for c in hard_spread(pod_class.pod.spec)):
            return True
        group = self._groups.get(pod_class)
        if group and any(key in _OPEN for key in group.keys):
            return True
        return pod_class.index in self._keeping_apart

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
        for term in self._keeping_apart.get(pod_class.index, ()):
            domain = labels.get(term.key)
            if term.key not in changed or domain is None:
                continue
            others = (term.matched if includes(term.owned_by, pod_class) else 0) | (
                term.owned_by if includes(term.matched, pod_class) else 0
            )
            if term.tally.number(others, domain):
                return f"a pod in {term.key}={domain} and this one keep apart (anti-affinity)"
        return ""

    def _lonely(self, pod_class: EquivalenceClass, node: FinalNode, labels: Labels, *, changed: Sequence[str]) -> str:
        group = self._groups.get(pod_class)
        lonely = next((key for key in changed if group and group.lacks_elsewhere(node, key, labels[key])), None)
        return f"no pod that its affinity requires runs in {lonely}={labels[lonely]}" if lonely else ""

    def _skewed(self, pod_class: EquivalenceClass, node: FinalNode, labels: Labels, *, changed: Sequence[str]) -> str:
        for constraint in hard_spread(pod_class.pod.spec):
            key = constraint.topology_key
            if key in changed:
                problem = self.spreads.counts(pod_class, constraint).moved(node, labels[key]).problem(labels[key])
                if problem:
                    return problem
        return ""
