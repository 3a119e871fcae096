"""What prices of the rows of a program prove."""

import numpy as np

from joinery.optimizer.arrays import Floats
from joinery.optimizer.linear.highs import LinearProgram

_ROUNDING = 1e-10
"""What sums of floats may be wrong by, as a share of what is summed: thousands of terms with an error of 1e-16 each."""


def dual_bound(program: LinearProgram, prices: Floats, low: Floats, high: Floats) -> float:
    """What these prices of the rows prove: no v between low and high that keeps the rows costs less."""
    prices = dual_feasible(program, prices)
    pushed = np.where(prices > 0, program.row_lower, program.row_upper)
    rows = prices * np.where(prices == 0, 0.0, pushed)
    rest = reduced_costs(program, prices)
    columns = rest * np.where(rest > 0, low, high)
    terms = np.concatenate([rows, columns])
    return float(terms.sum() - _ROUNDING * np.abs(terms).sum())


def dual_feasible(program: LinearProgram, prices: Floats) -> Floats:
    """The prices, without those that push against an end that is not there."""
    kept = np.where(np.isinf(program.row_lower), np.minimum(prices, 0.0), prices)
    return np.where(np.isinf(program.row_upper), np.maximum(kept, 0.0), kept)


def reduced_costs(program: LinearProgram, prices: Floats) -> Floats:
    """What each variable costs beyond what the prices of the rows charge it."""
    charged = np.bincount(program.columns, weights=program.values * prices[program.rows], minlength=len(program.costs))
    return program.costs - charged
