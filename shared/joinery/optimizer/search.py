"""The whole search for a lot: which kinds matter, whole nodes from the program, other starts, and local search."""

import numpy as np

from joinery.optimizer.assignment import Assignment, AssignmentProgram
from joinery.optimizer.effort import Effort
from joinery.optimizer.lot import Amounts, Lot, Shape, price_of
from joinery.optimizer.merging import MOST_ITEMS, CoarseProgram
from joinery.optimizer.places import by_place
from joinery.optimizer.promising import promising
from joinery.optimizer.refinement import refine
from joinery.optimizer.rounding import Judgement, round_up

_SORTS = 50
"""So many sorts of kind are considered after the first look."""
_GOOD_ENOUGH = 1.002
"""A packing this close to what the program says is possible is not improved."""


def pack(lot: Lot, place: Amounts, effort: Effort) -> list[Shape]:
    """Nodes for the pods of the lot, nearly the cheapest. Pods may be left over where the effort was over before.

    ``place``: by kind; nodes of one place are packed by themselves.
    """
    kinds = promising(lot, _SORTS)
    few = lot.part(np.arange(len(lot.counts)), kinds, lot.counts)
    parts = by_place(few, place[kinds])
    shapes: list[Shape] = []
    for part in parts:
        effort.begin(len(parts))
        for shape in _pack(part.lot, effort):
            pods = np.zeros(len(lot.counts), dtype=np.int64)
            pods[part.items] = shape.pods
            shapes.append(Shape(int(kinds[part.kinds[shape.kind]]), pods, shape.times))
    return shapes


def _pack(lot: Lot, effort: Effort) -> list[Shape]:
    program = AssignmentProgram(lot) if len(lot.counts) <= MOST_ITEMS else CoarseProgram(lot)
    first = program.solve(lot.counts)
    if first is None:
        return []
    random = np.random.default_rng(effort.seed)
    best, left = round_up(lot, program, Judgement(), random, first=first, effort=effort) or ([], lot.counts)
    if left.any():
        return best
    enough = first.price * _GOOD_ENOUGH
    best = _other_starts(lot, program, first, best, effort, random)
    return refine(lot, best, first.worth, enough, effort, random)


def _other_starts(
    lot: Lot,
    program: AssignmentProgram | CoarseProgram,
    first: Assignment,
    best: list[Shape],
    effort: Effort,
    random: np.random.Generator,
) -> list[Shape]:
    """Round again with shaken judgement while that has a chance."""
    for _ in range(effort.starts):
        price = price_of(lot, best)
        if price <= first.price * _GOOD_ENOUGH or effort.is_spent():
            break
        found = round_up(lot, program, _shaken(lot, random), random, first=first, effort=effort, below=price)
        if found is not None and not found[1].any():
            best = found[0]
    return best


def _shaken(lot: Lot, random: np.random.Generator) -> Judgement:
    return Judgement(
        share=float(random.choice((0.5, 0.8, 1.0))),
        band=float(random.choice((0.0, 0.01))),
        noise=float(random.choice((0.003, 0.01, 0.02))),
        outside=bool(lot.scarce.any() and random.integers(2)),
    )
