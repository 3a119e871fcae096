"""Whether nodes may be disrupted now (Karpenter `ValidateNodeDisruptable`, `ValidatePodsDisruptable`).

It is checked twice: when candidates are chosen (``disruption.candidates``, ``disruption.static_drift``), and just
before they are retired. Minutes pass in between, until their replacements are ready. Meanwhile a pod may have come that
must not be disrupted, a PodDisruptionBudget may have been used up, or somebody may have stopped all disruption. And a
pod may have been bound just before the taint came, for which nobody has looked for a place (``newcomer``).
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from joinery.decisions.scheduling.constraints.budgets import Coverage
from joinery.decisions.termination.drain import is_drainable
from joinery.objects.karpenter.disruption import VOLUNTARY, DisruptionReason, stop_in_force
from joinery.objects.karpenter.labels import DO_NOT_DISRUPT
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Pod
from joinery.objects.objections import Objection, ObjectionCode
from joinery.objects.snapshot.claims import DRIFTED
from joinery.objects.snapshot.pods import bound_at, is_active, is_protected, is_reschedulable
from joinery.objects.snapshot.snapshot import Snapshot


class DisruptionCheck:
    """The check of claims in one snapshot. Many are asked about, so its pods are sorted by their nodes once.

    The rules are those by which Karpenter chooses candidates (disruption controller, `NewCandidate`).
    """

    def __init__(self, snapshot: Snapshot, *, heeds_stop: bool = True) -> None:
        """``heeds_stop``: False for asking what would be done if nobody had stopped disruption."""
        self._now = snapshot.now
        self._stop = stop_in_force(snapshot.node_pools, snapshot.now) if heeds_stop else None
        self._nodes = {node.metadata.name: node for node in snapshot.nodes}
        self._names = {node.spec.provider_id: node.metadata.name for node in snapshot.nodes if node.spec.provider_id}
        self._pods: dict[str, list[Pod]] = defaultdict(list)
        for pod in snapshot.pods:
            self._pods[pod.spec.node_name].append(pod)
        self._budgets = Coverage(snapshot.disruption_budgets)

    def objection(self, candidates: Iterable[NodeClaim], reason: DisruptionReason) -> Objection | None:
        """The first reason why these claims may not be retired now.

        Pods do not stop drift where the claim has a ``terminationGracePeriod``, because that promises that its node can
        be replaced. That is said of drifted nodes, and not of others that go along with them.
        """
        return next(self._objections([claim for claim in candidates if self._node_of(claim)], reason), None)

    def newcomer(self, candidates: Iterable[NodeClaim], since: datetime) -> Objection | None:
        """A pod that has come to one of these claims' nodes since that moment and would need another place.

        It came after the decision, and before the taint that keeps others away. Nobody has looked for a place for it.
        """
        nodes = [name for claim in candidates if (name := self._node_of(claim))]
        pods = (pod for name in nodes for pod in self._pods.get(name, ()) if is_active(pod) and is_reschedulable(pod))
        # The API server's moments are whole seconds.
        begun = since.replace(microsecond=0)
        newcomer = next((pod for pod in pods if (at := bound_at(pod)) is not None and at >= begun), None)
        if newcomer is None:
            return None
        return Objection(ObjectionCode.POD, f"pod {newcomer.key} has come to it meanwhile")

    def _node_of(self, claim: NodeClaim) -> str:
        """The Node's name. A claim from a file may have its instance only."""
        return claim.status.node_name or self._names.get(claim.status.provider_id, "")

    def _objections(self, candidates: Sequence[NodeClaim], reason: DisruptionReason) -> Iterator[Objection]:
        if self._stop and reason in VOLUNTARY:
            yield self._stop
        for claim in candidates:
            node = self._nodes.get(self._node_of(claim))
            if node is not None and node.metadata.annotations.get(DO_NOT_DISRUPT) == "true":
                message = f"node {node.metadata.name} has the annotation {DO_NOT_DISRUPT}"
                yield Objection(ObjectionCode.DO_NOT_DISRUPT, message)
        is_drift = reason is DisruptionReason.DRIFTED
        watched = [
            claim
            for claim in candidates
            if not (is_drift and claim.is_true(DRIFTED) and claim.spec.termination_grace_period)
        ]
        # A pod that ends by itself is let go. One that tolerates the taint is not evicted, so no budget counts.
        # But it ends with the node, so its annotation does.
        listed = (pod for claim in watched for pod in self._pods.get(self._node_of(claim), ()))
        pods = [pod for pod in listed if is_active(pod)]
        for pod in pods:
            if is_protected(pod, self._now):
                yield Objection(ObjectionCode.POD, f"pod {pod.key} must not be disrupted")
        for pod in pods:
            # Karpenter `pdb.Limits.CanEvictPods`.
            if is_drainable(pod, self._now) and (refusal := self._budgets.answer(pod).refusal):
                yield Objection(ObjectionCode.POD_DISRUPTION_BUDGET, refusal)
