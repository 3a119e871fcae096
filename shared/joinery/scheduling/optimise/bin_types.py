"""What can be bought, as arrays: the bin_types of node, and what each admits.

A **kind** is an instance type of a NodePool in some of its offering columns, at its lowest price there. Offering columns that no
demand tells apart are one, so zones multiply the bin_types only where a pod is tied to a zone; a capacity reservation is always one
by itself, because there is only so much of it. BinTypes that another one dominates
(no dearer, no smaller, admits all that they admit, and without end: in the same pool, or in one without limits) are left out: of 3,000 a
hundred stay.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from joinery.apis.labels import SPOT
from joinery.optimizer.arrays import UNLIMITED
from joinery.scheduling.firstfit.targets import NewNode
from joinery.scheduling.pools.pool import Amounts, Mask, Pool, Prices
from joinery.scheduling.pools.reserved import reserved_columns

Floats = NDArray[np.float64]

_FRAGILE = 1.25
_AT_ONCE = 64
"""So many bin_types are compared with others together."""
_PAID = 100.0
"""What a reserved node counts as, as a multiple of its price, which solvers would take for nothing at all: fewer of them are better."""


@dataclass(frozen=True, eq=False)
class PoolUse:
    """One way in which pods may use a pool: the types and the offering columns that suit them. ``item`` is whose."""

    item: int
    pool: int
    types: Mask
    offerings: Mask


@dataclass(frozen=True, eq=False)
class BinTypes:
    """``pool`` (index), ``instance_type`` (type), ``offerings`` (mask over the market's), ``prices`` ($/h) and ``costs`` (what the price counts
    as) by kind; ``capacities``: bin_types x resources; ``compatible``: items x bin_types; ``reservations``: the id, or empty.
    """

    pool: Amounts
    instance_type: Amounts
    offerings: tuple[Mask, ...]
    prices: Prices
    costs: Prices
    capacities: Amounts
    compatible: NDArray[np.bool_]
    reservations: tuple[str, ...]

    @property
    def is_reserved(self) -> Mask:
        """Which of them are launched in a reservation."""
        return np.array([bool(name) for name in self.reservations], dtype=np.bool_)

    def keep(self, chosen: Amounts) -> "BinTypes":
        """These bin_types only, in this order."""
        return BinTypes(
            self.pool[chosen],
            self.instance_type[chosen],
            tuple(self.offerings[i] for i in chosen),
            self.prices[chosen],
            self.costs[chosen],
            self.capacities[chosen],
            self.compatible[:, chosen],
            tuple(self.reservations[i] for i in chosen),
        )


def bin_types_for(
    pools: Sequence[Pool],
    requests: Amounts,
    uses: Sequence[PoolUse],
    factors: Sequence[Floats] | None = None,
    spot_types: int = 0,
    *,
    with_limits: bool = False,
) -> BinTypes:
    """Every kind that some item may use, without the dominated.

    ``requests``: items x resources. ``factors``: for each pool, what the price of each type counts as, as a multiple. A spot
    kind that fewer than ``spot_types`` types could stand in for counts as a quarter dearer. ``with_limits``: a kind that takes less of its
    pool's limits is not dominated.
    """
    parts = [
        _priced(pools, part, factors, spot_types)
        for index, pool in enumerate(pools)
        for part in _of_pool(pool, index, requests, [use for use in uses if use.pool == index])
    ]
    if not parts:
        width = requests.shape[1]
        none = np.zeros(0, dtype=np.int64)
        empty = np.zeros((len(requests), 0), dtype=np.bool_)
        return BinTypes(none, none, (), np.zeros(0), np.zeros(0), np.zeros((0, width), dtype=np.int64), empty, ())
    # The bin_types of a large atom first, of which few stay: all together are compared far fewer.
    parts = [
        part.keep(_undominated(part, pools, with_limits=with_limits)) if len(part.instance_type) > _AT_ONCE else part
        for part in parts
    ]
    found = BinTypes(
        np.concatenate([part.pool for part in parts]),
        np.concatenate([part.instance_type for part in parts]),
        tuple(columns for part in parts for columns in part.offerings),
        np.concatenate([part.prices for part in parts]),
        np.concatenate([part.costs for part in parts]),
        np.concatenate([part.capacities for part in parts]),
        np.concatenate([part.compatible for part in parts], axis=1),
        tuple(name for part in parts for name in part.reservations),
    )
    return found.keep(_undominated(found, pools, with_limits=with_limits))


def _priced(pools: Sequence[Pool], part: BinTypes, factors: Sequence[Floats] | None, spot_types: int) -> BinTypes:
    """An atom's bin_types with what their prices count as."""
    return replace(part, costs=_cost(pools, part, factors, spot_types)) if len(part.instance_type) else part


def _cost(pools: Sequence[Pool], part: BinTypes, factors: Sequence[Floats] | None, spot_types: int) -> Prices:
    """What the prices of an atom's bin_types count as."""
    if not len(part.instance_type):
        return part.prices
    pool = pools[int(part.pool[0])]
    if part.reservations[0]:
        return part.prices * _PAID
    cost = part.prices * factors[int(part.pool[0])][part.instance_type] if factors else part.prices
    spot = [column.capacity_type == SPOT for column in pool.market.columns] & part.offerings[0]
    if not spot_types or not spot.any():
        return cost
    cheapest = pool.market.prices[:, spot].min(axis=1)[part.instance_type]
    sold = part.capacities[np.isfinite(cheapest)]
    stand_ins = (sold[None] >= part.capacities[:, None]).all(axis=2).sum(axis=1)
    return np.where((cheapest <= part.prices) & (stand_ins < spot_types), cost * _FRAGILE, cost)


def supplies(bin_types: BinTypes, left: Mapping[str, int]) -> tuple[Amounts, Amounts]:
    """How many nodes there are of each kind, and its supply: bin_types of one reservation share what is ``left`` of it, by id."""
    known = {name: index for index, name in enumerate(sorted(set(bin_types.reservations)))}
    available = [left.get(name, 0) if name else UNLIMITED for name in bin_types.reservations]
    supply = [known[name] if name else len(known) + index for index, name in enumerate(bin_types.reservations)]
    return np.array(available, dtype=np.int64), np.array(supply, dtype=np.int64)


def spot_factor(node: NewNode, spot_types: int) -> float:
    """What a node's price counts as, as a multiple: it is dearer if it would be bought on spot with fewer types than that."""
    market = node.pool.market
    spot = [column.capacity_type == SPOT for column in market.columns] & node.columns
    if not spot.any():
        return 1.0
    prices = market.prices[node.types][:, spot].min(axis=1)
    on_spot = prices.min(initial=np.inf) <= node.least_prices[node.types].min()
    return _FRAGILE if on_spot and int(np.isfinite(prices).sum()) < spot_types else 1.0


def _atoms(pool: Pool, masks: Sequence[Mask]) -> list[Mask]:
    """The pool's offering columns, those together that every demand allows or forbids together; each reservation alone."""
    if not masks:
        return []
    distinct = np.unique(np.array(masks), axis=0)
    signatures, which = np.unique(distinct.T, axis=0, return_inverse=True)
    wanted = [which.ravel() == i for i in range(len(signatures)) if signatures[i].any()]
    atoms = [atom & pool.bought for atom in wanted]
    atoms += [alone for atom in wanted for _, alone in reserved_columns(pool, atom)]
    return [atom for atom in atoms if atom.any()]


def _of_pool(pool: Pool, index: int, requests: Amounts, uses: Sequence[PoolUse]) -> Iterator[BinTypes]:
    columns = np.array([use.offerings for use in uses])
    for atom in _atoms(pool, [use.offerings for use in uses]):
        suited = np.flatnonzero(columns[:, atom].all(axis=1))
        yield _of_atom(pool, index, atom, requests, [uses[number] for number in suited])


def _of_atom(pool: Pool, index: int, atom: Mask, requests: Amounts, uses: Sequence[PoolUse]) -> BinTypes:
    """The bin_types of one atom; ``uses``: those that allow it."""
    price = pool.market.prices[:, atom].min(axis=1, initial=np.inf)
    row = np.flatnonzero(pool.types & np.isfinite(price) & (pool.room >= 0).all(axis=1))
    admits = np.zeros((len(requests), len(row)), dtype=np.bool_)
    for use in uses:
        admits[use.item] |= use.types[row]
    admits &= (pool.room[row][None, :, :] >= requests[:, None, :]).all(axis=2)
    reservation = next((name for name, _ in reserved_columns(pool, atom)), "")
    number, prices = len(row), price[row]
    return BinTypes(
        np.full(number, index), row, (atom,) * number, prices, prices, pool.room[row], admits, (reservation,) * number
    )


def _undominated(bin_types: BinTypes, pools: Sequence[Pool], *, with_limits: bool) -> Amounts:
    """Every kind in a reservation, and of the others those that none beats: none of their own pool, nor of any pool that is endless."""
    order = np.lexsort((bin_types.instance_type, -bin_types.capacities.sum(axis=1), bin_types.costs))
    order = order[bin_types.compatible[:, order].any(axis=0)]
    kept: Amounts = np.flatnonzero(bin_types.is_reserved)
    kept = kept[np.isin(kept, order)]
    bought = order[~bin_types.is_reserved[order]]
    endless = np.array([not (pool.limits or pool.min_values) for pool in pools])[bin_types.pool[bought]]
    best = _best(bin_types, bin_types.capacities, bought[endless], bought[:0])
    for pool in np.unique(bin_types.pool[bought[~endless]]):
        mine = bought[bin_types.pool[bought] == pool]
        merits = _merits(bin_types, pools[pool], mine) if with_limits else bin_types.capacities
        kept = np.concatenate([kept, _best(bin_types, merits, mine, best)])
    return np.sort(np.concatenate([kept, best]))


def _merits(bin_types: BinTypes, pool: Pool, mine: Amounts) -> Amounts:
    """Room, and what the pool's bin_types leave of its limits: those of other pools take none of them (bin_types x what is good to have more of)."""
    capacity, _ = pool.limited
    taken = np.zeros((len(bin_types.instance_type), capacity.shape[1]), dtype=np.int64)
    taken[mine] = capacity[bin_types.instance_type[mine]]
    return np.concatenate([bin_types.capacities, -taken], axis=1)


def _best(bin_types: BinTypes, merits: Amounts, order: Amounts, rivals: Amounts) -> Amounts:
    """The bin_types that neither one before them in ``order`` nor a rival dominates, sought many at a time."""
    kept: Amounts = order[:0]
    for start in range(0, len(order), _AT_ONCE):
        some = order[start : start + _AT_ONCE]
        # Whatever is dominated by a kind that was left out is dominated by what dominates that.
        some = some[~_dominates(bin_types, merits, some, np.concatenate([rivals, kept])).any(axis=1)]
        within = np.tril(_dominates(bin_types, merits, some, some), -1)
        kept = np.concatenate([kept, some[~within.any(axis=1)]])
    return kept


def _dominates(bin_types: BinTypes, merits: Amounts, some: Amounts, rivals: Amounts) -> Mask:
    """Whether each rival (column) is no dearer and as good and admits as much as each of some bin_types (row)."""
    large = bin_types.costs[rivals][None] <= bin_types.costs[some][:, None]
    for merit in range(merits.shape[1]):
        large &= merits[rivals, merit][None] >= merits[some, merit][:, None]
    # Counted by a product of matrices, which is many times sooner than an intersection for each pair.
    mine, refused = bin_types.compatible[:, some].astype(np.float32), ~bin_types.compatible[:, rivals]
    misses: Mask = np.asarray(mine.T @ refused.astype(np.float32) > 0)
    return np.asarray(large & ~misses)
