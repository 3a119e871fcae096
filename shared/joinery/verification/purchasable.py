"""What could be bought: the offerings that a NodePool and a launch allow, and the zones in which a pod could get a node."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from joinery.apis import labels as keys
from joinery.apis.core import NodeSelectorRequirement, NodeSelectorTerm
from joinery.apis.core import Taint as CoreTaint
from joinery.apis.meta import Requirement, Taint
from joinery.apis.nodeclass import NodeClassRef
from joinery.apis.nodepool import NodePool
from joinery.apis.quantity import Resources, amounts, fits, total
from joinery.apis.validation import validate
from joinery.state.offerings import InstanceType, Offering
from joinery.verification.final_state import World
from joinery.verification.nodes import DECIDED_BY_OFFERING, FinalNode, PodClass, node_labels, offering_labels
from joinery.verification.predicates import Expression, allows, refused_taint

ONE_NODE = {"nodes": 1}


@dataclass(frozen=True, eq=False)
class Ware:
    """An instance type as one NodePool would buy it: offerings that the pool allows, room after daemons."""

    world: World
    pool: NodePool
    kind: InstanceType
    offerings: tuple[Offering, ...]

    @cached_property
    def room(self) -> Resources:
        places = self.offerings if self.world.daemons_pick_offerings else self.offerings[:1]
        return left_by(most_of(self.world.daemon_requests(self.node(place)) for place in places), self.kind)

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
        """Whether pods that ask for so much fit beside the daemons, and those themselves; types that are too small need not be asked."""
        return fits(requests, self.kind.allocatable) and self._holds_daemons and fits(requests, self.room)


@dataclass
class Market:
    """What every NodePool sells. Prices and stock are the catalogue's."""

    world: World
    _zones: dict[tuple[object, ...], frozenset[str]] = field(default_factory=dict)
    _selections: dict[tuple[PodClass, str], "_Selection"] = field(default_factory=dict)

    @cached_property
    def pools(self) -> Sequence[NodePool]:
        """The pools that may launch nodes for pods at all: not static, not going, ready as far as anyone says."""
        return [pool for pool in self.world.pools.values() if why_closed(self.world, pool) == ""]

    @cached_property
    def _wares(self) -> dict[str, list[Ware]]:
        return {}

    def wares(self, pool: NodePool) -> list[Ware]:
        """The pool's instance types with an available offering, the largest first."""
        name = pool.metadata.name
        if name not in self._wares:
            terms = _Terms(template_rules(pool))
            kinds = sorted(self.world.types_of(pool).values(), key=lambda kind: -kind.allocatable.get("cpu", 0))
            sold = ((kind, terms.allowed(kind)) for kind in kinds if terms.admit(kind))
            self._wares[name] = [Ware(self.world, pool, kind, offerings) for kind, offerings in sold if offerings]
        return self._wares[name]

    def zones_for(self, found: PodClass) -> frozenset[str]:
        """The zones in which an allowed pool has an available offering that fits the pod, and limits leave room for one more node of it."""
        spec = found.pod.spec
        identity = (id(spec), tuple(sorted(found.requests.items())))
        if identity not in self._zones:
            self._zones[identity] = frozenset(self._find_zones(found))
        return self._zones[identity]

    def _find_zones(self, found: PodClass) -> set[str]:
        zones: set[str] = set()
        for pool in self.pools:
            if refused_taint(pool.spec.template.spec.taints, found.pod.spec.tolerations) is not None:
                continue
            wares = [ware for ware in self.wares(pool) if self._is_within_limits(ware)]
            sold = {o.zone for ware in wares for o in ware.offerings}
            for ware in wares:
                if sold <= zones:
                    break
                if not {o.zone for o in ware.offerings} <= zones and ware.holds(found.requests):
                    zones.update(o.zone for o in self.usable(found, pool, ware))
        return zones

    def _is_within_limits(self, ware: Ware) -> bool:
        limits = amounts(ware.pool.spec.limits)
        grown = total((self._usage.get(ware.pool.metadata.name, {}), ware.kind.capacity, ONE_NODE)) if limits else {}
        return all(grown.get(resource, 0) <= limit for resource, limit in limits.items())

    @cached_property
    def _usage(self) -> Mapping[str, Resources]:
        return usage_of(self.world)

    def newcomers(self, found: PodClass, counted: Sequence[PodClass]) -> Mapping[str, int]:
        """By zone, the most DaemonSets' pods of the counted classes that a node bought there for the pod would bring."""
        brought: dict[str, int] = {}
        if not any(daemon in counted for _, daemon in self.world.daemon_sets):
            return brought
        for pool in self.pools:
            if refused_taint(pool.spec.template.spec.taints, found.pod.spec.tolerations) is None:
                for ware in self.wares(pool):
                    for offering in self.usable(found, pool, ware) if ware.holds(found.requests) else ():
                        number = sum(daemon in counted for daemon in self.world.daemons_on(ware.node(offering)))
                        brought[offering.zone] = max(number, brought.get(offering.zone, 0))
        return brought

    def usable(self, found: PodClass, pool: NodePool, ware: Ware) -> Iterator[Offering]:
        """The offerings of the ware on which the pod's own node selection would let it run."""
        key = found, pool.metadata.name
        selection = self._selections.get(key)
        if selection is None:
            selection = self._selections[key] = _Selection(alternatives(found), pool)
        return selection.usable(ware)


class _Selection:
    """The node selection of a class of pods, on nodes of one pool; asked once for types that say the same of the labels in it."""

    def __init__(self, every: Sequence[Sequence[NodeSelectorRequirement]], pool: NodePool) -> None:
        self._alternatives, self._pool = every, pool
        self._keys = sorted({expression.key for alternative in every for expression in alternative})
        self._open: dict[Hashable, list[list[NodeSelectorRequirement]]] = {}

    def usable(self, ware: Ware) -> Iterator[Offering]:
        """The offerings of the ware that some alternative allows."""
        for by_offering in self._open_to(ware.kind):
            for offering in ware.offerings:
                if all(allows(e, _offered(offering, e.key)) for e in by_offering):
                    yield offering

    def _open_to(self, kind: InstanceType) -> list[list[NodeSelectorRequirement]]:
        """What the alternatives that the type's own labels meet ask of an offering."""
        values = tuple(kind.labels.get(key) for key in self._keys)
        if values not in self._open:
            self._open[values] = [
                [e for e in alternative if e.key in DECIDED_BY_OFFERING]
                for alternative in self._alternatives
                if not _known_mismatch(alternative, kind) and not _custom_mismatch(alternative, self._pool, kind)
            ]
        return self._open[values]


def usage_of(world: World) -> dict[str, dict[str, int]]:
    """What the nodes of each NodePool take of its limits in the final state; those that are leaving take nothing."""
    parts: dict[str, list[Resources]] = {}
    for node in world.nodes:
        if node.pool and not node.is_leaving:
            parts.setdefault(node.pool, []).extend((_capacity(world, node), ONE_NODE))
    return {name: total(listed) for name, listed in parts.items()}


def _capacity(world: World, node: FinalNode) -> Resources:
    pool = world.pools.get(node.pool)
    kind = world.types_of(pool).get(node.labels.get(keys.INSTANCE_TYPE, "")) if pool else None
    return node.capacity or (kind.capacity if kind else {})


def left_by(daemons: Resources, kind: InstanceType) -> Resources:
    """What the DaemonSets' pods leave of a type: in every resource that it has or that they ask for."""
    asked = {name: -amount for name, amount in daemons.items() if amount}
    return total((kind.allocatable, asked))


def most_of(lists: Iterable[Resources]) -> Resources:
    """The most that any of them asks for, resource by resource."""
    found: dict[str, int] = {}
    for resources in lists:
        found |= {name: max(amount, found.get(name, 0)) for name, amount in resources.items()}
    return found


def why_closed(world: World, pool: NodePool) -> str:
    """Why the pool may launch nothing for pending pods, or the empty string."""
    name = pool.metadata.name
    if pool.is_static:
        return "the NodePool is static"
    if pool.metadata.deletion_timestamp is not None:
        return "the NodePool is being deleted"
    if validate(pool) or any(bad.kind == "NodePool" and bad.name == name for bad in world.problem.snapshot.invalid):
        return "the NodePool failed validation"
    if any(c.type == "Ready" and c.status == "False" for c in pool.status.conditions):
        return "the NodePool is not ready"
    if _contradicts_itself(pool):
        return "the NodePool's requirements and labels contradict each other"
    return _why_no_class(world, pool.spec.template.spec.node_class_ref)


def _contradicts_itself(pool: NodePool) -> bool:
    template = pool.spec.template
    for key in {keys.canonical(r.key) for r in template.spec.requirements}:
        rules = [r for r in template.spec.requirements if keys.canonical(r.key) == key]
        label = template.metadata.labels.get(key)
        values = [label] if label is not None else _values(rules, ())
        if not any(all(allows(rule, value) for rule in rules) for value in values):
            return True
    return False


def _why_no_class(world: World, ref: NodeClassRef) -> str:
    known = {one.metadata.name: one for one in world.problem.snapshot.node_classes}
    if ref.name not in known:
        return f"there is no {ref.kind} {ref.name}"
    if any(c.type == "Ready" and c.status == "False" for c in known[ref.name].status.conditions):
        return f"{ref.kind} {ref.name} is not ready"
    if known[ref.name].unsupported:
        return f"{ref.kind} {ref.name} asks for what is not supported"
    return ""


def template_rules(pool: NodePool) -> list[Requirement]:
    """The template's requirements and its labels, with canonical keys: a label is a requirement on every node."""
    template = pool.spec.template
    labels = [Requirement(key=k, operator="In", values=[v]) for k, v in template.metadata.labels.items()]
    return [r.model_copy(update={"key": keys.canonical(r.key)}) for r in (*template.spec.requirements, *labels)]


def hard_taints(taints: Iterable[Taint]) -> tuple[CoreTaint, ...]:
    """A template's taints as a node has them."""
    return tuple(CoreTaint(key=t.key, value=t.value, effect=t.effect) for t in taints)


class _Terms:
    """A NodePool's rules, asked once for each place and for each value of a label: instance types share nearly all."""

    def __init__(self, rules: Sequence[Requirement]) -> None:
        self._of_offering = [r for r in rules if r.key in DECIDED_BY_OFFERING]
        self._of_type = [r for r in rules if r.key not in DECIDED_BY_OFFERING]
        self._places: dict[Hashable, bool] = {}
        self._values: list[dict[Hashable, bool]] = [{} for _ in self._of_type]

    def allowed(self, kind: InstanceType) -> tuple[Offering, ...]:
        """The type's available offerings that the rules allow."""
        return tuple(offering for offering in kind.offerings if offering.available and self._allows(offering))

    def _allows(self, offering: Offering) -> bool:
        place = offering.zone, offering.zone_id, offering.capacity_type, offering.reservation
        known = self._places.get(place)
        if known is None:
            known = self._places[place] = all(allows(r, _offered(offering, r.key)) for r in self._of_offering)
        return known

    def admit(self, kind: InstanceType) -> bool:
        """Whether the type may have a value of every well-known label that meets the rules on it."""
        for rule, known in zip(self._of_type, self._values, strict=True):
            values = kind.labels.get(rule.key)
            admits = known.get(values)
            if admits is None:
                admits = known[values] = not _known_mismatch((rule,), kind)
            if not admits:
                return False
        return True


def _offered(offering: Offering, key: str) -> str | None:
    match key:
        case keys.ZONE:
            return offering.zone
        case keys.CAPACITY_TYPE:
            return offering.capacity_type
        case keys.ZONE_ID:
            return offering.zone_id or None
    return offering.reservation.labels.get(key) if offering.reservation else None


def _known_mismatch(rules: Iterable[Expression], kind: InstanceType) -> bool:
    """Whether no value that the type may have for some well-known label meets the rules on it."""
    return any(
        rule.key not in DECIDED_BY_OFFERING
        and (rule.key in kind.labels or rule.key in keys.WELL_KNOWN)
        and rule.key != keys.NODE_POOL
        and not any(allows(rule, value) for value in kind.labels.get(rule.key) or (None,))
        for rule in rules
    )


def alternatives(found: PodClass) -> list[list[NodeSelectorRequirement]]:
    """nodeSelector with each term of required node affinity; any of them will do. Keys are canonical."""
    spec = found.pod.spec
    always = [NodeSelectorRequirement(key=k, operator="In", values=[v]) for k, v in spec.node_selector.items()]
    affinity = spec.affinity and spec.affinity.node_affinity
    required = affinity and affinity.required_during_scheduling_ignored_during_execution
    terms = required.node_selector_terms if required else [NodeSelectorTerm()]
    return [
        [
            NodeSelectorRequirement(key=keys.canonical(e.key), operator=e.operator, values=e.values)
            for e in (*always, *term.match_expressions)
        ]
        for term in terms
        if not term.match_fields
    ]


def _custom_mismatch(alternative: Sequence[NodeSelectorRequirement], pool: NodePool, kind: InstanceType) -> bool:
    """Whether the pool cannot give a label of its own the value that the pod wants."""
    template = pool.spec.template
    fixed: Mapping[str, str] = {
        **template.metadata.labels,
        keys.NODE_POOL: pool.metadata.name,
        keys.REGISTERED: "true",
        keys.INITIALIZED: "true",
        template.spec.node_class_ref.of_kind.label: template.spec.node_class_ref.name,
    }
    for key in {e.key for e in alternative} - kind.labels.keys() - keys.AWS_WELL_KNOWN:
        wanted = [e for e in alternative if e.key == key]
        rules = [r for r in template.spec.requirements if keys.canonical(r.key) == key]
        values = [fixed[key]] if key in fixed else _values(rules, wanted)
        every: list[Expression] = [*wanted, *rules]
        if not any(all(allows(e, value) for e in every) for value in values):
            return True
    return False


def _values(rules: Sequence[Requirement], wanted: Sequence[NodeSelectorRequirement]) -> list[str | None]:
    """Values that a label defined by the pool's requirements might take; none where the pool does not define it."""
    if not rules:
        return [None]
    every: list[Expression] = [*rules, *wanted]
    named: list[str | None] = [v for e in every if e.operator == "In" for v in e.values]
    bounds = [int(v) for e in every if e.operator in ("Gt", "Lt", "Gte", "Lte") for v in e.values if v.isdecimal()]
    return [*named, *(str(b + d) for b in bounds for d in (-1, 0, 1)), "any-other-value", None]
