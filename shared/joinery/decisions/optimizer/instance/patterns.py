"""Patterns: bins together with what each of them holds.

The word is Gilmore and Gomory's (1961, "A linear programming approach to the cutting-stock problem"): a way to cut one
roll, here a way to fill one bin.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from joinery.decisions.optimizer.arrays import Ints
from joinery.decisions.optimizer.instance.packing_instance import PackingInstance


@dataclass(frozen=True, eq=False)
class Pattern:
    """Equal bins of a packing.

    ``bin_type``: index. ``counts``: int64[items], copies of each item on one of these bins. ``copies``: how many such
    bins.
    """

    bin_type: int
    counts: Ints
    copies: int = 1

    def __post_init__(self) -> None:
        if self.counts.base is not None:
            # A row of a matrix would keep all of the candidates that it was chosen from.
            object.__setattr__(self, "counts", self.counts.copy())


def cost_of(instance: PackingInstance, patterns: Sequence[Pattern]) -> float:
    """$/h of all their bins."""
    return float(sum(instance.costs[pattern.bin_type] * pattern.copies for pattern in patterns))


@dataclass(frozen=True, eq=False)
class Patterns:
    """Many patterns in two arrays, for work on all of them at once.

    ``bin_types``: int64[patterns], indices. ``counts``: int64[patterns, items], copies of each item on a bin of the
    pattern.
    """

    bin_types: Ints
    counts: Ints

    def select(self, chosen: Ints) -> "Patterns":
        """Those at these indices, in this order; their arrays are copies."""
        return Patterns(self.bin_types[chosen], self.counts[chosen])

    def join(self, other: "Patterns") -> "Patterns":
        """These, and then the others."""
        return Patterns(np.concatenate([self.bin_types, other.bin_types]), np.concatenate([self.counts, other.counts]))

    def among(self, bin_types: Ints) -> "Patterns":
        """Those of these bin types (ascending indices), which are numbered by their place among them."""
        chosen = self.select(np.flatnonzero(np.isin(self.bin_types, bin_types)))
        return Patterns(np.searchsorted(bin_types, chosen.bin_types), chosen.counts)
