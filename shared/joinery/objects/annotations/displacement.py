"""Displaced pods: a consolidation had planned room for them on nodes there are, and a node had to be bought after all.

A plan says where the pods of a node that goes have room; kube-scheduler decides where their successors run. It may fill
that room with others of them, or with pods that came meanwhile. Then one has no room, and provisioning buys a node for
it, as if nothing had been saved. A command names the owners of the pods that it moves. A claim that is bought for pods
of these owners while the nodes of the command are being drained, or in the minutes after, says so until it is gone
(``joinery.dev/bought-for-displaced``). ``disruption.moves`` charges the next move of such pods with it.

No more pods are displaced than were moved. Where more of an owner wait, or have been bought for since, its workload
grows: its nodes would have been bought anyway, and a hundred of them would keep its pods from moving for a day.

A drain may take seconds, so for these minutes the NodePool remembers whose pods were moved
(``joinery.dev/moved-lately``, written by lifecycle). Anybody may edit an annotation. One that cannot be read stands for
none.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from itertools import repeat

import msgspec

from joinery.objects.annotations.disruption import record_of
from joinery.objects.annotations.plans import owners_planned
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.karpenter.labels import BOUGHT_FOR_DISPLACED, MOVED_LATELY, NODE_POOL
from joinery.objects.karpenter.meta import with_metadata
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.kubernetes.core import Pod
from joinery.objects.kubernetes.decoding import decode_each, decode_mark, with_entries
from joinery.objects.snapshot.pods import LONGEST_UID, owner_uid

#: The most owners that a command names, so that its annotation stays far below what the API server takes. Those of a
#: larger one that are left out are not charged; it moves pods by the thousand.
MOST_OWNERS = 1000
#: The most moves that a NodePool remembers, for the same reason: it has other annotations.
MOST_MOVES = 500
#: No node costs so many $/h: somebody has written it.
_MOST_PRICE = 1_000.0
#: How many tries are counted at most: each makes the next dearer for a day (``disruption.moves``), and what an
#: annotation says must not hold for years.
_MOST_TRIES = 30
#: For so long after a drain has begun, what is bought for pods of the same owner is bought because of it.
_LATELY = timedelta(minutes=10)
_DIGITS = 8
_SAVING = frozenset({DisruptionReason.EMPTY, DisruptionReason.UNDERUTILIZED})


class Displacement(msgspec.Struct, frozen=True, rename="camel"):
    """What a claim was bought for.

    ``owners``: UIDs of the controllers of the pods. ``price``: $/h of the node, as planned. ``tries``: how often moves
    of these pods failed, one after another: the node before it was given up, and had been bought for them too.
    """

    owners: tuple[str, ...]
    price: float
    tries: int = 1


class Move(msgspec.Struct, frozen=True, order=True, rename="camel", omit_defaults=True):
    """Pods of an owner (its UID) were moved. ``at``: when the drain of their node began. ``tries``: as in ``Moved``.

    ``pods``: how many; ``command``: a digest of the id of the command that moved them, whose nodes all say the same of
    it. Older versions wrote neither.
    """

    at: datetime
    owner: str
    tries: int = 0
    pods: int = 1
    command: str = ""


@dataclass(frozen=True, slots=True)
class Moved:
    """What was moved of an owner lately. ``pods``: how many pods, without those that a node was bought for since.

    ``tries``: how often moves of its pods had failed before, as the nodes that went say; 0 as a rule.
    """

    pods: int
    tries: int


def moves_of(pods: Iterable[Pod]) -> Mapping[str, int]:
    """By UID of those who recreate the pods, how many there are; of at most ``MOST_OWNERS``."""
    counted = Counter(map(owner_uid, pods))
    return {owner: counted[owner] for owner in sorted(filter(None, counted))[:MOST_OWNERS]}


def owners_moved(claims: Iterable[NodeClaim], pools: Iterable[NodePool], now: datetime) -> Mapping[str, Moved]:
    """By UID of the owner, whose pods consolidation is moving, or moved within the last minutes.

    ``claims``, ``pools``: ours.
    """
    claims = tuple(claims)
    owners: dict[str, Moved] = {}
    first: dict[str, datetime] = {}
    for move in _merged((*_moves(claims), *(move for pool in pools for move in _remembered(pool, now)))):
        before = owners.get(move.owner, Moved(0, 0))
        owners[move.owner] = Moved(before.pods + move.pods, max(before.tries, move.tries))
        first[move.owner] = min(move.at, first.get(move.owner, move.at))
    for owner, pods in _bought_for_since(claims, first):
        owners[owner] = Moved(owners[owner].pods - pods, owners[owner].tries)
    return owners


def _bought_for_since(claims: Iterable[NodeClaim], first: Mapping[str, datetime]) -> Iterator[tuple[str, int]]:
    """For how many displaced pods of these owners nodes were bought since these moments."""
    for claim in claims if first else ():
        displacement, bought = displacement_of(claim), claim.metadata.creation_timestamp
        if displacement is not None and bought is not None:
            planned = owners_planned(claim)
            for owner in displacement.owners:
                if owner in first and bought >= first[owner]:
                    yield owner, max(1, planned[owner])


def with_moves(pool: NodePool, claims: Iterable[NodeClaim], now: datetime) -> NodePool:
    """The pool with the annotation as it has to be: a drain takes seconds, and its claims are gone when what it has
    displaced is bought for. ``claims``: ours, of whatever pool.
    """
    ours = (claim for claim in claims if claim.metadata.labels.get(NODE_POOL) == pool.metadata.name)
    moves = _merged((*_remembered(pool, now), *_moves(ours)))
    lately = sorted(move for move in moves if now - move.at < _LATELY)[-MOST_MOVES:]
    annotations = with_entries(pool.metadata.annotations, MOVED_LATELY, lately)
    if annotations == pool.metadata.annotations:
        return pool
    return with_metadata(pool, annotations=annotations)


def _merged(moves: Iterable[Move]) -> Iterable[Move]:
    """One of each owner and command: the nodes of one command say the same, each since its own drain began."""
    merged: dict[tuple[str, str], Move] = {}
    for move in moves:
        key = (move.owner, move.command)
        before = merged.get(key, move)
        merged[key] = Move(
            max(move.at, before.at),
            move.owner,
            max(move.tries, before.tries),
            max(move.pods, before.pods),
            move.command,
        )
    return merged.values()


def _moves(claims: Iterable[NodeClaim]) -> Iterator[Move]:
    """What the nodes that consolidation is draining say themselves."""
    for claim in claims:
        at = claim.metadata.deletion_timestamp
        record = record_of(claim) if at is not None else None
        if at is not None and record is not None and record.reason in _SAVING:
            earlier, command = displacement_of(claim), sha256(record.id.encode()).hexdigest()[:_DIGITS]
            # An older version does not say how many.
            for owner, pods in zip(record.moves, (*record.moved_pods, *repeat(1, len(record.moves))), strict=False):
                tries = earlier.tries if earlier and owner in earlier.owners else 0
                yield Move(at, owner, tries, pods, command)


def _remembered(pool: NodePool, now: datetime) -> Iterator[Move]:
    """What the annotation says of the last minutes, as far as it can be read: anybody may edit it."""
    for move in decode_each(pool.metadata.annotations.get(MOVED_LATELY, "[]"), Move):
        is_lately = move.at.tzinfo is not None and timedelta() <= now - move.at < _LATELY
        if is_lately and 0 <= move.tries <= _MOST_TRIES and max(len(move.owner), len(move.command)) <= LONGEST_UID:
            yield move


def displaced_owners(moved: Mapping[str, Moved], waiting: Iterable[Pod]) -> Mapping[str, int]:
    """The owners whose pods are displaced, and how often that was so before.

    ``waiting``: all that nodes are to be bought for. Where more of them wait than were moved, a workload grows.
    """
    counted = Counter(map(owner_uid, waiting)) if moved else {}
    return {
        owner: moved[owner].tries for owner, pods in counted.items() if owner in moved and pods <= moved[owner].pods
    }


def displaced(pods: Iterable[Pod], owners: Mapping[str, int], price: float) -> Displacement | None:
    """What a claim for these pods at $/h is bought for; None if none of them is displaced.

    ``owners``: ``displaced_owners``. How often that failed before is handed on: nothing else remembers it.
    """
    served = sorted({owner_uid(pod) for pod in pods if not pod.spec.node_name} & owners.keys()) if owners else []
    tries = 1 + max((owners[owner] for owner in served), default=0)
    return Displacement(tuple(served), price, min(tries, _MOST_TRIES)) if served else None


def displacement_of(claim: NodeClaim) -> Displacement | None:
    """What the claim's node was bought for; None where that was nothing of the kind."""
    displacement = decode_mark(claim.metadata.annotations.get(BOUGHT_FOR_DISPLACED), Displacement)
    if displacement is None or not 0 < displacement.price < _MOST_PRICE:
        return None
    return displacement if 0 < displacement.tries <= _MOST_TRIES else None


def encoded(displacement: Displacement) -> str:
    """The value of the annotation."""
    return msgspec.json.encode(displacement).decode()
