"""When pods last came to a node or went from it: what ``consolidateAfter`` runs from.

Karpenter watches pods, and writes the moment of each event into ``status.lastPodEventTime`` (nodeclaim/podevents). Here
nobody watches. The claim keeps a digest of the pods that were on its node when somebody last looked, in a condition
beside that moment; pods have come or gone if the digest is another one now. Where nobody has looked yet, or another
controller has, the pods themselves say when they came or ended.
"""

from collections.abc import Container, Iterable, Mapping
from datetime import datetime
from hashlib import sha256

from joinery.objects.karpenter.labels import EMPTY_SINCE, OWN_GROUP
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Pod
from joinery.objects.snapshot.claims import INITIALIZED, moment
from joinery.objects.snapshot.pods import bound_at, comes_with_node, deletion_requested_at, is_active, is_terminal

#: The condition whose message is the digest. A condition, because one write of the status holds it and the moment
#: together, and because the webhook is not called for it.
PODS_SEEN = f"{OWN_GROUP}/PodsSeen"
_DIGITS = 16


def digest(pods: Iterable[Pod]) -> str:
    """A digest of which pods run on a node. It changes when one is bound, ends, or is being deleted.

    DaemonSets' pods do not count, nor those of the kubelet itself: they come and go with the node.
    """
    running = sorted(pod.metadata.uid or pod.key for pod in pods if _counts(pod))
    return sha256("\n".join(running).encode()).hexdigest()[:_DIGITS]


class Digests:
    """The digests of nodes' pods, remembered for as long as these pods stay as they are.

    A warm function asks for all of them every five seconds. What has not changed is the same object in two snapshots
    (``gateways.kubernetes.mirrors``), and to see that takes a fiftieth of what a digest takes.
    """

    def __init__(self) -> None:
        self._remembered: dict[str, tuple[tuple[Pod, ...], str]] = {}

    def of(self, node: str, pods: tuple[Pod, ...]) -> str:
        """``digest`` of the pods of the node with that name."""
        remembered = self._remembered.get(node)
        if remembered is None or remembered[0] != pods:
            remembered = self._remembered[node] = (pods, digest(pods))
        return remembered[1]

    def keep(self, nodes: Container[str]) -> None:
        """Forget the other nodes, whose pods would stay in memory for good."""
        self._remembered = {name: known for name, known in self._remembered.items() if name in nodes}


def is_empty(pods: Iterable[Pod]) -> bool:
    """Whether none of the pods on a node counts."""
    return not any(map(_counts, pods))


def empty_since(annotations: Mapping[str, str]) -> datetime | None:
    """Since when a Node says that it is empty; None if it does not, or not in words that can be read."""
    return moment(annotations.get(EMPTY_SINCE, ""))


def _counts(pod: Pod) -> bool:
    return is_active(pod) and not comes_with_node(pod)


def last_pod_event(claim: NodeClaim, pods: Iterable[Pod], now: datetime) -> datetime | None:
    """When pods last came or went, as far as it is known: now, if nobody has noted yet that they did. None if they
    never did.

    ``pods``: those bound to the claim's node.
    """
    seen = claim.condition(PODS_SEEN)
    if seen is not None and seen.message != digest(pods):
        return now
    return claim.status.last_pod_event_time


def quiet_since(claim: NodeClaim, pods: Iterable[Pod], now: datetime) -> datetime | None:
    """What ``consolidateAfter`` runs from: the last pod event, else the node's initialisation, else its creation; and
    from no earlier than one of its pods came or ended.

    None where nobody knows any of them, as in a file that somebody wrote by hand. A moment that is still to come counts
    as now. ``pods``: those bound to the claim's node, finished ones too. (Karpenter nodeclaim/disruption,
    Consolidation.)
    """
    initialized = claim.condition(INITIALIZED)
    ready = initialized.last_transition_time if initialized and initialized.status == "True" else None
    pods = tuple(pods)
    noted = last_pod_event(claim, pods, now) or ready or claim.metadata.creation_timestamp
    own = (_last_event(pod) for pod in pods if not comes_with_node(pod))
    return max((min(at, now) for at in (noted, *own) if at is not None), default=None)


def _last_event(pod: Pod) -> datetime | None:
    """When the pod came, or when it ended or was asked to, as it says itself."""
    if is_terminal(pod):
        return max((c.last_transition_time for c in pod.status.conditions if c.last_transition_time), default=None)
    bound, started = bound_at(pod), pod.status.start_time
    return deletion_requested_at(pod) or (max(bound, started) if bound and started else bound)
