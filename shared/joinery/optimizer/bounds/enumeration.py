"""All nodes that a plan cheaper than a known one could have, for small tasks.

At the prices of the rows that bind nodes together (``Prices``) every node of a plan has a **waste**: what it costs beyond what its pods
are charged. What a plan costs is at least what the prices prove of all plans, and the waste of its nodes on top. So a node whose waste
alone makes up for the gap is in no cheaper plan, and the others are few enough to be listed where pods are few.
"""

from dataclasses import dataclass

import numpy as np

from joinery.optimizer.arrays import Floats, Ints, Mask
from joinery.optimizer.bounds.compact import Placement
from joinery.optimizer.bounds.duality import reduced, signed
from joinery.optimizer.instance.packing_instance import Lot
from joinery.optimizer.instance.patterns import Patterns

_MOST_PATTERNS = 6_000
_MOST_PARTIAL = 40_000


class TooManyError(Exception):
    """There are more nodes than anyone wants to list."""


@dataclass(frozen=True, eq=False)
class Prices:
    """``proof``: what no plan costs less than, whatever the waste; ``cost``: by kind, of a node and its share of what is scarce; ``worth``:
    by item, what a pod is charged; ``room`` (kinds x resources), ``own`` (items x kinds), ``groups`` (groups x kinds) and ``rest`` (by
    kind): what a node's room, its caps and all else that binds it are priced at, by which no pod is charged more than it takes.
    """

    proof: float
    cost: Floats
    worth: Floats
    room: Floats
    own: Floats
    groups: Floats
    rest: Floats
    slip: float


def prices_of(placement: Placement, duals: Floats) -> Prices:
    """The prices of an optimum, read as what nodes and pods are charged."""
    question = placement.question
    program = question.program
    duals = signed(program, duals)
    everywhere = duals.copy()
    everywhere[placement.room.start : placement.binding] = 0.0
    pushed = np.where(everywhere > 0, program.lower, program.upper)
    proof = float((everywhere * np.where(everywhere == 0, 0.0, pushed)).sum())
    beyond = reduced(program, everywhere)
    lot, width = placement.task.lot, placement.width
    worth = np.zeros(lot.admits.shape)
    worth[placement.items, placement.kinds] = -beyond[width : width + placement.pairs]
    local = -duals
    own = np.zeros(lot.admits.shape)
    own[placement.items, placement.kinds] = local[placement.own]
    room = np.zeros(lot.room.shape)
    room[:, placement.used] = local[placement.room].reshape(len(placement.used), width).T
    groups = np.array([local[part] for part in placement.groups]).reshape(len(placement.groups), width)
    rest = np.zeros(width)
    np.add.at(rest, placement.clash_kinds, local[placement.clashes])
    slip = float(-np.minimum(reduced(program, duals)[: width + placement.pairs], 0.0).min(initial=0.0))
    return Prices(proof, beyond[:width], worth, room / lot.scale, own, groups, rest, slip)


def patterns(placement: Placement, prices: Prices) -> Patterns:
    """Every node whose waste leaves a plan below the cutoff; only full ones where one pod too many does not matter."""
    lot, found, total = placement.task.lot, [], 0
    gap = placement.cutoff - prices.proof
    gap += (2 * int(placement.task.wanted.sum()) + 1) * prices.slip * (1 + len(lot.counts))
    for kind in range(len(lot.price)):
        pods = _of_kind(placement, prices, kind, gap)
        if not placement.task.is_dealt:
            pods = pods[_is_full(lot, kind, pods, placement.most[:, kind])]
        total += len(pods)
        if total > 4 * _MOST_PATTERNS:
            raise TooManyError
        found.append(Patterns(np.full(len(pods), kind), pods))
    together = _cheapest(placement, found)
    if len(together.kinds) > _MOST_PATTERNS:
        raise TooManyError
    return together


def _of_kind(placement: Placement, prices: Prices, kind: int, gap: float) -> Ints:
    """The nodes of one kind (patterns x items), item by item."""
    lot, most = placement.task.lot, placement.most[:, kind]
    worth = prices.worth[:, kind]
    order = np.flatnonzero(most)
    order = order[np.argsort(-worth[order] * most[order], kind="stable")]
    rest_own = np.cumsum((prices.own[order, kind] * most[order])[::-1])[::-1]
    pods: Ints = np.zeros((1, len(lot.counts)), dtype=np.int64)
    free, charged = lot.room[kind][None, :], np.zeros(1)
    for step, item in enumerate(order):
        allowed = _allowed(lot, item, pods, free, int(most[item]))
        times = allowed + 1
        which = np.repeat(np.arange(len(pods)), times)
        more = np.arange(len(which)) - np.repeat(np.cumsum(times) - times, times)
        if len(which) > _MOST_PARTIAL:
            raise TooManyError
        pods, free = pods[which], free[which] - more[:, None] * lot.requests[item]
        pods[:, item] = more
        charged = charged[which] + more * worth[item]
        later = order[step + 1 :]
        ahead = rest_own[step + 1] if len(later) else 0.0
        hoped = _hoped(lot, prices, kind, (pods, free), later, most) if len(later) else np.zeros(len(pods))
        bound = free @ prices.room[kind] + ahead + prices.rest[kind]
        for number, group in enumerate(lot.groups):
            bound = bound + prices.groups[number, kind] * (group.cap - pods[:, group.members].sum(axis=1))
        keep = prices.cost[kind] - charged - np.minimum(hoped, bound) <= gap
        pods, free, charged = pods[keep], free[keep], charged[keep]
    return pods[pods.any(axis=1)]


def _allowed(lot: Lot, item: int, pods: Ints, free: Ints, most: int) -> Ints:
    """How many pods of the item each node may still have."""
    asked = np.flatnonzero(lot.requests[item] > 0)
    room = (
        (free[:, asked] // lot.requests[item, asked]).min(axis=1, initial=most)
        if len(asked)
        else np.full(len(pods), most)
    )
    for group in lot.groups:
        if item in group.members:
            room = np.minimum(room, group.cap - pods[:, group.members].sum(axis=1))
    against = np.flatnonzero(lot.clashes[item])
    against = against[against != item]
    if len(against):
        room = np.where(pods[:, against].any(axis=1), 0, room)
    allowed: Ints = np.clip(room, 0, most)
    return allowed


def _hoped(lot: Lot, prices: Prices, kind: int, nodes: tuple[Ints, Ints], later: Ints, most: Ints) -> Floats:
    """What pods still to come could be charged if each item had all the room to itself."""
    _, free = nodes
    total = np.zeros(len(free))
    for item in later:
        asked = np.flatnonzero(lot.requests[item] > 0)
        number = (
            np.minimum((free[:, asked] // lot.requests[item, asked]).min(axis=1), most[item])
            if len(asked)
            else most[item]
        )
        total = total + np.maximum(prices.worth[item, kind], 0.0) * number
    return total


def _is_full(lot: Lot, kind: int, pods: Ints, most: Ints) -> Mask:
    """Whether no further pod fits on each of the nodes."""
    free = lot.room[kind] - pods @ lot.requests
    full: Mask = np.ones(len(pods), dtype=np.bool_)
    for item in np.flatnonzero(most):
        spare = most[item] - pods[:, item]
        full &= (spare <= 0) | (_allowed(lot, int(item), pods, free, 1) <= 0)
    return full


def _cheapest(placement: Placement, found: list[Patterns]) -> Patterns:
    """Of nodes with the same pods that nothing else tells apart the cheapest."""
    lot, rows = placement.task.lot, placement.task.rows
    kinds = np.concatenate([some.kinds for some in found])
    pods = np.concatenate([some.pods for some in found])
    told = np.array([row.kinds[kinds] for row in rows if row.kinds.any()]).reshape(-1, len(kinds)).T
    pile = np.where(lot.scarce[kinds], lot.pile[kinds], -1)
    order = np.argsort(lot.price[kinds], kind="stable")
    seen: set[tuple[bytes, bytes, int]] = set()
    kept = []
    for index in order:
        key = pods[index].tobytes(), told[index].tobytes(), int(pile[index])
        if key not in seen:
            seen.add(key)
            kept.append(index)
    chosen = np.sort(np.array(kept, dtype=np.int64))
    return Patterns(kinds[chosen], pods[chosen])
