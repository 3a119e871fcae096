"""The assignment program: how many nodes of each kind, and which share of each item on them.

Buy x_k nodes of kind k and put y_ik pods of item i on them::

    minimise    sum_k p_k x_k
    subject to  sum_k y_ik           = n_i         every pod has a place
                sum_i r_ij y_ik     <= room_kj x_k no resource of a kind is overdrawn
                sum_{i in g} y_ik   <= c_gk x_k    at most c of a group on one node
                sum_{k in s} x_k    <= n_s         no pile of nodes is overdrawn

A pile is a kind of which there are only so many (a node that exists, a capacity reservation), or several kinds of which there
are so many together (a reservation that several pools may use). A group is a rule over hosts, or one item of which only a few fit
on a node (c: how many do); rows of the latter sort are added where an optimum breaks them, which few do. Every real packing
satisfies all rows, so the optimum bounds its price from below; and without whole numbers it is found in hundredths of a second.

**The proof does not trust the solver.** From its dual prices (l_kj >= 0 on room, m_gk >= 0 on groups) the bound is computed anew.
Scaled down so that sum_j l_kj room_kj + sum_g m_gk c_gk <= p_k for every kind, any such prices charge a pod of item i at least
pi_i = min_k (sum_j l_kj r_ij + sum_{g with i} m_gk). Then sum_i n_i pi_i <= the price of any nodes that hold all pods: add up, node
by node, what its pods are charged. Of a kind in a pile the prices may charge more than it costs; what all nodes of the pile could be
charged beyond that (their number, times the most that any of its kinds is) is taken off.

pi_i is also what a pod is *worth* to a packing: the price of the room it takes in the cheapest mix.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from joinery.optimizer.arrays import UNLIMITED, Floats, Ints
from joinery.optimizer.instance.packing_instance import Lot
from joinery.optimizer.linear.highs import Program, Solution, Solver

_FEW = 16
"""An item of which at most so many fit on a node may get a row of its own."""
_ROUNDS = 8
"""So often rows are added to one program."""


@dataclass(frozen=True, eq=False)
class Assignment:
    """``nodes``, ``reduced`` cost: by kind; ``shares``: items x kinds; ``worth``: items, in $/h; ``room``: what a unit of each
    resource is charged on each kind (kinds x resources), in $/h; ``price``: the optimum in $/h.
    """

    nodes: Floats
    reduced: Floats
    shares: Floats
    worth: Floats
    room: Floats
    price: float


class AssignmentProgram:
    """The program of a lot, to be solved for any counts up to the lot's.

    ``swift``: begin at a plain packing instead of at nothing. That takes a third of the time and ends at another of the vertices
    that are optimal, one which in the mean rounds a quarter of a percent worse. ``cuts``: add rows for items of which few fit,
    until they make no more of a difference than ``slow`` (a share).
    """

    def __init__(self, lot: Lot, *, swift: bool = False, cuts: bool = True, slow: float = -1.0) -> None:
        self._lot, self._swift = lot, swift
        self._items, self._on = np.nonzero(lot.admits)
        self._height, self._width = lot.admits.shape
        self._used = np.flatnonzero((lot.requests > 0).any(axis=0))
        self._where = np.full(lot.admits.shape, -1)
        self._where[self._items, self._on] = np.arange(len(self._items)) + self._width
        self._caps = [
            _Cap(group.members, int(kind), group.cap, number)
            for number, group in enumerate(lot.groups)
            for kind in np.flatnonzero(lot.admits[group.members].any(axis=0))
        ]
        self._most = np.minimum(lot.most, np.maximum(lot.counts, 1)[:, None])
        self._shared = _shared(lot)
        self._solver = Solver(self._program())
        self._slow = slow
        self._rounds = 0 if cuts else _ROUNDS
        self._duals: Floats = np.zeros(0)

    def solve(self, counts: Ints, stock: Ints | None = None) -> Assignment | None:
        """The optimum for these counts; None if the solver finds none (an item that no kind admits).

        ``stock``: what is left of each kind, if some of the lot's was taken.
        """
        if stock is not None and self._lot.scarce.any():
            self._solver.limit(_endless(stock))
            self._solver.cap(self._base, np.array([stock[kinds[0]] for kinds in self._shared], dtype=np.float64))
        if self._swift and not len(self._duals) and self._lot.admits.any(axis=1).all():
            self._begin(counts)
        wanted = counts.astype(np.float64)
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
        worth = np.maximum(solution.duals[: self._height], 0.0)
        price = self._price(solution)
        room = np.zeros(self._lot.room.shape)
        room[:, self._used] = self._charged()
        reduced, shares = solution.reduced[: self._width], self._shares(solution)
        return Assignment(nodes, reduced, shares, worth, room / self._lot.scale, price)

    def reprice(self, price: Floats) -> None:
        """Other prices of the kinds from the next solve on, which goes on from the last optimum."""
        self._lot = replace(self._lot, price=price)
        self._solver.reprice(price)

    def _begin(self, counts: Ints) -> None:
        """Start the first solve with every item on the kind where it would cost least alone, the largest of those, and with as many
        nodes of that kind as its scarcest room or cap asks for.
        """
        lot, items = self._lot, np.arange(self._height)
        share = (lot.requests[:, None] / np.maximum(lot.room, 1)[None]).max(axis=2, initial=0.0)
        alone = lot.price * np.maximum(share, 1.0 / np.maximum(self._most, 1))
        alone *= 1.0 - 1e-3 * (lot.room / lot.scale).mean(axis=1)
        kind = np.where(lot.admits, alone + np.where(lot.scarce, lot.price.sum() + 1.0, 0.0), np.inf).argmin(axis=1)
        load = np.zeros((self._width, len(self._used)))
        np.add.at(load, kind, counts[:, None] * lot.requests[:, self._used])
        load /= np.maximum(lot.room[:, self._used], 1)
        fullest, row = load.max(axis=1, initial=0.0), self._height + load.argmax(axis=1) * self._width
        row += np.arange(self._width)
        for number, cap in enumerate(self._caps, start=self._base + len(self._shared)):
            held = counts[cap.members[kind[cap.members] == cap.kind]].sum() / cap.most
            if held > fullest[cap.kind]:
                fullest[cap.kind], row[cap.kind] = held, number
        bought = np.unique(kind)
        self._solver.begin(np.concatenate([self._where[items, kind], bought]), np.concatenate([items, row[bought]]))

    @property
    def _base(self) -> int:
        """The first row of piles, after those of pods and of room."""
        return self._height + len(self._used) * self._width

    def charges(self, lot: Lot | None = None) -> tuple[Floats, float]:
        """What each pod is charged at least by the last optimum's prices (by item), and what all nodes of limited stock are
        charged beyond their price: ``counts @ charges - excess`` is a proven bound.

        ``lot``: other pods, of whose items the program's are cells, to be charged by the same prices; the program has no cuts then.
        """
        base = self._base
        lot = lot or self._lot
        room = self._charged()
        caps = list(zip(self._caps, np.maximum(-self._duals[base + len(self._shared) :], 0.0), strict=True))
        charged = (room * (lot.room / lot.scale)[:, self._used]).sum(axis=1)
        for cap, price in caps:
            charged[cap.kind] += price * cap.most
        fair = np.where(lot.scarce, 1.0, np.minimum(1.0, lot.price / np.maximum(charged, 1e-300)))
        paid = (lot.requests / lot.scale)[:, self._used] @ (room * fair[:, None]).T
        for cap, price in caps:
            members = cap.members if cap.group < 0 else lot.groups[cap.group].members
            paid[members, cap.kind] += price * fair[cap.kind]
        least = np.where(lot.admits, paid, np.inf).min(axis=1, initial=np.inf)
        return least, _excess(lot, np.maximum(charged - lot.price, 0.0))

    def directions(self, answer: Assignment) -> Floats:
        """The prices of the kinds that the last optimum buys: of a unit of each resource, and of a pod of each group, in $/h (kinds x
        (resources + groups)).
        """
        of_groups = np.zeros((self._width, len(self._lot.groups)))
        for row, cap in enumerate(self._caps, start=self._base + len(self._shared)):
            if cap.group >= 0:
                of_groups[cap.kind, cap.group] = max(-self._duals[row], 0.0)
        bought = answer.nodes > 1e-9
        return np.concatenate([answer.room[bought], of_groups[bought]], axis=1)

    def _charged(self) -> Floats:
        """What the last optimum charges for the largest room there is, by kind and resource in use."""
        return np.maximum(-self._duals[self._height : self._base].reshape(len(self._used), self._width).T, 0.0)

    def _price(self, solution: Solution) -> float:
        return float(self._lot.price @ solution.values[: self._width])

    def _shares(self, solution: Solution) -> Floats:
        shares = np.zeros(self._lot.admits.shape)
        shares[self._items, self._on] = solution.values[self._width :]
        return shares

    def _cut(self, solution: Solution) -> bool:
        """Add a row for every item of which more are put on a kind than its nodes hold; whether there were any."""
        allowed = self._most * solution.values[: self._width]
        broken = (self._most > 0) & (self._most <= _FEW) & (self._shares(solution) > allowed + 1e-7)
        fresh = [_Cap(np.array([i]), int(k), int(self._most[i, k])) for i, k in zip(*np.nonzero(broken), strict=True)]
        for cap in fresh:
            self._solver.add(*self._line(cap))
        self._caps += fresh
        self._rounds += 1
        return bool(fresh)

    def _line(self, cap: "_Cap") -> tuple[Any, Any]:
        """The columns and values of a cap's row."""
        held = self._where[cap.members, cap.kind]
        held = held[held >= 0]
        columns, values = np.full(len(held) + 1, cap.kind), np.ones(len(held) + 1)
        columns[:-1], values[-1] = held, -float(cap.most)
        return columns, values

    def _program(self) -> Program:
        pairs = np.arange(len(self._items)) + self._width
        kinds = np.arange(self._width)
        entries: list[tuple[Any, Any, Any]] = [(self._items, pairs, np.ones(len(pairs)))]
        requests, room = self._lot.requests / self._lot.scale, self._lot.room / self._lot.scale
        base = self._height
        for resource in self._used:
            asked = requests[self._items, resource] > 0
            entries.append((base + self._on[asked], pairs[asked], requests[self._items[asked], resource]))
            entries.append((base + kinds, kinds, -room[:, resource]))
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
        upper[self._base : self._base + len(self._shared)] = [self._lot.stock[kinds[0]] for kinds in self._shared]
        return Program(
            cost=np.concatenate([self._lot.price, np.zeros(len(pairs))]),
            most=np.concatenate([_endless(self._lot.stock), np.full(width - self._width, np.inf)]),
            lower=np.where(np.arange(height) < self._height, 0.0, -np.inf),
            upper=upper,
            rows=rows.astype(np.int32),
            columns=columns.astype(np.int32),
            values=values.astype(np.float64),
        )


def _endless(stock: Ints) -> Floats:
    """As upper bounds."""
    return np.where(stock < UNLIMITED, stock.astype(np.float64), np.inf)


def _shared(lot: Lot) -> list[Ints]:
    """The kinds of each pile that is more than one kind's."""
    scarce = np.flatnonzero(lot.scarce)
    piles, sizes = np.unique(lot.pile[scarce], return_counts=True)
    return [scarce[lot.pile[scarce] == pile] for pile in piles[sizes > 1]]


def _excess(lot: Lot, beyond: Floats) -> float:
    """What all nodes of all piles could be charged beyond their price; ``beyond``: one node, by kind."""
    most: dict[int, float] = {}
    for kind in np.flatnonzero(lot.scarce):
        pile = int(lot.pile[kind])
        most[pile] = max(most.get(pile, 0.0), float(beyond[kind]) * int(lot.stock[kind]))
    return sum(most.values())


@dataclass(frozen=True, eq=False, slots=True)
class _Cap:
    """At most ``most`` pods of these items on a node of the kind; ``group``: which of the lot's that is, if it is one."""

    members: Ints
    kind: int
    most: int
    group: int = -1
