"""Whether each planned pod may run on its node: taints, labels, resources, host ports.

Sources: kube-scheduler TaintToleration, NodeAffinity, NodeResourcesFit and NodePorts.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from joinery.decisions.verification.final_state import FinalState
from joinery.decisions.verification.nodes import EquivalenceClass, FinalNode
from joinery.decisions.verification.predicates import Port, hard_spread, is_readable, ports_clash, refused_taint
from joinery.decisions.verification.violation import Violation, ViolationCode, misplaced
from joinery.objects.kubernetes.quantity import total


def check_placements(state: FinalState) -> Iterator[Violation]:
    """Check each (class, node) pair of the plan. A rule that it breaks is one violation, which names the first pod."""
    for node in state.nodes:
        if node.planned:
            yield from _check_node(state, node)
    for pod_class in state.planned:
        if problem := _unsupported(pod_class):
            yield misplaced(ViolationCode.NOT_SUPPORTED, pod_class, pod_class.planned_on[0], problem)


def _check_node(state: FinalState, node: FinalNode) -> Iterator[Violation]:
    used = total({name: amount * n for name, amount in pods.requests.items()} for pods, n in node.pods.items())
    takers = _takers(node)
    for pod_class in node.planned:
        if node.is_leaving:
            yield misplaced(ViolationCode.NODE_LEAVING, pod_class, node, "the node is being deleted")
        others = [] if node.only_for is None else [p for p in node.planned[pod_class] if p not in node.only_for]
        if others:
            yield misplaced(
                ViolationCode.NODE_RESERVED,
                pod_class,
                node,
                f"the claim is not launched yet, and not for {others[0]}",
            )
        taint = refused_taint(node.taints, pod_class.pod.spec.tolerations)
        if taint is not None:
            yield misplaced(
                ViolationCode.TAINTS, pod_class, node, f"does not tolerate {taint.key}={taint.value}:{taint.effect}"
            )
        if not state.selections.of(pod_class.pod.spec).selects(node.labels, node.name):
            yield misplaced(
                ViolationCode.NODE_AFFINITY,
                pod_class,
                node,
                "the node does not match its nodeSelector or node affinity",
            )
        lacking = next((n for n, v in pod_class.requests.items() if v > 0 and used[n] > node.room.get(n, 0)), None)
        if lacking is not None:
            wanted, there = used[lacking], node.room.get(lacking, 0)
            message = f"{lacking}: {wanted} wanted, {there} there"
            yield misplaced(
                ViolationCode.RESOURCES, pod_class, node, message, resource=lacking, wanted=wanted, there=there
            )
        clash = pod_class.ports and _clash(pod_class, node, takers)
        if clash:
            yield misplaced(ViolationCode.HOST_PORTS, pod_class, node, f"host port {clash} is taken")


#: Who takes a host port of a node, by protocol and number, on whatever address.
Takers = Mapping[tuple[str, int], Sequence[tuple[EquivalenceClass, Port]]]


def _takers(node: FinalNode) -> Takers:
    takers: dict[tuple[str, int], list[tuple[EquivalenceClass, Port]]] = defaultdict(list)
    for pod_class in node.pods:
        for port in pod_class.ports:
            takers[port[0], port[2]].append((pod_class, port))
    return takers


def _clash(pod_class: EquivalenceClass, node: FinalNode, takers: Takers) -> str:
    for ours in pod_class.ports:
        for other, theirs in takers[ours[0], ours[2]]:
            if (other is not pod_class or node.pods[pod_class] > 1) and ports_clash((ours,), (theirs,)):
                return f"{ours[2]}/{ours[0]}"
    return ""


def _unsupported(pod_class: EquivalenceClass) -> str:
    """What kube-scheduler could not read, or what verification cannot judge; empty for all else."""
    spec = pod_class.pod.spec
    affinity = spec.affinity
    sides = [affinity.pod_affinity, affinity.pod_anti_affinity] if affinity else []
    terms = [t for side in sides if side for t in side.required_during_scheduling_ignored_during_execution]
    selectors = [s for term in terms for s in (term.label_selector, term.namespace_selector)]
    selectors += [constraint.label_selector for constraint in hard_spread(spec)]
    return "" if all(map(is_readable, selectors)) else "a label selector cannot be read"
