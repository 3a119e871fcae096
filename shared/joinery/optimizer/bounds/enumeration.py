"""All nodes that a plan cheaper than a known one could have, for small tasks.

At the prices of the rows that bind nodes together (``Prices``) every node of a plan has a **waste**: what it costs beyond what its pods
are charged. What a plan costs is at least what the prices prove of all plans, and the waste of its nodes on top. So a node whose waste
alone makes up for the gap is in no cheaper plan, and the others are few enough to be listed where pods are few.
"""

from dataclasses import dataclass

import numpy as np

from joinery.optimizer.arrays import Floats, Ints, Mask
from joinery.optimizer.bounds.compact import CompactFormulation
from joinery.optimizer.bounds.duality import dual_feasible, reduced_costs
from joinery.optimizer.instance.packing_instance import PackingInstance
from joinery.optimizer.instance.patterns import Patterns

_MOST_PATTERNS = 6_000
_MOST_PARTIAL = 40_000


class TooManyPatternsError(Exception):
    """There are more nodes than anyone wants to list."""


@dataclass(frozen=True, eq=False)
class PatternDuals:
    """``base``: what no plan costs less than, whatever the waste; ``bin_costs``: by kind, of a node and its share of what is scarce; ``item_duals``:
    by item, what a pod is charged; ``capacity_duals`` (kinds x resources), ``item_row_duals`` (items x kinds), ``limit_duals`` (groups x kinds) and ``conflict_duals`` (by
    kind): what a node's room, its caps and all else that binds it are priced at, by which no pod is charged more than it takes.
    """

    base: float
    bin_costs: Floats
    item_duals: Floats
    capacity_duals: Floats
    item_row_duals: Floats
    limit_duals: Floats
    conflict_duals: Floats
    infeasibility: float


def pattern_duals(placement: CompactFormulation, duals: Floats) -> PatternDuals:
    """The prices of an optimum, read as what nodes and pods are charged."""
    question = placement.program
    program = question.relaxation
    duals = dual_feasible(program, duals)
    everywhere = duals.copy()
    everywhere[placement.capacity_rows.start : placement.first_coupling_row] = 0.0
    pushed = np.where(everywhere > 0, program.row_lower, program.row_upper)
    proof = float((everywhere * np.where(everywhere == 0, 0.0, pushed)).sum())
    beyond = reduced_costs(program, everywhere)
    instance, width = placement.constrained.instance, placement.bin_type_count
    item_duals = np.zeros(instance.compatible.shape)
    item_duals[placement.items, placement.bin_types] = -beyond[width : width + placement.pair_count]
    local = -duals
    own = np.zeros(instance.compatible.shape)
    own[placement.items, placement.bin_types] = local[placement.item_rows]
    room = np.zeros(instance.capacities.shape)
    room[:, placement.resources] = local[placement.capacity_rows].reshape(len(placement.resources), width).T
    groups = np.array([local[part] for part in placement.limit_rows]).reshape(len(placement.limit_rows), width)
    rest = np.zeros(width)
    np.add.at(rest, placement.conflict_bin_types, local[placement.conflict_rows])
    slip = float(-np.minimum(reduced_costs(program, duals)[: width + placement.pair_count], 0.0).min(initial=0.0))
    return PatternDuals(proof, beyond[:width], item_duals, room / instance.scale, own, groups, rest, slip)


def enumerate_patterns(placement: CompactFormulation, prices: PatternDuals) -> Patterns:
    """Every node whose waste leaves a plan below the cutoff; only full ones where one pod too many does not matter."""
    instance, found, total = placement.constrained.instance, [], 0
    gap = placement.cutoff - prices.base
    gap += (2 * int(placement.constrained.demands.sum()) + 1) * prices.infeasibility * (1 + len(instance.demands))
    for bin_type in range(len(instance.costs)):
        counts = _of_kind(placement, prices, bin_type, gap)
        if not placement.constrained.limits_items:
            counts = counts[_is_full(instance, bin_type, counts, placement.max_per_bin[:, bin_type])]
        total += len(counts)
        if total > 4 * _MOST_PATTERNS:
            raise TooManyPatternsError
        found.append(Patterns(np.full(len(counts), bin_type), counts))
    together = _cheapest(placement, found)
    if len(together.bin_types) > _MOST_PATTERNS:
        raise TooManyPatternsError
    return together


def _of_kind(placement: CompactFormulation, prices: PatternDuals, bin_type: int, gap: float) -> Ints:
    """The nodes of one kind (patterns x items), item by item."""
    instance, most = placement.constrained.instance, placement.max_per_bin[:, bin_type]
    item_duals = prices.item_duals[:, bin_type]
    order = np.flatnonzero(most)
    order = order[np.argsort(-item_duals[order] * most[order], kind="stable")]
    rest_own = np.cumsum((prices.item_row_duals[order, bin_type] * most[order])[::-1])[::-1]
    counts: Ints = np.zeros((1, len(instance.demands)), dtype=np.int64)
    free, charged = instance.capacities[bin_type][None, :], np.zeros(1)
    for step, item in enumerate(order):
        allowed = _allowed(instance, item, counts, free, int(most[item]))
        times = allowed + 1
        which = np.repeat(np.arange(len(counts)), times)
        more = np.arange(len(which)) - np.repeat(np.cumsum(times) - times, times)
        if len(which) > _MOST_PARTIAL:
            raise TooManyPatternsError
        counts, free = counts[which], free[which] - more[:, None] * instance.sizes[item]
        counts[:, item] = more
        charged = charged[which] + more * item_duals[item]
        later = order[step + 1 :]
        ahead = rest_own[step + 1] if len(later) else 0.0
        hoped = _hoped(instance, prices, bin_type, (counts, free), later, most) if len(later) else np.zeros(len(counts))
        bound = free @ prices.capacity_duals[bin_type] + ahead + prices.conflict_duals[bin_type]
        for number, group in enumerate(instance.cardinality_limits):
            bound = bound + prices.limit_duals[number, bin_type] * (group.cap - counts[:, group.items].sum(axis=1))
        keep = prices.bin_costs[bin_type] - charged - np.minimum(hoped, bound) <= gap
        counts, free, charged = counts[keep], free[keep], charged[keep]
    return counts[counts.any(axis=1)]


def _allowed(instance: PackingInstance, item: int, counts: Ints, free: Ints, most: int) -> Ints:
    """How many pods of the item each node may still have."""
    asked = np.flatnonzero(instance.sizes[item] > 0)
    room = (
        (free[:, asked] // instance.sizes[item, asked]).min(axis=1, initial=most)
        if len(asked)
        else np.full(len(counts), most)
    )
    for group in instance.cardinality_limits:
        if item in group.items:
            room = np.minimum(room, group.cap - counts[:, group.items].sum(axis=1))
    against = np.flatnonzero(instance.conflicts[item])
    against = against[against != item]
    if len(against):
        room = np.where(counts[:, against].any(axis=1), 0, room)
    allowed: Ints = np.clip(room, 0, most)
    return allowed


def _hoped(
    instance: PackingInstance, prices: PatternDuals, bin_type: int, nodes: tuple[Ints, Ints], later: Ints, most: Ints
) -> Floats:
    """What pods still to come could be charged if each item had all the room to itself."""
    _, free = nodes
    total = np.zeros(len(free))
    for item in later:
        asked = np.flatnonzero(instance.sizes[item] > 0)
        number = (
            np.minimum((free[:, asked] // instance.sizes[item, asked]).min(axis=1), most[item])
            if len(asked)
            else most[item]
        )
        total = total + np.maximum(prices.item_duals[item, bin_type], 0.0) * number
    return total


def _is_full(instance: PackingInstance, bin_type: int, counts: Ints, most: Ints) -> Mask:
    """Whether no further pod fits on each of the nodes."""
    free = instance.capacities[bin_type] - counts @ instance.sizes
    full: Mask = np.ones(len(counts), dtype=np.bool_)
    for item in np.flatnonzero(most):
        spare = most[item] - counts[:, item]
        full &= (spare <= 0) | (_allowed(instance, int(item), counts, free, 1) <= 0)
    return full


def _cheapest(placement: CompactFormulation, found: list[Patterns]) -> Patterns:
    """Of nodes with the same pods that nothing else tells apart the cheapest."""
    instance, rows = placement.constrained.instance, placement.constrained.side_constraints
    bin_types = np.concatenate([some.bin_types for some in found])
    counts = np.concatenate([some.counts for some in found])
    told = np.array([row.bin_types[bin_types] for row in rows if row.bin_types.any()]).reshape(-1, len(bin_types)).T
    supply = np.where(instance.is_limited[bin_types], instance.supply[bin_types], -1)
    order = np.argsort(instance.costs[bin_types], kind="stable")
    seen: set[tuple[bytes, bytes, int]] = set()
    kept = []
    for index in order:
        key = counts[index].tobytes(), told[index].tobytes(), int(supply[index])
        if key not in seen:
            seen.add(key)
            kept.append(index)
    chosen = np.sort(np.array(kept, dtype=np.int64))
    return Patterns(bin_types[chosen], counts[chosen])
