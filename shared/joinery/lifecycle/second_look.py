"""The second look: whether a disruption command is still right, just before its candidates are retired.

Minutes pass between the decision and the moment when its replacements are ready. A pod may have come that must not be
disrupted, or a disruption budget may have been used up. Whoever chooses candidates asks the same beforehand
(``disruption.static_drift``), so that no replacement is bought in vain.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from joinery.apis.core import Pod, PodDisruptionBudget
from joinery.apis.disruption import DisruptionReason
from joinery.apis.labels import DO_NOT_DISRUPT
from joinery.apis.nodeclaim import NodeClaim
from joinery.scheduling.constraints.budgets import covering
from joinery.state.pods import is_active, is_protected
from joinery.state.snapshot import Snapshot
from joinery.termination.drain import is_drainable


class SecondLook:
    """Looks at candidates in one snapshot. Many are asked about, so its pods are sorted by their nodes once.

    The rules are those by which Karpenter chooses candidates (disruption controller, `NewCandidate`).
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._now = snapshot.now
        self._nodes = {node.metadata.name: node for node in snapshot.nodes}
        self._pods: dict[str, list[Pod]] = defaultdict(list)
        for pod in snapshot.pods:
            self._pods[pod.spec.node_name].append(pod)
        self._budgets: dict[str, list[PodDisruptionBudget]] = defaultdict(list)
        for budget in snapshot.disruption_budgets:
            self._budgets[budget.metadata.namespace].append(budget)

    def objection(self, candidates: Iterable[NodeClaim], reason: DisruptionReason) -> str:
        """Why these claims may not be retired now, in words for an Event; empty if they may.

        Pods do not stop drift where the claim has a ``terminationGracePeriod``, because that promises that its node can
        be replaced.
        """
        return next(self._objections([claim for claim in candidates if claim.status.node_name], reason), "")

    def _objections(self, candidates: Sequence[NodeClaim], reason: DisruptionReason) -> Iterator[str]:
        for claim in candidates:
            node = self._nodes.get(claim.status.node_name)
            if node is not None and node.metadata.annotations.get(DO_NOT_DISRUPT) == "true":
                yield f"node {node.metadata.name} has the annotation {DO_NOT_DISRUPT}"
        is_drift = reason is DisruptionReason.DRIFTED
        watched = [claim for claim in candidates if not (is_drift and claim.spec.termination_grace_period)]
        # A pod that ends by itself is let go. One that tolerates the taint is not evicted, so no budget counts.
        # But it ends with the node, so its annotation does.
        listed = (pod for claim in watched for pod in self._pods.get(claim.status.node_name, ()))
        pods = [pod for pod in listed if is_active(pod)]
        yield from (f"pod {pod.key} must not be disrupted" for pod in pods if is_protected(pod, self._now))
        yield from self._budget_objections(pod for pod in pods if is_drainable(pod, self._now))

    def _budget_objections(self, pods: Iterable[Pod]) -> Iterator[str]:
        """The pods that no eviction would be granted for now (Karpenter `pdb.Limits.CanEvictPods`)."""
        for pod in pods:
            matching = covering(self._budgets.get(pod.metadata.namespace, ()), pod)
            if len(matching) > 1:
                # The eviction API refuses such a pod whatever the budgets say.
                yield f"pod {pod.key} has more than one PodDisruptionBudget"
            for budget in matching:
                is_let_go = budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow" and _is_unready(pod)
                if budget.status.disruptions_allowed <= 0 and not is_let_go:
                    yield f"PodDisruptionBudget {budget.metadata.name} allows no eviction of pod {pod.key} now"


def _is_unready(pod: Pod) -> bool:
    return any(condition.type == "Ready" and condition.status == "False" for condition in pod.status.conditions)
