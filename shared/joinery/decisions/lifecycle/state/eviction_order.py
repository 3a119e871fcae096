"""In which order nodes that are given up are emptied: the pods that need the most room go first.

A decision says that all pods of these nodes have a place elsewhere, but not every order leads there. The room of nodes
that stay is open to all, and kube-scheduler prefers the node with the most of it. So a small pod takes the place that
was meant for a large one, which then fits nowhere: a node is bought that nobody planned, and given up again soon. If
the large ones choose first, the small ones find room in what is left, as in first-fit decreasing.

So of all pods that might be evicted in a run only those go that are nearly as large as the largest; the others follow
in the next ticks. Pods of one size all go at once. Large is who needs much of what is scarce: a pod's size is its share
of the room that is free on those nodes that stay and that it may go to. So a pod of one zone chooses before a larger
one that may go anywhere. Who has no such node competes with nobody: its place is a new node. Nothing waits longer than
a minute: a large pod may have a disruption budget that keeps it for days. Nor does a node that must be gone by a
deadline, or that EC2 takes.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from joinery.decisions.lifecycle.state.replacement import may_drain
from joinery.decisions.scheduling.constraints.podclasses import terms_of
from joinery.decisions.scheduling.constraints.resources import requests_of
from joinery.decisions.scheduling.constraints.taints import TOLERATE_PREFERRED, first_untolerated
from joinery.decisions.termination.drain import plan_drain
from joinery.objects.annotations.drain_start import deadline, is_retired
from joinery.objects.karpenter.labels import REPLACEMENT_LAUNCHED
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Node, Pod
from joinery.objects.kubernetes.quantity import amounts, total
from joinery.objects.snapshot.claims import leaving_since, moment
from joinery.objects.snapshot.pods import is_active
from joinery.objects.snapshot.successors import made_anew

#: How long a drain may wait for larger pods of others, from its beginning.
LONGEST_WAIT = timedelta(minutes=1)
#: How much of the largest's size a pod needs to go together with it: in a minute pods down to a tenth have had a turn.
_ALIKE = 0.8
#: What places are scarce of.
_SCARCE = ("cpu", "memory")


def awaiting_larger(
    draining: Iterable[tuple[NodeClaim, Sequence[Pod]]], staying: Iterable[tuple[Node, Sequence[Pod]]], now: datetime
) -> frozenset[str]:
    """The pods (namespace/name) that are evicted later, because larger ones choose their places first.

    ``draining``: claims that are being deleted, and the pods on their nodes, without those that nobody evicts now
    because their successors are to come first. ``staying``: the nodes that may have room for them, and their pods.
    """
    begun = [
        pods
        for claim, pods in draining
        if is_retired(claim) and deadline(claim) is None and _has_just_begun(claim, pods, now)
    ]
    competing = [pod for pods in begun for pod in plan_drain(pods, now=now, deadline=None).evict]
    if len(competing) < 2:
        return frozenset()
    sizes = _sizes(competing, [(node, _free(node, pods)) for node, pods in staying])
    largest = max(sizes.values())
    return frozenset(key for key, size in sizes.items() if 0 < size <= _ALIKE * largest)


def _has_just_begun(claim: NodeClaim, pods: Sequence[Pod], now: datetime) -> bool:
    """Whether the claim's node is drained, and not for long."""
    begun = moment(claim.metadata.annotations.get(REPLACEMENT_LAUNCHED, "")) or leaving_since(claim)
    # Anybody may edit an annotation: a moment that is far ahead makes no drain a young one.
    return begun is not None and abs(now - begun) < LONGEST_WAIT and may_drain(claim, pods, now)


def _requests(pod: Pod) -> Mapping[str, int]:
    try:
        return requests_of(pod)
    except ValueError:
        return {}  # nobody knows how large it is, so nobody waits for it


def _free(node: Node, pods: Sequence[Pod]) -> Mapping[str, int]:
    """How much of what is scarce the node has left."""
    allocatable, taken = amounts(node.status.allocatable), total(map(_requests, filter(is_active, pods)))
    return {name: max(0, allocatable.get(name, 0) - taken.get(name, 0)) for name in _SCARCE}


def _sizes(pods: Iterable[Pod], free: Sequence[tuple[Node, Mapping[str, int]]]) -> Mapping[str, float]:
    """By pod, the largest share that it needs of a resource; 0 without a node that it may go to.

    ``free``: the nodes that stay, with what they have left.
    """
    rooms: dict[bytes, Mapping[str, int]] = {}
    sizes = {}
    for pod in pods:
        choice = _choice(pod)
        if choice not in rooms:
            rooms[choice] = _room_for(pod, free)
        room, requests = rooms[choice], _requests(made_anew(pod))
        sizes[pod.key] = max((requests.get(name, 0) / max(1, left) for name, left in room.items()), default=0.0)
    return sizes


def _choice(pod: Pod) -> bytes:
    """What says which nodes the pod may go to: most pods have that in common with many others."""
    spec = pod.spec
    affinity = spec.affinity and spec.affinity.node_affinity
    return msgspec.json.encode((spec.node_selector, affinity, spec.tolerations), order="deterministic")


def _room_for(pod: Pod, free: Iterable[tuple[Node, Mapping[str, int]]]) -> Mapping[str, int]:
    """What is left together on the nodes that the pod may go to (kube-scheduler NodeAffinity and TaintToleration)."""
    terms, tolerations = terms_of(pod, []), (*pod.spec.tolerations, TOLERATE_PREFERRED)
    return total(
        left
        for node, left in free
        if first_untolerated(tolerations, node.spec.taints) is None
        and any(term.matches(node.metadata.labels) for term in terms)
    )
