"""The whole search for a lot: which kinds matter, whole nodes from the program, patterns, and local search."""

from dataclasses import replace

import numpy as np

from joinery.optimizer.arrays import Ints
from joinery.optimizer.bounds.exact import Answer, is_small, least
from joinery.optimizer.columns.generation import by_patterns
from joinery.optimizer.effort import Effort
from joinery.optimizer.instance.decomposition import by_place
from joinery.optimizer.instance.packing_instance import Lot
from joinery.optimizer.instance.patterns import Shape, price_of
from joinery.optimizer.instance.side_constraints import plain
from joinery.optimizer.local_search import refine
from joinery.optimizer.relaxation.core import Survey
from joinery.optimizer.relaxation.merged_duals import Outlook
from joinery.optimizer.relaxation.relaxation import guide
from joinery.optimizer.rounding.rounding import Judgement, round_up

_SORTS = 50
"""So many sorts of kind are considered after the first look."""
_GOOD_ENOUGH = 1.002
"""A packing this close to what the program says is possible is not improved."""
_FEW_PAIRS = 5_000
"""Patterns are sought for lots of no more pairs of an item and a kind that admits it: the work grows with them, and where there
are more (many small demands in many zones) it triples to save one percent.
"""
_LISTED = 16
"""Of no more pods the cheapest nodes are mostly soon listed, before anything else improves the packing."""
_HASTY = Judgement(share=1.0, band=0.2, stale=True)
"""A packing to start from is soon found, and patterns make up for it; what is scarce is dealt out with more care."""


def pack(lot: Lot, place: Ints, effort: Effort, survey: Survey | None = None) -> list[Shape]:
    """Nodes for the pods of the lot, nearly the cheapest. Pods may be left over where the effort was over before.

    ``place``: by kind; nodes of one place are packed by themselves at first. ``survey``: of the lot, if there is one already.
    """
    kinds = (survey or Survey(lot)).promising(_SORTS)
    few = lot.part(np.arange(len(lot.counts)), kinds, lot.counts)
    random = np.random.default_rng(effort.seed)
    judgement = _HASTY if _is_small(few) and not few.scarce.any() else Judgement()
    start, outlook = _started(few, place[kinds], judgement, effort, random)
    best = _among(kinds, start)
    if lot.counts.sum() <= _LISTED:
        answer = _least(lot, best, effort)
        if answer is not None and answer.is_exact:
            return list(answer.shapes or best)
    if outlook is not None and _is_small(few):  # of more kinds, nodes taken apart would gain nothing in the time
        best = _among(kinds, _improved(few, place[kinds], start, outlook, effort, random))
    answer = _least(lot, best, effort)
    return list((answer and answer.shapes) or best)


def _among(kinds: Ints, shapes: list[Shape]) -> list[Shape]:
    """Shapes of some kinds as those of the whole lot."""
    return [Shape(int(kinds[shape.kind]), shape.pods, shape.times) for shape in shapes]


def _least(lot: Lot, best: list[Shape], effort: Effort) -> Answer | None:
    """The very cheapest nodes, where they are few enough to be listed."""
    task, packed = plain(lot), sum(int(shape.pods.sum()) * shape.times for shape in best)
    if effort.is_over() or packed < lot.counts.sum() or not is_small(task):
        return None
    return least(task, price_of(lot, best), is_thorough=False)


def _improved(
    lot: Lot, place: Ints, best: list[Shape], outlook: Outlook, effort: Effort, random: np.random.Generator
) -> list[Shape]:
    """A packing of the same pods that costs no more: by patterns, and by packing the pods of some nodes again."""

    def finish(left: Ints, stock: Ints, below: float) -> list[Shape] | None:
        rest = replace(lot, stock=stock)
        shapes, found = _rounded(rest, place, left, Judgement(), effort, random, below)
        return None if found is None else shapes

    enough = outlook.price * _GOOD_ENOUGH
    effort.begin()
    if price_of(lot, best) > enough:
        best = by_patterns(lot, outlook, best, finish, effort, random)
    return refine(lot, place, best, outlook, enough, effort, random)


def _started(
    lot: Lot, place: Ints, judgement: Judgement, effort: Effort, random: np.random.Generator
) -> tuple[list[Shape], Outlook | None]:
    """A packing to start from, the better of two where some kinds are scarce and do not do; and what the programs say."""
    best, outlook = _rounded(lot, place, lot.counts, judgement, effort, random)
    if outlook is not None and lot.scarce.any() and not all(lot.scarce[shape.kind] for shape in best):
        other, found = _rounded(lot, place, lot.counts, replace(judgement, outside=True), effort, random)
        if found is not None and price_of(lot, other) < price_of(lot, best):
            best = other
    return best, outlook


def _rounded(
    lot: Lot,
    place: Ints,
    counts: Ints,
    judgement: Judgement,
    effort: Effort,
    random: np.random.Generator,
    below: float = np.inf,
) -> tuple[list[Shape], Outlook | None]:
    """Nodes for so many pods, place by place, and what the programs say of them; None if pods are left over, or if the nodes would
    cost ``below`` or more.
    """
    outlook, shapes, is_whole = Outlook.of_nothing(lot), list[Shape](), True
    parts = [(part, guide(part.lot, is_swift=not _is_small(lot))) for part in by_place(lot, place, counts)]
    answers = [program.solve(part.lot.counts) for part, program in parts]
    least = sum(answer.price for answer in answers if answer is not None)
    for (part, program), first in zip(parts, answers, strict=True):
        if first is None:
            is_whole = False
            continue
        most = below - least + first.price
        found = round_up(part.lot, program, judgement, random, first=first, effort=effort, below=most)
        if found is None:
            return [], None
        bought, left = found
        shapes += [part.restore(shape, len(counts)) for shape in bought]
        least += price_of(part.lot, bought) - first.price
        is_whole = is_whole and not left.any()
        outlook.note(part, first)
    return shapes, outlook if is_whole else None


def _is_small(lot: Lot) -> bool:
    return int(lot.admits.sum()) <= _FEW_PAIRS
