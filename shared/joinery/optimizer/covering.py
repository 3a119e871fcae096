"""A few of many things that have between them as many different values of several sorts as are asked for.

Set cover with several quotas, which is hard in general; here things are hundreds, and quotas tens. The greedy choice, that which
brings most of what is missing, nearly always does; where it does not, an integer program decides.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from joinery.optimizer.arrays import Floats, Ints, Mask
from joinery.optimizer.linear.highs import Program, Solver

_NODES = 1000
"""So many branches of the integer program are looked at: a choice that takes more is given up, the same one in every run."""


@dataclass(frozen=True, eq=False)
class Quotas:
    """``brings``: things x values, whether a thing has a value; ``sort``: of each value; ``least``: different values wanted by sort.

    Things are in the order in which they are liked; the first one is always chosen.
    """

    brings: Mask
    sort: Ints
    least: Ints

    @property
    def by_sort(self) -> Ints:
        """Values x sorts: one where the value is of the sort."""
        return np.asarray(self.sort[:, None] == np.arange(len(self.least)), dtype=np.int64)

    def missing(self, chosen: Ints) -> Ints:
        """How many values of each sort the chosen things lack."""
        missing: Ints = np.maximum(self.least - self.brings[chosen].any(axis=0) @ self.by_sort, 0)
        return missing


def cover(asked: Quotas, most: int) -> Ints | None:
    """At most so many things that fill all quotas; None where there are none."""
    chosen = greedy(asked, most)
    if not asked.missing(chosen).any():
        return chosen
    if asked.missing(np.arange(len(asked.brings))).any():
        return None
    return _exact(asked, most)


def greedy(asked: Quotas, most: int) -> Ints:
    """At most so many things, each the one that brings most of what those before it lack; of equals the one liked best."""
    chosen, by_sort = [0], asked.by_sort
    while len(chosen) < most:
        missing = asked.missing(np.array(chosen))
        fresh = (asked.brings & ~asked.brings[chosen].any(axis=0)) @ by_sort
        gains = np.minimum(fresh, missing).sum(axis=1)
        best = int(gains.argmax())
        if gains[best] <= 0:
            break
        chosen.append(best)
    return np.array(chosen, dtype=np.int64)


def _exact(asked: Quotas, most: int) -> Ints | None:
    """The fewest things that fill the quotas; of things that bring the same, the one liked best."""
    _, first = np.unique(asked.brings, axis=0, return_index=True)
    things: NDArray[np.int64] = np.sort(first)
    answer = Solver(_program(asked.brings[things], asked)).whole(_NODES)
    if answer is None:
        return None
    chosen = things[np.flatnonzero(answer[: len(things)] > 0.5)]
    return chosen if len(chosen) <= most and not asked.missing(chosen).any() else None


def _program(brings: Mask, asked: Quotas) -> Program:
    """Things are whole variables, then a variable for each value: at most one, and no more than things that bring it."""
    things, values = brings.shape
    sorts = len(asked.least)
    owner, value = np.nonzero(brings)
    own: NDArray[np.int64] = np.arange(values)
    ones = np.ones(values)
    cost: Floats = np.concatenate([1 + np.arange(things) / (100 * things), np.zeros(values)])
    return Program(
        cost=cost,
        most=np.ones(things + values),
        lower=np.concatenate([np.full(values, -np.inf), asked.least.astype(np.float64), [1.0]]),
        upper=np.concatenate([np.zeros(values), np.full(sorts + 1, np.inf)]),
        rows=np.concatenate([own, value, values + asked.sort, [values + sorts]]).astype(np.int32),
        columns=np.concatenate([things + own, owner, things + own, [0]]).astype(np.int32),
        values=np.concatenate([ones, -np.ones(len(owner)), ones, [1.0]]),
        whole=things,
    )
