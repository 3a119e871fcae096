"""Which kinds of node are worth a closer look: those that a cheap program over the whole market favours."""

from dataclasses import replace

import numpy as np

from joinery.optimizer.assignment import AssignmentProgram
from joinery.optimizer.lot import Amounts, Floats, Group, Lot
from joinery.optimizer.merging import MOST_ITEMS, cells


def promising(lot: Lot, sorts: int) -> Amounts:
    """The kinds of the best ``sorts``, and for every item at least one that admits it.

    Kinds of one room and price, in several zones, are of one sort. Of what is scarce every kind is worth a look.
    """
    sort, plain = _without_places(lot)
    if len(plain.counts) > MOST_ITEMS:
        plain = cells(plain).lot
    answer = AssignmentProgram(plain, swift=True).solve(plain.counts)
    if answer is None:
        return np.arange(len(lot.price))
    used = answer.nodes > 1e-9
    waste = np.divide(answer.reduced, plain.price, out=np.zeros(len(plain.price)), where=plain.price > 0)
    order = np.argsort(np.where(used, -1.0, waste), kind="stable")
    chosen = np.isin(sort, order[: max(sorts, int(used.sum()))]) | lot.scarce
    for item in np.flatnonzero(~lot.admits[:, chosen].any(axis=1)):
        chosen[_cheapest_for(lot, int(item))] = True
    return np.flatnonzero(chosen)


def dearer(lot: Lot, hourly: Floats) -> float:
    """About what it costs that kinds count as other than their price (``hourly``), in $/h: by the programs' own nodes."""
    if np.array_equal(lot.price, hourly):
        return 0.0
    least, counted = _outlook(lot, hourly, hourly)
    if counted <= least * (1 + 1e-9):
        return 0.0  # what costs least is not counted as dearer: nothing else is wanted
    spent, _ = _outlook(lot, lot.price, hourly)
    return max(0.0, spent - least)


def _outlook(lot: Lot, prices: Floats, hourly: Floats) -> tuple[float, float]:
    """The nodes that are best by some prices: what they cost by the hour, and as the lot counts it. Zeros if there are none."""
    sort, plain = _without_places(replace(lot, price=prices))
    plain = cells(plain).lot if len(plain.counts) > MOST_ITEMS else plain
    answer = AssignmentProgram(plain, swift=True).solve(plain.counts)
    if answer is None:
        return 0.0, 0.0
    heads = _first_of_each(sort)
    return float(answer.nodes @ hourly[heads]), float(answer.nodes @ lot.price[heads])


def _cheapest_for(lot: Lot, item: int) -> int:
    kinds = np.flatnonzero(lot.admits[item])
    share = (lot.requests[item] / np.maximum(lot.room[kinds], 1)).max(axis=1)
    return int(kinds[np.argmin(lot.price[kinds] * share)])


def _without_places(lot: Lot) -> tuple[Amounts, Lot]:
    """The sort of every kind, and the lot with one kind of each sort, where items that then look alike are one too."""
    few = np.where(lot.scarce, lot.pile, -1)
    sort = _numbered([(r.tobytes(), float(p), int(n)) for r, p, n in zip(lot.room, lot.price, few, strict=True)])
    heads = _first_of_each(sort)
    admits = np.zeros((len(lot.counts), len(heads)), dtype=np.bool_)
    for kind, index in enumerate(sort):
        admits[:, index] |= lot.admits[:, kind]
    looks = zip(lot.requests, admits, lot.members, strict=True)
    alike = _numbered([(size.tobytes(), admitted.tobytes(), groups.tobytes()) for size, admitted, groups in looks])
    items = _first_of_each(alike)
    counts = np.bincount(alike, weights=lot.counts).astype(np.int64)
    plain = replace(
        lot, price=lot.price[heads], room=lot.room[heads], admits=admits, stock=lot.stock[heads], pile=lot.pile[heads]
    ).part(items, np.arange(len(heads)), counts)
    merged = tuple(Group(np.unique(alike[group.members]), group.cap) for group in lot.groups)
    return sort, replace(plain, groups=merged)


def _numbered(keys: list[tuple[object, ...]]) -> Amounts:
    numbers: dict[tuple[object, ...], int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)


def _first_of_each(numbers: Amounts) -> Amounts:
    return np.unique(numbers, return_index=True)[1]
