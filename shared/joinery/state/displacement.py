"""Displaced pods: a consolidation had planned room for them on nodes there are, and a node had to be bought after all.

A plan says where the pods of a node that goes have room; kube-scheduler decides where their successors run. It may fill
that room with others of them, or with pods that came meanwhile. Then one has no room, and provisioning buys a node for
it, as if nothing had been saved. A command names the owners of the pods that it moves. A claim that is bought for pods
of these owners while the nodes of the command are being drained, or in the minutes after, says so until it is gone
(``joinery.dev/bought-for-displaced``). ``disruption.moves`` charges the next move of such pods with it.

A drain may take seconds, so for these minutes the NodePool remembers whose pods were moved
(``joinery.dev/moved-lately``, written by lifecycle). Anybody may edit an annotation. One that cannot be read stands for
none.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta

import msgspec

from joinery.apis.core import Pod
from joinery.apis.decoding import decode_each, decode_mark, with_entries
from joinery.apis.disruption import DisruptionReason
from joinery.apis.labels import BOUGHT_FOR_DISPLACED, MOVED_LATELY, NODE_POOL
from joinery.apis.nodeclaim import NodeClaim
from joinery.apis.nodepool import NodePool
from joinery.state.disruption import record_of
from joinery.state.pods import owner_uids

#: The most owners that a command names, so that its annotation stays far below what the API server takes. Those of a
#: larger one that are left out are not charged; it moves pods by the thousand.
MOST_OWNERS = 1000
#: $/h. No node costs that, so somebody has written it.
_ABSURD = 1e6
#: For so long after a drain has begun, what is bought for pods of the same owner is bought because of it.
_LATELY = timedelta(minutes=10)
_SAVING = frozenset({DisruptionReason.EMPTY, DisruptionReason.UNDERUTILIZED})


class Displacement(msgspec.Struct, frozen=True, rename="camel"):
    """What a claim was bought for.

    ``owners``: UIDs of the controllers of the pods. ``price``: $/h of the node, as planned, and of those before it that
    were given up in vain.
    """

    owners: tuple[str, ...]
    price: float


class Move(msgspec.Struct, frozen=True, order=True, rename="camel", omit_defaults=True):
    """Pods of an owner (its UID) were moved. ``at``: when the drain of their node began. ``price``: as in
    ``owners_moved``.
    """

    at: datetime
    owner: str
    price: float = 0.0


def owners_of(pods: Iterable[Pod]) -> tuple[str, ...]:
    """The UIDs of those who recreate the pods, at most ``MOST_OWNERS``."""
    return owner_uids(pods)[:MOST_OWNERS]


def owners_moved(claims: Iterable[NodeClaim], pools: Iterable[NodePool], now: datetime) -> Mapping[str, float]:
    """Whose pods consolidation is moving, or moved within the last minutes.

    By UID of the owner, $/h for which the nodes that went had been bought for its displaced pods themselves; 0 as a
    rule. ``claims``, ``pools``: ours.
    """
    owners: dict[str, float] = {}
    for move in (*_moves(claims), *(move for pool in pools for move in _remembered(pool, now))):
        owners[move.owner] = max(move.price, owners.get(move.owner, 0.0))
    return owners


def with_moves(pool: NodePool, claims: Iterable[NodeClaim], now: datetime) -> NodePool:
    """The pool with the annotation as it has to be: a drain takes seconds, and its claims are gone when what it has
    displaced is bought for. ``claims``: ours, of whatever pool.
    """
    ours = (claim for claim in claims if claim.metadata.labels.get(NODE_POOL) == pool.metadata.name)
    last: dict[str, Move] = {}
    for move in sorted((*_remembered(pool, now), *_moves(ours))):
        before = last.get(move.owner, move)
        last[move.owner] = Move(move.at, move.owner, max(move.price, before.price))
    lately = sorted(move for move in last.values() if now - move.at < _LATELY)[-MOST_OWNERS:]
    annotations = with_entries(pool.metadata.annotations, MOVED_LATELY, lately)
    if annotations == pool.metadata.annotations:
        return pool
    return pool.model_copy(update={"metadata": pool.metadata.model_copy(update={"annotations": annotations})})


def _moves(claims: Iterable[NodeClaim]) -> Iterator[Move]:
    """What the nodes that consolidation is draining say themselves."""
    for claim in claims:
        at = claim.metadata.deletion_timestamp
        record = record_of(claim) if at is not None else None
        if at is not None and record is not None and record.reason in _SAVING:
            earlier = displacement_of(claim)
            for owner in record.moves:
                yield Move(at, owner, earlier.price if earlier and owner in earlier.owners else 0.0)


def _remembered(pool: NodePool, now: datetime) -> Iterator[Move]:
    """What the annotation says of the last minutes, as far as it can be read: anybody may edit it."""
    for move in decode_each(pool.metadata.annotations.get(MOVED_LATELY, "[]"), Move):
        if move.at.tzinfo is not None and timedelta() <= now - move.at < _LATELY and 0 <= move.price < _ABSURD:
            yield move


def displaced(pods: Iterable[Pod], moved: Mapping[str, float], price: float) -> Displacement | None:
    """What a claim for these pods at $/h is bought for; None if none of them is displaced.

    ``moved``: ``owners_moved``. What a node that goes had been bought for is handed on, or nobody would know how often
    it was in vain.
    """
    owners = owners_of(pod for pod in pods if not pod.spec.node_name) if moved else ()
    earlier = {owner: moved[owner] for owner in owners if owner in moved}
    return Displacement(tuple(earlier), price + max(earlier.values())) if earlier else None


def displacement_of(claim: NodeClaim) -> Displacement | None:
    """What the claim's node was bought for; None where that was nothing of the kind."""
    displacement = decode_mark(claim.metadata.annotations.get(BOUGHT_FOR_DISPLACED), Displacement)
    return displacement if displacement and 0 < displacement.price < _ABSURD else None


def encoded(displacement: Displacement) -> str:
    """The value of the annotation."""
    return msgspec.json.encode(displacement).decode()
