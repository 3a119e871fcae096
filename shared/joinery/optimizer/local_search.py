"""Local search over whole nodes: take a few of the most wasteful apart and pack their pods again, if that is cheaper.

Half of the time the few are of one place (zone): pods that are tied to their zones can only be put together there. Their pods are
offered the kinds in the nodes' own places whose reduced cost is small: others would only make the programs slower.
"""

from dataclasses import replace

import numpy as np

from joinery.optimizer.arrays import Floats, Ints
from joinery.optimizer.effort import Effort
from joinery.optimizer.instance.decomposition import Subinstance
from joinery.optimizer.instance.packing_instance import PackingInstance
from joinery.optimizer.instance.patterns import Pattern, cost_of
from joinery.optimizer.relaxation.assignment import AssignmentRelaxation
from joinery.optimizer.relaxation.merged_duals import MergedDuals
from joinery.optimizer.rounding.rounding import RoundingRule, round_up

_MOST_NODES = 7
_NOISES = (0.0, 0.005, 0.02)
_OF_ONE_PLACE = 0.5
"""How often the nodes that are taken apart are of one place."""
_NEAR = 0.1
"""Kinds whose reduced cost is at most this share of their price may take the place of others."""


def destroy_and_repair(
    instance: PackingInstance,
    block: Ints,
    patterns: list[Pattern],
    duals: MergedDuals,
    enough: float,
    effort: Effort,
    random: np.random.Generator,
) -> list[Pattern]:
    """A packing of the same pods that costs no more. ``place``: by kind; ``enough``: a price ($/h) at which to stop."""
    near = (duals.reduced_costs <= _NEAR * instance.costs) | instance.is_limited
    nodes = [Pattern(pattern.bin_type, pattern.counts) for pattern in patterns for _ in range(pattern.copies)]
    for _ in range(effort.repairs):
        if len(nodes) < 2 or effort.is_spent() or cost_of(instance, nodes) <= enough:
            break
        chosen = _wasteful(instance, block, nodes, duals.item_duals, random)
        bought = [nodes[i].bin_type for i in chosen]
        bin_types = near & np.isin(block, block[bought])
        bin_types[bought] = True
        better = _again(instance, np.flatnonzero(bin_types), nodes, chosen, random, effort)
        if better is not None:
            nodes = [node for i, node in enumerate(nodes) if i not in set(chosen)] + better
    return _together(nodes)


def _together(nodes: list[Pattern]) -> list[Pattern]:
    """Equal nodes as one pattern, in the order in which they first come."""
    found: dict[tuple[int, bytes], list[Pattern]] = {}
    for node in nodes:
        found.setdefault((node.bin_type, node.counts.tobytes()), []).append(node)
    return [Pattern(same[0].bin_type, same[0].counts, len(same)) for same in found.values()]


def _wasteful(
    instance: PackingInstance, block: Ints, nodes: list[Pattern], item_duals: Floats, random: np.random.Generator
) -> list[int]:
    """A few nodes, the more likely the more of their price is not charged to their pods."""
    price = instance.costs[[node.bin_type for node in nodes]]
    waste = np.maximum(price - np.array([node.counts for node in nodes]) @ item_duals, 0.0) + 1e-3 * price + 1e-9
    scarce = instance.is_limited[[node.bin_type for node in nodes]]
    if scarce.any() and not scarce.all():
        # They waste no money, but the room on them may be worth more to others.
        waste[scarce] = waste[~scarce].mean()
    at = block[[node.bin_type for node in nodes]]
    alike = at == at[random.choice(len(nodes), p=waste / waste.sum())]
    if alike.sum() > 1 and random.random() < _OF_ONE_PLACE:
        waste = np.where(alike, waste, 0.0)
    size = int(random.integers(2, min(np.count_nonzero(waste), _MOST_NODES) + 1))
    return [int(i) for i in random.choice(len(nodes), size=size, replace=False, p=waste / waste.sum())]


def _again(
    instance: PackingInstance,
    bin_types: Ints,
    every: list[Pattern],
    chosen: list[int],
    random: np.random.Generator,
    effort: Effort,
) -> list[Pattern] | None:
    """The pods of the chosen nodes on cheaper ones of these kinds, if any are found."""
    nodes, available = [every[i] for i in chosen], instance.available
    demands: Ints = np.sum([node.counts for node in nodes], axis=0)
    for other in (node for i, node in enumerate(every) if i not in set(chosen)):
        available = instance.after_buying(available, other.bin_type, 1)
    items = np.flatnonzero(demands)
    part = Subinstance(
        items, bin_types, replace(instance.restrict(items, bin_types, demands[items]), available=available[bin_types])
    )
    found = round_up(
        part.instance,
        AssignmentRelaxation(part.instance),
        RoundingRule(
            share=1.0,
            tolerance=0.0,
            noise=float(random.choice(_NOISES)),
            by_opportunity_cost=bool(instance.is_limited.any() and random.integers(2)),
        ),
        random,
        effort=effort,
        below=float(sum(instance.costs[node.bin_type] for node in nodes)),
    )
    if found is None or found[1].any():
        return None
    whole = (part.lift(pattern, len(instance.demands)) for pattern in found[0])
    return [Pattern(pattern.bin_type, pattern.counts) for pattern in whole for _ in range(pattern.copies)]
