"""What could be bought: the offerings that a NodePool allows, and the zones in which a pod could get a node."""

from collections.abc import Hashable, Iterable, Iterator, KeysView, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

from joinery.decisions.verification.closed_pools import why_closed
from joinery.decisions.verification.final_state import FinalState
from joinery.decisions.verification.nodes import (
    DECIDED_BY_OFFERING,
    EquivalenceClass,
    FinalNode,
    node_labels,
    offering_labels,
)
from joinery.decisions.verification.predicates import (
    LabelRequirement,
    Rules,
    allows,
    hard_spread,
    possible_values,
    refused_taint,
)
from joinery.decisions.verification.templates import hard_taints, left_of_defaults, offered, sold_by, template_rules
from joinery.objects.karpenter import labels as keys
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.kubernetes.core import NodeSelectorRequirement, NodeSelectorTerm, PodSpec
from joinery.objects.kubernetes.core import Taint as CoreTaint
from joinery.objects.kubernetes.quantity import Resources, amounts, fits, total
from joinery.objects.snapshot.offerings import InstanceType, Offering

ONE_NODE = {"nodes": 1}


@dataclass(frozen=True, eq=False)
class InstanceTypeOption:
    """An instance type as one NodePool would buy it: offerings that the pool allows, room after daemons."""

    state: FinalState
    pool: NodePool
    kind: InstanceType
    offerings: tuple[Offering, ...]

    @cached_property
    def zones(self) -> frozenset[str]:
        """Where it is sold."""
        return frozenset(offering.zone for offering in self.offerings)

    @cached_property
    def room(self) -> Resources:
        places = self.offerings if self.state.daemon_sets.depend_on_offering else self.offerings[:1]
        return left_by(most_of(self.state.daemon_sets.requests_on(self.node(place)) for place in places), self.kind)

    def node(self, offering: Offering) -> FinalNode:
        """What it would be once it has booted, as far as DaemonSets look at it."""
        return FinalNode("", {**self._labels, **offering_labels(self.kind, offering)}, self._taints, {})

    @cached_property
    def _labels(self) -> Mapping[str, str]:
        return node_labels(self.pool.spec.template.metadata.labels, self.pool, self.kind, requirements=())

    @cached_property
    def _taints(self) -> tuple[CoreTaint, ...]:
        return hard_taints(self.pool.spec.template.spec.taints)

    @cached_property
    def _holds_daemons(self) -> bool:
        return min(self.room.values(), default=0) >= 0

    def holds(self, requests: Resources) -> bool:
        """Whether pods that request so much fit beside the daemons, and those themselves."""
        # Most types are too small by themselves, and their daemons need not be counted.
        return fits(requests, self.kind.allocatable) and self._holds_daemons and fits(requests, self.room)


@dataclass
class Purchasable:
    """What every NodePool sells. Prices and stock are the catalogue's."""

    state: FinalState
    _zones: dict[tuple[object, ...], frozenset[str]] = field(default_factory=dict)
    _selections: dict[Hashable, "_Selection"] = field(default_factory=dict)
    _open_options: dict[str, tuple[Sequence[InstanceTypeOption], frozenset[str]]] = field(default_factory=dict)

    @cached_property
    def pools(self) -> Sequence[NodePool]:
        """The pools that may launch nodes for pods at all: not static, not going, ready as far as anyone says."""
        return [pool for pool in self.state.pools.values() if why_closed(self.state, pool) == ""]

    @cached_property
    def _options(self) -> dict[str, list[InstanceTypeOption]]:
        return {}

    def options(self, pool: NodePool) -> list[InstanceTypeOption]:
        """The pool's instance types with an available offering, the largest first."""
        name = pool.metadata.name
        if name not in self._options:
            sold = sold_by(pool, self.state.types_of(pool).values())
            self._options[name] = [InstanceTypeOption(self.state, pool, kind, offerings) for kind, offerings in sold]
        return self._options[name]

    def zones_for(self, pod_class: EquivalenceClass) -> frozenset[str]:
        """The zones in which an allowed pool has an available offering that fits the pod,
        and limits leave room for one more node of it.
        """
        spec = pod_class.pod.spec
        identity = (id(spec), tuple(sorted(pod_class.requests.items())))
        if identity not in self._zones:
            self._zones[identity] = frozenset(self._find_zones(pod_class))
        return self._zones[identity]

    def _find_zones(self, pod_class: EquivalenceClass) -> set[str]:
        zones: set[str] = set()
        for pool in self.pools:
            if refused_taint(pool.spec.template.spec.taints, pod_class.pod.spec.tolerations) is not None:
                continue
            options, sold = self._within_limits(pool)
            for option in options:
                if sold <= zones:
                    break
                if not option.zones <= zones and self._holds(option, pod_class):
                    zones.update(o.zone for o in self.usable(pod_class, pool, option))
        return zones

    def _within_limits(self, pool: NodePool) -> tuple[Sequence[InstanceTypeOption], frozenset[str]]:
        """The options of which limits leave room for one more node, and all zones in which they are sold."""
        name = pool.metadata.name
        if name not in self._open_options:
            options = [option for option in self.options(pool) if self._is_within_limits(option)]
            self._open_options[name] = options, frozenset[str]().union(*(option.zones for option in options))
        return self._open_options[name]

    def _is_within_limits(self, option: InstanceTypeOption) -> bool:
        limits = amounts(option.pool.spec.limits)
        grown = (
            total((self._usage.get(option.pool.metadata.name, {}), option.kind.capacity, ONE_NODE)) if limits else {}
        )
        return all(grown.get(resource, 0) <= limit for resource, limit in limits.items())

    @cached_property
    def _usage(self) -> Mapping[str, Resources]:
        return usage_of(self.state)

    def newcomers(self, pod_class: EquivalenceClass, counted: int) -> Mapping[str, int]:
        """By zone, the most DaemonSets' pods of the counted classes (a bit for each) that
        a node bought there for the pod would bring.
        """
        brought: dict[str, int] = {}
        if not any(counted >> daemon.index & 1 for daemon in self.state.daemon_sets.classes):
            return brought
        for pool in self.pools:
            if refused_taint(pool.spec.template.spec.taints, pod_class.pod.spec.tolerations) is None:
                for option in self.options(pool):
                    for offering in self.usable(pod_class, pool, option) if self._holds(option, pod_class) else ():
                        daemons = self.state.daemon_sets.on(option.node(offering))
                        number = sum(counted >> daemon.index & 1 for daemon in daemons)
                        brought[offering.zone] = max(number, brought.get(offering.zone, 0))
        return brought

    def _holds(self, option: InstanceTypeOption, pod_class: EquivalenceClass) -> bool:
        return option.holds(pod_class.requests) and not has_parts_only(option.kind, option.pool, pod_class)

    def usable(self, pod_class: EquivalenceClass, pool: NodePool, option: InstanceTypeOption) -> Iterator[Offering]:
        """The offerings of the option on which the pod's own node selection would let it run."""
        spec = pod_class.pod.spec
        key = self.state.selections.of(spec), _spread_keys(spec), pool.metadata.name
        selection = self._selections.get(key)
        if selection is None:
            selection = self._selections[key] = _Selection(spec, pool)
        return selection.usable(option)


class _Wanted:
    """Requirements of a pod on nodes of one pool."""

    def __init__(self, expressions: Sequence[NodeSelectorRequirement], pool: NodePool) -> None:
        self._rules, self._pool = Rules(expressions), pool
        self._by_key: dict[str, list[NodeSelectorRequirement]] = {}
        for expression in expressions:
            self._by_key.setdefault(expression.key, []).append(expression)
        self.of_offering = Rules([e for e in expressions if e.key in DECIDED_BY_OFFERING])
        self._well_known = self.keys & keys.WELL_KNOWN
        self._given: dict[str, bool] = {}

    @property
    def keys(self) -> KeysView[str]:
        return self._rules.keys

    def are_met_by(self, kind: InstanceType) -> bool:
        """Whether nodes of the type can have the labels that are wanted, but for what the offering decides."""
        of_type = (self._well_known | (self.keys & kind.labels.keys())) - {keys.NODE_POOL, *DECIDED_BY_OFFERING}
        return all(self._rules.admit(key, kind.labels.get(key) or (None,)) for key in of_type) and all(
            map(self._gives, self.keys - kind.labels.keys() - keys.AWS_WELL_KNOWN)
        )

    def _gives(self, key: str) -> bool:
        """Whether the pool can give a label of its own a value that is wanted."""
        if key not in self._given:
            template = self._pool.spec.template
            fixed: Mapping[str, str] = {
                **template.metadata.labels,
                keys.NODE_POOL: self._pool.metadata.name,
                keys.REGISTERED: "true",
                keys.INITIALIZED: "true",
                template.spec.node_class_ref.of_kind.label: template.spec.node_class_ref.name,
            }
            rules = [r for r in template.spec.requirements if keys.canonical(r.key) == key]
            values = [fixed[key]] if key in fixed else possible_values(rules, self._by_key[key])
            meeting = [value for value in values if self._rules.admit(key, (value,))]
            self._given[key] = any(all(allows(rule, value) for rule in rules) for value in meeting)
        return self._given[key]


class _Selection:
    """The node selection of pods, on nodes of one pool; evaluated once for types that agree in the labels in it."""

    def __init__(self, spec: PodSpec, pool: NodePool) -> None:
        always, terms = alternatives(spec)
        self._always = _Wanted(always, pool)
        self._terms = [
            _Wanted([*term, *_beside(always, term), *left_of_defaults(pool, [*always, *term])], pool) for term in terms
        ]
        self._keys = frozenset(self._always.keys).union(*(term.keys for term in self._terms))
        self._open: dict[Hashable, list[Rules]] = {}

    def usable(self, option: InstanceTypeOption) -> Iterator[Offering]:
        """The offerings of the option that some alternative allows."""
        for of_offering in self._open_to(option.kind):
            for offering in option.offerings:
                if of_offering.met_by(_given_by(offering)):
                    yield offering

    def _open_to(self, kind: InstanceType) -> list[Rules]:
        """What the alternatives that the type's own labels meet require of an offering."""
        alike = tuple((key, values) for key, values in kind.labels.items() if key in self._keys)
        if alike not in self._open:
            terms = self._terms if self._always.are_met_by(kind) else ()
            self._open[alike] = [term.of_offering for term in terms if term.are_met_by(kind)]
        return self._open[alike]


def _beside(
    always: Iterable[NodeSelectorRequirement], term: Iterable[NodeSelectorRequirement]
) -> list[NodeSelectorRequirement]:
    """Of what is always required, that about the term's labels and about the offering: it is checked with the term."""
    together = {e.key for e in term}.union(DECIDED_BY_OFFERING)
    return [e for e in always if e.key in together]


def usage_of(state: FinalState) -> dict[str, dict[str, int]]:
    """What the nodes of each NodePool take of its limits in the final state; those that are leaving take nothing."""
    parts: dict[str, list[Resources]] = {}
    for node in state.nodes:
        if node.pool and not node.is_leaving:
            parts.setdefault(node.pool, []).extend((_capacity(state, node), ONE_NODE))
    return {name: total(listed) for name, listed in parts.items()}


def _capacity(state: FinalState, node: FinalNode) -> Resources:
    """Of a claim that is not launched yet, the most that it may become."""
    pool = state.pools.get(node.pool)
    types = state.types_of(pool) if pool else {}
    if possible := [types[name].capacity for name in node.may_be if name in types]:
        return most_of(possible)
    kind = types.get(node.labels.get(keys.INSTANCE_TYPE, ""))
    return node.capacity or (kind.capacity if kind else {})


def left_by(daemons: Resources, kind: InstanceType) -> Resources:
    """What the DaemonSets' pods leave of a type: in every resource that it has or that they request."""
    taken = {name: -amount for name, amount in daemons.items() if amount}
    return total((kind.allocatable, taken))


def most_of(lists: Iterable[Resources]) -> Resources:
    """The most that any of them requests, resource by resource."""
    most: dict[str, int] = {}
    for resources in lists:
        most |= {name: max(amount, most.get(name, 0)) for name, amount in resources.items()}
    return most


def asks_for_gpus(pod_class: EquivalenceClass) -> bool:
    """Whether the pods request GPUs."""
    return any(pod_class.requests.get(resource) for resource in keys.GPU_RESOURCES)


def has_parts_only(kind: InstanceType, pool: NodePool, pod_class: EquivalenceClass) -> bool:
    """Whether the pod asks for GPUs, the type has parts of GPUs,
    and neither the pod nor the pool names the type, its family or the label of such types.
    """
    if not asks_for_gpus(pod_class) or kind.labels.get(keys.GPU_FRACTIONAL) != ("true",):
        return False
    always, terms = alternatives(pod_class.pod.spec)
    rules: Iterable[LabelRequirement] = chain(template_rules(pool), always, *terms)
    named = (keys.INSTANCE_TYPE, keys.INSTANCE_FAMILY, keys.GPU_FRACTIONAL)
    return not any(r.operator == "In" and r.key in named and {*r.values} & {*kind.labels[r.key]} for r in rules)


def _given_by(offering: Offering) -> dict[str, str]:
    """The labels that an offering decides."""
    given = {key: offered(offering, key) for key in DECIDED_BY_OFFERING}
    return {key: value for key, value in given.items() if value is not None}


def _spread_keys(spec: PodSpec) -> frozenset[str]:
    """The labels that nodes must have for a spread that must hold (kube-scheduler PodTopologySpread, ``Filter``)."""
    return frozenset(constraint.topology_key for constraint in hard_spread(spec)) - {keys.HOSTNAME}


def alternatives(spec: PodSpec) -> tuple[list[NodeSelectorRequirement], list[list[NodeSelectorRequirement]]]:
    """What nodes must have always, and terms of required node affinity, any of which will do. Keys are canonical."""
    selector = spec.node_selector.items()
    always = [NodeSelectorRequirement(key=keys.canonical(k), operator="In", values=[v]) for k, v in selector]
    always += [NodeSelectorRequirement(key=keys.canonical(k), operator="Exists") for k in sorted(_spread_keys(spec))]
    required = spec.required_node_affinity
    terms = required.node_selector_terms if required else [NodeSelectorTerm()]
    return always, [
        [
            NodeSelectorRequirement(key=keys.canonical(e.key), operator=e.operator, values=e.values)
            for e in term.match_expressions
        ]
        for term in terms
        if not term.match_fields
    ]
