"""PodTopologySpread and InterPodAffinity: what the pods already placed allow,
counted once per pod and asked per node.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from joinery.objects.kubernetes.core import (
    LabelSelector,
    LabelSelectorRequirement,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    TopologySpreadConstraint,
)
from simulator.actors.kubescheduler.view import NodeInfo, View, repelling_taints, tolerates
from simulator.kubernetes.selectors import node_matches, selects

#: A topology key and one of its values.
Domain = tuple[str, str]

SPREAD = "node(s) didn't match pod topology spread constraints"
AFFINITY = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"


@dataclass(frozen=True)
class Spread:
    """One constraint, counted: matching pods per domain of its key."""

    constraint: TopologySpreadConstraint
    counts: dict[str, int]
    counts_itself: int

    def allows(self, info: NodeInfo) -> bool:
        domain = info.labels.get(self.constraint.topology_key)
        if domain is None or domain not in self.counts:
            return False
        return self.counts[domain] + self.counts_itself - self._least() <= self.constraint.max_skew

    def _least(self) -> int:
        if len(self.counts) < (self.constraint.min_domains or 1):
            return 0
        return min(self.counts.values(), default=0)


class Topology:
    """The rules of one pod, and those of all placed pods about it."""

    def __init__(self, pod: Pod, view: View) -> None:
        self._pod = pod
        self._view = view
        hard = [
            constraint
            for constraint in pod.spec.topology_spread_constraints
            if constraint.when_unsatisfiable == "DoNotSchedule"
        ]
        self._spreads = spreads(pod, hard, view)
        self._forbidden = set(self._repelled_by_existing())
        anti = required(pod.spec.affinity.pod_anti_affinity if pod.spec.affinity else None)
        self._avoided = {domain for term in anti for domain in self._domains(term)}
        self._wanted = self._wanted_domains()

    def reason(self, info: NodeInfo) -> str:
        """Why the pod cannot go to the node; empty if it can."""
        if not all(spread.allows(info) for spread in self._spreads):
            return SPREAD
        if any(info.labels.get(key) == value for key, value in self._avoided):
            return ANTI_AFFINITY
        if any(info.labels.get(key) == value for key, value in self._forbidden):
            return EXISTING
        near = all(
            key in info.labels and (domains is None or (key, info.labels[key]) in domains)
            for key, domains in self._wanted
        )
        return "" if near else AFFINITY

    def _repelled_by_existing(self) -> Iterator[Domain]:
        for info, other in self._view.placed():
            anti = other.spec.affinity.pod_anti_affinity if other.spec.affinity else None
            for term in required(anti):
                if term.topology_key in info.labels and term_selects(term, other, self._pod, self._view):
                    yield term.topology_key, info.labels[term.topology_key]

    def _domains(self, term: PodAffinityTerm) -> set[Domain]:
        return {
            (term.topology_key, info.labels[term.topology_key])
            for info, other in self._view.placed()
            if term.topology_key in info.labels and term_selects(term, self._pod, other, self._view)
        }

    def _wanted_domains(self) -> list[tuple[str, set[Domain] | None]]:
        """Per required affinity term its domains; None where the pod is the first of its group and may go anywhere."""
        terms = required(self._pod.spec.affinity.pod_affinity if self._pod.spec.affinity else None)
        wanted = [(term.topology_key, self._domains(term)) for term in terms]
        is_first = not any(domains for _, domains in wanted)
        if wanted and is_first and all(term_selects(term, self._pod, self._pod, self._view) for term in terms):
            return [(key, None) for key, _ in wanted]
        return [*wanted]


def required(affinity: PodAffinity | None) -> list[PodAffinityTerm]:
    return affinity.required_during_scheduling_ignored_during_execution if affinity else []


def term_selects(term: PodAffinityTerm, owner: Pod, other: Pod, view: View) -> bool:
    """Whether a term of ``owner`` selects ``other``: namespace and labels."""
    if not _in_namespaces(term, owner, other, view):
        return False
    extra = [*_from_labels(term.match_label_keys, owner, "In"), *_from_labels(term.mismatch_label_keys, owner, "NotIn")]
    return selects(_narrowed(term.label_selector, extra), other.metadata.labels)


def _in_namespaces(term: PodAffinityTerm, owner: Pod, other: Pod, view: View) -> bool:
    namespace = other.metadata.namespace or "default"
    if namespace in term.namespaces:
        return True
    if term.namespace_selector is not None:
        holder = view.namespaces.get(namespace)
        return selects(term.namespace_selector, holder.metadata.labels if holder else {})
    return not term.namespaces and namespace == (owner.metadata.namespace or "default")


def _from_labels(keys: Iterable[str], owner: Pod, operator: str) -> Iterator[LabelSelectorRequirement]:
    for key in keys:
        if key in owner.metadata.labels:
            yield LabelSelectorRequirement(key=key, operator=operator, values=[owner.metadata.labels[key]])


def _narrowed(selector: LabelSelector | None, extra: list[LabelSelectorRequirement]) -> LabelSelector | None:
    if selector is None or not extra:
        return selector
    return LabelSelector(match_labels=selector.match_labels, match_expressions=[*selector.match_expressions, *extra])


def spreads(pod: Pod, constraints: list[TopologySpreadConstraint], view: View) -> list[Spread]:
    """The constraints, counted over the nodes that have all their keys and that their policies include."""
    keys = [constraint.topology_key for constraint in constraints]
    return [_counted(pod, constraint, keys, view) for constraint in constraints]


def _counted(pod: Pod, constraint: TopologySpreadConstraint, keys: list[str], view: View) -> Spread:
    selector = _narrowed(constraint.label_selector, [*_from_labels(constraint.match_label_keys, pod, "In")])
    counts: Counter[str] = Counter()
    for info in view.nodes.values():
        if all(key in info.labels for key in keys) and _is_eligible(pod, constraint, info):
            counts[info.labels[constraint.topology_key]] += sum(_counts(selector, pod, other) for other in info.pods)
    return Spread(constraint, dict(counts), int(selects(selector, pod.metadata.labels)))


def _is_eligible(pod: Pod, constraint: TopologySpreadConstraint, info: NodeInfo) -> bool:
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    if constraint.node_affinity_policy != "Ignore":
        if any(info.labels.get(key) != value for key, value in pod.spec.node_selector.items()):
            return False
        if affinity and not node_matches(affinity.required_during_scheduling_ignored_during_execution, info.node):
            return False
    if constraint.node_taints_policy != "Honor":
        return True
    return all(tolerates(pod.spec.tolerations, taint) for taint in repelling_taints(info.node))


def _counts(selector: LabelSelector | None, pod: Pod, other: Pod) -> bool:
    """A pod that is going, or of another namespace, does not count for spread."""
    same = (other.metadata.namespace or "default") == (pod.metadata.namespace or "default")
    return same and other.metadata.deletion_timestamp is None and selects(selector, other.metadata.labels)
