"""The restricted master problem: bins that can be filled, instead of fractions of them.

Where few items fit on a bin, no real bin looks like the assignment relaxation's mix. A pattern q is a bin with whole
copies on it::

    minimise    sum_q c_q z_q + sum_i (1 + w) u_i s_i - sum_i (1 - w) u_i t_i
    subject to  sum_q a_iq z_q + s_i - t_i >= d_i    every copy is packed; a_iq: copies of item i in pattern q
                sum_{q of S} z_q           <= n_S    no limited supply is overdrawn

There are more patterns than can be written down, so the master has some of them, and others are sought at its duals
(``pricing``): one whose items' duals add up to more than its bin costs has a negative reduced cost, and makes the next
optimum cheaper.

**The box on the duals.** Few patterns are known at first, and their duals would lead anywhere. The variables s_i and
t_i let copies be had for a little more than u_i, the assignment relaxation's dual, and given away for a little less.
By duality that keeps the dual of item i between (1 - w) u_i and (1 + w) u_i. This is the stabilisation of du Merle,
Villeneuve, Desrosiers and Hansen (1999, "Stabilized column generation"), with a box as in the boxstep method of
Marsten, Hogan and Blankenship (1975, "The boxstep method for large-scale optimization"); the centre stays where it is
and the width w grows, because u is close to the optimum already.
"""

from dataclasses import dataclass

import numpy as np

from joinery.decisions.optimizer.arrays import Floats, Ints
from joinery.decisions.optimizer.instance.packing_instance import PackingInstance
from joinery.decisions.optimizer.instance.patterns import Patterns
from joinery.decisions.optimizer.linear.highs import LinearProgram, Solver

#: Without a box a copy may stay unpacked for so many times the dearest bin: dear enough never to be wanted, and always
#: feasible.
_UNPACKED = 1e3


@dataclass(frozen=True, eq=False)
class MasterSolution:
    """An optimum of the master.

    ``copies``: float64[columns], how often each pattern is bought. ``item_duals``: float64[items], $/h, not below zero.
    ``bin_costs``: float64[bin types], $/h, the cost of a bin and the dual of its limited supply, never quite zero.
    ``cost``: $/h of the bins. ``objective``: $/h, with what the box adds.
    """

    copies: Floats
    item_duals: Floats
    bin_costs: Floats
    cost: float
    objective: float


class RestrictedMaster:
    """The master over the columns known so far, for any demands up to the instance's. ``columns``: in the order of
    their variables.

    ``centre``: float64[items], the duals around which the box lies.
    """

    def __init__(self, instance: PackingInstance, centre: Floats) -> None:
        self._instance, self._items = instance, len(instance.demands)
        self._centre = np.maximum(centre, 1e-9)
        limited = np.flatnonzero(instance.is_limited)
        self._supplies, first = np.unique(instance.supply[limited], return_index=True)
        self._first_of_supply = limited[first]
        self._known: set[tuple[int, bytes]] = set()
        self._solver = Solver(self._without_columns(), grows=True)
        self.columns = Patterns(np.zeros(0, dtype=np.int64), np.zeros((0, self._items), dtype=np.int64))

    def add_columns(self, patterns: Patterns) -> int:
        """Add those that are not columns yet; returns how many they were."""
        fresh = []
        for index, (bin_type, counts) in enumerate(zip(patterns.bin_types, patterns.counts, strict=True)):
            key = int(bin_type), counts.tobytes()
            if key not in self._known:
                self._known.add(key)
                fresh.append(index)
        if fresh:
            instance, new = self._instance, patterns.select(np.array(fresh))
            in_supply = (self._supplies[:, None] == instance.supply[new.bin_types]) & instance.is_limited[new.bin_types]
            self._solver.add_columns(instance.costs[new.bin_types], np.concatenate([new.counts.T, in_supply]))
            self.columns = self.columns.join(new)
        return len(fresh)

    def solve(self, demands: Ints, available: Ints, width: float = np.inf) -> MasterSolution | None:
        """The optimum for these demands and bins left, with duals within a share ``width`` of the centre; None if
        HiGHS finds none.
        """
        instance, box_costs = self._instance, self._box_costs(width)
        self._solver.set_costs(box_costs)
        lower = np.concatenate([demands.astype(np.float64), np.full(len(self._supplies), -np.inf)])
        upper = np.concatenate([np.full(self._items, np.inf), available[self._first_of_supply].astype(np.float64)])
        solution = self._solver.solve(lower, upper)
        if solution is None:
            return None
        bin_costs = instance.costs.copy()
        for supply, dual in zip(self._supplies, solution.duals[self._items :], strict=True):
            bin_costs[instance.is_limited & (instance.supply == supply)] -= min(float(dual), 0.0)
        in_box, copies = np.split(solution.values, [2 * self._items])
        cost = float(instance.costs[self.columns.bin_types] @ copies)
        return MasterSolution(
            copies=copies,
            item_duals=np.maximum(solution.duals[: self._items], 0.0),
            bin_costs=np.maximum(bin_costs, 1e-12),
            cost=cost,
            objective=cost + float(box_costs @ in_box),
        )

    def _box_costs(self, width: float) -> Floats:
        """float64[2 * items]: the costs of s, and then of t."""
        if np.isinf(width):
            return np.concatenate([np.full(self._items, _UNPACKED * self._instance.costs.max()), np.zeros(self._items)])
        return np.concatenate([self._centre * (1 + width), -self._centre * (1 - width)])

    def _without_columns(self) -> LinearProgram:
        """The variables s and t only; columns come after them."""
        items = np.arange(self._items)
        height = self._items + len(self._supplies)
        return LinearProgram(
            costs=self._box_costs(0.0),
            upper_bounds=np.full(2 * self._items, np.inf),
            row_lower=np.zeros(height),
            row_upper=np.full(height, np.inf),
            rows=np.tile(items, 2).astype(np.int32),
            columns=np.arange(2 * self._items, dtype=np.int32),
            values=np.repeat([1.0, -1.0], self._items),
        )
