"""The assignment program: how many nodes of each kind, and which share of each item on them.

Buy x_k nodes of kind k and put y_ik pods of item i on them::

    minimise    sum_k p_k x_k
    subject to  sum_k y_ik           = n_i         every pod has a place
                sum_i r_ij y_ik     <= room_kj x_k no resource of a kind is overdrawn
                sum_{i in g} y_ik   <= c_gk x_k    at most c of a group on one node
                sum_{k in s} x_k    <= n_s         no supply of nodes is overdrawn

A supply is a kind of which there are only so many (a node that exists, a capacity reservation), or several kinds of which there
are so many together (a reservation that several pools may use). A group is a rule over hosts, or one item of which only a few fit
on a node (c: how many do); rows of the latter sort are added where an optimum breaks them, which few do. Every real packing
satisfies all rows, so the optimum bounds its price from below; and without whole numbers it is found in hundredths of a second.

**The proof does not trust the solver.** From its dual prices (l_kj >= 0 on room, m_gk >= 0 on groups) the bound is computed anew.
Scaled down so that sum_j l_kj room_kj + sum_g m_gk c_gk <= p_k for every kind, any such prices charge a pod of item i at least
pi_i = min_k (sum_j l_kj r_ij + sum_{g with i} m_gk). Then sum_i n_i pi_i <= the price of any nodes that hold all pods: add up, node
by node, what its pods are charged. Of a kind in a supply the prices may charge more than it costs; what all nodes of the supply could be
charged beyond that (their number, times the most that any of its kinds is) is taken off.

pi_i is also what a pod is *worth* to a packing: the price of the room it takes in the cheapest mix.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from joinery.optimizer.arrays import UNLIMITED, Floats, Ints
from joinery.optimizer.instance.packing_instance import PackingInstance
from joinery.optimizer.linear.highs import LinearProgram, LinearSolution, Solver

_FEW = 16
"""An item of which at most so many fit on a node may get a row of its own."""
_ROUNDS = 8
"""So often rows are added to one program."""


@dataclass(frozen=True, eq=False)
class RelaxationSolution:
    """``bins``, ``reduced_costs`` cost: by kind; ``assigned``: items x kinds; ``item_duals``: items, in $/h; ``capacity_duals``: what a unit of each
    resource is charged on each kind (kinds x resources), in $/h; ``cost``: the optimum in $/h.
    """

    bins: Floats
    reduced_costs: Floats
    assigned: Floats
    item_duals: Floats
    capacity_duals: Floats
    cost: float


class AssignmentRelaxation:
    """The program of a instance, to be solved for any counts up to the instance's.

    ``swift``: begin at a plain packing instead of at nothing. That takes a third of the time and ends at another of the vertices
    that are optimal, one which in the mean rounds a quarter of a percent worse. ``cuts``: add rows for items of which few fit,
    until they make no more of a difference than ``slow`` (a share).
    """

    def __init__(
        self, instance: PackingInstance, *, swift: bool = False, cuts: bool = True, slow: float = -1.0
    ) -> None:
        self._lot, self._swift = instance, swift
        self._items, self._on = np.nonzero(instance.compatible)
        self._height, self._width = instance.compatible.shape
        self._used = np.flatnonzero((instance.sizes > 0).any(axis=0))
        self._where = np.full(instance.compatible.shape, -1)
        self._where[self._items, self._on] = np.arange(len(self._items)) + self._width
        self._caps = [
            _CardinalityRow(group.items, int(bin_type), group.cap, number)
            for number, group in enumerate(instance.cardinality_limits)
            for bin_type in np.flatnonzero(instance.compatible[group.items].any(axis=0))
        ]
        self._most = np.minimum(instance.max_per_bin, np.maximum(instance.demands, 1)[:, None])
        self._shared = _shared(instance)
        self._solver = Solver(self._program())
        self._slow = slow
        self._rounds = 0 if cuts else _ROUNDS
        self._duals: Floats = np.zeros(0)

    def solve(self, demands: Ints, available: Ints | None = None) -> RelaxationSolution | None:
        """The optimum for these counts; None if the solver finds none (an item that no kind admits).

        ``available``: what is left of each kind, if some of the instance's was taken.
        """
        if available is not None and self._lot.is_limited.any():
            self._solver.set_upper_bounds(_endless(available))
            self._solver.set_row_upper(
                self._base, np.array([available[bin_types[0]] for bin_types in self._shared], dtype=np.float64)
            )
        if self._swift and not len(self._duals) and self._lot.compatible.any(axis=1).all():
            self._begin(demands)
        wanted = demands.astype(np.float64)
        solution = self._solver.solve(wanted, wanted)
        while solution is not None and self._rounds < _ROUNDS and self._cut(solution):
            before = self._price(solution)
            solution = self._solver.solve(wanted, wanted)
            if solution is not None and self._price(solution) <= before * (1 + self._slow):
                self._rounds = _ROUNDS
        if solution is None:
            return None
        self._duals = solution.duals
        nodes = solution.values[: self._width]
        item_duals = np.maximum(solution.duals[: self._height], 0.0)
        price = self._price(solution)
        room = np.zeros(self._lot.capacities.shape)
        room[:, self._used] = self._charged()
        reduced, shares = solution.reduced_costs[: self._width], self._shares(solution)
        return RelaxationSolution(nodes, reduced, shares, item_duals, room / self._lot.scale, price)

    def set_costs(self, price: Floats) -> None:
        """Other prices of the kinds from the next solve on, which goes on from the last optimum."""
        self._lot = replace(self._lot, costs=price)
        self._solver.set_costs(price)

    def _begin(self, demands: Ints) -> None:
        """Start the first solve with every item on the kind where it would cost least alone, the largest of those, and with as many
        nodes of that kind as its scarcest room or cap asks for.
        """
        instance, items = self._lot, np.arange(self._height)
        share = (instance.sizes[:, None] / np.maximum(instance.capacities, 1)[None]).max(axis=2, initial=0.0)
        alone = instance.costs * np.maximum(share, 1.0 / np.maximum(self._most, 1))
        alone *= 1.0 - 1e-3 * (instance.capacities / instance.scale).mean(axis=1)
        bin_type = np.where(
            instance.compatible, alone + np.where(instance.is_limited, instance.costs.sum() + 1.0, 0.0), np.inf
        ).argmin(axis=1)
        load = np.zeros((self._width, len(self._used)))
        np.add.at(load, bin_type, demands[:, None] * instance.sizes[:, self._used])
        load /= np.maximum(instance.capacities[:, self._used], 1)
        fullest, row = load.max(axis=1, initial=0.0), self._height + load.argmax(axis=1) * self._width
        row += np.arange(self._width)
        for number, cap in enumerate(self._caps, start=self._base + len(self._shared)):
            held = demands[cap.items[bin_type[cap.items] == cap.bin_type]].sum() / cap.cap
            if held > fullest[cap.bin_type]:
                fullest[cap.bin_type], row[cap.bin_type] = held, number
        bought = np.unique(bin_type)
        self._solver.warm_start(
            np.concatenate([self._where[items, bin_type], bought]), np.concatenate([items, row[bought]])
        )

    @property
    def _base(self) -> int:
        """The first row of supplies, after those of pods and of room."""
        return self._height + len(self._used) * self._width

    def charges(self, instance: PackingInstance | None = None) -> tuple[Floats, float]:
        """What each pod is charged at least by the last optimum's prices (by item), and what all nodes of limited available are
        charged beyond their price: ``counts @ charges - excess`` is a proven bound.

        ``instance``: other pods, of whose items the program's are cells, to be charged by the same prices; the program has no cuts then.
        """
        base = self._base
        instance = instance or self._lot
        room = self._charged()
        caps = list(zip(self._caps, np.maximum(-self._duals[base + len(self._shared) :], 0.0), strict=True))
        charged = (room * (instance.capacities / instance.scale)[:, self._used]).sum(axis=1)
        for cap, price in caps:
            charged[cap.bin_type] += price * cap.cap
        fair = np.where(instance.is_limited, 1.0, np.minimum(1.0, instance.costs / np.maximum(charged, 1e-300)))
        paid = (instance.sizes / instance.scale)[:, self._used] @ (room * fair[:, None]).T
        for cap, price in caps:
            members = cap.items if cap.limit < 0 else instance.cardinality_limits[cap.limit].items
            paid[members, cap.bin_type] += price * fair[cap.bin_type]
        least = np.where(instance.compatible, paid, np.inf).min(axis=1, initial=np.inf)
        return least, _excess(instance, np.maximum(charged - instance.costs, 0.0))

    def directions(self, answer: RelaxationSolution) -> Floats:
        """The prices of the kinds that the last optimum buys: of a unit of each resource, and of a pod of each group, in $/h (kinds x
        (resources + groups)).
        """
        of_groups = np.zeros((self._width, len(self._lot.cardinality_limits)))
        for row, cap in enumerate(self._caps, start=self._base + len(self._shared)):
            if cap.limit >= 0:
                of_groups[cap.bin_type, cap.limit] = max(-self._duals[row], 0.0)
        bought = answer.bins > 1e-9
        return np.concatenate([answer.capacity_duals[bought], of_groups[bought]], axis=1)

    def _charged(self) -> Floats:
        """What the last optimum charges for the largest room there is, by kind and resource in use."""
        return np.maximum(-self._duals[self._height : self._base].reshape(len(self._used), self._width).T, 0.0)

    def _price(self, solution: LinearSolution) -> float:
        return float(self._lot.costs @ solution.values[: self._width])

    def _shares(self, solution: LinearSolution) -> Floats:
        shares = np.zeros(self._lot.compatible.shape)
        shares[self._items, self._on] = solution.values[self._width :]
        return shares

    def _cut(self, solution: LinearSolution) -> bool:
        """Add a row for every item of which more are put on a kind than its nodes hold; whether there were any."""
        allowed = self._most * solution.values[: self._width]
        broken = (self._most > 0) & (self._most <= _FEW) & (self._shares(solution) > allowed + 1e-7)
        fresh = [
            _CardinalityRow(np.array([i]), int(k), int(self._most[i, k]))
            for i, k in zip(*np.nonzero(broken), strict=True)
        ]
        for cap in fresh:
            self._solver.add_row(*self._line(cap))
        self._caps += fresh
        self._rounds += 1
        return bool(fresh)

    def _line(self, cap: "_CardinalityRow") -> tuple[Any, Any]:
        """The columns and values of a cap's row."""
        held = self._where[cap.items, cap.bin_type]
        held = held[held >= 0]
        columns, values = np.full(len(held) + 1, cap.bin_type), np.ones(len(held) + 1)
        columns[:-1], values[-1] = held, -float(cap.cap)
        return columns, values

    def _program(self) -> LinearProgram:
        pairs = np.arange(len(self._items)) + self._width
        bin_types = np.arange(self._width)
        entries: list[tuple[Any, Any, Any]] = [(self._items, pairs, np.ones(len(pairs)))]
        requests, room = self._lot.sizes / self._lot.scale, self._lot.capacities / self._lot.scale
        base = self._height
        for resource in self._used:
            asked = requests[self._items, resource] > 0
            entries.append((base + self._on[asked], pairs[asked], requests[self._items[asked], resource]))
            entries.append((base + bin_types, bin_types, -room[:, resource]))
            base += self._width
        for offset, shared in enumerate(self._shared):
            entries.append((np.full(len(shared), base + offset), shared, np.ones(len(shared))))
        base += len(self._shared)
        for offset, cap in enumerate(self._caps):
            columns, values = self._line(cap)
            entries.append((np.full(len(columns), base + offset), columns, values))
        rows, columns, values = (np.concatenate(part) for part in zip(*entries, strict=True))
        height, width = base + len(self._caps), self._width + len(pairs)
        upper = np.zeros(height)
        upper[self._base : self._base + len(self._shared)] = [
            self._lot.available[bin_types[0]] for bin_types in self._shared
        ]
        return LinearProgram(
            costs=np.concatenate([self._lot.costs, np.zeros(len(pairs))]),
            upper_bounds=np.concatenate([_endless(self._lot.available), np.full(width - self._width, np.inf)]),
            row_lower=np.where(np.arange(height) < self._height, 0.0, -np.inf),
            row_upper=upper,
            rows=rows.astype(np.int32),
            columns=columns.astype(np.int32),
            values=values.astype(np.float64),
        )


def _endless(available: Ints) -> Floats:
    """As upper bounds."""
    return np.where(available < UNLIMITED, available.astype(np.float64), np.inf)


def _shared(instance: PackingInstance) -> list[Ints]:
    """The kinds of each supply that is more than one kind's."""
    scarce = np.flatnonzero(instance.is_limited)
    supplies, sizes = np.unique(instance.supply[scarce], return_counts=True)
    return [scarce[instance.supply[scarce] == supply] for supply in supplies[sizes > 1]]


def _excess(instance: PackingInstance, beyond: Floats) -> float:
    """What all nodes of all supplies could be charged beyond their price; ``beyond``: one node, by kind."""
    most: dict[int, float] = {}
    for bin_type in np.flatnonzero(instance.is_limited):
        supply = int(instance.supply[bin_type])
        most[supply] = max(most.get(supply, 0.0), float(beyond[bin_type]) * int(instance.available[bin_type]))
    return sum(most.values())


@dataclass(frozen=True, eq=False, slots=True)
class _CardinalityRow:
    """At most ``cap`` pods of these items on a node of the kind; ``limit``: which of the instance's that is, if it is one."""

    items: Ints
    bin_type: int
    cap: int
    limit: int = -1
