"""The drain: which pods of a node that goes are evicted now, which are deleted, and which are waited for.

Pods go in tiers, so that what others depend on goes last: ordinary pods, then DaemonSets', then critical ones. Only the
first tier that still has pods is evicted. A pod that must not be disrupted is never evicted, but the drain waits for
it. A pod whose own grace would outlast the node's deadline is deleted outright, whatever its tier (Karpenter
`Terminator.Drain`).

An instance is terminated only once the volumes of its drained pods are detached. Otherwise the pods that use them next
would wait six minutes, until Kubernetes detaches by force. Joinery only waits for it: the attach-detach controller does
the work (Karpenter node termination, VolumesDetached).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from joinery.decisions.scheduling.constraints.taints import tolerates
from joinery.decisions.termination.taint import DISRUPTED
from joinery.objects.annotations.drain_start import USUAL_GRACE
from joinery.objects.kubernetes.core import Pod
from joinery.objects.snapshot.pods import (
    comes_with_node,
    is_mirror,
    is_protected,
    is_terminal,
    is_terminating,
    own_grace,
)
from joinery.objects.snapshot.snapshot import Snapshot

#: A pod that should have been gone for so long is stuck, because its kubelet does not answer. The drain does not wait
#: for it.
STUCK = timedelta(seconds=60)
_CRITICAL = ("system-cluster-critical", "system-node-critical")


@dataclass(frozen=True, slots=True)
class Drain:
    """One pass over the pods of a node.

    ``waiting``: all pods for which the node is kept. Of these, ``evict``: those to ask now, through the eviction API.
    ``force``: those to delete past every budget, because the deadline comes.
    """

    waiting: tuple[Pod, ...]
    evict: tuple[Pod, ...]
    force: tuple[Pod, ...]


def plan_drain(pods: Iterable[Pod], *, now: datetime, deadline: datetime | None) -> Drain:
    """What to do about the pods bound to a node. ``deadline``: when the node must be gone, None if it has time."""
    waiting = tuple(pod for pod in pods if is_drainable(pod, now))
    force = tuple(pod for pod in waiting if _is_past(pod, now, deadline))
    graceful = [pod for pod in waiting if not _is_past(pod, now, deadline)]
    first_tier = min((_tier(pod) for pod in graceful), default=None)
    evict = tuple(pod for pod in graceful if _tier(pod) == first_tier and _is_evictable(pod, now))
    return Drain(waiting, evict, force)


def _is_evictable(pod: Pod, now: datetime) -> bool:
    return not is_terminating(pod) and not is_protected(pod, now)


def is_drainable(pod: Pod, now: datetime) -> bool:
    """Whether the drain waits for the pod: it is alive, and does not tolerate the taint of a node that goes."""
    gone_at = pod.metadata.deletion_timestamp
    is_stuck = gone_at is not None and now - gone_at > STUCK
    may_stay = any(tolerates(toleration, DISRUPTED) for toleration in pod.spec.tolerations)
    return not (is_terminal(pod) or is_mirror(pod) or is_stuck or may_stay)


def grace(now: datetime, deadline: datetime) -> int:
    """The seconds of grace that a pod gets when the deadline comes: what is left of the time, but at least one.

    With zero the API server would remove the pod while its containers run on, and a StatefulSet would have it twice.
    """
    return max(1, int((deadline - now).total_seconds()))


def _is_past(pod: Pod, now: datetime, deadline: datetime | None) -> bool:
    """Whether the pod's own grace would outlast the deadline."""
    if deadline is None:
        return False
    gone_at, own = pod.metadata.deletion_timestamp, own_grace(pod)
    if gone_at is not None:
        return gone_at > deadline
    return now > deadline - (USUAL_GRACE if own is None else own)


def _tier(pod: Pod) -> tuple[bool, bool]:
    # False sorts before True: ordinary pods, then DaemonSets', then critical ones.
    return pod.spec.priority_class_name in _CRITICAL, comes_with_node(pod)


def blocking_volumes(snapshot: Snapshot, node_name: str, pods: Iterable[Pod]) -> tuple[str, ...]:
    """The names of the volumes that are still attached to the node and have to go. ``pods``: those bound to it.

    A volume of a pod that stays until the node's end may stay as well. A pod that is finished holds none.
    """
    staying = [pod for pod in pods if not (is_terminal(pod) or is_drainable(pod, snapshot.now))]
    kept = _volumes_of(snapshot, staying)
    attached = {
        attachment.spec.source.persistent_volume_name
        for attachment in snapshot.volume_attachments
        if attachment.spec.node_name == node_name
    }
    return tuple(sorted(attached - kept - {""}))


def _volumes_of(snapshot: Snapshot, pods: Iterable[Pod]) -> set[str]:
    claims = {(pod.metadata.namespace, name) for pod in pods for name in _claims_of(pod)}
    return {
        claim.spec.volume_name
        for claim in snapshot.volume_claims
        if (claim.metadata.namespace, claim.metadata.name) in claims
    }


def _claims_of(pod: Pod) -> Iterable[str]:
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield volume.persistent_volume_claim.claim_name
        elif volume.ephemeral is not None:
            yield f"{pod.metadata.name}-{volume.name}"
