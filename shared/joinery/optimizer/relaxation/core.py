"""Which kinds of node are worth a closer look: those that a cheap program over the whole market favours."""

from dataclasses import replace

import numpy as np

from joinery.optimizer.arrays import Floats, Ints
from joinery.optimizer.instance.aggregation import MOST_ITEMS, cells
from joinery.optimizer.instance.packing_instance import Group, Lot
from joinery.optimizer.relaxation.assignment import AssignmentProgram

_SLOW = 2e-4
"""What the survey says is good enough once another solve changes no more than this share."""
_CELLS = 30
"""Of many items the survey tells so many sizes apart."""
_MOST_KINDS = 300
"""So many kinds are looked at before sorts are left out."""


class Survey:
    """A first look at the whole market of a lot: its program without places. ``hourly``: what kinds cost, where they count as other
    than that.
    """

    def __init__(self, lot: Lot, hourly: Floats | None = None) -> None:
        self._lot = lot
        self._hourly = None if hourly is None or np.array_equal(lot.price, hourly) else hourly
        self._sort, plain = _without_places(lot, self._hourly)
        self._plain = cells(plain, _CELLS).lot if len(plain.counts) > MOST_ITEMS else plain
        self._program = AssignmentProgram(self._plain, swift=True, slow=_SLOW)
        self._answer = self._program.solve(self._plain.counts)

    def promising(self, sorts: int) -> Ints:
        """The kinds of the best ``sorts``, of half as many where those are a great many kinds, and for every item at least one that
        admits it.

        Kinds of one room and price, in several zones and NodePools, are of one sort. Of what is scarce every kind is worth a look.
        """
        lot, answer = self._lot, self._answer
        if answer is None:
            return np.arange(len(lot.price))
        used = answer.nodes > 1e-9
        price = self._plain.price
        waste = np.divide(answer.reduced, price, out=np.zeros(len(price)), where=price > 0)
        order = np.argsort(np.where(used, -1.0, waste), kind="stable")
        listed = np.bincount(self._sort[~lot.scarce], minlength=len(order))[order].cumsum()
        sorts = max(sorts // 2, min(sorts, int((listed <= _MOST_KINDS).sum())))
        chosen = np.isin(self._sort, order[: max(sorts, int(used.sum()))]) | lot.scarce
        for item in np.flatnonzero(~lot.admits[:, chosen].any(axis=1)):
            chosen[_cheapest_for(lot, int(item))] = True
        return np.flatnonzero(chosen)

    def dearer(self) -> float:
        """About what it costs that kinds count as other than their price, in $/h: by the program's own nodes."""
        if self._hourly is None or self._answer is None:
            return 0.0
        hourly = self._hourly[_first_of_each(self._sort)]
        counted = self._answer.nodes
        self._program.reprice(hourly)
        least = self._program.solve(self._plain.counts)
        return 0.0 if least is None else max(0.0, float((counted - least.nodes) @ hourly))


def _cheapest_for(lot: Lot, item: int) -> int:
    kinds = np.flatnonzero(lot.admits[item])
    share = (lot.requests[item] / np.maximum(lot.room[kinds], 1)).max(axis=1)
    return int(kinds[np.argmin(lot.price[kinds] * share)])


def _without_places(lot: Lot, hourly: Floats | None) -> tuple[Ints, Lot]:
    """The sort of every kind, and the lot with one kind of each sort, where items that then look alike are one too."""
    few = np.where(lot.scarce, lot.pile, -1)
    looks = zip(lot.room, lot.price, lot.price if hourly is None else hourly, few, strict=True)
    sort = _numbered([(room.tobytes(), float(price), float(paid), int(pile)) for room, price, paid, pile in looks])
    heads = _first_of_each(sort)
    admits = np.zeros((len(lot.counts), len(heads)), dtype=np.bool_)
    for kind, index in enumerate(sort):
        admits[:, index] |= lot.admits[:, kind]
    alike = _numbered(
        [
            (size.tobytes(), admitted.tobytes(), groups.tobytes())
            for size, admitted, groups in zip(lot.requests, admits, lot.members, strict=True)
        ]
    )
    items = _first_of_each(alike)
    counts = np.bincount(alike, weights=lot.counts).astype(np.int64)
    plain = replace(
        lot, price=lot.price[heads], room=lot.room[heads], admits=admits, stock=lot.stock[heads], pile=lot.pile[heads]
    ).part(items, np.arange(len(heads)), counts)
    merged = tuple(Group(np.unique(alike[group.members]), group.cap) for group in lot.groups)
    return sort, replace(plain, groups=merged)


def _numbered(keys: list[tuple[object, ...]]) -> Ints:
    numbers: dict[tuple[object, ...], int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)


def _first_of_each(numbers: Ints) -> Ints:
    return np.unique(numbers, return_index=True)[1]
