"""Surge before evict, for all nodes of a run: whose successor comes first, how, and until when that is waited for.

A pod asks for it with the annotation ``joinery.dev/surge-before-eviction: "true"``. By a setting the only replica of a
Deployment is treated alike while its disruption budget allows no eviction, unless its annotation says ``"false"``.

Such a pod is not evicted for now. Its Deployment is restarted (``termination.surge``). Where that cannot be, the pod
stays until the node that was bought for it is ready. A StatefulSet's pod cannot have a successor beside it, because
both would have one name: it is evicted like any other, and its Event says so. The node's deadline and EC2's warning of
two minutes end all waiting.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from joinery.decisions.lifecycle.state.cluster import ClusterState
from joinery.decisions.lifecycle.state.replacement import may_drain
from joinery.decisions.scheduling.constraints.budgets import Coverage
from joinery.decisions.termination.drain import is_drainable
from joinery.decisions.termination.surge import (
    REPLICA_SET,
    Obstacle,
    Owners,
    Progress,
    Surge,
    assess,
    owner_of_kind,
    restarted,
)
from joinery.objects.actions import Announce, RestartDeployment
from joinery.objects.annotations.drain_start import USUAL_GRACE, deadline, is_retired
from joinery.objects.annotations.plans import planned_pods
from joinery.objects.annotations.surged import remembered, surged_pods
from joinery.objects.karpenter.labels import INTERRUPTED_AT, REPLACEMENT_LAUNCHED, SURGE_BEFORE_EVICTION
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Node, Pod
from joinery.objects.kubernetes.rollouts import Deployment
from joinery.objects.snapshot.claims import INITIALIZED, REGISTERED, annotated, moment
from joinery.objects.snapshot.pods import comes_with_node, is_protected, is_terminating, own_grace
from joinery.objects.wording import rfc3339

#: How long after its warning EC2 takes a spot instance, less the time that the warning takes to reach us
#: (EC2 User Guide, "Spot Instance interruption notices").
WARNING = timedelta(minutes=2) - timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class LeavingPod:
    """A pod that may have to surge, and the claim of its node. ``asks``: by its annotation, and not by the setting."""

    pod: Pod
    claim: NodeClaim
    asks: bool


def leaving_pods(state: ClusterState, *, single_replicas: bool) -> tuple[LeavingPod, ...]:
    """The pods whose owners have to be read, by name. ``single_replicas``: the setting."""
    budgets = Coverage(state.snapshot.disruption_budgets)
    listed = [
        leaving
        for claim in state.snapshot.managed_claims
        if claim.is_deleting and claim.is_true(REGISTERED)
        for node in state.nodes_of(claim)[:1]
        for leaving in _of_node(state, claim, node, budgets if single_replicas else None)
    ]
    return tuple(sorted(listed, key=lambda leaving: leaving.pod.key))


def surges(state: ClusterState, listed: Iterable[LeavingPod], owners: Mapping[str, Owners]) -> dict[str, Surge]:
    """What becomes of the pods, by namespace/name. ``owners``: of each, by the same."""
    claims_of = _claims_by_planned_pod(state) if listed else {}
    restarting: set[str] = set()
    decided = {}
    for leaving in listed:
        pod, owned_by = leaving.pod, owners[leaving.pod.key]
        if not leaving.asks and not (owned_by.deployment is not None and owned_by.deployment.spec.replicas == 1):
            continue
        has_capacity = _has_capacity(leaving.claim, claims_of[pod.key])
        surge = _surge(leaving, owned_by, has_capacity, state.snapshot.now)
        if surge.restart is not None:
            # The first of a Deployment's pods restarts it for all of them.
            uid = surge.restart.before.metadata.uid
            if uid in restarting:
                surge = Surge(surge.event, is_replaced=True)
            restarting.add(uid)
        decided[pod.key] = surge
    return decided


def begun(
    state: ClusterState, claim: NodeClaim, pods: Iterable[Pod]
) -> tuple[tuple[RestartDeployment, ...], NodeClaim]:
    """The restarts for the pods of a leaving claim's node, and the claim that remembers whom they replace.

    The restarts belong right before the claim in its chain: a claim must not remember what was refused.
    """
    decided = {pod.key: state.surges[pod.key] for pod in pods if pod.key in state.surges}
    restarts = tuple(surge.restart for surge in decided.values() if surge.restart is not None)
    before = surged_pods(claim)
    after = before | {key for key, surge in decided.items() if surge.is_replaced}
    return restarts, annotated(claim, remembered(after)) if after != before else claim


def surge_events(state: ClusterState, pods: Iterable[Pod]) -> tuple[Announce, ...]:
    """Events for the pods of a node that goes, about their successors."""
    return tuple(state.surges[pod.key].event for pod in pods if pod.key in state.surges)


def _of_node(state: ClusterState, claim: NodeClaim, node: Node, budgets: Coverage | None) -> Iterator[LeavingPod]:
    """``budgets``: None where single replicas do not surge unless they ask for it."""
    pods, now = state.pods_on(node), state.snapshot.now
    # Who is retired though nothing forces us keeps its pods until EC2 has accepted what replaces it.
    if is_retired(claim) and not may_drain(claim, pods, now):
        return
    for pod in pods:
        wish = pod.metadata.annotations.get(SURGE_BEFORE_EVICTION, "")
        asks = wish == "true"
        if not is_drainable(pod, now) or is_terminating(pod) or comes_with_node(pod) or is_protected(pod, now):
            continue
        if asks or (budgets and wish != "false" and _is_kept_by_budget(pod, budgets)):
            yield LeavingPod(pod, claim, asks)


def _is_kept_by_budget(pod: Pod, budgets: Coverage) -> bool:
    """Whether it is a ReplicaSet's and its disruption budgets refuse its eviction now."""
    if owner_of_kind(pod.metadata.owner_references, REPLICA_SET) is None:
        return False
    return bool(budgets.answer(pod).refusal)


def _surge(leaving: LeavingPod, owners: Owners, has_capacity: bool, now: datetime) -> Surge:
    pod, claim = leaving.pod, leaving.claim
    progress = assess(pod, owners, pod.key in surged_pods(claim))
    until = _until(claim, pod)
    limit = f", at the latest until {rfc3339(until)}" if until else ""
    if progress is Obstacle.NOT_A_DEPLOYMENT:
        return Surge(_impossible(pod, f"{progress}; it is evicted like any other pod"), is_kept=False)
    if until is not None and now >= until:
        text = "its node must go, so it is evicted although its successor is not Ready"
        return Surge(Announce("SurgeTimedOut", text, pod), is_kept=False)
    if isinstance(progress, Obstacle):
        text = f"{progress}; it stays until another node is ready for it{limit}"
        return Surge(_impossible(pod, text), is_kept=not has_capacity)
    if owners.deployment is None:
        text = f"the API server did not say how its Deployment stands; it stays until its successor is Ready{limit}"
        return Surge(Announce("AwaitingSuccessor", text, pod))
    return _rolling(pod, owners.deployment, progress, limit, now)


def _rolling(pod: Pod, deployment: Deployment, progress: Progress, limit: str, now: datetime) -> Surge:
    name = deployment.metadata.name
    text = f"a rollout of Deployment {name} brings its successor, and it stays until that is Ready{limit}"
    event = Announce("AwaitingSuccessor", text, pod)
    if progress is not Progress.TO_BEGIN:
        return Surge(event, is_replaced=progress is Progress.BEGUN)
    why = f"the successor of {pod.key} is to be Ready before its node goes"
    return Surge(event, RestartDeployment(deployment, restarted(deployment, now), pod, why), is_replaced=True)


def _impossible(pod: Pod, text: str) -> Announce:
    return Announce("CannotSurge", f"its successor cannot come before it is evicted: {text}", pod)


def _until(claim: NodeClaim, pod: Pod) -> datetime | None:
    """Until when the pod may be kept, so that it can still end in its own time; None if nothing presses."""
    warned = moment(claim.metadata.annotations.get(INTERRUPTED_AT, ""))
    ends = [at for at in (deadline(claim), warned + WARNING if warned else None) if at is not None]
    grace = own_grace(pod)
    return min(ends) - (USUAL_GRACE if grace is None else grace) if ends else None


def _claims_by_planned_pod(state: ClusterState) -> Mapping[str, list[NodeClaim]]:
    claims: dict[str, list[NodeClaim]] = defaultdict(list)
    for claim in state.snapshot.managed_claims:
        if not claim.is_deleting:
            for name in planned_pods(claim):
                claims[name].append(claim)
    return claims


def _has_capacity(claim: NodeClaim, bought_for_it: Collection[NodeClaim]) -> bool:
    """Whether the pod's next node is ready: the one that was bought for it, or one that had room for it anyway."""
    is_placed = REPLACEMENT_LAUNCHED in claim.metadata.annotations
    return is_placed and all(bought.is_true(INITIALIZED) for bought in bought_for_it)
