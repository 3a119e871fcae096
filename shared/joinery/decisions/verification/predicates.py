"""The small rules of kube-scheduler: selectors, expressions, taints, ports, requests.

The packing core has its own forms of these, and nothing here is shared with it but the object models. A mistake would
have to be made twice to stay unseen: where the two differ, one of them is wrong, and the plan is refused.
"""

from collections.abc import Iterable, KeysView, Mapping, Sequence
from typing import Protocol

from msgspec.structs import replace as with_fields

from joinery.objects.karpenter.labels import PREFER_NO_SCHEDULE
from joinery.objects.karpenter.meta import is_label_value
from joinery.objects.kubernetes.core import (
    Container,
    LabelSelector,
    NodeSelectorTerm,
    Pod,
    PodSpec,
    ResourceRequirements,
    Toleration,
    TopologySpreadConstraint,
)
from joinery.objects.kubernetes.quantity import Resources, amounts, total

Labels = Mapping[str, str]
#: Protocol, host IP, port.
Port = tuple[str, str, int]

_ANYWHERE = ("0.0.0.0", "::")
_SELECTOR_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


class HasTaint(Protocol):
    """A taint of a node or of a NodePool."""

    @property
    def key(self) -> str: ...
    @property
    def value(self) -> str: ...
    @property
    def effect(self) -> str: ...


class LabelRequirement(Protocol):
    """One requirement on one label, of a pod, a NodePool or a launch."""

    @property
    def key(self) -> str: ...
    @property
    def operator(self) -> str: ...
    @property
    def values(self) -> list[str]: ...


def allows(expression: LabelRequirement, value: str | None) -> bool:
    """Whether a label with that value (None: no such label) meets the requirement. Unknown operators allow nothing.

    Source: k8s.io/apimachinery `labels.Requirement.Matches`; Gte and Lte are Karpenter's.
    """
    match expression.operator:
        case "NotIn":
            return value is None or value not in expression.values
        case "DoesNotExist":
            return value is None
        case "Exists":
            return value is not None
        case "In":
            return value is not None and value in expression.values
        case "Gt" | "Lt" | "Gte" | "Lte":
            return value is not None and _compares(value, expression)
    return False


def _compares(value: str, expression: LabelRequirement) -> bool:
    try:
        (bound,) = expression.values
        have, limit = int(value), int(bound)
    except ValueError:
        return False
    match expression.operator:
        case "Gt":
            return have > limit
        case "Lt":
            return have < limit
        case "Gte":
            return have >= limit
    return have <= limit


def unmet(expressions: Iterable[LabelRequirement], labels: Labels) -> LabelRequirement | None:
    """The first requirement that a node with these labels does not meet."""
    return next((e for e in expressions if not allows(e, labels.get(e.key))), None)


def possible_values(rules: Sequence[LabelRequirement], wanted: Sequence[LabelRequirement]) -> list[str | None]:
    """Values that a label of a NodePool's rules may take, enough of them to try; None where no rule defines it."""
    if not rules:
        return [None]
    every = (*rules, *wanted)
    named: list[str | None] = [value for rule in every if rule.operator == "In" for value in rule.values]
    bounds = [int(v) for r in every if r.operator in ("Gt", "Lt", "Gte", "Lte") for v in r.values if v.isdecimal()]
    return [*named, *(str(bound + step) for bound in bounds for step in (-1, 0, 1)), "any-other-value", None]


def selects_nodes(spec: PodSpec) -> bool:
    """Whether the pod selects nodes at all."""
    return bool(spec.node_selector or spec.required_node_affinity)


def hard_spread(spec: PodSpec) -> list[TopologySpreadConstraint]:
    """The spread constraints that must be met."""
    return [c for c in spec.topology_spread_constraints if c.when_unsatisfiable == "DoNotSchedule"]


class Rules:
    """Requirements that must all be met, read once: more values or more absent labels cost no time."""

    def __init__(self, expressions: Iterable[LabelRequirement]) -> None:
        by_key: dict[str, list[LabelRequirement]] = {}
        for expression in expressions:
            by_key.setdefault(expression.key, []).append(expression)
        self._by_key = {key: _Rule(listed) for key, listed in by_key.items()}
        self._needed = frozenset(key for key, rule in self._by_key.items() if not rule.allows(None))

    @property
    def keys(self) -> KeysView[str]:
        """The labels that decide."""
        return self._by_key.keys()

    def admit(self, key: str, values: Iterable[str | None]) -> bool:
        """Whether one of the values of a label that decides will do; None: no such label."""
        return any(map(self._by_key[key].allows, values))

    def met_by(self, labels: Labels) -> bool:
        """Whether labels meet every one of them."""
        return labels.keys() >= self._needed and all(
            self._by_key[key].allows(labels[key]) for key in self._by_key.keys() & labels.keys()
        )


class _Rule:
    """All that is required of one label."""

    def __init__(self, expressions: Sequence[LabelRequirement]) -> None:
        listed = [frozenset(e.values) for e in expressions if e.operator == "In"]
        self._among = frozenset.intersection(*listed) if listed else None
        self._without = frozenset(value for e in expressions if e.operator == "NotIn" for value in e.values)
        others = [e for e in expressions if e.operator not in ("In", "NotIn")]
        self._others = {(e.operator, *e.values): e for e in others}.values()

    def allows(self, value: str | None) -> bool:
        if self._among is not None and value not in self._among:
            return False
        return value not in self._without and all(allows(e, value) for e in self._others)


class NodeTerm:
    """One node selector term, read once; ``matchFields`` knows ``metadata.name`` only.

    What kube-scheduler cannot parse matches nothing.
    """

    def __init__(self, term: NodeSelectorTerm) -> None:
        self._labels, self._fields = Rules(term.match_expressions), Rules(term.match_fields)
        is_anything_said = bool(term.match_expressions or term.match_fields)
        values = (value for e in term.match_expressions for value in e.values)
        self._is_readable = is_anything_said and all(map(is_label_value, values))

    @property
    def keys(self) -> KeysView[str]:
        """The labels that decide."""
        return self._labels.keys

    @property
    def names_nodes(self) -> bool:
        """Whether the node's name decides too."""
        return bool(self._fields.keys)

    def matches(self, labels: Labels, name: str) -> bool:
        """Whether the term matches a node."""
        return self._is_readable and self._labels.met_by(labels) and self._fields.met_by({"metadata.name": name})


def term_matches(term: NodeSelectorTerm, labels: Labels, name: str) -> bool:
    """One node selector term that is evaluated once."""
    return NodeTerm(term).matches(labels, name)


def is_readable(selector: LabelSelector | None) -> bool:
    """Whether kube-scheduler could parse it at all."""
    return selector is None or all(
        e.operator in _SELECTOR_OPERATORS and bool(e.values) == (e.operator in ("In", "NotIn"))
        for e in selector.match_expressions
    )


def refused_taint(taints: Iterable[HasTaint], tolerations: Sequence[Toleration]) -> HasTaint | None:
    """The first NoSchedule or NoExecute taint that nothing tolerates (kube-scheduler TaintToleration)."""
    return next(
        (t for t in taints if t.effect != PREFER_NO_SCHEDULE and not any(tolerates(o, t) for o in tolerations)), None
    )


def tolerates(toleration: Toleration, taint: HasTaint) -> bool:
    """Whether it lets its pod onto nodes with the taint (k8s.io/component-helpers `TolerationsTolerateTaint`)."""
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    if toleration.operator == "Exists":
        return True
    if toleration.operator in ("Gt", "Lt"):
        return _outnumbers(taint.value, toleration)
    return toleration.operator in ("", "Equal") and toleration.key != "" and toleration.value == taint.value


def _outnumbers(value: str, toleration: Toleration) -> bool:
    """Whether the taint's number is on the side that the toleration accepts (alpha in Kubernetes)."""
    try:
        difference = int(value) - int(toleration.value)
    except ValueError:
        return False
    return difference > 0 if toleration.operator == "Gt" else difference < 0


def ports_of(spec: PodSpec) -> frozenset[Port]:
    """The host ports that the pod takes: of its containers and its sidecars.

    With hostNetwork every container port is one.
    """
    containers = [*spec.containers, *(c for c in spec.init_containers if c.restart_policy == "Always")]
    return frozenset(
        (port.protocol or "TCP", port.host_ip or _ANYWHERE[0], port.host_port or port.container_port)
        for container in containers
        for port in container.ports
        if port.host_port or (spec.host_network and port.container_port)
    )


def ports_clash(ours: Iterable[Port], theirs: Iterable[Port]) -> Port | None:
    """A port that both want: same protocol and number, same address or a wildcard (kube-scheduler NodePorts)."""
    for protocol, address, number in ours:
        for their_protocol, their_address, their_number in theirs:
            is_same_address = address == their_address or address in _ANYWHERE or their_address in _ANYWHERE
            if protocol == their_protocol and number == their_number and is_same_address:
                return protocol, address, number
    return None


def requests_of(pod: Pod) -> dict[str, int]:
    """What the pod takes from its node, one of ``pods`` included (k8s.io/component-helpers `resource.PodRequests`)."""
    spec, allocated = pod.spec, allocated_to(pod)
    running = total(_counted(_requested(c), allocated.get(c.name)) for c in spec.containers)
    before: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in spec.init_containers:
        is_sidecar = container.restart_policy == "Always"
        at_once = total(
            (before, _counted(_requested(container), allocated.get(container.name) if is_sidecar else None))
        )
        peak = _most(peak, at_once)
        if is_sidecar:
            before = at_once
    effective = _most(total((running, before)), peak)
    if spec.resources is not None:
        whole = _counted(amounts(spec.resources.requests), allocated.get(""))
        named = {name: whole.get(name, 0) for name in spec.resources.requests}
        effective = amounts(spec.resources.limits) | effective | named
    return total((effective, amounts(spec.overhead), {"pods": 1}))


#: What the kubelet has allocated to a container, and whether that alone counts: an infeasible resize never happens.
Allocation = tuple[Resources, bool]


def allocated_to(pod: Pod) -> dict[str, Allocation]:
    """What the kubelet has allocated to each container, by name; to the pod as a whole, by the empty name (KEP-1287,
    in-place resize).
    """
    status = pod.status
    statuses: list[tuple[str, ResourceRequirements | None, Mapping[str, str | int | float]]] = [
        (container.name, container.resources, container.allocated_resources)
        for container in (*status.container_statuses, *status.init_container_statuses)
    ]
    statuses.append(("", status.resources, status.allocated_resources))
    pending = [condition.reason for condition in status.conditions if condition.type == "PodResizePending"]
    is_infeasible = (pending[0] if pending else status.resize) == "Infeasible"
    return {
        name: (_most(amounts(running.requests) if running else {}, amounts(allocated)), is_infeasible)
        for name, running, allocated in statuses
        if running is not None or allocated
    }


def without_resize(pod: Pod) -> Pod:
    """The pod as it comes back after an eviction: with nothing allocated beyond its requests."""
    if not allocated_to(pod):
        return pod
    status = with_fields(
        pod.status, container_statuses=[], init_container_statuses=[], resources=None, allocated_resources={}
    )
    return with_fields(pod, status=status)


def _counted(requested: dict[str, int], allocation: Allocation | None) -> Mapping[str, int]:
    if allocation is None:
        return requested
    amount, alone = allocation
    return amount if alone else _most(requested, amount)


def _requested(container: Container) -> dict[str, int]:
    resources = container.resources
    return amounts({**resources.limits, **resources.requests} if resources.limits else resources.requests)


def _most(left: Mapping[str, int], right: Mapping[str, int]) -> dict[str, int]:
    return {name: max(left.get(name, 0), right.get(name, 0)) for name in sorted(left.keys() | right.keys())}
