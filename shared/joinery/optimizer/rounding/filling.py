"""Filling nodes greedily, thousands at a time: every row of an array is one node of some kind with its own order of items."""

import numpy as np

from joinery.optimizer.arrays import UNLIMITED, Floats, Ints
from joinery.optimizer.instance.packing_instance import PackingInstance

_BLOCK = 32
"""After so many items it is looked at which nodes are full."""


def fill(instance: PackingInstance, bin_types: Ints, sequences: Ints, demands: Ints, start: Ints | None = None) -> Ints:
    """Put on each node (row) as many pods of its first item as fit, then of its second, and so on: rows x items.

    ``kinds``: by row; ``sequences``: items by row; ``counts``: the pods there are; ``start``: pods that are on already.
    """
    counts = np.zeros((len(bin_types), len(instance.demands)), dtype=np.int64) if start is None else start.copy()
    free = instance.capacities[bin_types] - counts @ instance.sizes
    may = np.minimum(demands, instance.max_per_bin.T[bin_types]) - counts
    unit, spare = np.maximum(instance.sizes, 1), np.where(instance.sizes > 0, 0, UNLIMITED)
    least = instance.sizes.min(axis=0, initial=UNLIMITED)
    shared = np.flatnonzero(instance.limit_members.sum(axis=0) > 1)  # what binds one item alone is in ``most``
    members, caps = (
        instance.limit_members[:, shared],
        instance.limit_caps[shared] - counts @ instance.limit_members[:, shared],
    )
    rows = np.arange(len(bin_types))
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
        if instance.has_conflicting_items:
            taken = np.minimum(taken, _beside(instance, item, counts[rows]))
        taken = np.maximum(taken, 0)
        counts[rows, item] += taken
        free -= taken[:, None] * instance.sizes[item]
        if len(shared):
            caps -= taken[:, None] * members[item]
    return counts


def _beside(instance: PackingInstance, item: Ints, counts: Ints) -> Ints:
    """How many pods of an item may join what is on each node, by clashes alone."""
    each = np.arange(len(item))
    clashes = instance.conflicts[item]
    alone = clashes[each, item]
    others = clashes.copy()
    others[each, item] = False
    free = np.where(alone, 1 - np.minimum(counts[each, item], 1), UNLIMITED)
    result: Ints = np.where((others & (counts > 0)).any(axis=1), 0, free)
    return result


def separated(instance: PackingInstance, counts: Ints, item_duals: Floats) -> Ints:
    """The nodes (rows x items) without pods that clash with others on them; those of more worth stay."""
    if not instance.has_conflicting_items:
        single: Ints = np.minimum(counts, np.where(instance.conflicts.diagonal(), 1, UNLIMITED))
        return single
    clashing = np.flatnonzero(instance.conflicts.any(axis=1))
    kept = counts.copy()
    kept[:, clashing] = 0
    for item in clashing[np.argsort(-item_duals[clashing], kind="stable")]:
        kept[:, item] = np.minimum(counts[:, item], _beside(instance, np.full(len(counts), item), kept))
    return kept


def greedy_orders(instance: PackingInstance, item_duals: Floats, bin_types: Ints, live: Ints) -> tuple[Ints, Ints]:
    """Several orders in which each kind might be filled: by worth for the room taken, room weighed in different ways.

    Returns kinds and sequences by row, a few rows for every kind.
    """
    share = (instance.sizes[live] / instance.scale)[None] / np.maximum(
        (instance.capacities[bin_types] / instance.scale)[:, None, :], 1e-12
    )
    orders = [
        live[np.argsort(-item_duals[live] / ((share * weights).sum(axis=2) + 1e-9), axis=1, kind="stable")]
        for weights in _weights(instance.sizes.shape[1])
    ]
    orders.append(live[np.argsort(-share.max(axis=2), axis=1, kind="stable")])
    orders.append(np.broadcast_to(live[np.argsort(-item_duals[live], kind="stable")], (len(bin_types), len(live))))
    return np.tile(bin_types, len(orders)), np.concatenate(orders)


def _weights(resources: int) -> list[Floats]:
    """All resources alike, then each one above the others."""
    return [np.ones(resources), *(np.full(resources, 0.1) + 0.9 * np.eye(resources)[i] for i in range(resources))]
