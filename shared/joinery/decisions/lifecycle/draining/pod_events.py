"""Events for the pods on a node that goes: what happens to the node, why and by when, and whether they may stay.

Each pod gets an Event of its own, because its owner looks at the pod and not at the node. That may be thousands of
requests, so they are sent once for each node, in the step that taints it; the controller sends them after everything
else, and a bounded number in a run. Those about ``karpenter.sh/do-not-disrupt`` are sent for as long as the node is
drained; the recorder drops those that it sent a moment ago.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from joinery.decisions.lifecycle.state.cluster import ClusterState
from joinery.decisions.termination.drain import is_drainable
from joinery.decisions.termination.taint import disrupted
from joinery.objects.actions import Announce
from joinery.objects.annotations.drain_start import SCHEDULED_CHANGE, drains_at
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.karpenter.labels import (
    CAPACITY_TYPE,
    DO_NOT_DISRUPT,
    INTERRUPTED_AT,
    RETIRED_FOR,
    SPOT,
    TERMINATION_TIMESTAMP,
)
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Node, Pod
from joinery.objects.snapshot.claims import moment
from joinery.objects.snapshot.pods import go_duration, is_reschedulable
from joinery.objects.wording import rfc3339

#: How long EC2 leaves a spot instance after its warning (EC2 User Guide, "Spot Instance interruption notices").
_SPOT_NOTICE = timedelta(minutes=2)
_WHY = {
    DisruptionReason.EMPTY: "nothing runs on it",
    DisruptionReason.UNDERUTILIZED: "its pods fit on cheaper nodes",
    DisruptionReason.DRIFTED: "it is not as its NodePool or node class wants it any more",
    DisruptionReason.EXPIRED: "it is older than its expireAfter",
    DisruptionReason.REBALANCE: "EC2 may soon take its instance away",
    DisruptionReason.UNHEALTHY: "it is unhealthy",
    DisruptionReason.ABANDONED: "it was bought for pods that stay where they are",
}


def pod_events(state: ClusterState, claim: NodeClaim | None, node: Node) -> tuple[Announce, ...]:
    """The Events for the pods on a node that goes. ``claim``: its claim, None if that is gone already."""
    pods = [pod for pod in state.pods_on(node) if is_drainable(pod, state.snapshot.now)]
    return (*_leaving(state, claim, node, pods), *_protected(pods, state.snapshot.now))


def _leaving(state: ClusterState, claim: NodeClaim | None, node: Node, pods: Iterable[Pod]) -> Iterable[Announce]:
    is_closed = node.metadata.deletion_timestamp is not None and disrupted(node) == node
    if is_closed:
        return  # they got an Event when it was
    text = f"its node {node.metadata.name} goes: {_why(state, claim)}; {_when(state, claim, node)}"
    for pod in pods:
        if is_reschedulable(pod):
            yield Announce("NodeLeaving", text, pod)


def _why(state: ClusterState, claim: NodeClaim | None) -> str:
    if claim is None:
        return "the Node is being deleted"
    if INTERRUPTED_AT in claim.metadata.annotations:
        return "EC2 takes its instance away"
    if state.is_gone(claim):
        return "its instance is gone"
    reason = claim.metadata.annotations.get(RETIRED_FOR, "")
    if reason == SCHEDULED_CHANGE:
        return "EC2 has scheduled a change of its instance"
    return _WHY[DisruptionReason(reason)] if reason in {*DisruptionReason} else "its NodeClaim is deleted"


def _when(state: ClusterState, claim: NodeClaim | None, node: Node) -> str:
    at = drains_at(claim, state.pods_on(node)) if claim is not None else state.snapshot.now
    evicted = "the pod stays until it has another place" + (f", until {rfc3339(at)} at the latest" if at else "")
    gone = _gone_by(claim) if claim is not None else None
    return f"{evicted}; the node is gone by {rfc3339(gone)}" if gone else evicted


def _gone_by(claim: NodeClaim) -> datetime | None:
    """When the node will be gone whatever its pods do; None if nobody knows."""
    annotations = claim.metadata.annotations
    warned, deadline = (moment(annotations.get(key, "")) for key in (INTERRUPTED_AT, TERMINATION_TIMESTAMP))
    is_spot = claim.metadata.labels.get(CAPACITY_TYPE) == SPOT
    ends = (warned + _SPOT_NOTICE if warned and is_spot else None, deadline)
    return min((end for end in ends if end is not None), default=None)


def _protected(pods: Iterable[Pod], now: datetime) -> Iterable[Announce]:
    """What ``karpenter.sh/do-not-disrupt`` does for the pods that carry it, unless it is simply ``true``."""
    for pod in pods:
        value = pod.metadata.annotations.get(DO_NOT_DISRUPT)
        if value is None or value == "true":
            continue
        lasts = go_duration(value)
        if lasts is None or lasts <= timedelta(0):
            text = f'{DO_NOT_DISRUPT}: "{value}" is neither "true" nor a duration such as "1h30m": it protects nothing'
            yield Announce("InvalidDoNotDisruptAnnotation", text, pod)
        elif pod.status.start_time is not None and now - pod.status.start_time < lasts:
            # A kubelet may write any moment: from one that is to come, the end cannot be computed.
            until = min(pod.status.start_time, now) + lasts
            text = f"{DO_NOT_DISRUPT} keeps it on its node until {rfc3339(until)}"
            yield Announce("DoNotDisruptUntil", text, pod)
