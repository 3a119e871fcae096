"""NodePools as a whole: limits, replicas, minValues, and that no pool of higher weight is passed over."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import chain
from operator import or_

from joinery.decisions.scheduling.packing import Launch
from joinery.decisions.scheduling.reason import Figure, Subject
from joinery.decisions.verification.final_state import FinalState
from joinery.decisions.verification.launch_options import LaunchOption, LaunchOptions
from joinery.decisions.verification.nodes import DECIDED_BY_OFFERING, EquivalenceClass, FinalNode, offering_labels
from joinery.decisions.verification.predicates import hard_spread, refused_taint
from joinery.decisions.verification.purchasable import InstanceTypeOption, Purchasable, usage_of
from joinery.decisions.verification.topology.affinity import AntiAffinityTerm
from joinery.decisions.verification.topology.census import Census, ClassSet, includes
from joinery.decisions.verification.violation import Violation, ViolationCode, of_launch
from joinery.objects.karpenter import labels as keys
from joinery.objects.karpenter.labels import PREFER_NO_SCHEDULE
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.kubernetes.quantity import Resources, amounts
from joinery.objects.snapshot.replicas import static_pools


def check_limits(state: FinalState, options: LaunchOptions) -> Iterator[Violation]:
    """No NodePool that launches nodes grows over its limits, whichever types EC2 picks.

    Nodes that are being deleted do not count.
    """
    usage = usage_of(state)
    for name in sorted({launch.node_pool for launch, _ in state.launched}):
        limits = amounts(state.pools[name].spec.limits)
        launches = [launch for launch, _ in state.launched if launch.node_pool == name] if limits else []
        for resource in sorted(limits):
            used = usage[name].get(resource, 0)
            most = used + sum(_more_by_option(state, options, launch, resource) for launch in launches)
            if most > limits[resource]:
                when = "with this plan" if used == most else "with this plan if EC2 picks the largest types"
                template = "{resource}: {used} {when}, the limit is {limit}"
                figures: dict[str, Figure] = {"resource": resource, "used": most, "when": when}
                figures |= {"limit": limits[resource]}
                yield Violation.of(ViolationCode.LIMITS, template, Subject.node_pool(name), **figures)


def check_replicas(state: FinalState) -> Iterator[Violation]:
    """No static NodePool grows over its replicas."""
    static = static_pools(state.problem.snapshot)
    new = Counter(launch.node_pool for launch, _ in state.launched if launch.node_pool in static)
    for name in sorted(new):
        lacking = static[name].lacking
        if new[name] > lacking:
            template = "{launches} launches, and it lacks {lacking} of its {replicas} replicas"
            figures: dict[str, Figure] = {"launches": new[name], "lacking": lacking}
            figures |= {"replicas": static[name].pool.spec.replicas or 0}
            yield Violation.of(ViolationCode.REPLICAS, template, Subject.node_pool(name), **figures)


def _more_by_option(state: FinalState, options: LaunchOptions, launch: Launch, resource: str) -> int:
    """How much more of a resource a launch may take than the type that it counts on."""
    counted = state.types_of(state.pools[launch.node_pool])[launch.offering.instance_type].capacity.get(resource, 0)
    return max((option.kind.capacity.get(resource, 0) - counted for option in options.usable(launch)), default=0)


def check_min_values(state: FinalState, options: LaunchOptions) -> Iterator[Violation]:
    """A launch allows as many values of each label as its NodePool's minValues asks for (Karpenter
    `InstanceTypes.SatisfiesMinValues`).

    With the policy BestEffort a launch may say that it relaxed them.
    """
    for launch, _ in state.launched:
        pool = state.pools[launch.node_pool]
        if launch.min_values_relaxed and state.problem.options.best_effort_min_values:
            continue
        for rule in pool.spec.template.spec.requirements:
            if rule.min_values is None:
                continue
            number = distinct(keys.canonical(rule.key), options.usable(launch))
            if number < rule.min_values:
                template = "{values} values of {label}, NodePool {node_pool} wants {min_values}"
                figures: dict[str, Figure] = {"values": number, "label": rule.key, "node_pool": launch.node_pool}
                figures |= {"min_values": rule.min_values}
                yield Violation.of(ViolationCode.MIN_VALUES, template, of_launch(launch), **figures)


def distinct(key: str, usable: Sequence[LaunchOption]) -> int:
    """How many values of the label the types of a launch have, where they are sold as the launch allows."""
    if key in DECIDED_BY_OFFERING:
        sold = (offering_labels(c.kind, offering).get(key) for c in usable for offering in c.offerings)
        return len({value for value in sold if value is not None})
    return len({value for option in usable for value in option.kind.labels.get(key, ())})


def check_weights(
    state: FinalState, purchasable: Purchasable, *, census: Census, repulsions: Sequence[AntiAffinityTerm]
) -> Iterator[Violation]:
    """No launch is for pods that one node of a NodePool of higher weight would have taken (Karpenter `OrderByWeight`).

    Only what is certain is refused. There may be a reason to pass a heavier pool over for pods with preferences, with a
    choice of terms or with rules about other pods, for pods that others' spreads count, and where a pool has minValues.
    A limit counts as it does in Karpenter (`filterByRemainingResources`): each launch takes the most that any of its
    types would.
    """
    pools = sorted(purchasable.pools, key=lambda pool: -_weight(pool))
    if not state.launched or _weight(pools[0] if pools else None) == _weight(pools[-1] if pools else None):
        return
    watched = _watched(state, census, repulsions)
    comparison = _Comparison(state, purchasable, _room_left(state))
    for launch, node in state.launched:
        own = state.pools[launch.node_pool]
        if all(_is_plain(pod_class) and not includes(watched, pod_class) for pod_class in node.planned):
            for pool in pools:
                if _weight(pool) > _weight(own) and comparison.would_take(pool, node):
                    message = f"NodePool {pool.metadata.name} has a higher weight and would have taken its pods"
                    yield Violation(ViolationCode.WEIGHT, message, of_launch(launch))
                    break


def _watched(state: FinalState, census: Census, repulsions: Sequence[AntiAffinityTerm]) -> ClassSet:
    """Pods that other pods' spreads count or whose anti-affinity keeps them away, over more than hosts.

    Others may also be pods that the plan leaves out: it was made for them too.
    """
    watched: ClassSet = reduce(or_, (term.matched for term in repulsions if term.key != keys.HOSTNAME), 0)
    left = (state.pods[unplaced.pod] for unplaced in state.packing.unplaced if unplaced.pod in state.pods)
    for pod in chain((pod_class.pod for pod_class in state.classes.values()), left):
        for constraint in hard_spread(pod.spec):
            if constraint.topology_key != keys.HOSTNAME:
                where = census.inside(pod.metadata.namespace or "default")
                watched |= census.matching(constraint.label_selector, where)
    return watched


def _weight(pool: NodePool | None) -> int:
    return (pool.spec.weight or 0) if pool else 0


def _is_plain(pod_class: EquivalenceClass) -> bool:
    """Whether the pod has hard rules about nodes only, and no choice of terms:
    Karpenter tries each term on all pools in turn.
    """
    spec = pod_class.pod.spec
    affinity, required = spec.affinity, spec.required_node_affinity
    nodes = affinity and affinity.node_affinity
    preferred = nodes and nodes.preferred_during_scheduling_ignored_during_execution
    has_choice = required and len(required.node_selector_terms) > 1
    about_pods = affinity and (affinity.pod_affinity or affinity.pod_anti_affinity)
    mounts = any(v.persistent_volume_claim or v.ephemeral for v in spec.volumes)
    return not (preferred or has_choice or about_pods or spec.topology_spread_constraints or mounts or pod_class.ports)


def _room_left(state: FinalState) -> dict[str, dict[str, int]]:
    """What every NodePool with limits may still grow by.

    Each launch counts with the most that any of its types would take.
    """
    usage = usage_of(state)
    left = {}
    for name, pool in state.pools.items():
        limits = amounts(pool.spec.limits)
        if limits:
            used = usage.get(name, {})
            left[name] = {resource: limit - used.get(resource, 0) for resource, limit in limits.items()}
    for launch, node in state.launched:
        if launch.node_pool in left:
            types = state.types_of(state.pools[launch.node_pool])
            room = left[launch.node_pool]
            for resource in room:
                most = max((types[n].capacity.get(resource, 0) for n in launch.instance_types if n in types), default=0)
                room[resource] -= max(0, most - node.capacity.get(resource, 0))
    return left


@dataclass
class _Comparison:
    """Compares a planned node with what other NodePools could have launched.

    ``left``: what their limits leave, by pool.
    """

    state: FinalState
    purchasable: Purchasable
    left: Mapping[str, Mapping[str, int]]
    _offered: dict[tuple[str, EquivalenceClass], dict[str, frozenset[tuple[str, str]]]] = field(default_factory=dict)

    def would_take(self, pool: NodePool, node: FinalNode) -> bool:
        """Whether one node of the pool could hold all pods of that one."""
        template = pool.spec.template.spec
        tolerated = all(
            refused_taint(template.taints, pod_class.pod.spec.tolerations) is None for pod_class in node.planned
        )
        soft = any(taint.effect == PREFER_NO_SCHEDULE for taint in template.taints)
        if not tolerated or soft or any(rule.min_values for rule in template.requirements):
            return False
        left = self.left.get(pool.metadata.name)
        return any(
            _within(option.kind.capacity, left)
            and option.holds(node.planned_requests)
            and self._shared(pool, option, list(node.planned))
            for option in self.purchasable.options(pool)
        )

    def _shared(self, pool: NodePool, option: InstanceTypeOption, classes: Sequence[EquivalenceClass]) -> bool:
        """Whether one offering suits all the classes."""
        common: frozenset[tuple[str, str]] | None = None
        for pod_class in classes:
            places = self._places(pool, option, pod_class)
            common = places if common is None else common & places
        return bool(common)

    def _places(
        self, pool: NodePool, option: InstanceTypeOption, pod_class: EquivalenceClass
    ) -> frozenset[tuple[str, str]]:
        by_type = self._offered.setdefault((pool.metadata.name, pod_class), {})
        if option.kind.name not in by_type:
            # A reservation may be used up by others: what is certain is what may be bought.
            places = (
                (o.zone, o.capacity_type)
                for o in self.purchasable.usable(pod_class, pool, option)
                if o.reservation is None
            )
            by_type[option.kind.name] = frozenset(places)
        return by_type[option.kind.name]


def _within(capacity: Resources, left: Mapping[str, int] | None) -> bool:
    return left is None or all(
        (1 if resource == "nodes" else capacity.get(resource, 0)) <= room for resource, room in left.items()
    )
