"""The drain: which pods of a node that goes are asked to leave now, which are made to, and which are waited for.

Pods go in tiers, so that what others depend on goes last: ordinary pods, then DaemonSets', then critical ones. Only the
first tier that still has pods is asked. A pod that must not be disrupted is never asked, but is waited for; a pod whose
own grace would outlast the node's deadline is deleted outright, whatever its tier (Karpenter `Terminator.Drain`).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from joinery.apis.core import Pod
from joinery.scheduling.constraints.taints import tolerates
from joinery.state.pods import is_daemon, is_mirror, is_protected, is_terminal, is_terminating
from joinery.termination.taint import DISRUPTED

#: A pod that long past its deletion is the node's fault; nobody waits for it any more.
STUCK = timedelta(seconds=60)
_CRITICAL = ("system-cluster-critical", "system-node-critical")


@dataclass(frozen=True, slots=True)
class Drain:
    """One pass. ``waiting``: all pods that keep the node. ``evict`` and ``force`` are among them."""

    waiting: tuple[Pod, ...]
    evict: tuple[Pod, ...]
    force: tuple[Pod, ...]


def plan_drain(pods: Iterable[Pod], *, now: datetime, deadline: datetime | None) -> Drain:
    """What to do about the pods bound to a node."""
    waiting = tuple(pod for pod in pods if is_drainable(pod, now))
    force = tuple(pod for pod in waiting if _is_past(pod, now, deadline))
    graceful = [pod for pod in waiting if not _is_past(pod, now, deadline)]
    first = min((_tier(pod) for pod in graceful), default=None)
    evict = tuple(p for p in graceful if _tier(p) == first and not is_terminating(p) and not is_protected(p, now))
    return Drain(waiting, evict, force)


def is_drainable(pod: Pod, now: datetime) -> bool:
    """Whether the drain waits for the pod: it is alive, and would not rather stay."""
    gone_at = pod.metadata.deletion_timestamp
    is_stuck = gone_at is not None and now - gone_at > STUCK
    stays = any(tolerates(toleration, DISRUPTED) for toleration in pod.spec.tolerations)
    return not (is_terminal(pod) or is_mirror(pod) or is_stuck or stays)


def grace(now: datetime, deadline: datetime) -> int:
    """The seconds a pod gets at the deadline: what is left, never zero, which would break at-most-one semantics."""
    return max(1, int((deadline - now).total_seconds()))


def _is_past(pod: Pod, now: datetime, deadline: datetime | None) -> bool:
    """Whether its own grace would outlast the deadline."""
    if deadline is None:
        return False
    gone_at, own = pod.metadata.deletion_timestamp, pod.spec.termination_grace_period_seconds
    if gone_at is not None:
        return gone_at > deadline
    return own is not None and now > deadline - timedelta(seconds=own)


def _tier(pod: Pod) -> tuple[bool, bool]:
    return pod.spec.priority_class_name in _CRITICAL, is_daemon(pod)
