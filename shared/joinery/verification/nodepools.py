"""NodePools as a whole: limits, minimal choice of values, and that a pool of higher weight is not passed over."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from joinery.apis import labels as keys
from joinery.apis.labels import PREFER_NO_SCHEDULE
from joinery.apis.nodepool import NodePool
from joinery.apis.quantity import Resources, amounts, total
from joinery.scheduling.reason import Figure, Subject
from joinery.verification.affinity import repellents
from joinery.verification.census import Census
from joinery.verification.final_state import World
from joinery.verification.launches import Choice, Choices
from joinery.verification.nodes import DECIDED_BY_OFFERING, FinalNode, PodClass, offering_labels
from joinery.verification.predicates import refused_taint
from joinery.verification.purchasable import Market, Ware, usage_of
from joinery.verification.spread import hard_spread
from joinery.verification.violation import Violation, ViolationCode, of_launch


def check_limits(world: World) -> Iterator[Violation]:
    """No NodePool that launches nodes grows over its limits; nodes that are leaving do not count."""
    usage = usage_of(world)
    for name in sorted({launch.node_pool for launch, _ in world.launched}):
        limits = amounts(world.pools[name].spec.limits)
        for resource in sorted(limits):
            used = usage[name].get(resource, 0)
            if used > limits[resource]:
                template = "{resource}: {used} with this plan, the limit is {limit}"
                figures: dict[str, Figure] = {"resource": resource, "used": used, "limit": limits[resource]}
                yield Violation.of(ViolationCode.LIMITS, template, Subject.node_pool(name), **figures)


def check_min_values(world: World, choices: Choices) -> Iterator[Violation]:
    """A launch keeps as many different values as its NodePool demands, unless it was told to do its best."""
    for launch, _ in world.launched:
        pool = world.pools[launch.node_pool]
        if launch.min_values_relaxed and world.problem.options.best_effort_min_values:
            continue
        for rule in pool.spec.template.spec.requirements:
            if rule.min_values is None:
                continue
            number = _distinct(keys.canonical(rule.key), choices.of(launch))
            if number < rule.min_values:
                template = "{values} values of {label}, NodePool {node_pool} wants {min_values}"
                figures: dict[str, Figure] = {"values": number, "label": rule.key, "node_pool": launch.node_pool}
                figures |= {"min_values": rule.min_values}
                yield Violation.of(ViolationCode.MIN_VALUES, template, of_launch(launch), **figures)


def _distinct(key: str, choices: Mapping[str, Choice | None]) -> int:
    """How many values of the label the types of a launch have, where they are sold as the launch allows."""
    usable = [choice for choice in choices.values() if choice is not None]
    if key in DECIDED_BY_OFFERING:
        sold = (offering_labels(c.kind, offering).get(key) for c in usable for offering in c.offerings)
        return len({value for value in sold if value is not None})
    return len({value for choice in usable for value in choice.kind.labels.get(key, ())})


def check_weights(world: World, market: Market, census: Census) -> Iterator[Violation]:
    """No launch of pods that a pool of higher weight would have taken, all of them on one node of its own.

    Only what is certain is refused: pods with preferences, with a choice of terms, with rules about other pods or that rules of
    others keep balanced may have had their reasons, and so may a pool with minimal values. A limit counts as it does in Karpenter (`filterByRemainingResources`): each launch
    takes the most that any of its types would.
    """
    pools = sorted(market.pools, key=lambda pool: -_weight(pool))
    if not world.launched or _weight(pools[0] if pools else None) == _weight(pools[-1] if pools else None):
        return
    watched = _watched(world, census)
    comparison = _Comparison(world, market, _room_left(world))
    for launch, node in world.launched:
        own = world.pools[launch.node_pool]
        if all(_is_plain(found) and found not in watched for found in node.planned):
            for pool in pools:
                if _weight(pool) > _weight(own) and comparison.would_take(pool, node):
                    message = f"NodePool {pool.metadata.name} has a higher weight and would have taken its pods"
                    yield Violation(ViolationCode.WEIGHT, message, of_launch(launch))
                    break


def _watched(world: World, census: Census) -> set[PodClass]:
    """Pods that rules of others keep balanced or away over more than hosts: where they may go is not theirs to say.

    Others are also those that the plan leaves: it was made for them too.
    """
    watched: set[PodClass] = set()
    left = (world.pods[one.pod] for one in world.packing.unplaced if one.pod in world.pods)
    for pod in chain((found.pod for found in world.classes.values()), left):
        for constraint in hard_spread(pod):
            if constraint.topology_key != keys.HOSTNAME:
                namespaces = frozenset({pod.metadata.namespace or "default"})
                watched.update(census.matching(constraint.label_selector, namespaces))
    return watched.union(*(term.matched for term in repellents(world, census) if term.key != keys.HOSTNAME))


def _weight(pool: NodePool | None) -> int:
    return (pool.spec.weight or 0) if pool else 0


def _is_plain(found: PodClass) -> bool:
    """Whether the pod has rules about nodes only, hard ones, and no choice: each term is tried on all pools (3.6)."""
    spec = found.pod.spec
    affinity = spec.affinity
    nodes = affinity and affinity.node_affinity
    preferred = nodes and nodes.preferred_during_scheduling_ignored_during_execution
    required = nodes and nodes.required_during_scheduling_ignored_during_execution
    has_choice = required and len(required.node_selector_terms) > 1
    about_pods = affinity and (affinity.pod_affinity or affinity.pod_anti_affinity)
    mounts = any(v.persistent_volume_claim or v.ephemeral for v in spec.volumes)
    return not (preferred or has_choice or about_pods or spec.topology_spread_constraints or mounts or found.ports)


def _room_left(world: World) -> dict[str, dict[str, int]]:
    """What every limited pool may still grow by, each launch counted with the most that any of its types would take."""
    usage = usage_of(world)
    left = {}
    for name, pool in world.pools.items():
        limits = amounts(pool.spec.limits)
        if limits:
            used = usage.get(name, {})
            left[name] = {resource: limit - used.get(resource, 0) for resource, limit in limits.items()}
    for launch, node in world.launched:
        if launch.node_pool in left:
            types = world.types_of(world.pools[launch.node_pool])
            room = left[launch.node_pool]
            for resource in room:
                most = max((types[n].capacity.get(resource, 0) for n in launch.instance_types if n in types), default=0)
                room[resource] -= max(0, most - node.capacity.get(resource, 0))
    return left


@dataclass
class _Comparison:
    world: World
    market: Market
    left: Mapping[str, Mapping[str, int]]
    _offered: dict[tuple[str, PodClass], dict[str, frozenset[tuple[str, str]]]] = field(default_factory=dict)

    def would_take(self, pool: NodePool, node: FinalNode) -> bool:
        """Whether one node of the pool could hold all pods of that one."""
        template = pool.spec.template.spec
        tolerated = all(refused_taint(template.taints, found.pod.spec.tolerations) is None for found in node.planned)
        soft = any(taint.effect == PREFER_NO_SCHEDULE for taint in template.taints)
        if not tolerated or soft or any(rule.min_values for rule in template.requirements):
            return False
        needs = total({k: v * len(p) for k, v in found.requests.items()} for found, p in node.planned.items())
        left = self.left.get(pool.metadata.name)
        return any(
            _within(ware.kind.capacity, left) and ware.holds(needs) and self._shared(pool, ware, list(node.planned))
            for ware in self.market.wares(pool)
        )

    def _shared(self, pool: NodePool, ware: Ware, classes: Sequence[PodClass]) -> bool:
        """Whether one offering suits all the classes."""
        common: frozenset[tuple[str, str]] | None = None
        for found in classes:
            places = self._places(pool, ware, found)
            common = places if common is None else common & places
        return bool(common)

    def _places(self, pool: NodePool, ware: Ware, found: PodClass) -> frozenset[tuple[str, str]]:
        known = self._offered.setdefault((pool.metadata.name, found), {})
        if ware.kind.name not in known:
            # A reservation may be used up by others: what is certain is what may be bought.
            places = ((o.zone, o.capacity_type) for o in self.market.usable(found, pool, ware) if o.reservation is None)
            known[ware.kind.name] = frozenset(places)
        return known[ware.kind.name]


def _within(capacity: Resources, left: Mapping[str, int] | None) -> bool:
    return left is None or all(
        (1 if resource == "nodes" else capacity.get(resource, 0)) <= room for resource, room in left.items()
    )
