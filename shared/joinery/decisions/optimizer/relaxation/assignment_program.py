"""The assignment relaxation written down: which variable and which row of the linear program is what.

Buy x_k bins of type k, and put y_ik copies of item i on them, both in fractions::

    minimise    sum_k c_k x_k
    subject to  sum_k y_ik           = d_i            every copy is packed
                sum_i s_ij y_ik     <= C_kj x_k       no resource j of a bin type is overdrawn
                sum_{k in S} x_k    <= n_S            no supply shared by several bin types is overdrawn
                sum_{i in g} y_ik   <= cap_g x_k      a cardinality limit, or one item of which few fit on a bin
                0 <= x_k <= n_k                       no supply of a single bin type is overdrawn

The variables are the bin types, then every compatible pair of an item and a bin type. The rows come in the order
above. Sizes and capacities are divided by the instance's scale. Every packing satisfies all rows, which is why the
optimum is a lower bound.

This is Kantorovich's formulation (1960, "Mathematical methods of organizing and planning production") with the bins of
a type added up: single bins are alike, and a variable for each would only add symmetry.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from joinery.decisions.optimizer import tuning
from joinery.decisions.optimizer.arrays import UNLIMITED, Floats, Ints
from joinery.decisions.optimizer.instance.packing_instance import CardinalityLimit, PackingInstance
from joinery.decisions.optimizer.linear.highs import Indices, LinearProgram


@dataclass(frozen=True, eq=False, slots=True)
class CardinalityRow:
    """At most ``cap`` copies of ``items`` (int64, indices) together on a bin of the type.

    ``limit``: the instance's cardinality limit that the row is for; -1 if it is for one item of which only ``cap`` fit.
    """

    items: Ints
    bin_type: int
    cap: int
    limit: int = -1


class AssignmentProgram:
    """``pair_items``, ``pair_bin_types``: int64[pairs], the compatible pairs in the order of their variables.

    ``resources``: int64[used], those that some item asks for: others have no rows. ``shared_supplies``: the bin types
    (indices) of each supply that several of them share. ``limit_rows``: the rows that the cardinality limits need from
    the start. ``own_limit``: int64[items, bin types], the limit (index) that no other item of the bin type counts for,
    -1 where there is none; ``own_cap``: its cap. ``lists_own``: those limits have rows from the start too, because it
    is asked for, because they are few, or because others have rows anyway.
    """

    def __init__(self, instance: PackingInstance, *, lists_own: bool = False) -> None:
        self.instance = instance
        self.item_count, self.bin_type_count = instance.compatible.shape
        self.pair_items, self.pair_bin_types = np.nonzero(instance.compatible)
        self.resources = np.flatnonzero((instance.sizes > 0).any(axis=0))
        self.shared_supplies = _shared_supplies(instance)
        self.own_limit = _own_limits(instance)
        caps = np.append(instance.limit_caps, UNLIMITED)
        self.own_cap: Ints = caps[self.own_limit]
        sharing = [instance.compatible[limit.items].sum(axis=0) for limit in instance.cardinality_limits]
        are_few = (self.own_limit >= 0).sum() <= tuning.FEW_LIMIT_ROWS
        self.lists_own = bool(lists_own or are_few or any((items > 1).any() for items in sharing))
        self._limited_bin_types = [np.flatnonzero(items > (0 if self.lists_own else 1)) for items in sharing]
        self.limit_rows = [
            CardinalityRow(limit.items, int(bin_type), limit.cap, number)
            for number, (limit, bin_types) in enumerate(self._limits())
            for bin_type in bin_types
        ]
        self._pair_column = np.full(instance.compatible.shape, -1)
        self._pair_column[self.pair_items, self.pair_bin_types] = np.arange(len(self.pair_items)) + self.bin_type_count

    @property
    def first_supply_row(self) -> int:
        """The first row of shared supplies, after those of demands and capacities."""
        return self.item_count + len(self.resources) * self.bin_type_count

    @property
    def first_cardinality_row(self) -> int:
        """The first row of cardinality limits; rows that are added later come after them."""
        return self.first_supply_row + len(self.shared_supplies)

    def _limits(self) -> Iterator[tuple[CardinalityLimit, Ints]]:
        """The cardinality limits in the order of their rows; each has one for each of these bin types (indices)."""
        return zip(self.instance.cardinality_limits, self._limited_bin_types, strict=True)

    def entries(self, row: CardinalityRow) -> tuple[Indices, Floats]:
        """The columns and values of a cardinality row: its items' pairs less ``cap`` times the bins."""
        held = self._pair_column[row.items, row.bin_type]
        held = held[held >= 0]
        columns, values = np.full(len(held) + 1, row.bin_type), np.ones(len(held) + 1)
        columns[:-1], values[-1] = held, -float(row.cap)
        return columns.astype(np.int32), values

    def linear_program(self) -> LinearProgram:
        """The program with ``limit_rows``. Demands are left at zero: they are set for each solve."""
        entries = [*self._demand_and_capacity_entries()]
        row = self.first_supply_row
        for offset, bin_types in enumerate(self.shared_supplies):
            entries.append((np.full(len(bin_types), row + offset), bin_types, np.ones(len(bin_types))))
        entries += self._limit_entries()
        rows, columns, values = (np.concatenate(part) for part in zip(*entries, strict=True))
        height, pairs = self.first_cardinality_row + len(self.limit_rows), len(self.pair_items)
        upper = np.zeros(height)
        upper[self.first_supply_row : self.first_cardinality_row] = self.supply_ends(self.instance.available)
        return LinearProgram(
            costs=np.concatenate([self.instance.costs, np.zeros(pairs)]),
            upper_bounds=np.concatenate([bin_bounds(self.instance.available), np.full(pairs, np.inf)]),
            row_lower=np.where(np.arange(height) < self.item_count, 0.0, -np.inf),
            row_upper=upper,
            rows=rows.astype(np.int32),
            columns=columns.astype(np.int32),
            values=values.astype(np.float64),
        )

    def _demand_and_capacity_entries(self) -> list[tuple[Ints, Ints, Floats]]:
        instance, bin_types = self.instance, np.arange(self.bin_type_count)
        pairs = np.arange(len(self.pair_items)) + self.bin_type_count
        sizes, capacities = instance.sizes / instance.scale, instance.capacities / instance.scale
        entries: list[tuple[Ints, Ints, Floats]] = [(self.pair_items, pairs, np.ones(len(pairs)))]
        row = self.item_count
        for resource in self.resources:
            asks = sizes[self.pair_items, resource] > 0
            taken = sizes[self.pair_items[asks], resource]
            entries.append((row + self.pair_bin_types[asks], pairs[asks], taken))
            entries.append((row + bin_types, bin_types, -capacities[:, resource]))
            row += self.bin_type_count
        return entries

    def _limit_entries(self) -> list[tuple[Ints, Ints, Floats]]:
        """What ``entries`` says of all ``limit_rows``, at once: there are hundreds."""
        entries: list[tuple[Ints, Ints, Floats]] = []
        row = self.first_cardinality_row
        for limit, bin_types in self._limits():
            rows = row + np.arange(len(bin_types))
            pairs = self._pair_column[np.ix_(limit.items, bin_types)]
            items, positions = np.nonzero(pairs >= 0)
            entries.append((rows[positions], pairs[items, positions], np.ones(len(items))))
            entries.append((rows, bin_types, np.full(len(bin_types), -float(limit.cap))))
            row += len(bin_types)
        return entries

    def supply_ends(self, available: Ints) -> Floats:
        """float64[shared supplies]: what is left of each; ``available``: int64[bin types]."""
        return np.array([available[bin_types[0]] for bin_types in self.shared_supplies], dtype=np.float64)

    def plain_basis(self, demands: Ints) -> tuple[Ints, Ints]:
        """A vertex to start from: variables above zero, and rows without slack (indices; as many of the one as of the
        other).

        Every item is on the bin type where it would cost least alone, and of each such type there are as many bins as
        its scarcest capacity or cardinality limit asks for.
        """
        instance, items = self.instance, np.arange(self.item_count)
        bin_type = self._cheapest_alone()
        load = np.zeros((self.bin_type_count, len(self.resources)))
        np.add.at(load, bin_type, demands[:, None] * instance.sizes[:, self.resources])
        load /= np.maximum(instance.capacities[:, self.resources], 1)
        bins = load.max(axis=1, initial=0.0)
        tight = self.item_count + load.argmax(axis=1) * self.bin_type_count + np.arange(self.bin_type_count)
        first_row = self.first_cardinality_row
        for limit, bin_types in self._limits():
            held = np.zeros(self.bin_type_count)
            np.add.at(held, bin_type[limit.items], demands[limit.items])
            needed = held[bin_types] / limit.cap
            is_scarcer = needed > bins[bin_types]
            bins[bin_types[is_scarcer]] = needed[is_scarcer]
            tight[bin_types[is_scarcer]] = first_row + np.flatnonzero(is_scarcer)
            first_row += len(bin_types)
        bought = np.unique(bin_type)
        return np.concatenate([self._pair_column[items, bin_type], bought]), np.concatenate([items, tight[bought]])

    def _cheapest_alone(self) -> Ints:
        """int64[items]: the bin type where each item costs least if it is packed alone; of equals the largest, no
        limited ones.
        """
        instance = self.instance
        most = np.minimum(instance.max_per_bin, np.maximum(instance.demands, 1)[:, None])
        share = (instance.sizes[:, None] / np.maximum(instance.capacities, 1)[None]).max(axis=2, initial=0.0)
        cost = instance.costs * np.maximum(share, 1.0 / np.maximum(most, 1))
        cost *= 1.0 - 1e-3 * (instance.capacities / instance.scale).mean(axis=1)
        # Bins of a limited supply cost next to nothing, so all items would start on them, which is no vertex.
        cost = cost + np.where(instance.is_limited, instance.costs.sum() + 1.0, 0.0)
        cheapest: Ints = np.where(instance.compatible, cost, np.inf).argmin(axis=1)
        return cheapest


def _own_limits(instance: PackingInstance) -> Ints:
    """int64[items, bin types]: see ``AssignmentProgram``; of several limits the one with the least cap."""
    own: Ints = np.full(instance.compatible.shape, -1)
    order = sorted(range(len(instance.cardinality_limits)), key=lambda number: -instance.cardinality_limits[number].cap)
    for number in order:
        items = instance.cardinality_limits[number].items
        is_alone = instance.compatible[items] & (instance.compatible[items].sum(axis=0) == 1)
        own[items] = np.where(is_alone, number, own[items])
    return own


def bin_bounds(available: Ints) -> Floats:
    """float64[bin types]: how many bins there are, as upper bounds of variables."""
    return np.where(available < UNLIMITED, available.astype(np.float64), np.inf)


def _shared_supplies(instance: PackingInstance) -> list[Ints]:
    limited = np.flatnonzero(instance.is_limited)
    supplies, sizes = np.unique(instance.supply[limited], return_counts=True)
    return [limited[instance.supply[limited] == supply] for supply in supplies[sizes > 1]]
