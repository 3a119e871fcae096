"""The relaxation of consolidation: standing bins and copies of items may be divided.

k_n of standing bin n is kept, m_ic copies of item i go to the free room of cluster c, and x_t new bins of type t take
y_it copies::

    minimise    sum_n keeping_n k_n + sum_t cost_t x_t
    subject to  sum_n residents_in k_n + sum_c m_ic + sum_t y_it >= demand_i
                sum_i size_ir m_ic <= sum_{n of c} free_nr k_n
                sum_i size_ir y_it <= capacity_tr x_t
                0 <= k_n <= 1

The room of kept bins is pooled in clusters of bins alike in what they admit, in the ratio of their resources and in
size. With a row for each bin the program takes a hundred times longer, and its optimum is the same to the second
decimal. Pooling, like dividing, only adds solutions, so the optimum is a bound on every solution in which the residents
of kept bins stay.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from joinery.decisions.optimizer import tuning
from joinery.decisions.optimizer.arrays import Floats, Ints, Mask
from joinery.decisions.optimizer.consolidation.instance import ConsolidationInstance
from joinery.decisions.optimizer.linear.highs import LinearProgram, Patience, Solver
from joinery.decisions.optimizer.linear.rows import RowWriter

#: What HiGHS takes for a whole number may be so far from one.
_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class KeepSolution:
    """An optimum of the relaxation.

    ``cost``: $/h, with the fixed cost. ``keep``: float64[standing bins].
    ``item_duals``: float64[items], $/h of packing one copy more.
    """

    cost: float
    keep: Floats
    item_duals: Floats


class KeepRelaxation:
    """The relaxation of one instance, whose clusters are formed once. ``patience``: how long each solve may take.

    ``quotas``: of these standing bins (indices) at most so many go.
    """

    def __init__(
        self,
        instance: ConsolidationInstance,
        patience: Patience | None = None,
        quotas: Sequence[tuple[Ints, int]] = (),
    ) -> None:
        self._instance, self._patience, self._quotas = instance, patience, quotas
        bins, standing = instance.bins, instance.standing
        self._sizes = bins.sizes / bins.scale
        self._free = np.maximum(bins.capacities[:standing], 0) / bins.scale
        self._new = bins.capacities[standing:] / bins.scale
        self._cluster, count = _clusters(instance, self._free)
        fits = bins.max_per_bin[:, :standing] > 0
        admits = np.zeros((len(bins.demands), count), dtype=np.bool_)
        for cluster in range(count):
            admits[:, cluster] = fits[:, self._cluster == cluster].any(axis=1)
        self._room_pairs = np.argwhere(admits)
        self._new_pairs = np.argwhere(bins.compatible[:, standing:])
        self._clusters = count
        self._basis: Any = None

    def solve(self, margin: float = 0.0) -> KeepSolution | None:
        """The optimum; None where HiGHS has none, or patience ran out.

        ``margin``: the share of all room that whole copies will waste.
        """
        program = self._program(margin)
        # The primal simplex takes a quarter of the dual's time where items and types are many.
        solver = Solver(program, grows=True, patience=self._patience)
        if self._basis is not None:
            # Another margin changes little: from the last optimum it takes a tenth of the time.
            solver.start_from(self._basis)
        solution = solver.solve(program.row_lower, program.row_upper)
        if solution is None:
            return None
        self._basis = solver.basis
        instance, values = self._instance, solution.values
        return KeepSolution(
            cost=instance.fixed_cost + float(program.costs @ values),
            keep=values[: instance.standing],
            item_duals=np.maximum(solution.duals[: len(instance.bins.demands)], 0.0),
        )

    def bound_of_whole_bins(self) -> float:
        """$/h that no solution undercuts in which bins are kept and bought as a whole; copies may still be divided.

        Minus infinity where it would take more than a second.
        """
        pairs = len(self._room_pairs) + len(self._new_pairs)
        if pairs > tuning.WHOLE_PAIRS or self._instance.standing > tuning.WHOLE_BINS:
            return -np.inf
        bound = Solver(self._program(0.0, is_whole=True), patience=self._patience).integer_bound(tuning.WHOLE_BRANCHES)
        return self._instance.fixed_cost + bound - _TOLERANCE * abs(bound)

    def _program(self, margin: float, *, is_whole: bool = False) -> LinearProgram:
        instance, rows = self._instance, RowWriter()
        bins, standing = instance.bins, instance.standing
        items, types = len(bins.demands), len(bins.costs) - standing
        room, new = self._room_pairs, self._new_pairs
        # Only the first variables can be whole, so bins come first then. Otherwise the order stays as it was: another
        # order may give another one of several optima that cost the same.
        bought = standing + (0 if is_whole else len(room)) + np.arange(types)
        moved = standing + (types if is_whole else 0) + np.arange(len(room))
        packed = standing + len(room) + types + np.arange(len(new))
        item, bin_ = np.nonzero(instance.residents)
        rows.add(item, bin_, instance.residents[item, bin_].astype(np.float64))
        rows.add(room[:, 0], moved, 1.0)
        rows.add(new[:, 0], packed, 1.0)
        rows.close(bins.demands.astype(np.float64), np.full(items, np.inf))
        for resource in range(self._sizes.shape[1]):
            sizes = self._sizes[:, resource]
            if not sizes.any():
                continue
            rows.add(room[:, 1], moved, sizes[room[:, 0]])
            rows.add(self._cluster, np.arange(standing), -self._free[:, resource] * (1 - margin))
            rows.close_at_most(np.zeros(self._clusters))
            rows.add(new[:, 1], packed, sizes[new[:, 0]])
            rows.add(np.arange(types), bought, -self._new[:, resource] * (1 - margin))
            rows.close_at_most(np.zeros(types))
        for bins_of_quota, most in self._quotas:
            rows.add(np.zeros_like(bins_of_quota), bins_of_quota, -1.0)
            rows.close_at_most(np.array([most - len(bins_of_quota)], dtype=np.float64))
        # A bin that may not be retired is there for nothing: keeping it costs nothing and only gives room.
        costs = np.concatenate([instance.keeping, np.zeros(len(room) + types + len(new))])
        costs[bought] = bins.costs[standing:]
        upper = np.concatenate([np.ones(standing), np.full(len(costs) - standing, np.inf)])
        return rows.program(costs, upper, integers=standing + types if is_whole else 0)


def _clusters(instance: ConsolidationInstance, free: Floats) -> tuple[Ints, int]:
    """int64[standing bins], the cluster of each, and how many there are."""
    if instance.standing * len(instance.bins.demands) <= tuning.UNCLUSTERED_PAIRS:
        return np.arange(instance.standing), instance.standing
    ratios, sizes = (tuning.CLUSTER_RATIOS, tuning.CLUSTER_SIZES)
    kinds = len(np.unique(instance.kinds))
    if kinds * ratios * sizes * len(instance.bins.demands) > tuning.CLUSTERED_PAIRS:
        ratios, sizes = 2, 2
    shares = free / np.maximum(free.max(axis=0, initial=0.0), 1e-12)
    ratio = _quantile(np.log((shares[:, :1] + 1e-4) / (shares[:, 1:2] + 1e-4)).ravel(), ratios)
    size = np.zeros(len(free), dtype=np.int64)
    for part in range(ratios):
        size[ratio == part] = _quantile(shares[ratio == part].sum(axis=1), sizes)
    keys = np.stack([instance.kinds, ratio, size], axis=1)
    names, cluster = np.unique(keys, axis=0, return_inverse=True)
    return cluster.ravel(), len(names)


def _quantile(values: Floats, parts: int) -> Ints:
    """int64[values]: which of so many parts of about equal size each belongs to."""
    ends = np.quantile(values, np.linspace(0, 1, parts + 1)[1:-1]) if len(values) else np.zeros(0)
    part: Ints = np.searchsorted(ends, values)
    return part


def is_kept(keep: Floats) -> Mask:
    """bool[standing bins]: the bins of which more than half is kept (float64[standing bins])."""
    kept: Mask = keep > 0.5
    return kept
