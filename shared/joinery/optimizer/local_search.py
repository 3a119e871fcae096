"""Local search over whole nodes: take a few of the most wasteful apart and pack their pods again, if that is cheaper.

Half of the time the few are of one place (zone): pods that are tied to their zones can only be put together there. Their pods are
offered the kinds in the nodes' own places whose reduced cost is small: others would only make the programs slower.
"""

from dataclasses import replace

import numpy as np

from joinery.optimizer.arrays import Floats, Ints
from joinery.optimizer.effort import Effort
from joinery.optimizer.instance.decomposition import Part
from joinery.optimizer.instance.packing_instance import Lot
from joinery.optimizer.instance.patterns import Shape, price_of
from joinery.optimizer.relaxation.assignment import AssignmentProgram
from joinery.optimizer.relaxation.merged_duals import Outlook
from joinery.optimizer.rounding.rounding import Judgement, round_up

_MOST_NODES = 7
_NOISES = (0.0, 0.005, 0.02)
_OF_ONE_PLACE = 0.5
"""How often the nodes that are taken apart are of one place."""
_NEAR = 0.1
"""Kinds whose reduced cost is at most this share of their price may take the place of others."""


def refine(
    lot: Lot,
    place: Ints,
    shapes: list[Shape],
    outlook: Outlook,
    enough: float,
    effort: Effort,
    random: np.random.Generator,
) -> list[Shape]:
    """A packing of the same pods that costs no more. ``place``: by kind; ``enough``: a price ($/h) at which to stop."""
    near = (outlook.reduced <= _NEAR * lot.price) | lot.scarce
    nodes = [Shape(shape.kind, shape.pods) for shape in shapes for _ in range(shape.times)]
    for _ in range(effort.tries):
        if len(nodes) < 2 or effort.is_spent() or price_of(lot, nodes) <= enough:
            break
        chosen = _wasteful(lot, place, nodes, outlook.worth, random)
        bought = [nodes[i].kind for i in chosen]
        kinds = near & np.isin(place, place[bought])
        kinds[bought] = True
        better = _again(lot, np.flatnonzero(kinds), nodes, chosen, random, effort)
        if better is not None:
            nodes = [node for i, node in enumerate(nodes) if i not in set(chosen)] + better
    return _together(nodes)


def _together(nodes: list[Shape]) -> list[Shape]:
    """Equal nodes as one shape, in the order in which they first come."""
    found: dict[tuple[int, bytes], list[Shape]] = {}
    for node in nodes:
        found.setdefault((node.kind, node.pods.tobytes()), []).append(node)
    return [Shape(same[0].kind, same[0].pods, len(same)) for same in found.values()]


def _wasteful(lot: Lot, place: Ints, nodes: list[Shape], worth: Floats, random: np.random.Generator) -> list[int]:
    """A few nodes, the more likely the more of their price is not charged to their pods."""
    price = lot.price[[node.kind for node in nodes]]
    waste = np.maximum(price - np.array([node.pods for node in nodes]) @ worth, 0.0) + 1e-3 * price + 1e-9
    scarce = lot.scarce[[node.kind for node in nodes]]
    if scarce.any() and not scarce.all():
        # They waste no money, but the room on them may be worth more to others.
        waste[scarce] = waste[~scarce].mean()
    at = place[[node.kind for node in nodes]]
    alike = at == at[random.choice(len(nodes), p=waste / waste.sum())]
    if alike.sum() > 1 and random.random() < _OF_ONE_PLACE:
        waste = np.where(alike, waste, 0.0)
    size = int(random.integers(2, min(np.count_nonzero(waste), _MOST_NODES) + 1))
    return [int(i) for i in random.choice(len(nodes), size=size, replace=False, p=waste / waste.sum())]


def _again(
    lot: Lot, kinds: Ints, every: list[Shape], chosen: list[int], random: np.random.Generator, effort: Effort
) -> list[Shape] | None:
    """The pods of the chosen nodes on cheaper ones of these kinds, if any are found."""
    nodes, stock = [every[i] for i in chosen], lot.stock
    counts: Ints = np.sum([node.pods for node in nodes], axis=0)
    for other in (node for i, node in enumerate(every) if i not in set(chosen)):
        stock = lot.less(stock, other.kind, 1)
    items = np.flatnonzero(counts)
    part = Part(items, kinds, replace(lot.part(items, kinds, counts[items]), stock=stock[kinds]))
    found = round_up(
        part.lot,
        AssignmentProgram(part.lot),
        Judgement(
            share=1.0,
            band=0.0,
            noise=float(random.choice(_NOISES)),
            outside=bool(lot.scarce.any() and random.integers(2)),
        ),
        random,
        effort=effort,
        below=float(sum(lot.price[node.kind] for node in nodes)),
    )
    if found is None or found[1].any():
        return None
    whole = (part.restore(shape, len(lot.counts)) for shape in found[0])
    return [Shape(shape.kind, shape.pods) for shape in whole for _ in range(shape.times)]
