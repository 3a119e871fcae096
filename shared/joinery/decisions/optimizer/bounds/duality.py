"""The lower bound that any duals prove of a linear program: weak duality with bounds on the variables.

**Claim.** Let y be any duals of the rows, none above zero where the row has no lower end and none below zero where it
has no upper end. Let d = costs - yA. Every v between ``low`` and ``high`` that keeps the rows costs at least::

    sum_r y_r b_r + sum_j min(d_j low_j, d_j high_j)

where b_r is the lower end of row r if y_r is above zero, and the upper end if it is below.

**Proof.** costs . v = y . (Av) + d . v. In the first sum y_r (Av)_r >= y_r b_r: the end is chosen so. In the second
d_j v_j is at least the smaller of d_j low_j and d_j high_j. ∎

Duals of the wrong sign are set to zero, so the claim holds for whatever a solver suggests; how near it was to an
optimum decides only how good the bound is. Neumaier and Shcherbina (2004, "Safe bounds in linear and mixed-integer
linear programming") make the sums rigorous too, by directed rounding. Here a share of all that is summed is taken off
instead.
"""

import numpy as np

from joinery.decisions.optimizer.arrays import Floats
from joinery.decisions.optimizer.linear.highs import LinearProgram

#: What a sum of floats may be wrong by, as a share of the absolute values summed: thousands of terms with an error of
#: 1e-16 each.
_ROUNDING = 1e-10


def dual_bound(program: LinearProgram, duals: Floats, low: Floats, high: Floats) -> float:
    """The bound of the claim, for any ``duals`` (float64[rows]) and bounds of the variables (float64[variables],
    finite).
    """
    duals = of_right_sign(program, duals)
    ends = np.where(duals > 0, program.row_lower, program.row_upper)
    rows = duals * np.where(duals == 0, 0.0, ends)
    remaining = reduced_costs(program, duals)
    variables = remaining * np.where(remaining > 0, low, high)
    terms = np.concatenate([rows, variables])
    return float(terms.sum() - _ROUNDING * np.abs(terms).sum())


def of_right_sign(program: LinearProgram, duals: Floats) -> Floats:
    """The duals, with zero in place of those that lean on an end which their row does not have."""
    kept = np.where(np.isinf(program.row_lower), np.minimum(duals, 0.0), duals)
    return np.where(np.isinf(program.row_upper), np.maximum(kept, 0.0), kept)


def reduced_costs(program: LinearProgram, duals: Floats) -> Floats:
    """float64[variables]: costs - yA."""
    priced = np.bincount(program.columns, weights=program.values * duals[program.rows], minlength=len(program.costs))
    return program.costs - priced
