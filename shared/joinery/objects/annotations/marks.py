"""Marks that can be true: no moment of ours, in an annotation or a condition, is still to come.

What a run has done, it has done at a moment that is over when the next one reads it. So a moment ahead of every clock
was written by nobody of us: somebody has edited it, or a role was stolen. Believed, it would hold for ever: a node that
was rebooted in the year 2900 is not repaired before that. Such an annotation is none, as one that cannot be read is
none, and such a condition holds since its object was made. Both adapters of the cluster gateway pass what they read
through here, so that no decision has to think of it. Moments in JSON are asked one by one where they are read
(``is_believable``). Deadlines are not marks: who reads one bounds it.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeVar

import msgspec

from joinery.objects.karpenter.labels import (
    EMPTY_SINCE,
    INTERRUPTED_AT,
    REBALANCE_RECOMMENDED_AT,
    REBOOTED_AT,
    REPLACEMENT_LAUNCHED,
)
from joinery.objects.karpenter.meta import with_metadata
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.kubernetes.core import Node
from joinery.objects.snapshot.claims import moment
from joinery.objects.snapshot.snapshot import ClaimsSnapshot, Snapshot

#: By how much a moment may be ahead: clocks differ, and a run may have read its own minutes ago.
MOST_AHEAD = timedelta(minutes=5)
_SINCE = (EMPTY_SINCE, INTERRUPTED_AT, REBALANCE_RECOMMENDED_AT, REBOOTED_AT, REPLACEMENT_LAUNCHED)

S = TypeVar("S", bound=ClaimsSnapshot)
Marked = TypeVar("Marked", NodeClaim, NodePool)


def is_believable(at: datetime, now: datetime) -> bool:
    """Whether a moment that an annotation's JSON names may be over: it has a time zone, and is not still to come."""
    return at.tzinfo is not None and at <= now + MOST_AHEAD


def believable(snapshot: S) -> S:
    """The snapshot without marks that cannot be true. An object that has none is the same one."""
    latest = snapshot.now + MOST_AHEAD
    claims = tuple(believable_claim(claim, latest) for claim in snapshot.node_claims)
    if not isinstance(snapshot, Snapshot):
        return replace(snapshot, node_claims=claims)
    nodes = tuple(_node(node, latest) for node in snapshot.nodes)
    pools = tuple(_conditions(pool, latest) for pool in snapshot.node_pools)
    return replace(snapshot, node_claims=claims, nodes=nodes, node_pools=pools)


def believable_claim(claim: NodeClaim, latest: datetime) -> NodeClaim:
    """The claim without marks later than that."""
    claim = _conditions(claim, latest)
    last = claim.status.last_pod_event_time
    if last is not None and last > latest:
        claim = claim.model_copy(update={"status": claim.status.model_copy(update={"last_pod_event_time": None})})
    kept = _kept(claim.metadata.annotations, latest)
    if kept is claim.metadata.annotations:
        return claim
    return with_metadata(claim, annotations=kept)


def _node(node: Node, latest: datetime) -> Node:
    kept = _kept(node.metadata.annotations, latest)
    if kept is node.metadata.annotations:
        return node
    return msgspec.structs.replace(node, metadata=msgspec.structs.replace(node.metadata, annotations=kept))


def _kept(annotations: dict[str, str], latest: datetime) -> dict[str, str]:
    untrue = [key for key in _SINCE if key in annotations and _is_later(annotations[key], latest)]
    return {key: value for key, value in annotations.items() if key not in untrue} if untrue else annotations


def _is_later(text: str, latest: datetime) -> bool:
    at = moment(text)
    return at is not None and at > latest


def _conditions(marked: Marked, latest: datetime) -> Marked:
    before = marked.status.conditions
    if not any(one.last_transition_time and one.last_transition_time > latest for one in before):
        return marked
    born = marked.metadata.creation_timestamp
    conditions = [
        one.model_copy(update={"last_transition_time": born})
        if one.last_transition_time and one.last_transition_time > latest
        else one
        for one in before
    ]
    return marked.model_copy(update={"status": marked.status.model_copy(update={"conditions": conditions})})
