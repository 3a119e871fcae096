"""What else EC2 may pick: a launch that leaves its zone or capacity type open must suit its pods in every one of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from joinery.apis import labels as keys
from joinery.scheduling.packing import Launch
from joinery.verification.affinity import Group, Repellent, affinity_groups, repellents
from joinery.verification.census import Census, by_domain
from joinery.verification.final_state import World
from joinery.verification.launches import Choices
from joinery.verification.nodes import FinalNode, PodClass, with_offering
from joinery.verification.predicates import Labels
from joinery.verification.purchasable import Market
from joinery.verification.spread import hard_spread, spread_tally
from joinery.verification.violation import Violation, ViolationCode, misplaced
from joinery.verification.volumes import Volumes

_OFFERED = (keys.ZONE, keys.CAPACITY_TYPE, keys.ZONE_ID)
_OPEN = (*_OFFERED, *(alias for alias, key in keys.ALIASES.items() if key in _OFFERED))


def check_alternatives(world: World, census: Census, *, choices: Choices, market: Market) -> Iterator[Violation]:
    """Every place that a launch allows beside the one it counts on."""
    trial = _Trial(world, census, market)
    for launch, node in world.launched:
        watchful = [found for found in node.planned if trial.minds(found)]
        for labels in _elsewhere(world, launch, node, choices) if watchful else ():
            for found in watchful:
                problem = trial.problem(found, node, labels)
                if problem:
                    where = f"{labels[keys.ZONE]} as {labels[keys.CAPACITY_TYPE]}"
                    yield misplaced(
                        ViolationCode.ALTERNATIVES, found, node, f"the launch also allows {where}, but {problem}"
                    )


def _elsewhere(world: World, launch: Launch, node: FinalNode, choices: Choices) -> Iterator[Labels]:
    """The node's labels, had it come from another zone or capacity type that the launch allows."""
    places = {place: o for choice in choices.of(launch).values() if choice for place, o in choice.places.items()}
    kind, own = world.types_of(world.pools[launch.node_pool])[launch.offering.instance_type], launch.offering
    for place in sorted(places.keys() - {(own.zone, own.capacity_type, own.reservation)}):
        yield with_offering(node.labels, kind, places[place])


@dataclass(frozen=True)
class _Trial:
    """Asks what would be wrong elsewhere, with everything else in place."""

    world: World
    census: Census
    market: Market

    @cached_property
    def _volumes(self) -> Volumes:
        return Volumes(self.world)

    @cached_property
    def _groups(self) -> Mapping[PodClass, Group]:
        return {group.owner: group for group in affinity_groups(self.world, self.census)}

    @cached_property
    def _repellents(self) -> Sequence[tuple[Repellent, Mapping[str, int], Mapping[str, int]]]:
        """Terms over what a launch may leave open, with their owners and those kept away by domain."""
        found = [term for term in repellents(self.world, self.census) if term.key in _OPEN]
        return [(term, by_domain(term.owners, term.key), by_domain(term.matched, term.key)) for term in found]

    def minds(self, found: PodClass) -> bool:
        """Whether anything but its own node selection ties the class to a zone or a capacity type."""
        if self._volumes.claims_of(found) or any(c.topology_key in _OPEN for c in hard_spread(found.pod)):
            return True
        group = self._groups.get(found)
        if group and any(key in _OPEN for key in group.keys):
            return True
        return any(found in term.owners or found in term.matched for term, _, _ in self._repellents)

    def problem(self, found: PodClass, node: FinalNode, labels: Labels) -> str:
        """What would be wrong with the class if its node had these labels, or the empty string."""
        changed = [key for key in _OPEN if labels.get(key) != node.labels.get(key)]
        return (
            self._volumes.problem(found, labels, node.name)
            or self._keeps_apart(found, labels, changed)
            or self._lonely(found, node, labels, changed=changed)
            or self._skewed(found, node, labels, changed=changed)
        )

    def _keeps_apart(self, found: PodClass, labels: Labels, changed: Sequence[str]) -> str:
        for term, owners, matched in self._repellents:
            domain = labels.get(term.key)
            if term.key not in changed or domain is None:
                continue
            if (found in term.owners and matched.get(domain)) or (found in term.matched and owners.get(domain)):
                return f"a pod in {term.key}={domain} and this one keep apart (anti-affinity)"
        return ""

    def _lonely(self, found: PodClass, node: FinalNode, labels: Labels, *, changed: Sequence[str]) -> str:
        group = self._groups.get(found)
        lonely = next((key for key in changed if group and group.lacks_elsewhere(node, key, labels[key])), None)
        return f"no pod that its affinity requires runs in {lonely}={labels[lonely]}" if lonely else ""

    def _skewed(self, found: PodClass, node: FinalNode, labels: Labels, *, changed: Sequence[str]) -> str:
        for constraint in hard_spread(found.pod):
            key = constraint.topology_key
            if key in changed:
                tally = spread_tally(self.world, found, constraint, census=self.census, market=self.market)
                problem = tally.moved(node, labels[key]).problem(labels[key])
                if problem:
                    return problem
        return ""
