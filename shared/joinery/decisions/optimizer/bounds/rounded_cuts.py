"""Cuts of a master program rounded, so that they hold for whole bins only: mixed-integer rounding."""

from collections.abc import Sequence
from operator import itemgetter

import numpy as np

from joinery.decisions.optimizer.arrays import Floats
from joinery.decisions.optimizer.bounds.branch_and_bound import Cut

#: What a coefficient may be wrong by, as a share of it.
_ROUNDING = 1e-9
#: A number of bins so near to a whole one is one, and a fraction of a right side below it gives no useful cut.
_FRACTION = 0.01
#: A cut that is broken by less, as a share of its right side, is left out.
_WORTH_ADDING = 1e-4


def rounded(cuts: Sequence[Cut], bins: Floats) -> list[Cut]:
    """Of each cut the mixed-integer rounding that these bins (float64[bin types], fractions) break most, if any.

    With a_k >= 0, b > 0 and any d above zero, whole x_k that keep sum_k a_k x_k >= b also keep::

        sum_k (floor(a_k / d) + min(1, frac(a_k / d) / f)) x_k  >=  ceil(b / d)         f = frac(b / d)

    Nemhauser and Wolsey (1990, "A recursive procedure to generate all cuts for 0-1 mixed integer programs"). Here d is
    what a bin that is bought in fractions counts.
    """
    broken = []
    fractional = np.flatnonzero(np.abs(bins - np.round(bins)) > _FRACTION)
    for cut in cuts:
        worth, least = -cut.coefficients * (1 + _ROUNDING), -cut.upper * (1 - _ROUNDING)
        candidates = []
        for divisor in np.unique(worth[fractional]):
            share = least / divisor - np.floor(least / divisor) if min(divisor, least) > 0 else 0.0
            if share > _FRACTION:
                scaled = worth / divisor
                row = np.floor(scaled) + np.minimum(1.0, (scaled - np.floor(scaled)) / share)
                right = np.ceil(least / divisor)
                candidates.append((float(row @ bins) / right, Cut(-row / right, -1.0)))
        kept, best = min(candidates, key=itemgetter(0), default=(1.0, cut))
        if kept < 1 - _WORTH_ADDING:
            broken.append(best)
    return broken
