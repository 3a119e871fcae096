"""Every pending pod is in the plan exactly once, and no other pod is; no pod lands on a node that takes none."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import reduce
from operator import or_

from joinery.decisions.verification.final_state import FinalState
from joinery.decisions.verification.labelled import Labelled
from joinery.decisions.verification.violation import Violation, ViolationCode, of_pod
from joinery.objects.annotations.surged import all_surged_pods
from joinery.objects.karpenter.labels import DO_NOT_DISRUPT, NODE_POOL
from joinery.objects.kubernetes.core import LabelSelector, Pod
from joinery.objects.snapshot.nodes import pending_pods
from joinery.objects.snapshot.pods import ignores_budgets, is_reschedulable


def check_accounts(state: FinalState) -> Iterator[Violation]:
    """Who is in the plan, and who should be."""
    mentions = Counter(_mentioned(state))
    must, may = _expected(state)
    for name, times in mentions.items():
        if times > 1:
            yield Violation(ViolationCode.POD_DUPLICATE, "the plan lists the pod more than once", of_pod(name))
        if name not in state.pods:
            yield Violation(ViolationCode.POD_UNKNOWN, "the input has no such pod", of_pod(name))
        elif name not in must and name not in may:
            yield Violation(ViolationCode.POD_NOT_PENDING, _why_not(state.pods[name]), of_pod(name))
    for name in must:
        if name not in mentions:
            yield Violation(
                ViolationCode.POD_MISSING, "the pod is pending and the plan does not mention it", of_pod(name)
            )
    for pod in state.packing.unplaced:
        if not pod.reasons:
            yield Violation(ViolationCode.NO_REASON, "the pod is left without a reason", of_pod(pod.pod))


def _mentioned(state: FinalState) -> Iterator[str]:
    packing = state.packing
    for placement in packing.existing:
        yield from placement.pods
    for launch in packing.launches:
        yield from launch.pods
    for unplaced in packing.unplaced:
        yield unplaced.pod


def _expected(state: FinalState) -> tuple[dict[str, None], set[str]]:
    """The pods that the plan must account for, and those that it may (Karpenter `pod.IsProvisionable`)."""
    only_marked = state.problem.options.only_marked_unschedulable
    must: dict[str, None] = {}
    may: set[str] = set()
    for pod in pending_pods(state.problem.snapshot, only_marked=only_marked):
        if _wants_no_pool(pod):
            may.add(pod.key)
        else:
            must[pod.key] = None
    stranded = list(_stranded(state))
    may_stay = _may_stay(state, stranded)
    for pod in stranded:
        if pod.key in may_stay:
            may.add(pod.key)
        else:
            must[pod.key] = None
    return must, may


def _stranded(state: FinalState) -> Iterator[Pod]:
    """The pods of nodes that are leaving that nobody has a place for yet."""
    surged = all_surged_pods(state.problem.snapshot)
    all_views = state.problem.snapshot.views
    replaced: dict[str, set[str]] = defaultdict(set)
    for view in all_views:
        for claim in view.replaces if not view.is_leaving else ():
            replaced[claim].update(view.planned)
    for view in all_views:
        for pod in view.pods if view.is_leaving else ():
            # A disruption command moves those only for which it has bought a place.
            if not is_reschedulable(pod) or (view.is_candidate and pod.key not in replaced[view.claim]):
                continue
            if pod.key not in surged:
                yield pod


def _wants_no_pool(pod: Pod) -> bool:
    """Whether its node affinity excludes NodePools."""
    required = pod.spec.required_node_affinity
    expressions = [e for term in required.node_selector_terms for e in term.match_expressions] if required else []
    return any(e.key == NODE_POOL and e.operator == "DoesNotExist" for e in expressions)


def _may_stay(state: FinalState, pods: Sequence[Pod]) -> set[str]:
    """Those that something may keep where they are: an annotation, or a PodDisruptionBudget that selects them."""
    kept = {pod.key for pod in pods if DO_NOT_DISRUPT in pod.metadata.annotations}
    selectors: dict[str, list[LabelSelector | None]] = defaultdict(list)
    for budget in state.problem.snapshot.disruption_budgets:
        selectors[budget.metadata.namespace].append(budget.spec.selector)
    for namespace, listed in selectors.items():
        protected = [pod for pod in pods if pod.metadata.namespace == namespace and not ignores_budgets(pod)]
        table = Labelled([pod.metadata.labels for pod in protected])
        covered = reduce(or_, map(table.matching, listed))
        kept |= {pod.key for index, pod in enumerate(protected) if covered >> index & 1}
    return kept


def _why_not(pod: Pod) -> str:
    if pod.spec.node_name:
        return f"the pod is bound to node {pod.spec.node_name}"
    if pod.spec.scheduling_gates:
        return "the pod has scheduling gates"
    return "the pod is not one that waits for a node"
