"""The pattern program: nodes that can be built, instead of fractions of them.

Where few pods fit on a node, no real node looks like the assignment program's. A **pattern** is a node with whole pods on it::

    minimise    sum_q p_q z_q
    subject to  sum_q a_iq z_q >= n_i     every pod has a place; a_iq: pods of item i on a node of pattern q
                sum_{q of s} z_q <= n_s   no supply of nodes is overdrawn

There are more patterns than can be written down, so they are sought as they are needed (``pricing``): at the prices of the last
optimum a pattern whose pods are charged more than its node costs makes the next one cheaper. Few are known at first, and their
prices would lead anywhere; so prices stay within a **band** around the assignment program's, which is widened as the search goes on.
"""

from dataclasses import dataclass

import numpy as np

from joinery.optimizer.arrays import Floats, Ints
from joinery.optimizer.instance.packing_instance import PackingInstance
from joinery.optimizer.instance.patterns import Patterns
from joinery.optimizer.linear.highs import LinearProgram, Solver


@dataclass(frozen=True, eq=False)
class MasterSolution:
    """An optimum. ``copies``: by pattern, in fractions; ``item_duals``: what a pod is charged, by item; ``bin_costs``: what a node of each
    kind costs, its scarcity included and never nothing; ``cost``: $/h of the nodes; ``objective``: with what the band adds to it.
    """

    copies: Floats
    item_duals: Floats
    bin_costs: Floats
    cost: float
    objective: float


class RestrictedMaster:
    """The program over the patterns known so far, to be solved for any counts up to the instance's."""

    def __init__(self, instance: PackingInstance, item_duals: Floats) -> None:
        self._lot, self._height = instance, len(instance.demands)
        self._worth = np.maximum(item_duals, 1e-9)
        self._piles, self._heads = np.unique(instance.supply[instance.is_limited], return_index=True)
        self._heads = np.flatnonzero(instance.is_limited)[self._heads]
        self._seen: set[tuple[int, bytes]] = set()
        self._solver = Solver(self._band_only(), grows=True)
        self.columns = Patterns(np.zeros(0, dtype=np.int64), np.zeros((0, self._height), dtype=np.int64))

    def add_columns(self, found: Patterns) -> int:
        """Make these known; how many were not yet."""
        fresh = []
        for index, (bin_type, counts) in enumerate(zip(found.bin_types, found.counts, strict=True)):
            key = int(bin_type), counts.tobytes()
            if key not in self._seen:
                self._seen.add(key)
                fresh.append(index)
        if fresh:
            new = found.select(np.array(fresh))
            of_piles = (self._piles[:, None] == self._lot.supply[new.bin_types]) & self._lot.is_limited[new.bin_types]
            self._solver.add_columns(self._lot.costs[new.bin_types], np.concatenate([new.counts.T, of_piles]))
            self.columns = self.columns.join(new)
        return len(fresh)

    def solve(self, demands: Ints, available: Ints, band: float = np.inf) -> MasterSolution | None:
        """The optimum for these counts and what is left of each kind, with prices that differ by ``band`` (a share) from the first
        ones at most.
        """
        beside = self._band_costs(band)
        self._solver.set_costs(beside)
        lower = np.concatenate([demands.astype(np.float64), np.full(len(self._piles), -np.inf)])
        upper = np.concatenate([np.full(self._height, np.inf), available[self._heads].astype(np.float64)])
        solution = self._solver.solve(lower, upper)
        if solution is None:
            return None
        cost = self._lot.costs.copy()
        for supply, dual in zip(self._piles, solution.duals[self._height :], strict=True):
            cost[self._lot.is_limited & (self._lot.supply == supply)] -= min(float(dual), 0.0)
        outside, times = np.split(solution.values, [2 * self._height])
        item_duals = np.maximum(solution.duals[: self._height], 0.0)
        price = float(self._lot.costs[self.columns.bin_types] @ times)
        return MasterSolution(times, item_duals, np.maximum(cost, 1e-12), price, price + float(beside @ outside))

    def _band_costs(self, band: float) -> Floats:
        """A pod may be had for a little more than its worth, and given away for a little less: so its price lies between."""
        if np.isinf(band):
            return np.concatenate([np.full(self._height, 1e3 * self._lot.costs.max()), np.zeros(self._height)])
        return np.concatenate([self._worth * (1 + band), -self._worth * (1 - band)])

    def _band_only(self) -> LinearProgram:
        items = np.arange(self._height)
        height = self._height + len(self._piles)
        return LinearProgram(
            costs=self._band_costs(0.0),
            upper_bounds=np.full(2 * self._height, np.inf),
            row_lower=np.zeros(height),
            row_upper=np.full(height, np.inf),
            rows=np.tile(items, 2).astype(np.int32),
            columns=np.arange(2 * self._height, dtype=np.int32),
            values=np.repeat([1.0, -1.0], self._height),
        )
