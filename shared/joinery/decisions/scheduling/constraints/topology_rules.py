"""Topology rules: topology spread, pod affinity and pod anti-affinity, in one form.

Pods that say the same thing (kind, topology key, selectors, numbers, node filter) have rules of the same identity. Pods
are then counted once for all of them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from joinery.decisions.scheduling.constraints.podclasses import PodClass
from joinery.decisions.scheduling.constraints.requirements import Requirements
from joinery.decisions.scheduling.constraints.selectors import (
    NOTHING,
    Namespaces,
    SelectedNamespaces,
    Selector,
    label_clauses,
    of_affinity_term,
    read,
    terms_of,
)
from joinery.decisions.scheduling.constraints.taints import first_untolerated
from joinery.objects.karpenter.labels import HOSTNAME, PREFER_NO_SCHEDULE
from joinery.objects.kubernetes.core import Pod, PodAffinity, PodAffinityTerm, Toleration, TopologySpreadConstraint
from joinery.objects.snapshot.nodes import NodeView

#: On the pods of a packing alone: the gang whose pods must share a domain. No stored pod has such a label.
OF_GANG = "(gang)"

RuleKind = Literal["spread", "affinity", "anti-affinity"]


@dataclass(frozen=True, slots=True)
class Matcher:
    """Selects pods by namespace and labels.

    ``namespaces``: those it looks into; None is all of them.
    """

    namespaces: frozenset[str] | SelectedNamespaces | None
    selector: Selector

    def matches(self, namespace: str, labels: dict[str, str]) -> bool:
        return (self.namespaces is None or namespace in self.namespaces) and self.selector.matches(labels)


@dataclass(frozen=True, slots=True)
class NodeFilter:
    """Which nodes count for a topology spread (kube-scheduler PodTopologySpread, `nodeAffinityPolicy`,
    `nodeTaintsPolicy`).

    terms         nodes must satisfy one of these; None for all nodes (Ignore)
    tolerations   nodes may have no other taints; None for any taints (Ignore)
    keys          labels that nodes must have: the topology keys of the pod's other hard spreads
    identity      equal for equal terms and tolerations; filters are compared by this and ``keys``
    """

    terms: tuple[Requirements, ...] | None = field(compare=False, default=None)
    tolerations: tuple[Toleration, ...] | None = field(compare=False, default=None)
    keys: frozenset[str] = frozenset()
    identity: str = ""

    def admits(self, view: NodeView) -> bool:
        """Whether a node that exists counts."""
        if any(key not in view.labels for key in self.keys):
            return False
        if self.terms is not None and not any(term.matches(view.labels) for term in self.terms):
            return False
        hard = [taint for taint in view.taints if taint.effect != PREFER_NO_SCHEDULE]
        return self.tolerations is None or first_untolerated(self.tolerations, hard) is None


ALL_NODES = NodeFilter()


@dataclass(frozen=True, slots=True, eq=False)
class TopologyRule:
    """A topology rule as one class owns it.

    Compared by object identity, because classes that say the same may reach different domains; ``identity`` is the same
    for them.

    kind          topology spread, pod affinity or pod anti-affinity
    key           the topology key: the label whose values are the domains
    matchers      a pod counts if all of them match (several required pod affinity terms count jointly)
    max_skew      of a spread; else 0
    min_domains   of a spread that says one; else 0
    nodes         which nodes count for a spread
    weight        of a preferred term, 1 for a ScheduleAnyway spread; None for a hard rule
    claim         the volume claim (namespace/name) whose users must share a zone. Such a rule is an affinity without
                  matchers, and counts the claim's users; else empty
    gang          the gang whose pods it gathers, where its PodGroup asks for it; else empty
    """

    kind: RuleKind
    key: str
    matchers: tuple[Matcher, ...]
    max_skew: int = 0
    min_domains: int = 0
    nodes: NodeFilter = ALL_NODES
    weight: int | None = None
    claim: str = ""
    gang: str = ""

    def selects(self, pod: Pod) -> bool:
        """Whether the pod is one of those that the rule looks at."""
        namespace = pod.metadata.namespace or "default"
        return not self.claim and all(matcher.matches(namespace, pod.metadata.labels) for matcher in self.matchers)

    def counts(self, pod_class: PodClass) -> bool:
        """Whether pods of the class count, or users of the claim."""
        return self.claim in pod_class.volumes.unbound if self.claim else self.selects(pod_class.example)

    @property
    def identity(self) -> tuple[object, ...]:
        """What it counts. A hard and a soft rule with the same selector count the same."""
        return self.kind, self.key, self.matchers, self.max_skew, self.min_domains, self.nodes, self.claim

    def __str__(self) -> str:
        if self.claim:
            return f"the zone of its volume claim {self.claim}"
        if self.gang:
            return f"the topology constraint of {self.gang} (all pods in one {self.key})"
        if self.kind == "spread":
            how = "preferred " if self.weight is not None else ""
            return f"{how}topology spread over {self.key} (maxSkew {self.max_skew})"
        how = "preferred" if self.weight is not None else "required"
        return f"{how} pod {self.kind} over {self.key}"


def rules_of(pod_class: PodClass, namespaces: Namespaces) -> tuple[TopologyRule, ...]:
    """All topology rules of a class, hard ones first, each sort in the listed order.

    ``namespaces``: those of the cluster, for namespace selectors.
    """
    pod, affinity = pod_class.example, pod_class.affinity
    rules = [_spread(constraint, pod_class) for constraint in pod.spec.topology_spread_constraints]
    rules += _affinity_rules("affinity", affinity.pod_affinity, pod, namespaces)
    rules += _affinity_rules("anti-affinity", affinity.pod_anti_affinity, pod, namespaces)
    return tuple(sorted(rules, key=lambda rule: rule.weight is not None))


def rules_about_pods(pod_class: PodClass) -> int:
    """How many rules about other pods the class has."""
    pod = pod_class.example
    return len(pod.spec.topology_spread_constraints) + sum(1 for _ in _terms_of(pod))


def needed_keys(pod_class: PodClass) -> frozenset[str]:
    """Labels without which no node takes the class: the topology keys of its hard spreads (kube-scheduler
    PodTopologySpread, ``Filter``). Every node has a hostname.
    """
    spreads = pod_class.example.spec.topology_spread_constraints
    return frozenset(s.topology_key for s in spreads if s.when_unsatisfiable == "DoNotSchedule") - {HOSTNAME}


def required_anti_affinity(pod: Pod, namespaces: Namespaces) -> tuple[TopologyRule, ...]:
    """The rules by which a pod that is on a node keeps other pods away (kube-scheduler InterPodAffinity)."""
    affinity = pod.spec.affinity
    if affinity is None or affinity.pod_anti_affinity is None:
        return ()
    listed = _affinity_rules("anti-affinity", affinity.pod_anti_affinity, pod, namespaces)
    return tuple(rule for rule in listed if rule.weight is None)


def required_anti_affinity_terms(pod: Pod) -> Sequence[PodAffinityTerm]:
    """What those rules are made of."""
    affinity = pod.spec.affinity
    if affinity is None or affinity.pod_anti_affinity is None:
        return ()
    return affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution


def selector_keys(pods: Iterable[Pod]) -> frozenset[str]:
    """Every pod label that the topology rules of some pod look at."""
    keys: set[str] = set()
    for pod in pods:
        for constraint in pod.spec.topology_spread_constraints:
            keys.update(constraint.match_label_keys, read(constraint.label_selector).keys)
        for term in _terms_of(pod):
            keys.update(term.match_label_keys, term.mismatch_label_keys, read(term.label_selector).keys)
    return frozenset(keys)


def _terms_of(pod: Pod) -> Iterable[PodAffinityTerm]:
    if pod.spec.affinity is None:
        return
    yield from terms_of(pod.spec.affinity.pod_affinity)
    yield from terms_of(pod.spec.affinity.pod_anti_affinity)


def _spread(constraint: TopologySpreadConstraint, pod_class: PodClass) -> TopologyRule:
    """For a spread an empty selector selects nothing either (kube-scheduler ``countPodsMatchSelector``)."""
    labels = pod_class.labels
    selector = read(constraint.label_selector, label_clauses(labels, constraint.match_label_keys))
    selector = selector if selector.clauses else NOTHING
    return TopologyRule(
        kind="spread",
        key=constraint.topology_key,
        matchers=(Matcher(frozenset({pod_class.namespace}), selector),),
        max_skew=constraint.max_skew,
        min_domains=constraint.min_domains or 0,
        nodes=_node_filter(constraint, pod_class),
        weight=None if constraint.when_unsatisfiable == "DoNotSchedule" else 1,
    )


def _node_filter(constraint: TopologySpreadConstraint, pod_class: PodClass) -> NodeFilter:
    is_selecting = constraint.node_affinity_policy == "Honor" and any(pod_class.terms)
    terms = tuple(replace(term, whole_gpus=False, devices=()) for term in pod_class.terms) if is_selecting else None
    tolerations = pod_class.tolerations if constraint.node_taints_policy == "Honor" else None
    keys = _other_keys(constraint, pod_class)
    if terms is None and tolerations is None and not keys:
        return ALL_NODES
    shown = sorted(str(term) for term in terms) if terms is not None else None
    return NodeFilter(terms, tolerations, keys, f"{shown} {tolerations}")


def _other_keys(constraint: TopologySpreadConstraint, pod_class: PodClass) -> frozenset[str]:
    """The topology keys of the pod's other hard spreads: kube-scheduler skips nodes that lack one of them.

    Every node has a hostname. A spread over hosts alone therefore skips none.
    """
    if constraint.when_unsatisfiable != "DoNotSchedule" or constraint.topology_key == HOSTNAME:
        return frozenset()
    return needed_keys(pod_class) - {constraint.topology_key}


def _affinity_rules(
    kind: Literal["affinity", "anti-affinity"],
    side: PodAffinity | None,
    pod: Pod,
    namespaces: Namespaces,
) -> list[TopologyRule]:
    if side is None:
        return []
    required = side.required_during_scheduling_ignored_during_execution
    matchers = [_matcher(term, pod, namespaces) for term in required]
    # kube-scheduler counts a pod for required affinity only if it matches every term; for anti-affinity each term
    # counts alone.
    joint = tuple(sorted(set(matchers), key=_order)) if kind == "affinity" else ()
    listed = [
        TopologyRule(kind, term.topology_key, joint or (matcher,), gang=_gang_of(term))
        for term, matcher in zip(required, matchers, strict=True)
    ]
    for weighted in side.preferred_during_scheduling_ignored_during_execution:
        term = weighted.pod_affinity_term
        matcher = _matcher(term, pod, namespaces)
        listed.append(TopologyRule(kind, term.topology_key, (matcher,), weight=weighted.weight))
    return listed


def _gang_of(term: PodAffinityTerm) -> str:
    return term.label_selector.match_labels.get(OF_GANG, "") if term.label_selector else ""


def _matcher(term: PodAffinityTerm, pod: Pod, namespaces: Namespaces) -> Matcher:
    return Matcher(namespaces.of(term, pod), of_affinity_term(term, pod))


def _order(matcher: Matcher) -> tuple[object, ...]:
    among, clauses = matcher.namespaces, matcher.selector.clauses or ()
    if isinstance(among, SelectedNamespaces):
        return False, sorted(among.named), among.selector.clauses or (), clauses
    return among is None, sorted(among or ()), (), clauses
