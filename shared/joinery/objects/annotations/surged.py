"""Which pods of leaving claims are replaced by a rollout of their Deployment.

The rollout makes their successors, which are pods with names of their own and wait for a node like any other. So plans
find no other node for the pods that are replaced; otherwise two would be bought for one.

Lifecycle restarts the Deployment, and then has the claim remember the pods. Whoever is stopped between the two writes
nothing down, so the successors count as well: a pod that asks for its successor is replaced once its Deployment has a
pod of a later restart. So is the last old pod of its Deployment, as long as a budget keeps it.
"""

import json
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime

from joinery.objects.karpenter.labels import RESTARTED_AT, SURGE_BEFORE_EVICTION, SURGED_PODS
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Pod
from joinery.objects.snapshot.claims import leaving_since, moment
from joinery.objects.snapshot.pods import is_active
from joinery.objects.snapshot.snapshot import Snapshot

_NEVER = datetime.min.replace(tzinfo=UTC)


def surged_pods(claim: NodeClaim) -> frozenset[str]:
    """The pods (namespace/name) that one claim remembers; none where the annotation cannot be read."""
    try:
        names = json.loads(claim.metadata.annotations.get(SURGED_PODS, "[]"))
    except (ValueError, RecursionError):
        return frozenset()
    return frozenset(map(str, names)) if isinstance(names, list) else frozenset()


def all_surged_pods(snapshot: Snapshot) -> frozenset[str]:
    """The pods of all claims that are leaving."""
    leaving = _leaving(snapshot)
    asking = [pod for pod in _pods_of(leaving, snapshot.pods) if _wants_surge(pod)]
    succeeded = (pod.key for pod in _with_successors(asking, snapshot.pods))
    return frozenset().union(*map(surged_pods, leaving), succeeded)


def last_old_pods(snapshot: Snapshot) -> tuple[Pod, ...]:
    """The pods of leaving nodes that are the last of their Deployment which a later restart has not replaced."""
    old = _with_successors(_pods_of(_leaving(snapshot), snapshot.pods), snapshot.pods)
    restarted_at = {_deployment(pod): _restarted_at(pod) for pod in old}
    numbers = Counter(
        deployment
        for pod in (snapshot.pods if old else ())
        if (deployment := _deployment(pod)) in restarted_at and is_active(pod)
        if _restarted_at(pod) <= restarted_at[deployment]
    )
    return tuple(pod for pod in old if numbers[_deployment(pod)] == 1)


def remembered(pods: Iterable[str]) -> dict[str, str]:
    """The annotation that remembers these pods."""
    return {SURGED_PODS: json.dumps(sorted(pods))}


def _leaving(snapshot: Snapshot) -> list[NodeClaim]:
    return [claim for claim in snapshot.node_claims if leaving_since(claim) is not None]


def _pods_of(leaving: Iterable[NodeClaim], pods: Iterable[Pod]) -> list[Pod]:
    nodes = {claim.status.node_name for claim in leaving} - {""}
    return [pod for pod in pods if pod.spec.node_name in nodes and _deployment(pod)[1]] if nodes else []


def _with_successors(old: Iterable[Pod], pods: Iterable[Pod]) -> list[Pod]:
    """Those of the ``old`` pods that have a successor by now: a later restart has made it."""
    latest = {_deployment(pod): _NEVER for pod in old}
    for pod in pods if latest else ():
        if RESTARTED_AT in pod.metadata.annotations and is_active(pod) and (key := _deployment(pod)) in latest:
            latest[key] = max(latest[key], _restarted_at(pod))
    return [pod for pod in old if _restarted_at(pod) < latest[_deployment(pod)]]


def _wants_surge(pod: Pod) -> bool:
    return pod.metadata.annotations.get(SURGE_BEFORE_EVICTION) == "true"


def _deployment(pod: Pod) -> tuple[str, str]:
    """Namespace and name of the pod's Deployment; no name where it has none.

    It is the name of the ReplicaSet without the hash of its template at the end (kube-controller-manager
    deployment/sync.go, ``getNewReplicaSet``).
    """
    owners = pod.metadata.owner_references
    replica_set = next((owner.name for owner in owners if owner.controller and owner.kind == "ReplicaSet"), "")
    return pod.metadata.namespace, replica_set.rpartition("-")[0]


def _restarted_at(pod: Pod) -> datetime:
    """When the rollout that made the pod was asked for, as ``kubectl rollout restart`` leaves it in the template."""
    return moment(pod.metadata.annotations.get(RESTARTED_AT, "")) or _NEVER
