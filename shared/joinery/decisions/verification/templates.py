"""What a NodePool's template says of its nodes: which instance types and offerings it allows, and their taints."""

from collections.abc import Hashable, Iterable, Iterator, Sequence

from joinery.decisions.verification.nodes import DECIDED_BY_OFFERING, FinalNode, node_labels, offering_labels
from joinery.decisions.verification.predicates import LabelRequirement, allows
from joinery.objects.karpenter import labels as keys
from joinery.objects.karpenter.meta import Requirement, Taint
from joinery.objects.karpenter.nodepool import CHOSEN_BY, NodePool
from joinery.objects.kubernetes.core import NodeSelectorRequirement
from joinery.objects.kubernetes.core import Taint as CoreTaint
from joinery.objects.snapshot.offerings import InstanceType, Offering


def template_rules(pool: NodePool) -> list[Requirement]:
    """The template's requirements and its labels, with canonical keys: a label is a requirement on every node."""
    template = pool.spec.template
    labels = [Requirement(key=k, operator="In", values=[v]) for k, v in template.metadata.labels.items()]
    return [r.model_copy(update={"key": keys.canonical(r.key)}) for r in (*pool.requirements, *labels)]


def left_of_defaults(pool: NodePool, wanted: Iterable[LabelRequirement]) -> list[NodeSelectorRequirement]:
    """Those of the pool's defaults that hold for pods which want so much of a node. Keys are canonical."""
    chosen = {keys.canonical(one.key) for one in wanted if one.operator in ("In", "DoesNotExist")}
    return [
        NodeSelectorRequirement(key=keys.canonical(rule.key), operator=rule.operator, values=rule.values)
        for rule in pool.defaults
        if CHOSEN_BY[keys.canonical(rule.key)] not in chosen
    ]


def hard_taints(taints: Iterable[Taint]) -> tuple[CoreTaint, ...]:
    """A template's taints as a node has them."""
    return tuple(CoreTaint(key=t.key, value=t.value, effect=t.effect) for t in taints)


def sold_by(pool: NodePool, kinds: Iterable[InstanceType]) -> Iterator[tuple[InstanceType, tuple[Offering, ...]]]:
    """Those of the types that the template allows, with the available offerings that it allows."""
    rules = _TemplateRules(template_rules(pool))
    sold = ((kind, rules.allowed(kind)) for kind in kinds if rules.admit(kind))
    return ((kind, offerings) for kind, offerings in sold if offerings)


def nodes_of(pool: NodePool, kinds: Iterable[InstanceType]) -> Iterator[FinalNode]:
    """A node from each offering that the pool may buy, as far as DaemonSets look at it, with all its room."""
    template, taints = pool.spec.template, hard_taints(pool.spec.template.spec.taints)
    for kind, offerings in sold_by(pool, kinds):
        labels = node_labels(template.metadata.labels, pool, kind, requirements=())
        for offering in offerings:
            yield FinalNode("", {**labels, **offering_labels(kind, offering)}, taints, kind.allocatable)


class _TemplateRules:
    """A NodePool's rules, evaluated once for each place and each value of a label: instance types share nearly all."""

    def __init__(self, rules: Sequence[Requirement]) -> None:
        self._of_offering = [r for r in rules if r.key in DECIDED_BY_OFFERING]
        self._of_type = [r for r in rules if r.key not in (*DECIDED_BY_OFFERING, keys.NODE_POOL)]
        self._places: dict[Hashable, bool] = {}
        self._values: list[dict[Hashable, bool]] = [{} for _ in self._of_type]

    def allowed(self, kind: InstanceType) -> tuple[Offering, ...]:
        """The type's available offerings that the rules allow."""
        return tuple(offering for offering in kind.offerings if offering.available and self._allows(offering))

    def _allows(self, offering: Offering) -> bool:
        place = offering.zone, offering.zone_id, offering.capacity_type, offering.reservation
        if place not in self._places:
            self._places[place] = all(allows(r, offered(offering, r.key)) for r in self._of_offering)
        return self._places[place]

    def admit(self, kind: InstanceType) -> bool:
        """Whether the type may have a value of every well-known label that meets the rules on it."""
        for rule, admitted in zip(self._of_type, self._values, strict=True):
            values = kind.labels.get(rule.key)
            if values not in admitted:
                is_unknown = values is None and rule.key not in keys.WELL_KNOWN
                admitted[values] = is_unknown or any(allows(rule, value) for value in values or (None,))
            if not admitted[values]:
                return False
        return True


def offered(offering: Offering, key: str) -> str | None:
    match key:
        case keys.ZONE:
            return offering.zone
        case keys.CAPACITY_TYPE:
            return offering.capacity_type
        case keys.ZONE_ID:
            return offering.zone_id or None
    return offering.reservation.labels.get(key) if offering.reservation else None
