"""A few of many things that have between them as many different values of several sorts as are asked for.

Set cover with several quotas, which is hard in general; here things are hundreds, and quotas tens. The greedy choice, that which
brings most of what is missing, nearly always does; where it does not, an integer program decides.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from joinery.optimizer.arrays import Floats, Ints, Mask
from joinery.optimizer.linear.highs import LinearProgram, Solver

_NODES = 1000
"""So many branches of the integer program are looked at: a choice that takes more is given up, the same one in every run."""


@dataclass(frozen=True, eq=False)
class Quotas:
    """``has_value``: things x values, whether a thing has a value; ``quota_of``: of each value; ``required``: different values wanted by sort.

    Things are in the order in which they are liked; the first one is always chosen.
    """

    has_value: Mask
    quota_of: Ints
    required: Ints

    @property
    def by_quota(self) -> Ints:
        """Values x sorts: one where the value is of the sort."""
        return np.asarray(self.quota_of[:, None] == np.arange(len(self.required)), dtype=np.int64)

    def missing(self, chosen: Ints) -> Ints:
        """How many values of each sort the chosen things lack."""
        missing: Ints = np.maximum(self.required - self.has_value[chosen].any(axis=0) @ self.by_quota, 0)
        return missing


def cover(asked: Quotas, most: int) -> Ints | None:
    """At most so many things that fill all quotas; None where there are none."""
    chosen = greedy(asked, most)
    if not asked.missing(chosen).any():
        return chosen
    if asked.missing(np.arange(len(asked.has_value))).any():
        return None
    return _exact(asked, most)


def greedy(asked: Quotas, most: int) -> Ints:
    """At most so many things, each the one that brings most of what those before it lack; of equals the one liked best."""
    chosen, by_sort = [0], asked.by_quota
    while len(chosen) < most:
        missing = asked.missing(np.array(chosen))
        fresh = (asked.has_value & ~asked.has_value[chosen].any(axis=0)) @ by_sort
        gains = np.minimum(fresh, missing).sum(axis=1)
        best = int(gains.argmax())
        if gains[best] <= 0:
            break
        chosen.append(best)
    return np.array(chosen, dtype=np.int64)


def _exact(asked: Quotas, most: int) -> Ints | None:
    """The fewest things that fill the quotas; of things that bring the same, the one liked best."""
    _, first = np.unique(asked.has_value, axis=0, return_index=True)
    things: NDArray[np.int64] = np.sort(first)
    answer = Solver(_program(asked.has_value[things], asked)).solve_integer(_NODES)
    if answer is None:
        return None
    chosen = things[np.flatnonzero(answer[: len(things)] > 0.5)]
    return chosen if len(chosen) <= most and not asked.missing(chosen).any() else None


def _program(brings: Mask, asked: Quotas) -> LinearProgram:
    """Things are whole variables, then a variable for each value: at most one, and no more than things that bring it."""
    things, values = brings.shape
    sorts = len(asked.required)
    owner, value = np.nonzero(brings)
    own: NDArray[np.int64] = np.arange(values)
    ones = np.ones(values)
    cost: Floats = np.concatenate([1 + np.arange(things) / (100 * things), np.zeros(values)])
    return LinearProgram(
        costs=cost,
        upper_bounds=np.ones(things + values),
        row_lower=np.concatenate([np.full(values, -np.inf), asked.required.astype(np.float64), [1.0]]),
        row_upper=np.concatenate([np.zeros(values), np.full(sorts + 1, np.inf)]),
        rows=np.concatenate([own, value, values + asked.quota_of, [values + sorts]]).astype(np.int32),
        columns=np.concatenate([things + own, owner, things + own, [0]]).astype(np.int32),
        values=np.concatenate([ones, -np.ones(len(owner)), ones, [1.0]]),
        integers=things,
    )
