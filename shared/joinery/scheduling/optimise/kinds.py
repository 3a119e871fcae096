"""What can be bought, as arrays: the kinds of node, and what each admits.

A **kind** is an instance type of a NodePool in some of its offering columns, at its lowest price there. Offering columns that no
demand tells apart are one, so zones multiply the kinds only where a pod is tied to a zone; a capacity reservation is always one
by itself, because there is only so much of it. Kinds that another one dominates
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
"""So many kinds are compared with others together."""
_PAID = 100.0
"""What a reserved node counts as, as a multiple of its price, which solvers would take for nothing at all: fewer of them are better."""


@dataclass(frozen=True, eq=False)
class Claim:
    """One way in which pods may use a pool: the types and the offering columns that suit them. ``item`` is whose."""

    item: int
    pool: int
    types: Mask
    columns: Mask


@dataclass(frozen=True, eq=False)
class Kinds:
    """``pool`` (index), ``row`` (type), ``columns`` (mask over the market's), ``price`` ($/h) and ``cost`` (what the price counts
    as) by kind; ``room``: kinds x resources; ``admits``: items x kinds; ``reservation``: the id, or empty.
    """

    pool: Amounts
    row: Amounts
    columns: tuple[Mask, ...]
    price: Prices
    cost: Prices
    room: Amounts
    admits: NDArray[np.bool_]
    reservation: tuple[str, ...]

    @property
    def is_reserved(self) -> Mask:
        """Which of them are launched in a reservation."""
        return np.array([bool(name) for name in self.reservation], dtype=np.bool_)

    def keep(self, chosen: Amounts) -> "Kinds":
        """These kinds only, in this order."""
        return Kinds(
            self.pool[chosen],
            self.row[chosen],
            tuple(self.columns[i] for i in chosen),
            self.price[chosen],
            self.cost[chosen],
            self.room[chosen],
            self.admits[:, chosen],
            tuple(self.reservation[i] for i in chosen),
        )


def kinds_for(
    pools: Sequence[Pool],
    requests: Amounts,
    claims: Sequence[Claim],
    factors: Sequence[Floats] | None = None,
    spot_types: int = 0,
    *,
    thrifty: bool = False,
) -> Kinds:
    """Every kind that some item may use, without the dominated.

    ``requests``: items x resources. ``factors``: for each pool, what the price of each type counts as, as a multiple. A spot
    kind that fewer than ``spot_types`` types could stand in for counts as a quarter dearer. ``thrifty``: a kind that takes less of its
    pool's limits is not dominated.
    """
    parts = [
        _priced(pools, part, factors, spot_types)
        for index, pool in enumerate(pools)
        for part in _of_pool(pool, index, requests, [claim for claim in claims if claim.pool == index])
    ]
    if not parts:
        width = requests.shape[1]
        none = np.zeros(0, dtype=np.int64)
        empty = np.zeros((len(requests), 0), dtype=np.bool_)
        return Kinds(none, none, (), np.zeros(0), np.zeros(0), np.zeros((0, width), dtype=np.int64), empty, ())
    # The kinds of a large atom first, of which few stay: all together are compared far fewer.
    parts = [
        part.keep(_undominated(part, pools, thrifty=thrifty)) if len(part.row) > _AT_ONCE else part for part in parts
    ]
    found = Kinds(
        np.concatenate([part.pool for part in parts]),
        np.concatenate([part.row for part in parts]),
        tuple(columns for part in parts for columns in part.columns),
        np.concatenate([part.price for part in parts]),
        np.concatenate([part.cost for part in parts]),
        np.concatenate([part.room for part in parts]),
        np.concatenate([part.admits for part in parts], axis=1),
        tuple(name for part in parts for name in part.reservation),
    )
    return found.keep(_undominated(found, pools, thrifty=thrifty))


def _priced(pools: Sequence[Pool], part: Kinds, factors: Sequence[Floats] | None, spot_types: int) -> Kinds:
    """An atom's kinds with what their prices count as."""
    return replace(part, cost=_cost(pools, part, factors, spot_types)) if len(part.row) else part


def _cost(pools: Sequence[Pool], part: Kinds, factors: Sequence[Floats] | None, spot_types: int) -> Prices:
    """What the prices of an atom's kinds count as."""
    if not len(part.row):
        return part.price
    pool = pools[int(part.pool[0])]
    if part.reservation[0]:
        return part.price * _PAID
    cost = part.price * factors[int(part.pool[0])][part.row] if factors else part.price
    spot = [column.capacity_type == SPOT for column in pool.market.columns] & part.columns[0]
    if not spot_types or not spot.any():
        return cost
    cheapest = pool.market.prices[:, spot].min(axis=1)[part.row]
    sold = part.room[np.isfinite(cheapest)]
    stand_ins = (sold[None] >= part.room[:, None]).all(axis=2).sum(axis=1)
    return np.where((cheapest <= part.price) & (stand_ins < spot_types), cost * _FRAGILE, cost)


def stocks(kinds: Kinds, left: Mapping[str, int]) -> tuple[Amounts, Amounts]:
    """How many nodes there are of each kind, and its pile: kinds of one reservation share what is ``left`` of it, by id."""
    known = {name: index for index, name in enumerate(sorted(set(kinds.reservation)))}
    stock = [left.get(name, 0) if name else UNLIMITED for name in kinds.reservation]
    pile = [known[name] if name else len(known) + index for index, name in enumerate(kinds.reservation)]
    return np.array(stock, dtype=np.int64), np.array(pile, dtype=np.int64)


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


def _of_pool(pool: Pool, index: int, requests: Amounts, claims: Sequence[Claim]) -> Iterator[Kinds]:
    columns = np.array([claim.columns for claim in claims])
    for atom in _atoms(pool, [claim.columns for claim in claims]):
        suited = np.flatnonzero(columns[:, atom].all(axis=1))
        yield _of_atom(pool, index, atom, requests, [claims[number] for number in suited])


def _of_atom(pool: Pool, index: int, atom: Mask, requests: Amounts, claims: Sequence[Claim]) -> Kinds:
    """The kinds of one atom; ``claims``: those that allow it."""
    price = pool.market.prices[:, atom].min(axis=1, initial=np.inf)
    row = np.flatnonzero(pool.types & np.isfinite(price) & (pool.room >= 0).all(axis=1))
    admits = np.zeros((len(requests), len(row)), dtype=np.bool_)
    for claim in claims:
        admits[claim.item] |= claim.types[row]
    admits &= (pool.room[row][None, :, :] >= requests[:, None, :]).all(axis=2)
    reservation = next((name for name, _ in reserved_columns(pool, atom)), "")
    number, prices = len(row), price[row]
    return Kinds(
        np.full(number, index), row, (atom,) * number, prices, prices, pool.room[row], admits, (reservation,) * number
    )


def _undominated(kinds: Kinds, pools: Sequence[Pool], *, thrifty: bool) -> Amounts:
    """Every kind in a reservation, and of the others those that none beats: none of their own pool, nor of any pool that is endless."""
    order = np.lexsort((kinds.row, -kinds.room.sum(axis=1), kinds.cost))
    order = order[kinds.admits[:, order].any(axis=0)]
    kept: Amounts = np.flatnonzero(kinds.is_reserved)
    kept = kept[np.isin(kept, order)]
    bought = order[~kinds.is_reserved[order]]
    endless = np.array([not (pool.limits or pool.min_values) for pool in pools])[kinds.pool[bought]]
    best = _best(kinds, kinds.room, bought[endless], bought[:0])
    for pool in np.unique(kinds.pool[bought[~endless]]):
        mine = bought[kinds.pool[bought] == pool]
        merits = _merits(kinds, pools[pool], mine) if thrifty else kinds.room
        kept = np.concatenate([kept, _best(kinds, merits, mine, best)])
    return np.sort(np.concatenate([kept, best]))


def _merits(kinds: Kinds, pool: Pool, mine: Amounts) -> Amounts:
    """Room, and what the pool's kinds leave of its limits: those of other pools take none of them (kinds x what is good to have more of)."""
    capacity, _ = pool.limited
    taken = np.zeros((len(kinds.row), capacity.shape[1]), dtype=np.int64)
    taken[mine] = capacity[kinds.row[mine]]
    return np.concatenate([kinds.room, -taken], axis=1)


def _best(kinds: Kinds, merits: Amounts, order: Amounts, rivals: Amounts) -> Amounts:
    """The kinds that neither one before them in ``order`` nor a rival dominates, sought many at a time."""
    kept: Amounts = order[:0]
    for start in range(0, len(order), _AT_ONCE):
        some = order[start : start + _AT_ONCE]
        # Whatever is dominated by a kind that was left out is dominated by what dominates that.
        some = some[~_dominates(kinds, merits, some, np.concatenate([rivals, kept])).any(axis=1)]
        within = np.tril(_dominates(kinds, merits, some, some), -1)
        kept = np.concatenate([kept, some[~within.any(axis=1)]])
    return kept


def _dominates(kinds: Kinds, merits: Amounts, some: Amounts, rivals: Amounts) -> Mask:
    """Whether each rival (column) is no dearer and as good and admits as much as each of some kinds (row)."""
    large = kinds.cost[rivals][None] <= kinds.cost[some][:, None]
    for merit in range(merits.shape[1]):
        large &= merits[rivals, merit][None] >= merits[some, merit][:, None]
    # Counted by a product of matrices, which is many times sooner than an intersection for each pair.
    mine, refused = kinds.admits[:, some].astype(np.float32), ~kinds.admits[:, rivals]
    misses: Mask = np.asarray(mine.T @ refused.astype(np.float32) > 0)
    return np.asarray(large & ~misses)
