"""All patterns that a packing cheaper than a known one could have, for small instances.

A packing costs at least ``base`` + the reduced costs of its bins (``pattern_duals``). No pattern has a reduced cost
below zero if the duals are those of the compact formulation's optimum: the duals of its other rows (capacities, caps,
conflicts) then charge a bin at most c_k - y A_k, and each copy at least u_ik. Of other duals, ``pattern_relaxation``
shows it by listing. So a pattern whose reduced cost alone exceeds the gap from base to the cutoff is in no packing
cheaper than the cutoff, and where items are few, so few are left that they can be listed. Enumerating columns by
reduced cost within the gap is the method of Baldacci, Christofides and Mingozzi (2008, "An exact algorithm for the
vehicle routing problem based on the set partitioning formulation with additional cuts").

The solver's duals are not exact. By how much they break what is claimed is computed (``infeasibility``, e), and the gap
is widened by that much for every bin. A packing without useless bins has at most one bin for every copy; twice as many
are counted, to be safe.
"""

import numpy as np

from joinery.decisions.optimizer.arrays import Ints, Mask
from joinery.decisions.optimizer.bounds.compact import CompactFormulation
from joinery.decisions.optimizer.bounds.listing import fitting, list_patterns
from joinery.decisions.optimizer.bounds.pattern_duals import PatternDuals
from joinery.decisions.optimizer.instance.packing_instance import PackingInstance
from joinery.decisions.optimizer.instance.patterns import Patterns

#: More patterns are not worth a program over them.
_MOST_PATTERNS = 6_000
#: Bins that are filled only in part while they are being listed, times the items.
_MOST_PARTIAL = 400_000


class TooManyPatternsError(Exception):
    """There are more patterns than are worth listing."""


def least_cost(formulation: CompactFormulation, duals: PatternDuals) -> float:
    """$/h that no packing costs less than, by these duals alone."""
    return duals.base - (2 * int(formulation.constrained.demands.sum()) + 1) * duals.infeasibility


def enumerate_patterns(formulation: CompactFormulation, duals: PatternDuals) -> Patterns:
    """Every pattern whose reduced cost leaves a packing below the cutoff. Raises ``TooManyPatternsError``.

    Where a copy too many may be left out, only full bins. A full one holds whatever the other holds, and its reduced
    cost is not larger: no side constraint counts items then, so only demands price copies, and those duals are not
    below zero (``of_right_sign``).
    """
    constrained, instance = formulation.constrained, formulation.constrained.instance
    gap = formulation.cutoff - least_cost(formulation, duals)
    listed = list_patterns(instance, formulation.max_per_bin, duals, gap, _MOST_PARTIAL // len(instance.demands))
    if not listed.is_complete:
        raise TooManyPatternsError
    patterns = listed.patterns
    if not constrained.limits_items:
        patterns = patterns.select(np.flatnonzero(_is_full(instance, patterns, formulation.max_per_bin)))
    if not len(patterns.bin_types):
        # Nothing costs less than the cutoff, and the bound that was known before did not quite say so.
        return patterns
    patterns = _cheapest_of_equals(formulation, patterns)
    if len(patterns.bin_types) > _MOST_PATTERNS:
        raise TooManyPatternsError
    return patterns


def _is_full(instance: PackingInstance, patterns: Patterns, most: Ints) -> Mask:
    """bool[patterns]: whether no further copy of any item fits on the bin."""
    bin_types, counts = patterns.bin_types, patterns.counts
    free = instance.capacities[bin_types] - counts @ instance.sizes
    is_full: Mask = np.ones(len(counts), dtype=np.bool_)
    for item in range(len(instance.demands)):
        left = most[item, bin_types] - counts[:, item]
        is_full &= fitting(instance, item, counts, free, left) <= 0
    return is_full


def _cheapest_of_equals(formulation: CompactFormulation, patterns: Patterns) -> Patterns:
    """Of patterns with the same contents, which side constraints and supplies do not tell apart, the cheapest."""
    instance, rows = formulation.constrained.instance, formulation.constrained.side_constraints
    bin_types, counts = patterns.bin_types, patterns.counts
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
