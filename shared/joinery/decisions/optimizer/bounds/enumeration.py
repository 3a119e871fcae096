"""The patterns that a packing cheaper than a known one could have, for small instances: those of small reduced cost.

A packing costs at least ``base`` + the reduced costs of its bins (``pattern_duals``). No pattern has a reduced cost
below zero if the duals are those of the compact formulation's optimum: the duals of its other rows (capacities, caps,
conflicts) then charge a bin at most c_k - y A_k, and each copy at least u_ik. Of other duals, ``pattern_relaxation``
shows it by listing. So a packing that has a pattern costs no less than base and the reduced cost of that pattern.
Enumerating columns by reduced cost within a gap is the method of Baldacci, Christofides and Mingozzi (2008, "An exact
algorithm for the vehicle routing problem based on the set partitioning formulation with additional cuts").

The solver's duals are not exact. By how much they break what is claimed is computed (``infeasibility``, e), and the gap
is widened by that much for every bin. A packing without useless bins has at most one bin for every copy; twice as many
are counted, to be safe.
"""

from dataclasses import dataclass

import numpy as np

from joinery.decisions.optimizer.arrays import Ints, Mask
from joinery.decisions.optimizer.bounds.compact import CompactFormulation
from joinery.decisions.optimizer.bounds.listing import Listed, Overflow, fitting, list_patterns
from joinery.decisions.optimizer.bounds.pattern_duals import PatternDuals
from joinery.decisions.optimizer.instance.packing_instance import PackingInstance
from joinery.decisions.optimizer.instance.patterns import Patterns

#: Bins that are filled only in part while they are being listed, times the items: at first, and at most.
_FEW_PARTIAL, _MOST_PARTIAL = 100_000, 1_000_000
#: How much of the gap is listed at first where that is too much; it is doubled as long as it is not.
_FIRST_SHARE, _LEAST_SHARE = 1 / 16, 1 / 1000
#: Of patterns that are listed one in so many is full, about.
_ONE_IS_FULL_OF = 2

_NONE: Ints = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Enumerated:
    """``patterns``: of small reduced cost, the least first. ``filled``: int64[n], the bin types (indices) that have too
    many to be listed. ``reach``: $/h; a packing with any other pattern of the other types costs so much more than the
    duals prove.
    """

    patterns: Patterns
    filled: Ints
    reach: float


def least_cost(formulation: CompactFormulation, duals: PatternDuals) -> float:
    """$/h that no packing costs less than, by these duals alone."""
    return duals.base - (2 * int(formulation.constrained.demands.sum()) + 1) * duals.infeasibility


def enumerate_patterns(formulation: CompactFormulation, duals: PatternDuals, gap: float, most: int) -> Enumerated:
    """The patterns whose reduced cost is within the gap ($/h); if there are more than about ``most``, or too many to be
    listed, as many as may be.

    Where a copy too many may be left out, only full ones. A full one holds whatever the other holds, and its reduced
    cost is not larger: no side constraint counts items then, so only demands price copies, and those duals are not
    below zero (``of_right_sign``).
    """
    most = _to_be_listed(formulation, most)
    listed, reach = _listed(formulation, duals, gap, most)
    return _enumerated(formulation, listed, reach, most=most)


def enumerate_few(formulation: CompactFormulation, duals: PatternDuals, gap: float, most: int) -> Enumerated | None:
    """All of them, where they are no more than about ``most``; else None, and soon."""
    listed = _within(formulation, duals, gap, _FEW_PARTIAL, Overflow.NOTHING)
    if not listed.is_complete or len(listed.reduced_costs) > _to_be_listed(formulation, most):
        return None
    return _enumerated(formulation, listed, gap)


def enumerate_whole_types(formulation: CompactFormulation, duals: PatternDuals, gap: float) -> Enumerated:
    """All of the bin types that have few, and which the others are."""
    listed = _within(formulation, duals, gap, _FEW_PARTIAL, Overflow.WHOLE_TYPES)
    return _enumerated(formulation, listed, gap, filled=np.flatnonzero(~listed.is_whole))


def _to_be_listed(formulation: CompactFormulation, most: int) -> int:
    """How many patterns are listed, so that about so many are full where only these count."""
    return most if formulation.constrained.limits_items else most * _ONE_IS_FULL_OF


def _enumerated(
    formulation: CompactFormulation, listed: Listed, reach: float, *, most: int | None = None, filled: Ints = _NONE
) -> Enumerated:
    """Those of the list that count, no more than ``most`` of it."""
    order = np.argsort(listed.reduced_costs, kind="stable")
    if most is not None and len(order) > most:
        reach = float(listed.reduced_costs[order[most]])
    patterns = listed.patterns.select(order[:most])
    if not formulation.constrained.limits_items:
        is_full = _is_full(formulation.constrained.instance, patterns, formulation.max_per_bin)
        patterns = patterns.select(np.flatnonzero(is_full))
    return Enumerated(_cheapest_of_equals(formulation, patterns), filled, reach)


def _within(
    formulation: CompactFormulation, duals: PatternDuals, reach: float, partial: int, overflow: Overflow
) -> Listed:
    instance = formulation.constrained.instance
    width, is_filled = partial // len(instance.demands), not formulation.constrained.limits_items
    return list_patterns(instance, formulation.max_per_bin, duals, reach, width, overflow=overflow, is_filled=is_filled)


def _listed(formulation: CompactFormulation, duals: PatternDuals, gap: float, most: int) -> tuple[Listed, float]:
    """A complete list within the gap, or within as much of it as gives more than ``most``; and how much that is."""
    listed, reach = _within(formulation, duals, gap, _FEW_PARTIAL, Overflow.NOTHING), gap
    if listed.is_complete:
        return listed, reach
    listed, reach, following = _within(formulation, duals, 0.0, _FEW_PARTIAL, Overflow.NOTHING), 0.0, gap * _FIRST_SHARE
    if not listed.is_complete:
        return listed, reach
    while len(listed.reduced_costs) <= most and following > max(reach, gap * _LEAST_SHARE):
        longer = _within(formulation, duals, following, _MOST_PARTIAL, Overflow.NOTHING)
        if longer.is_complete:
            listed, reach, following = longer, following, min(2 * following, gap)
        else:
            # Half of it, where that is not listed yet.
            following /= 2
    return listed, reach


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
    """Of patterns with the same contents, which side constraints do not tell apart, the cheapest."""
    instance, rows = formulation.constrained.instance, formulation.constrained.side_constraints
    bin_types, counts = patterns.bin_types, patterns.counts
    coefficients = np.array([row.bin_types[bin_types] for row in rows if row.bin_types.any()])
    coefficients = coefficients.reshape(len(coefficients), len(bin_types)).T
    seen: set[tuple[bytes, bytes]] = set()
    kept = []
    for index in np.argsort(instance.costs[bin_types], kind="stable"):
        key = counts[index].tobytes(), coefficients[index].tobytes()
        if key not in seen:
            seen.add(key)
            kept.append(index)
    return patterns.select(np.sort(np.array(kept, dtype=np.int64)))
