"""Scale-downs that empty nodes: which pods a ReplicaSet deletes first when it gets smaller.

It deletes those with the lowest ``controller.kubernetes.io/pod-deletion-cost`` first (Kubernetes ReplicaSet, "Pod
deletion cost"). Without one it takes them from where it has most, so a scale-down thins out all nodes and empties none,
and what is left has to be evicted. Where a setting asks for it, pods on the nodes that are to go next get a cost below
that of all others. Then a scale-down empties these nodes, and no eviction is needed.

The nodes that are to go next are a tenth of each NodePool's: those that only a budget keeps, drifted ones, and then
those whose moves cost least for what they save.

Kubernetes warns that frequent updates burden the API server. So a node is marked or not: all marks are one value, and
nobody is ranked. A marked node stays marked as long as it is among the first two tenths. A pod whose mark would not
change what its ReplicaSet does gets none, and a run writes to some dozens of pods at most. Which nodes are marked is
read from their pods, so nothing has to be remembered.

A value that a user wrote is never touched. Ours is recognised by its value
(``objects.karpenter.disruption.OUR_DELETION_COST``), and the API server lets us write nothing else
(manifests/fences.yaml).
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice

from msgspec.structs import replace

from joinery.decisions.disruption.candidates import candidates
from joinery.decisions.disruption.decision import DisruptionDecision
from joinery.decisions.disruption.moves import MovePrices
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.objects.actions import UpdatePod
from joinery.objects.karpenter.disruption import OUR_DELETION_COST, stop_in_force
from joinery.objects.karpenter.labels import DO_NOT_DISRUPT, POD_DELETION_COST
from joinery.objects.kubernetes.core import Pod
from joinery.objects.objections import ObjectionCode
from joinery.objects.snapshot.claims import DRIFTED
from joinery.objects.snapshot.nodes import NodeView
from joinery.objects.snapshot.pods import is_active, is_protected, is_reschedulable

#: Of a NodePool's nodes, how many are marked.
_SHARE = 0.1
#: Among how many times as many a marked node has to be to stay marked.
_STAYS_WITHIN = 2
#: How many pods a run writes to. A run a minute then writes as often as a Deployment of that size is rolled out.
MOST_AT_ONCE = 50


def deletion_costs(
    problem: DisruptionProblem, decision: DisruptionDecision, *, is_wanted: bool
) -> tuple[UpdatePod, ...]:
    """The writes that are due after the decision: marks that are wrong are removed first.

    ``is_wanted``: without it all marks are removed. While disruption is stopped, marks stay as they are.
    """
    snapshot = problem.packing.snapshot
    is_any_marked = any(map(_is_marked, snapshot.pods))
    if stop_in_force(snapshot.node_pools, snapshot.now) or not (is_wanted or is_any_marked):
        return ()
    ranking = _Ranking(problem, decision) if is_wanted else None
    nodes = _next_to_go(ranking) if ranking else frozenset()
    # Pods that are evicted in a moment may keep their marks.
    rightly_marked = nodes | ranking.going if ranking else nodes
    wrong = (
        UpdatePod(pod, _without_mark(pod), "its node is not among those that are to go next any more")
        for pod in snapshot.pods
        if _is_marked(pod) and is_active(pod) and pod.spec.node_name not in rightly_marked
    )
    missing = (
        UpdatePod(pod, _with_mark(pod), f"its node {pod.spec.node_name} is to go, so it is to be deleted first")
        for pod in _unmarked(snapshot.pods, nodes)
    )
    return (*islice((*wrong, *missing), MOST_AT_ONCE),)


def _next_to_go(ranking: "_Ranking") -> frozenset[str]:
    """The names of the Nodes whose pods are to be deleted first."""
    by_pool: dict[str, list[NodeView]] = defaultdict(list)
    for view in ranking.eligible():
        by_pool[view.pool].append(view)
    return frozenset(view.node for views in by_pool.values() for view in _first(sorted(views, key=ranking.key)))


def _first(views: list[NodeView]) -> Iterator[NodeView]:
    """Of a NodePool's nodes in their order: the marked ones that are still near the front, then the first others."""
    if len(views) < 2:
        return  # there is no other node that its pods could be spared on
    count = math.ceil(_SHARE * len(views))
    marked = [view for view in views[: count * _STAYS_WITHIN] if any(map(_is_marked, view.pods))]
    yield from marked
    yield from islice((view for view in views if view not in marked), max(0, count - len(marked)))


class _Ranking:
    """The order in which nodes are to go."""

    def __init__(self, problem: DisruptionProblem, decision: DisruptionDecision) -> None:
        self._snapshot = problem.packing.snapshot
        self._beyond_budget = {one.node_claim for one in decision.staying if one.objection.code is ObjectionCode.BUDGET}
        judged = candidates(problem)
        self._views, self._prices = judged.nodes, judged.prices
        self._moves = MovePrices(problem)
        retired = {name for command in decision.commands for name in command.retire}
        #: The names of Nodes whose pods are evicted at once, so that a mark would come too late.
        self.going = frozenset(view.node for view in self._views if view.is_leaving or view.claim in retired)
        self._claims = {claim.metadata.name: claim for claim in self._snapshot.managed_claims}

    def eligible(self) -> Iterator[NodeView]:
        """Nodes that might go, at some time.

        ``consolidateAfter`` does not count: it begins anew whenever a pod is deleted, and a node must not lose its mark
        by the scale-down that it was marked for.
        """
        for view in self._views:
            pool = self._snapshot.pools_by_name.get(view.pool)
            is_ours = view.claim in self._claims and bool(view.node) and pool is not None and not pool.is_static
            is_staying = view.is_initialized and view.node not in self.going and not view.replaces
            if is_ours and is_staying and not self._is_protected(view) and any(map(is_reschedulable, view.pods)):
                yield view

    def key(self, view: NodeView) -> tuple[bool, bool, float, int, str]:
        """What is less goes earlier."""
        pods = [pod for pod in view.pods if is_reschedulable(pod)]
        price = self._prices.get(view.claim, 0.0)
        moves = sum(self._moves.price_of_moving(pod, view, price).dollars for pod in pods)
        is_drifted = self._claims[view.claim].is_true(DRIFTED)
        # A node whose price nobody knows saves nothing that anybody knows.
        return (
            view.claim not in self._beyond_budget,
            not is_drifted,
            moves / price if price else math.inf,
            len(pods),
            view.node,
        )

    def _is_protected(self, view: NodeView) -> bool:
        if view.annotations.get(DO_NOT_DISRUPT) == "true":
            return True
        return any(is_protected(pod, self._snapshot.now) for pod in view.pods if is_active(pod))


def _unmarked(pods: Iterable[Pod], nodes: Collection[str]) -> Iterator[Pod]:
    """Pods on these nodes that lack the mark, where it changes what their ReplicaSet does."""
    if not nodes:
        return
    replicas: dict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        if (owner := _replica_set(pod)) and is_active(pod):
            replicas[owner].append(pod)
    for listed in replicas.values():
        # Where all of its pods are to go, or none, there is nothing to choose.
        if any(pod.spec.node_name and pod.spec.node_name not in nodes for pod in listed):
            yield from (
                p for p in listed if p.spec.node_name in nodes and POD_DELETION_COST not in p.metadata.annotations
            )


def _replica_set(pod: Pod) -> str | None:
    """The UID of the ReplicaSet that made the pod; None for others, whose controllers heed no deletion cost."""
    owners = pod.metadata.owner_references
    return next((owner.uid or owner.name for owner in owners if owner.controller and owner.kind == "ReplicaSet"), None)


def _is_marked(pod: Pod) -> bool:
    return pod.metadata.annotations.get(POD_DELETION_COST) == OUR_DELETION_COST


def _with_mark(pod: Pod) -> Pod:
    return _annotated(pod, {**pod.metadata.annotations, POD_DELETION_COST: OUR_DELETION_COST})


def _without_mark(pod: Pod) -> Pod:
    return _annotated(pod, {key: value for key, value in pod.metadata.annotations.items() if key != POD_DELETION_COST})


def _annotated(pod: Pod, annotations: Mapping[str, str]) -> Pod:
    return replace(pod, metadata=replace(pod.metadata, annotations=dict(annotations)))
