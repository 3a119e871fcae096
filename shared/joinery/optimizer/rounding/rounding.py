"""From the program's fractions to whole nodes: take the best-filled node there is, as often as the program wants it, and ask anew.

At the program's prices a node is worth what its pods are charged. A node whose pods are charged its full price wastes nothing. So
every round solves the program for the pods that are left, fills nodes in many ways (the program's own mix of items first), and
buys those that waste least. Prices adapt as pods run out, and what one node leaves over the next one takes.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from joinery.optimizer.arrays import Floats, Ints
from joinery.optimizer.effort import Effort
from joinery.optimizer.instance.packing_instance import Lot
from joinery.optimizer.instance.patterns import Shape
from joinery.optimizer.relaxation.assignment import Assignment
from joinery.optimizer.relaxation.relaxation import AnyProgram
from joinery.optimizer.rounding.filling import apart, fill, sequences

_NEAR = 0.005
"""Kinds whose reduced cost is at most this share of their price are tried though the program does not buy them."""


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """What is bought in a round. ``share``: of the nodes that the program wants of a kind; ``band``: nodes that waste at most so
    much more than the best are bought too; ``noise``: how far the judgement of waste is shaken, which finds other packings.
    ``outside``: what is scarce goes to the pods that would cost most on other nodes. The program's own prices may tell otherwise,
    because it puts parts of pods there. ``stale``: prices are not asked for anew, which is soon done and dearer.
    """

    share: float = 0.8
    band: float = 0.003
    noise: float = 0.0
    outside: bool = False
    stale: bool = False


@dataclass(frozen=True, eq=False)
class _Candidates:
    """Nodes that could be bought, the least wasteful first: kind, pods, what share of the price is well spent, how many at most."""

    kinds: Ints
    pods: Ints
    value: Floats
    wanted: Floats


def round_up(
    lot: Lot,
    program: AnyProgram,
    judgement: Judgement,
    random: np.random.Generator,
    *,
    effort: Effort,
    first: Assignment | None = None,
    below: float = np.inf,
) -> tuple[list[Shape], Ints] | None:
    """Nodes for the lot's pods, and the pods (by item) that are left because the effort was over.

    ``first``: the program's optimum for the whole lot, if it is known. None if the nodes would cost ``below`` or more.
    """
    left, stock, spent, shapes = lot.counts.copy(), lot.stock, 0.0, list[Shape]()
    while left.any() and not effort.is_over():
        answer = first if first is not None and (judgement.stale or not shapes) else program.solve(left, stock)
        if answer is None:
            break
        if not judgement.stale and spent + answer.price >= below - 1e-9:
            return None
        effort.use(lot)
        found = _candidates(lot, answer, left, judgement, random)
        bought = []
        if lot.scarce.any():
            free = _outside(lot, program, left, stock) if judgement.outside else None
            bought = list(_take(lot, free or found, answer.nodes, left, stock))
        bought = bought or list(_buy(lot, found, left, judgement))
        if not bought:
            break
        for shape in bought:
            left = left - shape.pods * shape.times
            stock = lot.less(stock, shape.kind, shape.times)
            spent += float(lot.price[shape.kind]) * shape.times
        shapes += bought
    return None if spent >= below - 1e-9 else (shapes, left)


def _candidates(
    lot: Lot, answer: Assignment, left: Ints, judgement: Judgement, random: np.random.Generator
) -> _Candidates:
    live = np.flatnonzero(left)
    kinds, mixes, begun = _mixes(lot, answer, left, live)
    near = np.flatnonzero(answer.reduced <= _NEAR * lot.price)
    others, orders = sequences(lot, answer.worth, near, live)
    every = np.concatenate([kinds, others])
    empty = np.zeros((len(others), len(left)), dtype=np.int64)
    nodes = fill(lot, every, np.concatenate([mixes, orders]), left, np.concatenate([begun, empty]))
    often = np.concatenate([answer.nodes[kinds], _times(nodes[len(kinds) :], left)])
    wanted = often * judgement.share
    value = (nodes @ answer.worth) / lot.price[every]
    if judgement.noise:
        value = value + random.normal(0.0, judgement.noise, len(value))
    order = np.lexsort((lot.price[every], -np.round(value, 9)))
    order = order[nodes[order].any(axis=1)]
    return _Candidates(every[order], nodes[order], value[order], wanted[order])


def _outside(lot: Lot, program: AnyProgram, left: Ints, stock: Ints) -> _Candidates | None:
    """Nodes of scarce kinds for what is worth most where nothing is scarce; None if some pods have nothing else."""
    answer = program.solve(left, np.where(lot.scarce, 0, stock))
    if answer is None:
        return None
    kinds, orders = sequences(lot, answer.worth, np.flatnonzero(lot.scarce), np.flatnonzero(left))
    pods = fill(lot, kinds, orders, left)
    value = pods @ answer.worth
    order = np.argsort(-value, kind="stable")
    order = order[pods[order].any(axis=1)]
    return _Candidates(kinds[order], pods[order], value[order], np.zeros(len(order)))


def _mixes(lot: Lot, answer: Assignment, left: Ints, live: Ints) -> tuple[Ints, Ints, Ints]:
    """The program's own nodes: the whole part of the mix on each kind, to be filled up by the largest fractions or by worth.

    Returns kinds, sequences and the pods that are on already, by row.
    """
    used = np.flatnonzero(answer.nodes > 1e-6)
    mix = (answer.shares[:, used] / answer.nodes[used]).T
    whole = apart(lot, np.minimum(np.floor(mix + 1e-9).astype(np.int64), left), answer.worth)
    fraction, worth = (mix - whole)[:, live], answer.worth[live]
    ways = (
        -fraction - 1e-3 * worth / (worth.max(initial=0.0) + 1e-9),
        -worth * (mix[:, live] > 1e-9) - 1e-6 * worth,
    )
    orders = np.concatenate([live[np.argsort(way, axis=1, kind="stable")] for way in ways])
    return np.tile(used, len(ways)), orders, np.tile(whole, (len(ways), 1))


def _times(pods: Ints, left: Ints) -> Floats:
    """How often each node could be bought with the pods that are left."""
    often: Floats = np.where(pods > 0, left // np.maximum(pods, 1), np.inf).min(axis=1, initial=np.inf)
    return np.where(np.isfinite(often), often, 0.0)


def _take(lot: Lot, found: _Candidates, wanted: Floats, left: Ints, stock: Ints) -> Iterator[Shape]:
    """Of what is scarce, the best candidate of each kind that the program wants (by kind), as often as it is there."""
    taken: set[int] = set()
    for kind, pods in zip(found.kinds, found.pods, strict=True):
        often = min(int(_times(pods[None], left)[0]), int(stock[kind]), int(np.ceil(wanted[kind] - 1e-6)))
        if lot.scarce[kind] and int(kind) not in taken and often > 0:
            yield Shape(int(kind), pods, often)
            left, stock = left - pods * often, lot.less(stock, int(kind), often)
            taken.add(int(kind))


def _buy(lot: Lot, found: _Candidates, left: Ints, judgement: Judgement) -> Iterator[Shape]:
    """The best candidate in any case, and others nearly as good of which the program wants whole ones; one of a kind."""
    taken: set[int] = set()
    best = None
    for kind, pods, value, wanted in zip(found.kinds, found.pods, found.value, found.wanted, strict=True):
        if best is not None and value < best - judgement.band:
            return
        often = int(_times(pods[None], left)[0])
        if lot.scarce[kind] or int(kind) in taken or not often or (best is not None and wanted < 1):
            continue
        times = max(1, min(often, int(wanted + 1e-9)))
        yield Shape(int(kind), pods, times)
        left = left - pods * times
        taken.add(int(kind))
        best = value if best is None else best
