"""What pods prefer, and how much of it a final state honours (kube-scheduler NodeAffinity, InterPodAffinity,
PodTopologySpread with ScheduleAnyway, TaintToleration with PreferNoSchedule).

A preference may be given up for a place. It is worth less than none: so this is not part of whether a plan is right,
but of whether one state is as good as another.
"""

from collections.abc import Iterator, Mapping
from itertools import chain

from msgspec.structs import replace as with_fields

from joinery.decisions.verification.final_state import FinalState, identity_of
from joinery.decisions.verification.nodes import EquivalenceClass, FinalNode
from joinery.decisions.verification.predicates import NodeTerm, tolerates, without_resize
from joinery.decisions.verification.topology.affinity import with_own_labels
from joinery.decisions.verification.topology.census import Census, includes
from joinery.decisions.verification.topology.spread import EligiblePods, spread_selector
from joinery.objects.karpenter.labels import PREFER_NO_SCHEDULE
from joinery.objects.kubernetes.core import NodeAffinity, Pod, PodAffinity, TopologySpreadConstraint
from joinery.objects.snapshot.pods import is_reschedulable
from joinery.objects.snapshot.snapshot import Snapshot


def honoured(state: FinalState) -> Mapping[bytes, tuple[str, int]]:
    """By class, as ``FinalState.classes`` names them, sizes apart: one of its pods (namespace/name), and the weights
    of all preferences of all its pods that hold; a taint with PreferNoSchedule that a pod does not tolerate is minus
    one.
    """
    preferences = _Preferences(state)
    weights: dict[bytes, tuple[str, int]] = {}
    for pod_class in state.classes.values():
        if is_reschedulable(pod_class.pod):
            identity = identity_of(_of_no_size(pod_class.pod))
            first, so_far = weights.get(identity, (pod_class.pod.key, 0))
            weights[identity] = first, so_far + sum(preferences.weights(pod_class))
    return weights


def _of_no_size(pod: Pod) -> Pod:
    """The pod without what it asks for: its successor may ask for something else, and prefers the same."""
    bare = with_fields(pod.spec, containers=[], init_containers=[], resources=None)
    return with_fields(without_resize(pod), spec=bare)


def is_anything_preferred(snapshot: Snapshot) -> bool:
    """Whether a state of this cluster could honour more or less than another. Much cheaper than two states."""
    effects = chain(
        (taint.effect for node in snapshot.nodes for taint in node.spec.taints),
        (taint.effect for claim in snapshot.node_claims for taint in claim.spec.taints),
        (taint.effect for pool in snapshot.node_pools for taint in pool.spec.template.spec.taints),
    )
    return PREFER_NO_SCHEDULE in effects or any(map(_prefers, snapshot.pods))


def _prefers(pod: Pod) -> bool:
    affinity = pod.spec.affinity
    parts = (affinity.node_affinity, affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ()
    return any(part and part.preferred_during_scheduling_ignored_during_execution for part in parts) or any(
        spread.when_unsatisfiable == "ScheduleAnyway" for spread in pod.spec.topology_spread_constraints
    )


class _Preferences:
    def __init__(self, state: FinalState) -> None:
        self._state, self._census = state, Census(state)
        self._eligible = EligiblePods(state, [node for node in state.nodes if not node.is_leaving])
        self._repels = any(taint.effect == PREFER_NO_SCHEDULE for node in state.nodes for taint in node.taints)

    def weights(self, pod_class: EquivalenceClass) -> Iterator[int]:
        spec = pod_class.pod.spec
        affinity = spec.affinity
        if affinity and affinity.node_affinity:
            yield self._of_node_affinity(pod_class, affinity.node_affinity)
        if affinity and affinity.pod_affinity:
            yield self._of_neighbours(pod_class, affinity.pod_affinity, wanted=True)
        if affinity and affinity.pod_anti_affinity:
            yield self._of_neighbours(pod_class, affinity.pod_anti_affinity, wanted=False)
        for constraint in spec.topology_spread_constraints:
            if constraint.when_unsatisfiable == "ScheduleAnyway":
                yield self._of_spread(pod_class, constraint)
        if self._repels:
            yield -sum(
                number * self._repelling(pod_class, node) for node, number in self._state.places(pod_class).items()
            )

    def _of_node_affinity(self, pod_class: EquivalenceClass, affinity: NodeAffinity) -> int:
        preferred = affinity.preferred_during_scheduling_ignored_during_execution
        terms = [(one.weight, NodeTerm(one.preference)) for one in preferred]
        return sum(
            weight * number
            for weight, term in terms
            for node, number in self._state.places(pod_class).items()
            if term.matches(node.labels, node.name)
        )

    def _of_neighbours(self, pod_class: EquivalenceClass, side: PodAffinity, *, wanted: bool) -> int:
        """Pods that have a neighbour that a term names, if one is wanted, or none, if none is."""
        weight = 0
        for preferred in side.preferred_during_scheduling_ignored_during_execution:
            term = with_own_labels(preferred.pod_affinity_term, pod_class.labels)
            matched = self._census.matching(term.label_selector, self._census.where(term, pod_class.namespace))
            tally, itself = self._census.tally(term.topology_key), int(includes(matched, pod_class))
            for node, number in self._state.places(pod_class).items():
                domain = node.labels.get(term.topology_key)
                has_neighbour = domain is not None and tally.number(matched, domain) > itself
                weight += preferred.weight * number * (has_neighbour is wanted)
        return weight

    def _of_spread(self, pod_class: EquivalenceClass, constraint: TopologySpreadConstraint) -> int:
        """Pods whose domain has no more than ``maxSkew`` above the emptiest."""
        key, namespace = constraint.topology_key, self._census.inside(pod_class.namespace)
        counted = self._census.matching(spread_selector(constraint, pod_class), namespace) & self._census.living
        counts = self._eligible.tally(pod_class, constraint, frozenset((key,))).counts(counted)
        most = min(counts.values(), default=0) + constraint.max_skew
        return sum(
            number
            for node, number in self._state.places(pod_class).items()
            if counts.get(node.labels.get(key, ""), most + 1) <= most
        )

    def _repelling(self, pod_class: EquivalenceClass, node: FinalNode) -> int:
        """The taints with PreferNoSchedule that the class does not tolerate."""
        tolerations = pod_class.pod.spec.tolerations
        soft = (taint for taint in node.taints if taint.effect == PREFER_NO_SCHEDULE)
        return sum(not any(tolerates(toleration, taint) for toleration in tolerations) for taint in soft)
