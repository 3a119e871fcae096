"""Filling bins greedily, thousands at a time: every row of an array is one bin of some type, with an order of items of
its own.

A bin is filled like Dantzig's (1957, "Discrete-variable extremum problems") greedy knapsack: items in the order of
what they are priced at for the capacity that they take, of each as many copies as fit.
"""

import numpy as np

from joinery.decisions.optimizer.arrays import UNLIMITED, Floats, Ints
from joinery.decisions.optimizer.instance.packing_instance import PackingInstance

#: Of so many items at a time it is asked which bins take all of them, and which bins take none. With fewer items than
#: that asking would cost more than it saves.
_BLOCK = 32


def fill(instance: PackingInstance, bin_types: Ints, orders: Ints, demands: Ints, start: Ints | None = None) -> Ints:
    """int64[bins, items]: copies on each bin, filled with as many of its first item as fit, then of its second, and so
    on.

    ``bin_types``: int64[bins]. ``orders``: int64[bins, items in the order], the order of each bin. ``demands``:
    int64[items], copies there are; each bin may take all of them. ``start``: int64[bins, items], copies that are on
    each bin already.
    """
    counts = np.zeros((len(bin_types), len(instance.demands)), dtype=np.int64) if start is None else start.copy()
    filling = _Filling(instance, bin_types, demands, counts)
    every, width = np.arange(len(bin_types)), orders.shape[1]
    for first in range(0, width, _BLOCK):
        block = orders[:, first : first + _BLOCK]
        if width <= _BLOCK:
            filling.take_in_turn(every, block)
            continue
        rows, positions = filling.take_whole(block)
        filling.take_in_turn(rows, block[np.ix_(rows, positions)])
    return counts


class _Filling:
    """Bins that are being filled. ``counts``: int64[bins, items], what is on them, which changes.

    What they have left is kept resource by resource, and so are sizes: numpy is several times as slow along short rows.
    """

    def __init__(self, instance: PackingInstance, bin_types: Ints, demands: Ints, counts: Ints) -> None:
        self._instance, self._counts = instance, counts
        self._free = np.ascontiguousarray((instance.capacities[bin_types] - counts @ instance.sizes).T)
        self._allowed = np.minimum(demands, instance.max_per_bin.T[bin_types]) - counts
        self._sizes = np.ascontiguousarray(instance.sizes.T)
        # An item that takes nothing of a resource is not bounded by it: dividing by one and adding a lot says so
        # without branching.
        self._divisor, self._bonus = np.maximum(self._sizes, 1), np.where(self._sizes > 0, 0, UNLIMITED)
        # Limits on a single item are in ``max_per_bin`` already.
        joint = np.flatnonzero(instance.limit_members.sum(axis=0) > 1)
        self._members = instance.limit_members[:, joint]
        self._caps = instance.limit_caps[joint] - counts @ self._members
        self._has_caps = np.asarray(self._members.any(axis=1))
        self._has_foes = np.asarray(instance.foes.any(axis=1))
        self._is_plain = not len(joint) and not instance.has_conflicting_items

    def take_whole(self, items: Ints) -> tuple[Ints, Ints]:
        """Where all copies of all these items (int64[bins, items]) fit, take them.

        Returns the other bins (indices) that have room for some of the items, and the positions of those items.
        """
        wanted = np.maximum(np.take_along_axis(self._allowed, items, axis=1), 0)
        sizes = self._sizes[:, items]
        fits = (wanted > 0) & (sizes <= self._free[:, :, None]).all(axis=0)
        rows: Ints = np.flatnonzero(fits.any(axis=1))
        if self._is_plain and len(rows):
            needed = (wanted[rows] * sizes[:, rows]).sum(axis=2)
            is_whole = (needed <= self._free[:, rows]).all(axis=0)
            whole, rows = rows[is_whole], rows[~is_whole]
            self._counts[whole[:, None], items[whole]] += wanted[whole]
            self._free[:, whole] -= needed[:, is_whole]
        return rows, np.flatnonzero(fits[rows].any(axis=0))

    def take_in_turn(self, rows: Ints, items: Ints) -> None:
        """Fill these bins (indices) with as many copies as fit, of each one's items (int64[those bins, items]) in
        turn.
        """
        free, caps = self._free[:, rows], self._caps[rows]
        for item in items.T if len(rows) else ():
            fitting = free // self._divisor.take(item, axis=1) + self._bonus.take(item, axis=1)
            taken = np.minimum(fitting.min(axis=0, initial=UNLIMITED), self._allowed[rows, item])
            taken = np.maximum(taken, 0)
            if not self._is_plain:
                self._obey_rules(rows, item, taken, caps)
            self._counts[rows, item] += taken
            free -= taken * self._sizes.take(item, axis=1)
        self._free[:, rows], self._caps[rows] = free, caps

    def _obey_rules(self, rows: Ints, item: Ints, taken: Ints, caps: Ints) -> None:
        """Let fewer copies in (``taken``: int64[those bins] of each one's ``item``) where limits or conflicts say so.

        Both are asked of the few items alone that have some.
        """
        fought = np.flatnonzero(self._has_foes[item])
        if len(fought):
            there = self._counts[rows[fought]] > 0
            taken[fought[(self._instance.foes[item[fought]] & there).any(axis=1)]] = 0
        capped = np.flatnonzero(self._has_caps[item])
        if len(capped):
            members = self._members[item[capped]]
            most = np.where(members, caps[capped], UNLIMITED).min(axis=1, initial=UNLIMITED)
            taken[capped] = np.clip(most, 0, taken[capped])
            caps[capped] -= taken[capped, None] * members


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
        most = 1 if instance.conflicts[item, item] else UNLIMITED
        is_fought = (kept[:, instance.foes[item]] > 0).any(axis=1)
        kept[:, item] = np.where(is_fought, 0, np.minimum(counts[:, item], most))
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
        for weights in _weights(np.flatnonzero(instance.sizes[items].max(axis=0, initial=0)), instance.sizes.shape[1])
    ]
    orders.append(items[np.argsort(-share.max(axis=2), axis=1, kind="stable")])
    by_dual = items[np.argsort(-item_duals[items], kind="stable")]
    orders.append(np.broadcast_to(by_dual, (len(bin_types), len(items))))
    return np.tile(bin_types, len(orders)), np.concatenate(orders)


def _weights(asked: Ints, resources: int) -> list[Floats]:
    """float64[resources] each: all resources alike, then each one above the others that some item asks for (indices);
    the order by another one would be that of all alike.
    """
    above = (np.full(resources, 0.1) + 0.9 * np.eye(resources)[one] for one in asked)
    return [np.ones(resources), *above]
