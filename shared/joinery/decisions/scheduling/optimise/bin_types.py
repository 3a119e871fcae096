"""What can be bought, as bin types: an instance type of a NodePool in some of its offerings, at its lowest price there.

Offerings (zone and capacity type) that no demand tells apart are one, so zones multiply the bin types only where some
pod is tied to a zone. A capacity reservation is always by itself, because there is only so much of it. Bin types that
another one dominates are left out (``dominance``): of 3,000 a hundred stay.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from joinery.decisions.optimizer.arrays import UNLIMITED, Floats, Ints, Mask
from joinery.decisions.scheduling.firstfit.new_node import NewNode
from joinery.decisions.scheduling.pools.pool import Pool
from joinery.decisions.scheduling.pools.reserved import reserved_columns
from joinery.objects.karpenter.labels import SPOT

#: What a spot price counts as, as a multiple, where few instance types could stand in for this one when EC2 takes it
#: back.
_FRAGILE = 1.25
#: What the price of a reserved node counts as, as a multiple. It is a ten-millionth of the on-demand price, which HiGHS
#: would take for nothing; so it still counts that fewer of them are better.
_RESERVED = 100.0


@dataclass(frozen=True, eq=False)
class PoolUse:
    """One way in which the pods of an item (index) may use a pool (index).

    ``types``: bool[instance types], ``offerings``: bool[offering columns] of the pool's market that suit them.
    """

    item: int
    pool: int
    types: Mask
    offerings: Mask


@dataclass(frozen=True, eq=False)
class BinTypes:
    """``pool``: int64[bin types], index. ``instance_type``: int64[bin types], row of the pool's market.
    ``offerings``: for each bin type bool[offering columns of its market]. ``reservations``: for each the id, or empty.
    ``prices``: float64[bin types], $/h. ``costs``: float64[bin types], $/h, what the price counts as.
    ``capacities``: int64[bin types, resources], for pods. ``compatible``: bool[items, bin types].
    """

    pool: Ints
    instance_type: Ints
    offerings: tuple[Mask, ...]
    prices: Floats
    costs: Floats
    capacities: Ints
    compatible: Mask
    reservations: tuple[str, ...]

    @property
    def is_reserved(self) -> Mask:
        """bool[bin types]: those that are launched in a reservation."""
        return np.array([bool(name) for name in self.reservations], dtype=np.bool_)

    def keep(self, chosen: Ints) -> "BinTypes":
        """Those at these indices, in this order."""
        return BinTypes(
            self.pool[chosen],
            self.instance_type[chosen],
            tuple(self.offerings[index] for index in chosen),
            self.prices[chosen],
            self.costs[chosen],
            self.capacities[chosen],
            self.compatible[:, chosen],
            tuple(self.reservations[index] for index in chosen),
        )


def joined(parts: Sequence[BinTypes], items: int, resources: int) -> BinTypes:
    """All parts as one; of none of them, one without bin types."""
    if not parts:
        none = np.zeros(0, dtype=np.int64)
        capacities, compatible = np.zeros((0, resources), dtype=np.int64), np.zeros((items, 0), dtype=np.bool_)
        return BinTypes(none, none, (), np.zeros(0), np.zeros(0), capacities, compatible, ())
    return BinTypes(
        np.concatenate([part.pool for part in parts]),
        np.concatenate([part.instance_type for part in parts]),
        tuple(offerings for part in parts for offerings in part.offerings),
        np.concatenate([part.prices for part in parts]),
        np.concatenate([part.costs for part in parts]),
        np.concatenate([part.capacities for part in parts]),
        np.concatenate([part.compatible for part in parts], axis=1),
        tuple(name for part in parts for name in part.reservations),
    )


@dataclass(frozen=True, kw_only=True)
class Preferences:
    """What makes a price count as other than it is.

    ``size_factors``: for each pool float64[instance types of its market], a multiple of the price. ``spot_types``: a
    spot offering that fewer instance types could stand in for counts as a quarter dearer.
    """

    size_factors: Sequence[Floats]
    spot_types: int


def groups_of_offerings(
    pools: Sequence[Pool], requests: Ints, uses: Sequence[PoolUse], preferences: Preferences | None
) -> Iterator[BinTypes]:
    """Every bin type that some item may use, in parts: one for each pool and each set of its offerings that no use
    tells apart.
    """
    for index, pool in enumerate(pools):
        of_pool = [use for use in uses if use.pool == index]
        allowed = np.array([use.offerings for use in of_pool])
        for offerings in _told_apart(pool, allowed):
            suited = np.flatnonzero(allowed[:, offerings].all(axis=1))
            part = _in_offerings(pool, index, offerings, requests, [of_pool[number] for number in suited])
            yield part if preferences is None else replace(part, costs=_costs(pool, part, preferences))


def _told_apart(pool: Pool, allowed: Mask) -> list[Mask]:
    """Sets of the pool's offering columns; those that each use allows or forbids together are in one, each reservation
    in one alone.

    ``allowed``: bool[uses, offering columns].
    """
    if not len(allowed):
        return []
    distinct = np.unique(allowed, axis=0)
    signatures, which = np.unique(distinct.T, axis=0, return_inverse=True)
    wanted = [which.ravel() == number for number in range(len(signatures)) if signatures[number].any()]
    sets = [columns & pool.unreserved for columns in wanted]
    sets += [alone for columns in wanted for _, alone in reserved_columns(pool, columns)]
    return [columns for columns in sets if columns.any()]


def _in_offerings(pool: Pool, index: int, offerings: Mask, requests: Ints, uses: Sequence[PoolUse]) -> BinTypes:
    """The bin types of one set of offering columns; ``uses``: those that allow it."""
    least = pool.market.prices[:, offerings].min(axis=1, initial=np.inf)
    types = np.flatnonzero(pool.types & np.isfinite(least) & (pool.room >= 0).all(axis=1))
    compatible = np.zeros((len(requests), len(types)), dtype=np.bool_)
    for use in uses:
        compatible[use.item] |= use.types[types]
    compatible &= (pool.room[types][None, :, :] >= requests[:, None, :]).all(axis=2)
    reservation = next((name for name, _ in reserved_columns(pool, offerings)), "")
    number, prices = len(types), least[types]
    return BinTypes(
        pool=np.full(number, index),
        instance_type=types,
        offerings=(offerings,) * number,
        prices=prices,
        costs=prices,
        capacities=pool.room[types],
        compatible=compatible,
        reservations=(reservation,) * number,
    )


def _costs(pool: Pool, part: BinTypes, preferences: Preferences) -> Floats:
    """float64[bin types of the part]: what their prices count as."""
    if not len(part.instance_type):
        return part.prices
    if part.reservations[0]:
        return part.prices * _RESERVED
    costs = part.prices * preferences.size_factors[int(part.pool[0])][part.instance_type]
    is_spot = [column.capacity_type == SPOT for column in pool.market.columns] & part.offerings[0]
    if not preferences.spot_types or not is_spot.any():
        return costs
    cheapest_spot = pool.market.prices[:, is_spot].min(axis=1)[part.instance_type]
    sold = part.capacities[np.isfinite(cheapest_spot)]
    stand_ins = (sold[None] >= part.capacities[:, None]).all(axis=2).sum(axis=1)
    is_fragile = (cheapest_spot <= part.prices) & (stand_ins < preferences.spot_types)
    return np.where(is_fragile, costs * _FRAGILE, costs)


def spot_factor(node: NewNode, spot_types: int) -> float:
    """The same for a node that is built: what its price counts as, as a multiple."""
    market = node.pool.market
    is_spot = [column.capacity_type == SPOT for column in market.columns] & node.columns
    if not is_spot.any():
        return 1.0
    prices = market.prices[node.types][:, is_spot].min(axis=1)
    is_on_spot = prices.min(initial=np.inf) <= node.least_prices[node.types].min()
    return _FRAGILE if is_on_spot and int(np.isfinite(prices).sum()) < spot_types else 1.0


def supplies(bin_types: BinTypes, left: Mapping[str, int]) -> tuple[Ints, Ints]:
    """int64[bin types] twice: how many nodes there are, and the supply they draw on (``PackingInstance``).

    Bin types of one capacity reservation share what is ``left`` of it, by its id.
    """
    numbers = {name: index for index, name in enumerate(sorted(set(bin_types.reservations)))}
    available = [left.get(name, 0) if name else UNLIMITED for name in bin_types.reservations]
    supply = [numbers[name] if name else len(numbers) + index for index, name in enumerate(bin_types.reservations)]
    return np.array(available, dtype=np.int64), np.array(supply, dtype=np.int64)
