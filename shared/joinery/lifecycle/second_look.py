"""The second look: whether a disruption command is still right, just before its candidates are retired.

Minutes pass between the decision and the moment when its replacements are ready. A pod may have come that must not be
disrupted, or a disruption budget may have been used up. A look is a pure function of the snapshot and the command. It
returns why the command must not go on, in words for an Event, or nothing. ``standard_look`` is the one that lifecycle
uses; a door that decides more carefully combines it with its own (``lifecycle.view.view_of``).
"""

from collections.abc import Callable, Iterable, Iterator

from joinery.apis.core import Pod
from joinery.apis.disruption import DisruptionReason
from joinery.apis.labels import DO_NOT_DISRUPT
from joinery.scheduling.constraints.budgets import covering
from joinery.state.disruption import DisruptionCommand, Readiness
from joinery.state.pods import is_protected
from joinery.state.snapshot import Snapshot
from joinery.termination.drain import is_drainable

Look = Callable[[Snapshot, DisruptionCommand], str]


def standard_look(snapshot: Snapshot, command: DisruptionCommand) -> str:
    """Why the candidates may not be retired now; empty if they may.

    The rules are those by which Karpenter chooses candidates (disruption controller, `NewCandidate`). Nothing stops a
    forced command: its nodes go all the same. Pods do not stop drift where the claim has a ``terminationGracePeriod``,
    because that promises that its node can be replaced.
    """
    if command.record.waits_for is Readiness.LAUNCHED:
        return ""
    return next(_objections(snapshot, command), "")


def _objections(snapshot: Snapshot, command: DisruptionCommand) -> Iterator[str]:
    names = {claim.status.node_name for claim in command.candidates}
    for node in snapshot.nodes:
        if node.metadata.name in names and node.metadata.annotations.get(DO_NOT_DISRUPT) == "true":
            yield f"node {node.metadata.name} has the annotation {DO_NOT_DISRUPT}"
    is_drift = command.record.reason is DisruptionReason.DRIFTED
    promised = {claim.status.node_name for claim in command.candidates if claim.spec.termination_grace_period}
    watched = names - promised if is_drift else names
    pods = [pod for pod in snapshot.pods if pod.spec.node_name in watched and is_drainable(pod, snapshot.now)]
    yield from (f"pod {pod.key} must not be disrupted" for pod in pods if is_protected(pod, snapshot.now))
    yield from _budget_objections(pods, snapshot)


def _budget_objections(pods: Iterable[Pod], snapshot: Snapshot) -> Iterator[str]:
    """The pods that no eviction would be granted for now (Karpenter `pdb.Limits.CanEvictPods`)."""
    for pod in pods:
        matching = covering(snapshot.disruption_budgets, pod)
        if len(matching) > 1:
            # The eviction API refuses such a pod whatever the budgets say.
            yield f"pod {pod.key} has more than one PodDisruptionBudget"
        for budget in matching:
            is_let_go = budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow" and _is_unready(pod)
            if budget.status.disruptions_allowed <= 0 and not is_let_go:
                yield f"PodDisruptionBudget {budget.metadata.name} allows no eviction of pod {pod.key} now"


def _is_unready(pod: Pod) -> bool:
    return any(condition.type == "Ready" and condition.status == "False" for condition in pod.status.conditions)
