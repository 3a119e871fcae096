"""Bin types without those that another one dominates: no dearer, no smaller, for every item that the other is for, and
without end.

A node of a dominated type could always be one of the other, so leaving it out changes neither the least cost nor any
bound. Two NodePools of the same types are one market by it. A pool with limits may run out and minValues ask for more
than price, so bin types of such pools dominate only those of their own pool; and a reservation is never left out.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from joinery.decisions.optimizer.arrays import Ints, Mask
from joinery.decisions.scheduling.optimise.bin_types import BinTypes, PoolUse, Preferences, groups_of_offerings, joined
from joinery.decisions.scheduling.pools.pool import Pool

#: How many bin types are compared at once with those kept so far. With more, most comparisons are with what is soon
#: left out.
_AT_ONCE = 64


def bin_types_for(
    pools: Sequence[Pool],
    requests: Ints,
    uses: Sequence[PoolUse],
    preferences: Preferences | None = None,
    *,
    with_limits: bool = False,
) -> BinTypes:
    """Every bin type that some item may use, without the dominated.

    ``requests``: int64[items, resources]. ``with_limits``: one that takes less of its pool's limits is not dominated.
    """
    parts = list(groups_of_offerings(pools, requests, uses, preferences))
    # Those of a large part first, of which few stay, so that far fewer are compared in the end.
    parts = [
        part.keep(_undominated(part, pools, with_limits=with_limits)) if len(part.instance_type) > _AT_ONCE else part
        for part in parts
    ]
    every = joined(parts, *requests.shape)
    return every.keep(_undominated(every, pools, with_limits=with_limits)) if parts else every


def _undominated(bin_types: BinTypes, pools: Sequence[Pool], *, with_limits: bool) -> Ints:
    """Indices, in order."""
    bin_types = replace(bin_types, compatible=_distinct(bin_types.compatible))
    order = np.lexsort((bin_types.instance_type, -bin_types.capacities.sum(axis=1), bin_types.costs))
    order = order[bin_types.compatible[:, order].any(axis=0)]
    kept: Ints = np.flatnonzero(bin_types.is_reserved)
    kept = kept[np.isin(kept, order)]
    bought = order[~bin_types.is_reserved[order]]
    is_endless = np.array([not (pool.limits or pool.min_values) for pool in pools])[bin_types.pool[bought]]
    best = _best(bin_types, bin_types.capacities, bought[is_endless], bought[:0])
    for pool in np.unique(bin_types.pool[bought[~is_endless]]):
        of_pool = bought[bin_types.pool[bought] == pool]
        merits = _merits(bin_types, pools[pool], of_pool) if with_limits else bin_types.capacities
        kept = np.concatenate([kept, _best(bin_types, merits, of_pool, best)])
    return np.sort(np.concatenate([kept, best]))


def _distinct(compatible: Mask) -> Mask:
    """The rows that differ: of hundreds of items many are for the same bin types."""
    packed = np.packbits(compatible, axis=1)
    return compatible[np.unique(packed, axis=0, return_index=True)[1]] if packed.size else compatible


def _merits(bin_types: BinTypes, pool: Pool, of_pool: Ints) -> Ints:
    """int64[bin types, merits]: capacities, and less what the pool's own take of its limits. Those of other pools take
    none of them.
    """
    capacity, _ = pool.limited
    taken = np.zeros((len(bin_types.instance_type), capacity.shape[1]), dtype=np.int64)
    taken[of_pool] = capacity[bin_types.instance_type[of_pool]]
    return np.concatenate([bin_types.capacities, -taken], axis=1)


def _best(bin_types: BinTypes, merits: Ints, order: Ints, rivals: Ints) -> Ints:
    """Of ``order`` (indices) those that neither one before them nor a rival (index) dominates."""
    kept: Ints = order[:0]
    for start in range(0, len(order), _AT_ONCE):
        some = order[start : start + _AT_ONCE]
        # Comparing with those kept is enough: what is dominated by one that was left out is dominated by what
        # dominates that.
        some = some[~_dominates(bin_types, merits, some, np.concatenate([rivals, kept])).any(axis=1)]
        within = np.tril(_dominates(bin_types, merits, some, some), -1)
        kept = np.concatenate([kept, some[~within.any(axis=1)]])
    return kept


def _dominates(bin_types: BinTypes, merits: Ints, some: Ints, rivals: Ints) -> Mask:
    """bool[some, rivals]: whether the rival dominates; both are indices."""
    is_as_good = bin_types.costs[rivals][None] <= bin_types.costs[some][:, None]
    for merit in range(merits.shape[1]):
        is_as_good &= merits[rivals, merit][None] >= merits[some, merit][:, None]
    # Items that the one is for and the rival is not, counted by a product of matrices: many times faster than a set
    # for each pair.
    own, refused = bin_types.compatible[:, some].astype(np.float32), ~bin_types.compatible[:, rivals]
    lacks: Mask = np.asarray(own.T @ refused.astype(np.float32) > 0)
    return np.asarray(is_as_good & ~lacks)
