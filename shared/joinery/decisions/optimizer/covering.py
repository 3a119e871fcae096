"""A few of many candidates that have, between them, as many different values of each kind as are required.

A NodePool's minValues ask for this: a launch carries so many instance types, with at least two families and three
sizes among them. It is set multicover with quotas, which is NP-hard; here candidates are hundreds and quotas tens. The
greedy choice nearly always does (Chvátal 1979, "A greedy heuristic for the set-covering problem"). Where it does not,
an integer program decides.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from joinery.decisions.optimizer.arrays import Floats, Ints, Mask
from joinery.decisions.optimizer.linear.highs import LinearProgram, Solver

#: Branch-and-bound nodes of the integer program. A choice that takes more is given up, the same one in every run.
_BRANCHES = 1000


@dataclass(frozen=True, eq=False)
class Quotas:
    """``has_value``: bool[candidates, values]. ``quota_of``: int64[values], the quota that a value counts for (index).
    ``required``: int64[quotas], different values wanted.

    Candidates are in the order in which they are liked; the first one is always chosen.
    """

    has_value: Mask
    quota_of: Ints
    required: Ints

    @property
    def by_quota(self) -> Ints:
        """int64[values, quotas]: one where the value counts for the quota."""
        return np.asarray(self.quota_of[:, None] == np.arange(len(self.required)), dtype=np.int64)

    def missing(self, chosen: Ints) -> Ints:
        """int64[quotas]: how many values the chosen candidates (indices) lack."""
        missing: Ints = np.maximum(self.required - self.has_value[chosen].any(axis=0) @ self.by_quota, 0)
        return missing


def cover(quotas: Quotas, most: int) -> Ints | None:
    """At most so many candidates (indices) that fill all quotas; None if none were found."""
    chosen = greedy(quotas, most)
    if not quotas.missing(chosen).any():
        return chosen
    if quotas.missing(np.arange(len(quotas.has_value))).any():
        return None
    return _exact(quotas, most)


def greedy(quotas: Quotas, most: int) -> Ints:
    """At most so many candidates (indices), each the one that adds most of what those before it lack; of equals the
    one liked best.
    """
    chosen, by_quota = [0], quotas.by_quota
    while len(chosen) < most:
        missing = quotas.missing(np.array(chosen))
        fresh = (quotas.has_value & ~quotas.has_value[chosen].any(axis=0)) @ by_quota
        gains = np.minimum(fresh, missing).sum(axis=1)
        best = int(gains.argmax())
        if gains[best] <= 0:
            break
        chosen.append(best)
    return np.array(chosen, dtype=np.int64)


def _exact(quotas: Quotas, most: int) -> Ints | None:
    """The fewest candidates that fill the quotas; of those with the same values, the one liked best."""
    _, first = np.unique(quotas.has_value, axis=0, return_index=True)
    distinct: NDArray[np.int64] = np.sort(first)
    answer = Solver(_program(quotas.has_value[distinct], quotas)).solve_integer(_BRANCHES)
    if answer is None:
        return None
    chosen = distinct[np.flatnonzero(answer[: len(distinct)] > 0.5)]
    return chosen if len(chosen) <= most and not quotas.missing(chosen).any() else None


def _program(has_value: Mask, quotas: Quotas) -> LinearProgram:
    """Candidates are whole variables. A variable for each value counts it once, and no more often than candidates with
    it are chosen.

    Rows: values; quotas; the first candidate. Costs rise a little along the order of liking, never enough for one
    candidate more.
    """
    candidates, values = has_value.shape
    number = len(quotas.required)
    owner, value = np.nonzero(has_value)
    own: NDArray[np.int64] = np.arange(values)
    ones = np.ones(values)
    costs: Floats = np.concatenate([1 + np.arange(candidates) / (100 * candidates), np.zeros(values)])
    return LinearProgram(
        costs=costs,
        upper_bounds=np.ones(candidates + values),
        row_lower=np.concatenate([np.full(values, -np.inf), quotas.required.astype(np.float64), [1.0]]),
        row_upper=np.concatenate([np.zeros(values), np.full(number + 1, np.inf)]),
        rows=np.concatenate([own, value, values + quotas.quota_of, [values + number]]).astype(np.int32),
        columns=np.concatenate([candidates + own, owner, candidates + own, [0]]).astype(np.int32),
        values=np.concatenate([ones, -np.ones(len(owner)), ones, [1.0]]),
        integers=candidates,
    )
