"""Annotations that do nothing where they stand: ours, misspelt or of another object, and those that are to protect pods
and nodes from disruption, and do not.

No API server knows any of them. Whoever relies on one sees it on the day on which a node goes. A NodePool with a wrong
value takes no part, and says so itself (``objects.karpenter.validation``).
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

from joinery.decisions.scheduling.on_demand_shares import past_the_gate
from joinery.objects import own_keys
from joinery.objects.karpenter import labels
from joinery.objects.karpenter.disruption import dollars_of, eviction_rate_of
from joinery.objects.karpenter.labels import CORE_GROUP, DO_NOT_DISRUPT
from joinery.objects.karpenter.pause import is_too_short, pause_of, paused_of
from joinery.objects.kubernetes.core import Pod
from joinery.objects.policies import on_demand_share_of
from joinery.objects.snapshot.pods import comes_with_node, go_duration, is_active
from joinery.objects.snapshot.snapshot import Snapshot
from joinery_cli.notices import UserNotice, warnings_of
from joinery_cli.reading.names import nothing_reads
from joinery_cli.view.workloads import subject_of

_CHOICES = ("true", "false")


def _pause_of_buffers(text: str) -> None:
    is_everywhere, _ = pause_of(text)
    if is_everywhere:
        raise ValueError(f"{text!r}: all belongs to a NodePool; without it the namespace's buffers are meant")


#: By kind, how the values of annotations are read. A NodePool with a wrong one is not valid, and says so itself.
_READ: Mapping[str, Mapping[str, Callable[[str], object]]] = {
    own_keys.POD: {
        labels.DISRUPTION_PRICE: dollars_of,
        labels.EVICTION_RATE: eviction_rate_of,
        labels.ON_DEMAND_SHARE: on_demand_share_of,
    },
    own_keys.NAMESPACE: {
        labels.PAUSE: _pause_of_buffers,
        labels.PAUSED: paused_of,
    },
}
_NO_GATE = f"{labels.ON_DEMAND_SHARE} does nothing without a scheduling gate of that name (spec.schedulingGates)"
#: Who makes pods for which no rollout of a Deployment can bring a successor.
_NO_ROLLOUT = ("StatefulSet", "Job")
#: Annotations that once protected, or that protect from another autoscaler, with the value that does.
_OF_OTHERS: Mapping[str, str] = {
    f"{CORE_GROUP}/do-not-evict": "true",
    f"{CORE_GROUP}/do-not-consolidate": "true",
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
    "cluster-autoscaler.kubernetes.io/scale-down-disabled": "true",
}


def unread_annotations(snapshot: Snapshot) -> Iterator[UserNotice]:
    """A warning for each annotation of ours that nothing reads, naming who has it."""
    yield from warnings_of(_unread(snapshot))


def _unread(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    for pool in filter(snapshot.serves, snapshot.node_pools):
        subject = f"NodePool {pool.metadata.name}"
        yield from ((subject, one) for one in nothing_reads(pool.metadata.annotations, "NodePool"))
        of_nodes = nothing_reads(pool.spec.template.metadata.annotations, "NodeClaim")
        yield from ((subject, f"spec.template.{one}") for one in of_nodes)
        yield from ((subject, one) for one in _too_short(pool.metadata.annotations, own_keys.NODE_POOL))
    for kind, objects in (
        (own_keys.CAPACITY_BUFFER, snapshot.capacity_buffers),
        (own_keys.NAMESPACE, snapshot.namespaces),
        (own_keys.NODE_CLASS, snapshot.node_classes),
        (own_keys.NODE_OVERLAY, snapshot.node_overlays),
    ):
        for one in objects:
            meta = one.metadata
            subject = f"{kind} {f'{meta.namespace}/' if meta.namespace else ''}{meta.name}"
            yield from ((subject, unread) for unread in nothing_reads(meta.annotations, kind))
            yield from ((subject, unread) for unread in _unreadable(meta.annotations, kind))
            yield from ((subject, short) for short in _too_short(meta.annotations, kind))
    for pod in filter(is_active, snapshot.pods):
        yield from ((subject_of(pod), one) for one in _of_pod(pod))
    yield from ((subject_of(pod), _NO_GATE) for pod in past_the_gate(snapshot.pods))


def _of_pod(pod: Pod) -> Iterator[str]:
    yield from nothing_reads(pod.metadata.annotations, "Pod")
    surge = pod.metadata.annotations.get(labels.SURGE_BEFORE_EVICTION)
    if surge is not None and surge not in _CHOICES:
        yield f"metadata.annotations[{labels.SURGE_BEFORE_EVICTION}]: {surge!r} is none of {', '.join(_CHOICES)}"
    yield from _unreadable(pod.metadata.annotations, own_keys.POD)
    owner = next((one.kind for one in pod.metadata.owner_references if one.controller), "")
    if surge == "true" and (not owner or owner in _NO_ROLLOUT):
        whose = f"a {owner}'s pod" if owner else "a pod without a Deployment"
        yield (
            f"{labels.SURGE_BEFORE_EVICTION} asks for what {whose} cannot have: it is evicted like any other, because "
            "only the rollout of a Deployment brings a successor first"
        )


def _too_short(annotations: Mapping[str, str], kind: str) -> Iterator[str]:
    """A pause that may never take effect. One that cannot be read has a warning of its own."""
    if kind not in own_keys.FOR_PEOPLE[labels.PAUSE].about:
        return
    with suppress(KeyError, ValueError):
        if is_too_short(annotations[labels.PAUSE]):
            yield (
                f"{labels.PAUSE}: so short a pause may do nothing: it ends 5 minutes before its window, so that "
                "nodes are there in time, and is looked at once a minute"
            )


def _unreadable(annotations: Mapping[str, str], kind: str) -> Iterator[str]:
    readers = _READ.get(kind, {})
    for key in sorted(readers.keys() & annotations.keys()):
        try:
            readers[key](annotations[key])
        except ValueError as error:
            yield f"metadata.annotations[{key}]: {error}"


def idle_protections(snapshot: Snapshot) -> Iterator[UserNotice]:
    """A warning for each annotation that protects nothing, naming who has it.

    See ``objects.snapshot.equivalents`` for clusters in which the older ones are read.
    """
    yield from warnings_of(_idle(snapshot))


def _idle(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    # Nodes of others are theirs to disrupt, and what protects from them does.
    others = {one.metadata.name for one in snapshot.nodes} - {one.status.node_name for one in snapshot.managed_claims}
    for pod in snapshot.pods:
        is_ours = is_active(pod) and not comes_with_node(pod) and pod.spec.node_name not in others
        if is_ours and (idle := _protects_nothing(pod.metadata.annotations, takes_time=True)):
            yield subject_of(pod), idle
    for node in snapshot.nodes:
        if node.metadata.name not in others and (idle := _protects_nothing(node.metadata.annotations)):
            yield f"Node {node.metadata.name}", idle
    for pool in snapshot.node_pools:
        if snapshot.serves(pool) and DO_NOT_DISRUPT in pool.metadata.annotations:
            where = f"nothing reads {DO_NOT_DISRUPT} of a NodePool: it belongs to spec.template.metadata.annotations"
            yield f"NodePool {pool.metadata.name}", where


def _protects_nothing(annotations: Mapping[str, str], *, takes_time: bool = False) -> str | None:
    """``takes_time``: whether a time is a value, as it is on pods."""
    value = annotations.get(DO_NOT_DISRUPT)
    if value is None:
        key = next((key for key, protects in _OF_OTHERS.items() if annotations.get(key) == protects), None)
        return f'{key} protects nothing here; write {DO_NOT_DISRUPT}: "true"' if key else None
    if value in ("", *_CHOICES) or (takes_time and go_duration(value)):
        return None
    wanted = "true, or a time such as 30m" if takes_time else "true"
    return f"{DO_NOT_DISRUPT}: {value!r} protects nothing; write {wanted}"
