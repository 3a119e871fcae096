"""What an API server would not have let into a pod: a file may say anything.

Each problem becomes a reason on that pod, which stays pending. It is never ignored, and it changes no other pod's plan.
"""

from collections.abc import Callable, Iterable, Iterator

from joinery.decisions.scheduling.constraints.selectors import terms_of, unreadable
from joinery.decisions.scheduling.reason import Reason, ReasonCode
from joinery.objects.karpenter.labels import EFFECTS
from joinery.objects.kubernetes.core import (
    Affinity,
    LabelSelector,
    NodeAffinity,
    PodAffinity,
    PodSpec,
    Toleration,
    TopologySpreadConstraint,
)

#: Operators that only requirements of NodePools have. Operators that nothing has are reported where terms are read.
_OF_POOLS_ONLY = ("Gte", "Lte")
_TOLERATION_OPERATORS = ("", "Equal", "Exists", "Gt", "Lt")
_PROTOCOLS = ("", "TCP", "UDP", "SCTP")
_POLICIES = ("Honor", "Ignore")
_MAX_PORT = 65535
_WEIGHTS = range(1, 101)


def invalid(spec: PodSpec) -> Iterator[Reason]:
    """Every field that no pod of a cluster could have, and what is wrong with it."""
    for check in _CHECKS:
        yield from check(spec)


def _spreads(spec: PodSpec) -> Iterator[Reason]:
    for constraint in spec.topology_spread_constraints:
        for problem in _of_spread(constraint):
            yield Reason(
                ReasonCode.TOPOLOGY, f"its topology spread over {constraint.topology_key or 'no key'}: {problem}"
            )


def _of_spread(constraint: TopologySpreadConstraint) -> Iterator[str]:
    if not constraint.topology_key:
        yield "topologyKey is missing"
    if constraint.max_skew < 1:
        yield f"maxSkew is {constraint.max_skew}, and must be at least 1"
    if constraint.when_unsatisfiable not in ("DoNotSchedule", "ScheduleAnyway"):
        yield f"whenUnsatisfiable {constraint.when_unsatisfiable!r} is not known"
    if constraint.min_domains is not None and constraint.min_domains < 1:
        yield f"minDomains is {constraint.min_domains}, and must be at least 1"
    for field, policy in (
        ("nodeAffinityPolicy", constraint.node_affinity_policy),
        ("nodeTaintsPolicy", constraint.node_taints_policy),
    ):
        if policy not in _POLICIES:
            yield f"{field} {policy!r} is not known"


def _pod_affinity(spec: PodSpec) -> Iterator[Reason]:
    for whose, side in _sides(spec):
        if any(not term.topology_key for term in terms_of(side)):
            yield Reason(ReasonCode.TOPOLOGY, f"its {whose}: topologyKey is missing")
        preferred = side.preferred_during_scheduling_ignored_during_execution if side else []
        yield from _weights(whose, (term.weight for term in preferred))


def _sides(spec: PodSpec) -> tuple[tuple[str, PodAffinity | None], ...]:
    affinity = spec.affinity or Affinity()
    return ("pod affinity", affinity.pod_affinity), ("pod anti-affinity", affinity.pod_anti_affinity)


def _weights(whose: str, weights: Iterable[int]) -> Iterator[Reason]:
    odd = next((weight for weight in weights if weight not in _WEIGHTS), None)
    if odd is not None:
        yield Reason.of(
            ReasonCode.REQUIREMENTS,
            "its preferred {whose}: the weight {weight} is not between 1 and 100",
            whose=whose,
            weight=odd,
        )


def _node_affinity(spec: PodSpec) -> Iterator[Reason]:
    affinity = (spec.affinity or Affinity()).node_affinity or NodeAffinity()
    required = affinity.required_during_scheduling_ignored_during_execution
    preferred = affinity.preferred_during_scheduling_ignored_during_execution
    terms = [*(required.node_selector_terms if required else ()), *(term.preference for term in preferred)]
    for expression in (expression for term in terms for expression in term.match_expressions):
        if expression.operator in _OF_POOLS_ONLY:
            shown = f"{expression.key} {expression.operator} [{', '.join(expression.values)}]"
            yield Reason(ReasonCode.REQUIREMENTS, f"the pod's node affinity: {shown} is not a valid requirement")
    yield from _weights("node affinity", (term.weight for term in preferred))


def _tolerations(spec: PodSpec) -> Iterator[Reason]:
    for toleration in spec.tolerations:
        problem = _of_toleration(toleration)
        if problem:
            yield Reason(ReasonCode.TAINTS, problem)


def _of_toleration(toleration: Toleration) -> str:
    if toleration.operator not in _TOLERATION_OPERATORS:
        return f"the toleration operator {toleration.operator!r} is not known"
    if toleration.effect not in ("", *EFFECTS):
        return f"its toleration of {toleration.key or 'all taints'}: the effect {toleration.effect!r} is not known"
    if not toleration.key and toleration.operator != "Exists":
        return "a toleration without a key must have the operator Exists"
    if toleration.value and toleration.operator == "Exists":
        return f"its toleration of {toleration.key or 'all taints'}: the operator Exists takes no value"
    return ""


def _ports(spec: PodSpec) -> Iterator[Reason]:
    for port in (port for container in (*spec.containers, *spec.init_containers) for port in container.ports):
        if not 0 <= (port.host_port or 0) <= _MAX_PORT:
            yield Reason.of(
                ReasonCode.HOST_PORTS,
                "the host port {port} is not between 1 and {most}",
                port=port.host_port or 0,
                most=_MAX_PORT,
            )
        if (port.protocol or "") not in _PROTOCOLS:
            yield Reason(ReasonCode.HOST_PORTS, f"the protocol {port.protocol!r} of a port is not known")


def _selectors(spec: PodSpec) -> Iterator[Reason]:
    for whose, selector in _all_selectors(spec):
        problem = unreadable(selector)
        if problem:
            yield Reason(ReasonCode.SELECTORS, f"the label selector of its {whose} {problem}")


def _all_selectors(spec: PodSpec) -> Iterator[tuple[str, LabelSelector | None]]:
    """Every selector over pods or namespaces, and whose it is."""
    for constraint in spec.topology_spread_constraints:
        yield f"topology spread over {constraint.topology_key}", constraint.label_selector
    for whose, side in _sides(spec):
        for term in terms_of(side):
            yield f"{whose} over {term.topology_key}", term.label_selector
            yield f"{whose} over {term.topology_key}", term.namespace_selector


_CHECKS: tuple[Callable[[PodSpec], Iterator[Reason]], ...] = (
    _spreads,
    _pod_affinity,
    _node_affinity,
    _tolerations,
    _ports,
    _selectors,
)
