"""What consolidation could gain at most if only sums of resources mattered.

It is the relaxation of ``relaxation`` with one row for each resource in place of one for each item and bin: room that
is anywhere holds whatever is too much elsewhere. Its optimum is a bound on every solution, is known in milliseconds,
and is exact where standing bins are full of what they were bought for.
"""

from dataclasses import dataclass

import numpy as np

from joinery.decisions.optimizer.arrays import Floats, Ints
from joinery.decisions.optimizer.linear.highs import Patience, Solver
from joinery.decisions.optimizer.linear.rows import RowWriter


@dataclass(frozen=True, eq=False, kw_only=True)
class SumsOfRoom:
    """Standing bins and types of new bins, by what they hold of each resource.

    keeping      float64[standing bins], $/h: the price of each less what moving its residents counts as; 0 for one that
                 cannot be retired
    residents    int64[standing bins, resources]: what must go elsewhere if the bin goes
    free         int64[standing bins, resources]: what the bin has beside all that it holds, for residents of others
    costs        float64[types], $/h of a new bin
    capacities   int64[types, resources]
    """

    keeping: Floats
    residents: Ints
    free: Ints
    costs: Floats
    capacities: Ints

    def most_gain(self, patience: Patience | None = None) -> float:
        """$/h that no choice of bins to keep exceeds; infinite where HiGHS has no optimum, or patience ran out."""
        rows, standing = RowWriter(), len(self.keeping)
        keep, buy = np.arange(standing), standing + np.arange(len(self.costs))
        scale = np.maximum(self.residents.sum(axis=0), 1).astype(np.float64)
        demands = self.residents.sum(axis=0)
        for resource in np.flatnonzero(demands):
            room = (self.residents[:, resource] + self.free[:, resource]) / scale[resource]
            rows.add(np.zeros(standing, dtype=np.int64), keep, room)
            rows.add(np.zeros(len(buy), dtype=np.int64), buy, self.capacities[:, resource] / scale[resource])
            rows.close(np.ones(1), np.full(1, np.inf))
        if not rows.height:
            return float(np.maximum(self.keeping, 0.0).sum())
        costs = np.concatenate([self.keeping, self.costs])
        upper = np.concatenate([np.ones(standing), np.full(len(buy), np.inf)])
        program = rows.program(costs, upper)
        solution = Solver(program, patience=patience).solve(program.row_lower, program.row_upper)
        return np.inf if solution is None else float(self.keeping.sum() - costs @ solution.values)
