"""How the nodes with a new image do: what ``lifecycle.pools.canary`` judges an image by.

Pods are compared with others of the same owner, so that a workload that fails everywhere accuses no image.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta

import msgspec

from joinery.objects.annotations.disruption import replaces_of
from joinery.objects.karpenter.labels import INTERRUPTED_AT, RAN_WELL
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Node, Pod
from joinery.objects.kubernetes.decoding import decode
from joinery.objects.snapshot.claims import INITIALIZED, moment
from joinery.objects.snapshot.nodes import nodes_by_provider_id
from joinery.objects.snapshot.pods import bound_at, is_active, is_reschedulable, owner_uid, owner_uids
from joinery.objects.snapshot.snapshot import Snapshot
from joinery.objects.wording import rfc3339

#: How long a node may take until it is fit for pods. A command waits for it ten minutes from its decision on
#: (``lifecycle.state.command_outlook``), and its claim is written a minute after that at the latest. So this is known
#: before the node is retired with the command that is rolled back.
READY_WITHIN = timedelta(minutes=9)
#: How long a node may be not ready: a kubelet that was started anew is ready again by then.
UNREADY_FOR = timedelta(minutes=2)
#: From how many restarts on a container is in a crash loop: one or two may be for a dependency that was not there yet.
CRASHES = 3
_CRASH_LOOP = "CrashLoopBackOff"


class NodeHealth:
    """The Nodes and pods of a snapshot, asked how a claim's node does."""

    def __init__(self, snapshot: Snapshot, soak: timedelta) -> None:
        self.now, self._soak = snapshot.now, soak
        self._nodes = nodes_by_provider_id(snapshot.nodes)
        self._pods: dict[str, list[Pod]] = defaultdict(list)
        self._by_owner: dict[str, list[Pod]] = defaultdict(list)
        for pod in snapshot.pods:
            if pod.spec.node_name and is_active(pod):
                self._pods[pod.spec.node_name].append(pod)
                self._by_owner[owner_uid(pod)].append(pod)

    def failure(self, claim: NodeClaim, with_image: Collection[str]) -> str | None:
        """What is wrong with the claim's node or its pods, as a sentence.

        ``with_image``: the names of all Nodes with its image.
        """
        name = claim.metadata.name
        if self._is_late(claim):
            return f"the node of {name} was not fit for pods within {READY_WITHIN}"
        node = self._node(claim)
        if node is None or claim.is_deleting or INTERRUPTED_AT in claim.metadata.annotations:
            return None
        since = _unready_since(node)
        if claim.is_true(INITIALIZED) and since is not None and self.now - since >= UNREADY_FOR:
            return f"node {node.metadata.name} of {name} is not ready since {rfc3339(since)}"
        for pod in self._pods[node.metadata.name]:
            what = self._complaint(pod)
            if what and self._ran_well(pod, claim, with_image):
                return f"pod {pod.key} {what} on node {node.metadata.name} of {name}, and ran well elsewhere"
        return None

    def runs_well(self, claim: NodeClaim, with_image: Collection[str]) -> bool:
        """Whether the node has run for the soak time, and its pods are ready, as far as they were elsewhere."""
        node, since = self._node(claim), self._soaks_since(claim)
        if node is None or since is None or self.now - since < self._soak:
            return False
        pods = self._pods[node.metadata.name]
        return all(_is_ready(pod) or not self._ran_well(pod, claim, with_image) for pod in pods)

    def _node(self, claim: NodeClaim) -> Node | None:
        nodes = self._nodes.get(claim.status.provider_id, ()) if claim.status.provider_id else ()
        return nodes[0] if nodes else None

    def _is_late(self, claim: NodeClaim) -> bool:
        """Whether it was not fit for pods in its time; one that EC2 or a person ended before that says nothing."""
        created = claim.metadata.creation_timestamp
        if created is None or claim.is_true(INITIALIZED):
            return False
        interrupted = moment(claim.metadata.annotations.get(INTERRUPTED_AT, ""))
        ended = min(filter(None, (claim.metadata.deletion_timestamp, interrupted)), default=self.now)
        return ended - created >= READY_WITHIN

    def _soaks_since(self, claim: NodeClaim) -> datetime | None:
        """Since when the node runs, with the pods that it was bought for; None if it does not yet.

        A replacement gets them while the node that it replaces is drained.
        """
        initialized, node = claim.condition(INITIALIZED), self._node(claim)
        if node is None or initialized is None or not claim.is_true(INITIALIZED) or _unready_since(node) is not None:
            return None
        since = [initialized.last_transition_time or claim.metadata.creation_timestamp, _ready_since(node)]
        if replaces_of(claim) is not None:
            arrivals = [bound_at(pod) for pod in self._pods[node.metadata.name] if is_reschedulable(pod)]
            if not arrivals:
                return None
            since.append(min(filter(None, arrivals), default=None))
        return max(filter(None, since), default=None)

    def _complaint(self, pod: Pod) -> str | None:
        """What is wrong with the pod."""
        statuses = (*pod.status.container_statuses, *pod.status.init_container_statuses)
        waiting = ((status, status.state.waiting) for status in statuses if status.state and status.state.waiting)
        if any(state.reason == _CRASH_LOOP and status.restart_count >= CRASHES for status, state in waiting):
            return "is in a crash loop"
        since = bound_at(pod)
        is_old = since is not None and self.now - since >= self._soak
        return f"was not ready within {self._soak}" if is_old and not _is_ready(pod) else None

    def _ran_well(self, pod: Pod, claim: NodeClaim, with_image: Collection[str]) -> bool:
        """Whether pods of its owner run well without the image, or did before they were moved."""
        owner = owner_uid(pod)
        if not owner:
            return False
        others = [other for other in self._by_owner[owner] if other.spec.node_name not in with_image]
        if any(map(self._complaint, others)):
            return False
        return any(map(_is_ready, others)) or owner in _ran_well_before(claim)


def _is_ready(pod: Pod) -> bool:
    return any(condition.type == "Ready" and condition.status == "True" for condition in pod.status.conditions)


def _ready_condition_since(node: Node, *, ready: bool) -> datetime | None:
    conditions = (it for it in node.status.conditions if it.type == "Ready" and (it.status == "True") is ready)
    return next((it.last_transition_time for it in conditions if it.last_transition_time is not None), None)


def _unready_since(node: Node) -> datetime | None:
    return _ready_condition_since(node, ready=False)


def _ready_since(node: Node) -> datetime | None:
    return _ready_condition_since(node, ready=True)


def _ran_well_before(claim: NodeClaim) -> Collection[str]:
    """The owners whose pods ran well on what the claim replaced, as far as the annotation can be read."""
    try:
        return decode(claim.metadata.annotations.get(RAN_WELL, "[]").encode(), frozenset[str])
    except (msgspec.DecodeError, RecursionError):
        return ()


def owners_that_run_well(snapshot: Snapshot, candidates: Iterable[NodeClaim]) -> tuple[str, ...]:
    """The UIDs of the owners of all pods on these claims' nodes that are ready: what a replacement remembers."""
    nodes = {claim.status.node_name for claim in candidates} - {""}
    pods = (pod for pod in snapshot.pods if pod.spec.node_name in nodes and is_active(pod) and _is_ready(pod))
    return owner_uids(pods)
