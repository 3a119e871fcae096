"""Filling bins greedily, thousands at a time: every row of an array is one bin of some type, with an order of items of
its own.

A bin is filled like Dantzig's (1957, "Discrete-variable extremum problems") greedy knapsack: items in the order of
what they are priced at for the capacity that they take, of each as many copies as fit.
"""

import numpy as np

from joinery.optimizer.arrays import UNLIMITED, Floats, Ints
from joinery.optimizer.instance.packing_instance import PackingInstance

_BLOCK = 32
"""After so many items full bins are set aside. Looking after every item would cost more than it saves."""


def fill(instance: PackingInstance, bin_types: Ints, orders: Ints, demands: Ints, start: Ints | None = None) -> Ints:
    """int64[bins, items]: copies on each bin, filled with as many of its first item as fit, then of its second, and so
    on.

    ``bin_types``: int64[bins]. ``orders``: int64[bins, items in the order], the order of each bin. ``demands``:
    int64[items], copies there are; each bin may take all of them. ``start``: int64[bins, items], copies that are on
    each bin already.
    """
    counts = np.zeros((len(bin_types), len(instance.demands)), dtype=np.int64) if start is None else start.copy()
    free = instance.capacities[bin_types] - counts @ instance.sizes
    allowed = np.minimum(demands, instance.max_per_bin.T[bin_types]) - counts
    # An item that takes nothing of a resource is not bounded by it: dividing by one and adding a lot says so without
    # branching.
    divisor, bonus = np.maximum(instance.sizes, 1), np.where(instance.sizes > 0, 0, UNLIMITED)
    smallest = instance.sizes.min(axis=0, initial=UNLIMITED)
    # Limits on a single item are in ``max_per_bin`` already.
    joint = np.flatnonzero(instance.limit_members.sum(axis=0) > 1)
    members = instance.limit_members[:, joint]
    caps = instance.limit_caps[joint] - counts @ members
    rows = np.arange(len(bin_types))
    for position in range(orders.shape[1]):
        if position % _BLOCK == 0:  # halfway through many items most bins are full
            has_room = (free >= smallest).all(axis=1)
            rows, free, caps, orders = rows[has_room], free[has_room], caps[has_room], orders[has_room]
            if not len(rows):
                break
        item = orders[:, position]
        fitting = (free // divisor[item] + bonus[item]).min(axis=1, initial=UNLIMITED)
        taken = np.minimum(fitting, allowed[rows, item])
        if len(joint):
            taken = np.minimum(taken, np.where(members[item], caps, UNLIMITED).min(axis=1))
        if instance.has_conflicting_items:
            taken = np.minimum(taken, _beside(instance, item, counts[rows]))
        taken = np.maximum(taken, 0)
        counts[rows, item] += taken
        free -= taken[:, None] * instance.sizes[item]
        if len(joint):
            caps -= taken[:, None] * members[item]
    return counts


def _beside(instance: PackingInstance, item: Ints, counts: Ints) -> Ints:
    """int64[bins]: copies of each bin's ``item`` (int64[bins]) that conflicts alone let join what is on it
    (int64[bins, items]).
    """
    bins = np.arange(len(item))
    conflicts = instance.conflicts[item]
    with_itself = conflicts[bins, item]
    with_others = conflicts.copy()
    with_others[bins, item] = False
    free = np.where(with_itself, 1 - np.minimum(counts[bins, item], 1), UNLIMITED)
    result: Ints = np.where((with_others & (counts > 0)).any(axis=1), 0, free)
    return result


def without_conflicts(instance: PackingInstance, counts: Ints, item_duals: Floats) -> Ints:
    """int64[bins, items]: the bins without copies that conflict with others on them; items of higher duals stay.

    The relaxation knows conflicts only as cardinality limits, so its mixes may put together what may not be.
    """
    if not instance.has_conflicting_items:
        single: Ints = np.minimum(counts, np.where(instance.conflicts.diagonal(), 1, UNLIMITED))
        return single
    conflicting = np.flatnonzero(instance.conflicts.any(axis=1))
    kept = counts.copy()
    kept[:, conflicting] = 0
    for item in conflicting[np.argsort(-item_duals[conflicting], kind="stable")]:
        kept[:, item] = np.minimum(counts[:, item], _beside(instance, np.full(len(counts), item), kept))
    return kept


def greedy_orders(instance: PackingInstance, item_duals: Floats, bin_types: Ints, items: Ints) -> tuple[Ints, Ints]:
    """Several orders in which a bin of each type might be filled with these items (indices).

    Returns int64[bins], the types, each of them once for every order; and int64[bins, items], the orders.

    Nobody knows in advance which resource of a bin will run out, and an order is good only for the one that does. So
    there is an order for each resource as the scarce one, one for all alike, one by size, and one by dual alone, as
    Panigrahy, Talwar, Uyeda and Wieder (2011, "Heuristics for vector bin packing") weigh resources for first-fit.
    """
    sizes = (instance.sizes[items] / instance.scale)[None]
    share = sizes / np.maximum((instance.capacities[bin_types] / instance.scale)[:, None, :], 1e-12)
    orders = [
        items[np.argsort(-item_duals[items] / ((share * weights).sum(axis=2) + 1e-9), axis=1, kind="stable")]
        for weights in _weights(instance.sizes.shape[1])
    ]
    orders.append(items[np.argsort(-share.max(axis=2), axis=1, kind="stable")])
    by_dual = items[np.argsort(-item_duals[items], kind="stable")]
    orders.append(np.broadcast_to(by_dual, (len(bin_types), len(items))))
    return np.tile(bin_types, len(orders)), np.concatenate(orders)


def _weights(resources: int) -> list[Floats]:
    """float64[resources] each: all resources alike, then each one above the others."""
    return [np.ones(resources), *(np.full(resources, 0.1) + 0.9 * np.eye(resources)[i] for i in range(resources))]
