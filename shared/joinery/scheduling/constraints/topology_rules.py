"""Topology rules: spread, pod affinity and pod anti-affinity, as identities that pods share.

Two pods that say the same (kind, key, whom it looks at, numbers, node filter) own the same rule, and counts are kept
once per rule.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from joinery.apis.core import (
    Namespace,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    Toleration,
    TopologySpreadConstraint,
)
from joinery.apis.labels import HOSTNAME
from joinery.scheduling.constraints.podclasses import PodClass
from joinery.scheduling.constraints.requirements import Requirements
from joinery.scheduling.constraints.selectors import (
    Selector,
    label_clauses,
    namespaces_of,
    of_affinity_term,
    read,
    terms_of,
)

Kind = Literal["spread", "affinity", "anti-affinity"]


@dataclass(frozen=True, slots=True)
class Matcher:
    """Pods in these namespaces (None: all) with labels that the selector matches."""

    namespaces: frozenset[str] | None
    selector: Selector

    def matches(self, namespace: str, labels: dict[str, str]) -> bool:
        return (self.namespaces is None or namespace in self.namespaces) and self.selector.matches(labels)


@dataclass(frozen=True, slots=True)
class NodeFilter:
    """Which nodes count for a spread: those that its pods' affinity (Honor) and tolerations (Honor) admit.

    ``keys``: labels that they need besides, those of the pods' other hard spreads, as for kube-scheduler.
    """

    terms: tuple[Requirements, ...] | None = field(compare=False, default=None)
    tolerations: tuple[Toleration, ...] | None = field(compare=False, default=None)
    keys: frozenset[str] = frozenset()
    identity: str = ""


ALL_NODES = NodeFilter()


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """A topology rule as one class owns it. Compared by identity, because classes that say the same may reach different
    domains.

    ``matchers``: a pod counts when all of them match (several required affinity terms count jointly).

    ``weight`` is None for a hard rule. ``max_skew`` and ``min_domains`` are a spread's. ``claim`` names a volume claim
    whose users must share a zone; such a rule has no matchers and counts the claim's users.
    """

    kind: Kind
    key: str
    matchers: tuple[Matcher, ...]
    max_skew: int = 0
    min_domains: int = 0
    nodes: NodeFilter = ALL_NODES
    weight: int | None = None
    claim: str = ""

    def selects(self, pod: Pod) -> bool:
        """Whether the pod is one of those that the rule looks at."""
        namespace = pod.metadata.namespace or "default"
        return not self.claim and all(matcher.matches(namespace, pod.metadata.labels) for matcher in self.matchers)

    @property
    def identity(self) -> tuple[object, ...]:
        """What it counts, whether hard or soft."""
        return self.kind, self.key, self.matchers, self.max_skew, self.min_domains, self.nodes, self.claim

    def __str__(self) -> str:
        if self.claim:
            return f"the zone of its volume claim {self.claim}"
        if self.kind == "spread":
            how = "preferred " if self.weight is not None else ""
            return f"{how}topology spread over {self.key} (maxSkew {self.max_skew})"
        how = "preferred" if self.weight is not None else "required"
        return f"{how} pod {self.kind} over {self.key}"


def rules_of(pods: PodClass, namespaces: Iterable[Namespace]) -> tuple[Rule, ...]:
    """All rules that a class owns, hard ones first, each in the listed order."""
    known = tuple(namespaces)
    pod, affinity = pods.example, pods.affinity
    listed = [_spread(c, pods) for c in pod.spec.topology_spread_constraints]
    listed += _affinity_rules("affinity", affinity.pod_affinity, pod, known)
    listed += _affinity_rules("anti-affinity", affinity.pod_anti_affinity, pod, known)
    return tuple(sorted(listed, key=lambda rule: rule.weight is not None))


def required_anti_affinity(pod: Pod, namespaces: Iterable[Namespace]) -> tuple[Rule, ...]:
    """The rules by which a bound pod keeps others away."""
    affinity = pod.spec.affinity
    if affinity is None or affinity.pod_anti_affinity is None:
        return ()
    listed = _affinity_rules("anti-affinity", affinity.pod_anti_affinity, pod, tuple(namespaces))
    return tuple(rule for rule in listed if rule.weight is None)


def selector_keys(pods: Iterable[Pod]) -> frozenset[str]:
    """Every pod label key that some pod's rules look at."""
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


def _spread(constraint: TopologySpreadConstraint, pods: PodClass) -> Rule:
    labels = pods.labels
    selector = read(constraint.label_selector, label_clauses(labels, constraint.match_label_keys))
    return Rule(
        kind="spread",
        key=constraint.topology_key,
        matchers=(Matcher(frozenset({pods.namespace}), selector),),
        max_skew=constraint.max_skew,
        min_domains=constraint.min_domains or 0,
        nodes=_node_filter(constraint, pods),
        weight=None if constraint.when_unsatisfiable == "DoNotSchedule" else 1,
    )


def _node_filter(constraint: TopologySpreadConstraint, pods: PodClass) -> NodeFilter:
    terms = pods.terms if constraint.node_affinity_policy == "Honor" and any(pods.terms) else None
    tolerations = pods.tolerations if constraint.node_taints_policy == "Honor" else None
    keys = _other_keys(constraint, pods)
    if terms is None and tolerations is None and not keys:
        return ALL_NODES
    shown = sorted(str(t) for t in terms) if terms is not None else None
    return NodeFilter(terms, tolerations, keys, f"{shown} {tolerations}")


def _other_keys(constraint: TopologySpreadConstraint, pods: PodClass) -> frozenset[str]:
    """Keys of the other hard spreads; every node has a hostname, and who spreads over hosts alone counts on its own."""
    if constraint.when_unsatisfiable != "DoNotSchedule" or constraint.topology_key == HOSTNAME:
        return frozenset()
    listed = pods.example.spec.topology_spread_constraints
    keys = {c.topology_key for c in listed if c.when_unsatisfiable == "DoNotSchedule"}
    return frozenset(keys - {HOSTNAME, constraint.topology_key})


def _affinity_rules(
    kind: Literal["affinity", "anti-affinity"],
    side: PodAffinity | None,
    pod: Pod,
    namespaces: tuple[Namespace, ...],
) -> list[Rule]:
    if side is None:
        return []
    required = side.required_during_scheduling_ignored_during_execution
    matchers = [_matcher(term, pod, namespaces) for term in required]
    # kube-scheduler counts a pod for required affinity only if it matches every term; for anti-affinity each term
    # counts alone.
    joint = tuple(sorted(set(matchers), key=_order)) if kind == "affinity" else ()
    listed = [
        Rule(kind, term.topology_key, joint or (matcher,)) for term, matcher in zip(required, matchers, strict=True)
    ]
    for weighted in side.preferred_during_scheduling_ignored_during_execution:
        term = weighted.pod_affinity_term
        matcher = _matcher(term, pod, namespaces)
        listed.append(Rule(kind, term.topology_key, (matcher,), weight=weighted.weight))
    return listed


def _matcher(term: PodAffinityTerm, pod: Pod, namespaces: tuple[Namespace, ...]) -> Matcher:
    return Matcher(namespaces_of(term, pod, namespaces), of_affinity_term(term, pod))


def _order(matcher: Matcher) -> tuple[bool, list[str], tuple[object, ...]]:
    return matcher.namespaces is None, sorted(matcher.namespaces or ()), matcher.selector.clauses or ()
