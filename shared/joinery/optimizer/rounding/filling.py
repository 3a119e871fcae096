"""Filling nodes greedily, thousands at a time: every row of an array is one node of some kind with its own order of items."""

import numpy as np

from joinery.optimizer.arrays import UNLIMITED, Floats, Ints
from joinery.optimizer.instance.packing_instance import Lot

_BLOCK = 32
"""After so many items it is looked at which nodes are full."""


def fill(lot: Lot, kinds: Ints, sequences: Ints, counts: Ints, start: Ints | None = None) -> Ints:
    """Put on each node (row) as many pods of its first item as fit, then of its second, and so on: rows x items.

    ``kinds``: by row; ``sequences``: items by row; ``counts``: the pods there are; ``start``: pods that are on already.
    """
    pods = np.zeros((len(kinds), len(lot.counts)), dtype=np.int64) if start is None else start.copy()
    free = lot.room[kinds] - pods @ lot.requests
    may = np.minimum(counts, lot.most.T[kinds]) - pods
    unit, spare = np.maximum(lot.requests, 1), np.where(lot.requests > 0, 0, UNLIMITED)
    least = lot.requests.min(axis=0, initial=UNLIMITED)
    shared = np.flatnonzero(lot.members.sum(axis=0) > 1)  # what binds one item alone is in ``most``
    members, caps = lot.members[:, shared], lot.caps[shared] - pods @ lot.members[:, shared]
    rows = np.arange(len(kinds))
    for number in range(sequences.shape[1]):
        if number % _BLOCK == 0:  # full nodes, which are most of them halfway through many items, are let alone
            roomy = (free >= least).all(axis=1)
            rows, free, caps, sequences = rows[roomy], free[roomy], caps[roomy], sequences[roomy]
            if not len(rows):
                break
        item = sequences[:, number]
        room = (free // unit[item] + spare[item]).min(axis=1, initial=UNLIMITED)
        taken = np.minimum(room, may[rows, item])
        if len(shared):
            taken = np.minimum(taken, np.where(members[item], caps, UNLIMITED).min(axis=1))
        if lot.has_strangers:
            taken = np.minimum(taken, _beside(lot, item, pods[rows]))
        taken = np.maximum(taken, 0)
        pods[rows, item] += taken
        free -= taken[:, None] * lot.requests[item]
        if len(shared):
            caps -= taken[:, None] * members[item]
    return pods


def _beside(lot: Lot, item: Ints, pods: Ints) -> Ints:
    """How many pods of an item may join what is on each node, by clashes alone."""
    each = np.arange(len(item))
    clashes = lot.clashes[item]
    alone = clashes[each, item]
    others = clashes.copy()
    others[each, item] = False
    free = np.where(alone, 1 - np.minimum(pods[each, item], 1), UNLIMITED)
    result: Ints = np.where((others & (pods > 0)).any(axis=1), 0, free)
    return result


def apart(lot: Lot, pods: Ints, worth: Floats) -> Ints:
    """The nodes (rows x items) without pods that clash with others on them; those of more worth stay."""
    if not lot.has_strangers:
        single: Ints = np.minimum(pods, np.where(lot.clashes.diagonal(), 1, UNLIMITED))
        return single
    clashing = np.flatnonzero(lot.clashes.any(axis=1))
    kept = pods.copy()
    kept[:, clashing] = 0
    for item in clashing[np.argsort(-worth[clashing], kind="stable")]:
        kept[:, item] = np.minimum(pods[:, item], _beside(lot, np.full(len(pods), item), kept))
    return kept


def sequences(lot: Lot, worth: Floats, kinds: Ints, live: Ints) -> tuple[Ints, Ints]:
    """Several orders in which each kind might be filled: by worth for the room taken, room weighed in different ways.

    Returns kinds and sequences by row, a few rows for every kind.
    """
    share = (lot.requests[live] / lot.scale)[None] / np.maximum((lot.room[kinds] / lot.scale)[:, None, :], 1e-12)
    orders = [
        live[np.argsort(-worth[live] / ((share * weights).sum(axis=2) + 1e-9), axis=1, kind="stable")]
        for weights in _weights(lot.requests.shape[1])
    ]
    orders.append(live[np.argsort(-share.max(axis=2), axis=1, kind="stable")])
    orders.append(np.broadcast_to(live[np.argsort(-worth[live], kind="stable")], (len(kinds), len(live))))
    return np.tile(kinds, len(orders)), np.concatenate(orders)


def _weights(resources: int) -> list[Floats]:
    """All resources alike, then each one above the others."""
    return [np.ones(resources), *(np.full(resources, 0.1) + 0.9 * np.eye(resources)[i] for i in range(resources))]
