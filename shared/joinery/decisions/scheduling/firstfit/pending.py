"""Which pods a plan places: those that wait, and those whose node is about to go (Karpenter `Provisioner.Schedule`)."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime

from joinery.decisions.scheduling.constraints.budgets import Coverage
from joinery.decisions.scheduling.constraints.node_pods import keys
from joinery.decisions.scheduling.constraints.taints import first_untolerated
from joinery.decisions.scheduling.problem import Problem
from joinery.objects.annotations.surged import all_surged_pods, last_old_pods
from joinery.objects.karpenter.labels import DISRUPTED_TAINT, DO_NOT_DISRUPT, NO_SCHEDULE
from joinery.objects.kubernetes.core import Pod, Taint
from joinery.objects.snapshot.nodes import NodeView, pending_pods
from joinery.objects.snapshot.pods import is_protected, is_reschedulable, is_terminating
from joinery.objects.snapshot.snapshot import Snapshot

_DISRUPTED = Taint(key=DISRUPTED_TAINT, effect=NO_SCHEDULE)


def pending(problem: Problem, views: Iterable[NodeView]) -> tuple[Pod, ...]:
    """The pods to place, by name. Those whose node is about to go are as they will be made anew."""
    only_marked = problem.options.only_marked_unschedulable
    waiting = pending_pods(problem.snapshot, only_marked=only_marked)
    nodes, budgets = tuple(views), Coverage(problem.snapshot.disruption_budgets)
    bought_for = _bought_for(nodes)
    surged = _surged(problem.snapshot, budgets)
    moving = [
        problem.snapshot.successor(pod)
        for view in nodes
        if view.is_leaving
        for pod in view.pods
        if pod.spec.node_name and pod.key not in surged and must_move(pod, budgets, problem.snapshot.now)
        # A candidate's pods run well until the command retires it. They are planned only to keep their next place.
        if not view.is_candidate or pod.key in bought_for.get(view.claim, ())
    ]
    return tuple(sorted((*waiting, *moving), key=lambda pod: pod.key))


def staying_with_their_nodes(snapshot: Snapshot) -> Iterator[tuple[Pod, str]]:
    """The pods of nodes that are leaving which would need another node and are not planned, and why not, for people."""
    budgets = Coverage(snapshot.disruption_budgets)
    surged = _surged(snapshot, budgets)
    for pod in (pod for view in snapshot.views if view.is_leaving and not view.is_candidate for pod in view.pods):
        if not pod.spec.node_name or not is_reschedulable(pod):
            continue
        if pod.key in surged:
            yield pod, "a rollout of the Deployment replaces it"
        elif not must_move(pod, budgets, snapshot.now):
            named = ", ".join(budget.metadata.name for budget in budgets.of(pod))
            protected = f"{DO_NOT_DISRUPT} forbids the eviction"
            yield pod, protected if is_protected(pod, snapshot.now) else f"no eviction is ever allowed by {named}"


def _surged(snapshot: Snapshot, budgets: Coverage) -> frozenset[str]:
    """The pods that a rollout replaces."""
    return all_surged_pods(snapshot) | _kept_until_succeeded(snapshot, budgets)


def _kept_until_succeeded(snapshot: Snapshot, budgets: Coverage) -> frozenset[str]:
    """The pods that a budget keeps where they are until the rollout ends them: a successor of each is on its way.

    With the setting ``SurgeSingleReplicas`` lifecycle has begun that rollout. Its claim may not remember it yet.
    """
    if not snapshot.disruption_budgets:
        return frozenset()
    return frozenset(pod.key for pod in last_old_pods(snapshot) if budgets.answer(pod).refusal)


def _bought_for(views: Iterable[NodeView]) -> Mapping[str, set[str]]:
    """By the name of a candidate's claim, the pods (namespace/name) that its replacements were bought for."""
    pods: dict[str, set[str]] = defaultdict(set)
    for view in views:
        if not view.is_leaving:
            for claim in view.replaces:
                pods[claim].update(view.planned)
    return pods


def without(views: Iterable[NodeView], planned: frozenset[str]) -> tuple[NodeView, ...]:
    """Nodes without the pods that are planned anew: those that must move, and those nominated for a node that is going.

    A pod that stays on a node that is going runs and counts until it is gone, as the scheduler counts it.
    """
    return tuple(
        replace(view, pods=tuple(pod for pod in view.pods if pod.key not in planned))
        if not planned.isdisjoint(view.derived(keys))
        else view
        for view in views
    )


def must_move(pod: Pod, budgets: Coverage, now: datetime) -> bool:
    """Currently reschedulable: not protected, and not behind a budget that never lets go.

    A pod that is on its way out needs no eviction, so neither keeps it, and a StatefulSet makes it anew elsewhere.
    """
    if not is_reschedulable(pod) or is_terminating(pod):
        return is_reschedulable(pod)
    return not is_protected(pod, now) and not _is_blocked(pod, budgets)


def _is_blocked(pod: Pod, budgets: Coverage) -> bool:
    """Whether no eviction will ever be granted.

    A pod that tolerates the taint of nodes that go is not evicted: it ends with its node.
    """
    if first_untolerated(pod.spec.tolerations, (_DISRUPTED,)) is None:
        return False
    return budgets.answer(pod).is_lasting
