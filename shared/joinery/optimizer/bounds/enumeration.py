"""All patterns that a packing cheaper than a known one could have, for small instances.

Fix duals y of the rows that couple bins (demands, limited supplies, side constraints), and let the reduced cost of a
pattern be its bin's cost less what y prices its bin and its copies at:

    r_q  =  c_k - y A_k - sum_i a_iq u_ik        u_ik: what y pays for a copy of item i on a bin of type k

**Claim.** A packing costs at least base + the reduced costs of its bins, where base = sum_r y_r b_r over the coupling
rows. **Proof.** As in ``duality``, with the terms of d . v taken bin by bin. ∎

No pattern has a reduced cost below zero if the duals are those of the compact formulation's optimum: the duals of its
other rows (capacities, caps, conflicts) then charge a bin at most c_k - y A_k, and each copy at least u_ik. So a
pattern whose reduced cost alone exceeds the gap from base to the cutoff is in no packing cheaper than the cutoff, and
where items are few, so few are left that they can be listed. Enumerating columns by reduced cost within the gap is the
method of Baldacci, Christofides and Mingozzi (2008, "An exact algorithm for the vehicle routing problem based on the
set partitioning formulation with additional cuts").

The solver's duals are not exact. By how much they break what is claimed is computed (``infeasibility``, e). A variable
of the compact formulation may then have a reduced cost of -e: each bin of a packing has one variable for its type and
at most one for each of its items, so its reduced cost may be as low as -e (1 + items). The gap is widened by that much
for every bin. A packing without useless bins has at most one bin for every copy; twice as many are counted, to be safe.
"""

from dataclasses import dataclass

import numpy as np

from joinery.optimizer.arrays import Floats, Ints, Mask
from joinery.optimizer.bounds.compact import CompactFormulation
from joinery.optimizer.bounds.duality import of_right_sign, reduced_costs
from joinery.optimizer.instance.packing_instance import PackingInstance
from joinery.optimizer.instance.patterns import Patterns

_MOST_PATTERNS = 6_000
"""More patterns are not worth a program over them."""
_MOST_PARTIAL = 40_000
"""Bins of one type that are filled only in part, while they are being listed."""


class TooManyPatternsError(Exception):
    """There are more patterns than are worth listing."""


@dataclass(frozen=True, eq=False)
class PatternDuals:
    """The duals of a compact formulation, sorted by what they price. All in $/h.

    ``base``: what no packing costs less than, if no pattern has a negative reduced cost.
    ``bin_costs``: float64[bin types], c_k - y A_k. ``item_duals``: float64[items, bin types], u_ik.

    What prices a bin's own rows, by which no copy is paid more than it takes: ``capacity_duals``: float64[bin types,
    resources], for a unit; ``item_row_duals``: float64[items, bin types], for a copy within the most of an item;
    ``limit_duals``: float64[limits, bin types], for a copy within a limit; ``conflict_duals``: float64[bin types], for
    all conflicts of a bin together.

    ``infeasibility``: how far below zero the reduced cost of a variable is at worst.
    """

    base: float
    bin_costs: Floats
    item_duals: Floats
    capacity_duals: Floats
    item_row_duals: Floats
    limit_duals: Floats
    conflict_duals: Floats
    infeasibility: float


def pattern_duals(formulation: CompactFormulation, duals: Floats) -> PatternDuals:
    """Sort the duals (float64[rows]) of a formulation's optimum."""
    program, instance = formulation.program.relaxation, formulation.constrained.instance
    duals = of_right_sign(program, duals)
    coupling = duals.copy()
    coupling[formulation.capacity_rows.start : formulation.first_coupling_row] = 0.0
    ends = np.where(coupling > 0, program.row_lower, program.row_upper)
    base = float((coupling * np.where(coupling == 0, 0.0, ends)).sum())
    bin_types, pairs = formulation.bin_type_count, formulation.bin_type_count + formulation.pair_count
    by_coupling, by_all = reduced_costs(program, coupling), reduced_costs(program, duals)
    item_duals = np.zeros(instance.compatible.shape)
    item_duals[formulation.items, formulation.bin_types] = -by_coupling[bin_types:pairs]
    # The rows of a bin are "at most" rows, so their duals are not above zero; as prices they are not below.
    own = -duals
    item_row_duals = np.zeros(instance.compatible.shape)
    item_row_duals[formulation.items, formulation.bin_types] = own[formulation.item_rows]
    capacity_duals, used = np.zeros(instance.capacities.shape), formulation.resources
    capacity_duals[:, used] = own[formulation.capacity_rows].reshape(len(used), bin_types).T
    conflict_duals = np.zeros(bin_types)
    np.add.at(conflict_duals, formulation.conflict_bin_types, own[formulation.conflict_rows])
    limit_rows = formulation.limit_rows
    return PatternDuals(
        base=base,
        bin_costs=by_coupling[:bin_types],
        item_duals=item_duals,
        capacity_duals=capacity_duals / instance.scale,
        item_row_duals=item_row_duals,
        limit_duals=np.array([own[rows] for rows in limit_rows]).reshape(len(limit_rows), bin_types),
        conflict_duals=conflict_duals,
        infeasibility=float(-np.minimum(by_all[:pairs], 0.0).min(initial=0.0)),
    )


def enumerate_patterns(formulation: CompactFormulation, duals: PatternDuals) -> Patterns:
    """Every pattern whose reduced cost leaves a packing below the cutoff. Raises ``TooManyPatternsError``.

    Where a copy too many may be left out, only full bins. A full one holds whatever the other holds, and its reduced
    cost is not larger: no side constraint counts items then, so only demands price copies, and those duals are not
    below zero (``of_right_sign``).
    """
    constrained, instance = formulation.constrained, formulation.constrained.instance
    listed, total = [], 0
    most_bins = 2 * int(constrained.demands.sum()) + 1
    gap = formulation.cutoff - duals.base + most_bins * duals.infeasibility * (1 + len(instance.demands))
    for bin_type in range(len(instance.costs)):
        counts = _of_bin_type(formulation, duals, bin_type, gap)
        if not constrained.limits_items:
            counts = counts[_is_full(instance, bin_type, counts, formulation.max_per_bin[:, bin_type])]
        total += len(counts)
        if total > 4 * _MOST_PATTERNS:  # before the dearer ones of equals are left out
            raise TooManyPatternsError
        listed.append(Patterns(np.full(len(counts), bin_type), counts))
    if not total:
        # Nothing costs less than the cutoff, and the bound that was known before did not quite say so.
        return Patterns(np.zeros(0, dtype=np.int64), np.zeros((0, len(instance.demands)), dtype=np.int64))
    patterns = _cheapest_of_equals(formulation, listed)
    if len(patterns.bin_types) > _MOST_PATTERNS:
        raise TooManyPatternsError
    return patterns


def _of_bin_type(formulation: CompactFormulation, duals: PatternDuals, bin_type: int, gap: float) -> Ints:
    """int64[patterns, items]: bins of one type, listed item by item.

    After each item, bins that no filling with later items could bring within the gap are dropped. Items that could pay
    most come first, so that hopeless bins are dropped early.
    """
    instance, most = formulation.constrained.instance, formulation.max_per_bin[:, bin_type]
    item_duals = duals.item_duals[:, bin_type]
    order = np.flatnonzero(most)
    order = order[np.argsort(-item_duals[order] * most[order], kind="stable")]
    of_item_rows = np.cumsum((duals.item_row_duals[order, bin_type] * most[order])[::-1])[::-1]
    counts: Ints = np.zeros((1, len(instance.demands)), dtype=np.int64)
    free, paid = instance.capacities[bin_type][None, :], np.zeros(1)
    for step, item in enumerate(order):
        choices = 1 + _fitting(instance, item, counts, free, int(most[item]))
        parent = np.repeat(np.arange(len(counts)), choices)
        copies = np.arange(len(parent)) - np.repeat(np.cumsum(choices) - choices, choices)
        if len(parent) > _MOST_PARTIAL:
            raise TooManyPatternsError
        counts, free = counts[parent], free[parent] - copies[:, None] * instance.sizes[item]
        counts[:, item] = copies
        paid = paid[parent] + copies * item_duals[item]
        later = order[step + 1 :]
        # Two bounds on what later items can pay. By the duals of the bin's own rows, for what is left of each; and
        # each alone.
        by_rows = free @ duals.capacity_duals[bin_type]
        by_rows = by_rows + (of_item_rows[step + 1] if len(later) else 0.0) + duals.conflict_duals[bin_type]
        for number, limit in enumerate(instance.cardinality_limits):
            left = limit.cap - counts[:, limit.items].sum(axis=1)
            by_rows = by_rows + duals.limit_duals[number, bin_type] * left
        alone = _paid_alone(instance, item_duals, free, later, most) if len(later) else np.zeros(len(counts))
        keep = duals.bin_costs[bin_type] - paid - np.minimum(alone, by_rows) <= gap
        counts, free, paid = counts[keep], free[keep], paid[keep]
    return counts[counts.any(axis=1)]


def _fitting(instance: PackingInstance, item: int, counts: Ints, free: Ints, most: int) -> Ints:
    """int64[bins]: copies of the item that each bin may still get, ``most`` at most.

    ``counts``: int64[bins, items]; ``free``: int64[bins, resources].
    """
    used = np.flatnonzero(instance.sizes[item] > 0)
    fitting: Ints = np.full(len(counts), most)
    if len(used):
        fitting = (free[:, used] // instance.sizes[item, used]).min(axis=1, initial=most)
    for limit in instance.cardinality_limits:
        if item in limit.items:
            fitting = np.minimum(fitting, limit.cap - counts[:, limit.items].sum(axis=1))
    conflicting = np.flatnonzero(instance.conflicts[item])
    conflicting = conflicting[conflicting != item]
    if len(conflicting):
        fitting = np.where(counts[:, conflicting].any(axis=1), 0, fitting)
    allowed: Ints = np.clip(fitting, 0, most)
    return allowed


def _paid_alone(instance: PackingInstance, item_duals: Floats, free: Ints, later: Ints, most: Ints) -> Floats:
    """float64[bins]: what later items (indices) could pay if each of them had all that is free to itself."""
    total = np.zeros(len(free))
    for item in later:
        used = np.flatnonzero(instance.sizes[item] > 0)
        copies = most[item]
        if len(used):
            copies = np.minimum((free[:, used] // instance.sizes[item, used]).min(axis=1), copies)
        total = total + np.maximum(item_duals[item], 0.0) * copies
    return total


def _is_full(instance: PackingInstance, bin_type: int, counts: Ints, most: Ints) -> Mask:
    """bool[patterns]: whether no further copy of any item fits on the bin."""
    free = instance.capacities[bin_type] - counts @ instance.sizes
    is_full: Mask = np.ones(len(counts), dtype=np.bool_)
    for item in np.flatnonzero(most):
        left = most[item] - counts[:, item]
        is_full &= (left <= 0) | (_fitting(instance, int(item), counts, free, 1) <= 0)
    return is_full


def _cheapest_of_equals(formulation: CompactFormulation, found: list[Patterns]) -> Patterns:
    """Of patterns with the same contents, which side constraints and supplies do not tell apart, the cheapest."""
    instance, rows = formulation.constrained.instance, formulation.constrained.side_constraints
    bin_types = np.concatenate([some.bin_types for some in found])
    counts = np.concatenate([some.counts for some in found])
    coefficients = np.array([row.bin_types[bin_types] for row in rows if row.bin_types.any()])
    coefficients = coefficients.reshape(-1, len(bin_types)).T
    supply = np.where(instance.is_limited[bin_types], instance.supply[bin_types], -1)
    seen: set[tuple[bytes, bytes, int]] = set()
    kept = []
    for index in np.argsort(instance.costs[bin_types], kind="stable"):
        key = counts[index].tobytes(), coefficients[index].tobytes(), int(supply[index])
        if key not in seen:
            seen.add(key)
            kept.append(index)
    chosen = np.sort(np.array(kept, dtype=np.int64))
    return Patterns(bin_types[chosen], counts[chosen])
