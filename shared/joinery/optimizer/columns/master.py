"""The pattern program: nodes that can be built, instead of fractions of them.

Where few pods fit on a node, no real node looks like the assignment program's. A **pattern** is a node with whole pods on it::

    minimise    sum_q p_q z_q
    subject to  sum_q a_iq z_q >= n_i     every pod has a place; a_iq: pods of item i on a node of pattern q
                sum_{q of s} z_q <= n_s   no pile of nodes is overdrawn

There are more patterns than can be written down, so they are sought as they are needed (``pricing``): at the prices of the last
optimum a pattern whose pods are charged more than its node costs makes the next one cheaper. Few are known at first, and their
prices would lead anywhere; so prices stay within a **band** around the assignment program's, which is widened as the search goes on.
"""

from dataclasses import dataclass

import numpy as np

from joinery.optimizer.arrays import Floats, Ints
from joinery.optimizer.instance.packing_instance import Lot
from joinery.optimizer.instance.patterns import Patterns
from joinery.optimizer.linear.highs import Program, Solver


@dataclass(frozen=True, eq=False)
class Purchase:
    """An optimum. ``times``: by pattern, in fractions; ``worth``: what a pod is charged, by item; ``cost``: what a node of each
    kind costs, its scarcity included and never nothing; ``price``: $/h of the nodes; ``total``: with what the band adds to it.
    """

    times: Floats
    worth: Floats
    cost: Floats
    price: float
    total: float


class PatternProgram:
    """The program over the patterns known so far, to be solved for any counts up to the lot's."""

    def __init__(self, lot: Lot, worth: Floats) -> None:
        self._lot, self._height = lot, len(lot.counts)
        self._worth = np.maximum(worth, 1e-9)
        self._piles, self._heads = np.unique(lot.pile[lot.scarce], return_index=True)
        self._heads = np.flatnonzero(lot.scarce)[self._heads]
        self._seen: set[tuple[int, bytes]] = set()
        self._solver = Solver(self._band_only(), grows=True)
        self.known = Patterns(np.zeros(0, dtype=np.int64), np.zeros((0, self._height), dtype=np.int64))

    def add(self, found: Patterns) -> int:
        """Make these known; how many were not yet."""
        fresh = []
        for index, (kind, pods) in enumerate(zip(found.kinds, found.pods, strict=True)):
            key = int(kind), pods.tobytes()
            if key not in self._seen:
                self._seen.add(key)
                fresh.append(index)
        if fresh:
            new = found.part(np.array(fresh))
            of_piles = (self._piles[:, None] == self._lot.pile[new.kinds]) & self._lot.scarce[new.kinds]
            self._solver.widen(self._lot.price[new.kinds], np.concatenate([new.pods.T, of_piles]))
            self.known = self.known.join(new)
        return len(fresh)

    def solve(self, counts: Ints, stock: Ints, band: float = np.inf) -> Purchase | None:
        """The optimum for these counts and what is left of each kind, with prices that differ by ``band`` (a share) from the first
        ones at most.
        """
        beside = self._band_costs(band)
        self._solver.reprice(beside)
        lower = np.concatenate([counts.astype(np.float64), np.full(len(self._piles), -np.inf)])
        upper = np.concatenate([np.full(self._height, np.inf), stock[self._heads].astype(np.float64)])
        solution = self._solver.solve(lower, upper)
        if solution is None:
            return None
        cost = self._lot.price.copy()
        for pile, dual in zip(self._piles, solution.duals[self._height :], strict=True):
            cost[self._lot.scarce & (self._lot.pile == pile)] -= min(float(dual), 0.0)
        outside, times = np.split(solution.values, [2 * self._height])
        worth = np.maximum(solution.duals[: self._height], 0.0)
        price = float(self._lot.price[self.known.kinds] @ times)
        return Purchase(times, worth, np.maximum(cost, 1e-12), price, price + float(beside @ outside))

    def _band_costs(self, band: float) -> Floats:
        """A pod may be had for a little more than its worth, and given away for a little less: so its price lies between."""
        if np.isinf(band):
            return np.concatenate([np.full(self._height, 1e3 * self._lot.price.max()), np.zeros(self._height)])
        return np.concatenate([self._worth * (1 + band), -self._worth * (1 - band)])

    def _band_only(self) -> Program:
        items = np.arange(self._height)
        height = self._height + len(self._piles)
        return Program(
            cost=self._band_costs(0.0),
            most=np.full(2 * self._height, np.inf),
            lower=np.zeros(height),
            upper=np.full(height, np.inf),
            rows=np.tile(items, 2).astype(np.int32),
            columns=np.arange(2 * self._height, dtype=np.int32),
            values=np.repeat([1.0, -1.0], self._height),
        )
