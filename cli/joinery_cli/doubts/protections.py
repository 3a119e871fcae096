"""What is to protect pods and nodes from disruption, and does not: older annotations, those of others, values that are
none, budgets of which nobody says what they allow. And pods that need protection, because nobody makes them again.

No API server knows these annotations. Whoever relies on one sees it on the day on which a node goes.
"""

from collections.abc import Collection, Iterator, Mapping

from joinery.decisions.scheduling.constraints.budgets import evictions_allowed, is_fully_blocking
from joinery.objects.karpenter.labels import CORE_GROUP, DO_NOT_DISRUPT
from joinery.objects.snapshot.pods import comes_with_node, controller_of, go_duration, is_active
from joinery.objects.snapshot.snapshot import Snapshot
from joinery_cli.notices import Notice, some_of, warning, warnings_of
from joinery_cli.view.workloads import subject_of

#: Annotations that once protected, or that protect from another autoscaler, with the value that does.
_OF_OTHERS: Mapping[str, str] = {
    f"{CORE_GROUP}/do-not-evict": "true",
    f"{CORE_GROUP}/do-not-consolidate": "true",
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
    "cluster-autoscaler.kubernetes.io/scale-down-disabled": "true",
}
_SPEECHLESS = ("true", "false", "")


def protected_in_vain(snapshot: Snapshot) -> Iterator[Notice]:
    """A warning for each annotation that keeps nothing, naming who has it. See ``objects.snapshot.legacy`` for clusters
    in which the older ones are heeded.
    """
    yield from warnings_of(_in_vain(snapshot))


def _in_vain(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    # Nodes of others are theirs to disrupt, and what protects from them does.
    others = {one.metadata.name for one in snapshot.nodes} - {one.status.node_name for one in snapshot.managed_claims}
    for pod in snapshot.pods:
        if is_active(pod) and not comes_with_node(pod) and pod.spec.node_name not in others:
            yield from ((subject_of(pod), doubt) for doubt in _doubts(pod.metadata.annotations, durations=True))
    for node in snapshot.nodes:
        if node.metadata.name in others:
            continue
        doubts = _doubts(node.metadata.annotations, durations=False)
        yield from ((f"Node {node.metadata.name}", doubt) for doubt in doubts)
    for pool in snapshot.node_pools:
        if snapshot.serves(pool) and DO_NOT_DISRUPT in pool.metadata.annotations:
            where = f"nothing reads {DO_NOT_DISRUPT} of a NodePool: it belongs to spec.template.metadata.annotations"
            yield f"NodePool {pool.metadata.name}", where


def _doubts(annotations: Mapping[str, str], *, durations: bool) -> Iterator[str]:
    """``durations``: whether a time is a value, as it is on pods."""
    value = annotations.get(DO_NOT_DISRUPT)
    if value is not None:
        lasts = go_duration(value) if durations else None
        if value not in _SPEECHLESS and (lasts is None or not lasts):
            wanted = "true, or a time such as 30m" if durations else "true"
            yield f"{DO_NOT_DISRUPT}: {value!r} protects nothing; write {wanted}"
        return
    for key, protects in _OF_OTHERS.items():
        if annotations.get(key) == protects:
            yield f'{key} protects nothing here; write {DO_NOT_DISRUPT}: "true"'


def budgets_without_status(snapshot: Snapshot) -> Iterator[Notice]:
    """Budgets as a person writes them: what they allow a cluster has to say."""
    silent = [
        f"{budget.metadata.namespace}/{budget.metadata.name}"
        for budget in snapshot.disruption_budgets
        if not budget.metadata.uid and not is_fully_blocking(budget) and not evictions_allowed(budget)
    ]
    if silent:
        allow = "PodDisruptionBudget allows" if len(silent) == 1 else "PodDisruptionBudgets allow"
        yield warning(
            f"{len(silent):,} {allow} no eviction ({some_of(silent)}), because the files say of none: "
            "status.disruptionsAllowed is what kubectl get pdb -A -o json has, and a manifest has not"
        )


def lost_pods(evicted: Collection[str], snapshot: Snapshot) -> Iterator[Notice]:
    """Pods of a cluster that a decision evicts (``namespace/name``) and that no controller makes again, unlike what it
    says of where they go. kubectl drain refuses them without ``--force``.
    """
    lost = [pod.key for pod in snapshot.pods if pod.key in evicted and pod.metadata.uid and controller_of(pod) is None]
    if lost:
        have, them = ("pod has", "it") if len(lost) == 1 else ("pods have", "them")
        yield warning(
            f"{len(lost):,} {have} no controller that would make {them} again after the eviction ({some_of(lost)}); "
            f'{DO_NOT_DISRUPT}: "true" keeps {them}'
        )
