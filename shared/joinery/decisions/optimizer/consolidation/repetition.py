"""A second look at a solution: as if it were carried out already, with its new bins standing.

Each way of the search decides once which bins to keep. On its own result it may find more: a new bin that others have
room for by now, or a kept bin that is worth less beside the new ones. What has moved once may move on for nothing,
because it is only planned. Whoever decides again tomorrow finds little that is not found here.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from joinery.decisions.optimizer.arrays import Ints
from joinery.decisions.optimizer.consolidation.instance import Consolidation, ConsolidationInstance
from joinery.decisions.optimizer.instance.packing_instance import PackingInstance
from joinery.decisions.optimizer.instance.patterns import Pattern, cost_of

Consolidate = Callable[[ConsolidationInstance], Consolidation]


@dataclass(frozen=True)
class _Standing:
    """What stands once a solution is carried out.

    ``kept``: int64[kept bins], their indices in the instance. ``inflow``: int64[items, kept bins]. ``types``:
    int64[new bins], their bin types. ``counts``: int64[items, new bins].
    """

    kept: Ints
    inflow: Ints
    types: Ints
    counts: Ints


def improved(
    instance: ConsolidationInstance, solution: Consolidation, consolidate: Consolidate
) -> Consolidation | None:
    """A cheaper solution that begins where this one ends; None if there is none, or the instance has rules over bins.

    ``consolidate``: solves what is left to decide.
    """
    bins = instance.bins
    if bins.cardinality_limits or bins.conflicts.any() or bins.is_limited[instance.standing :].any():
        return None
    standing = _carried_out(instance, solution)
    if standing is None:
        return None
    other = consolidate(_instance_of(instance, standing))
    keeps_kept, keeps_new = np.split(other.keep, [len(standing.kept)])
    keep = np.zeros(instance.standing, dtype=np.bool_)
    keep[standing.kept[keeps_kept]] = True
    inflow = np.zeros_like(instance.residents)
    more, beside_new = np.split(other.inflow, [len(standing.kept)], axis=1)
    inflow[:, standing.kept] = np.where(keeps_kept, standing.inflow + more, 0)
    counts = standing.counts + beside_new
    new = [Pattern(int(standing.types[index]), counts[:, index]) for index in np.flatnonzero(keeps_new)]
    shift = instance.standing - len(other.keep)
    new += [replace(pattern, bin_type=pattern.bin_type + shift) for pattern in other.new]
    cost = instance.cost(keep, cost_of(bins, new))
    return replace(solution, keep=keep, inflow=inflow, new=tuple(new), cost=cost)


def _carried_out(instance: ConsolidationInstance, solution: Consolidation) -> _Standing | None:
    """None if the solution does not say where everything goes."""
    expanded = [pattern for pattern in solution.new for _ in range(pattern.copies)]
    counts: Ints = np.zeros((len(instance.bins.demands), len(expanded)), dtype=np.int64)
    for index, pattern in enumerate(expanded):
        counts[:, index] = pattern.counts
    kept = np.flatnonzero(solution.keep)
    left = instance.displaced(solution.keep)
    inflow, left = _without_surplus(solution.inflow[:, kept], left)
    counts, left = _without_surplus(counts, left)
    if left.any():
        return None
    return _Standing(kept, inflow, np.array([pattern.bin_type for pattern in expanded], dtype=np.int64), counts)


def _without_surplus(counts: Ints, left: Ints) -> tuple[Ints, Ints]:
    """Of the counts (int64[items, bins]) as many of each item as are left, from the first bin on; and what is left."""
    before = np.cumsum(counts, axis=1) - counts
    taken: Ints = np.clip(left[:, None] - before, 0, counts)
    return taken, left - taken.sum(axis=1)


def _instance_of(instance: ConsolidationInstance, standing: _Standing) -> ConsolidationInstance:
    bins, kept, types = instance.bins, standing.kept, standing.types
    of_type = np.arange(instance.standing, len(bins.costs))
    there = np.concatenate([kept, types])
    own = np.concatenate([instance.residents[:, kept], np.zeros_like(standing.counts)], axis=1)
    planned = np.concatenate([standing.inflow, standing.counts], axis=1)
    may_retire = np.concatenate([instance.may_retire[kept], np.ones(len(types), dtype=np.bool_)])
    free = bins.capacities[there] - planned.T @ bins.sizes
    fits = (bins.sizes[:, None, :] <= free[None]).all(axis=2)
    residents = np.where(may_retire, own + planned, 0)
    return ConsolidationInstance(
        bins=PackingInstance(
            sizes=bins.sizes,
            demands=residents.sum(axis=1),
            costs=np.concatenate([bins.costs[there], bins.costs[of_type]]),
            capacities=np.concatenate([free, bins.capacities[of_type]]),
            compatible=np.concatenate([bins.compatible[:, there] & fits, bins.compatible[:, of_type]], axis=1),
            cardinality_limits=(),
            conflicts=bins.conflicts,
            available=np.concatenate([np.ones(len(there), dtype=np.int64), bins.available[of_type]]),
        ),
        residents=residents,
        moves=np.concatenate([instance.moves[kept], np.zeros(len(types))]),
        may_retire=may_retire,
        kinds=np.concatenate([instance.kinds[kept], instance.kinds.max(initial=0) + 1 + types]),
    )
