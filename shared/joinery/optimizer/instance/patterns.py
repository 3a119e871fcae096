"""Patterns: bins with what each of them holds."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from joinery.optimizer.arrays import Ints
from joinery.optimizer.instance.packing_instance import PackingInstance


@dataclass(frozen=True, eq=False)
class Pattern:
    """So many (``copies``) equal nodes: their kind, and how many pods of each item each of them holds."""

    bin_type: int
    counts: Ints
    copies: int = 1


def cost_of(instance: PackingInstance, patterns: Sequence[Pattern]) -> float:
    """$/h of all their nodes."""
    return float(sum(instance.costs[pattern.bin_type] * pattern.copies for pattern in patterns))


@dataclass(frozen=True, eq=False)
class Patterns:
    """Nodes that can be built: their kinds, and their pods (patterns x items)."""

    bin_types: Ints
    counts: Ints

    def select(self, chosen: Ints) -> "Patterns":
        """Some of them, in this order."""
        return Patterns(self.bin_types[chosen], self.counts[chosen])

    def join(self, other: "Patterns") -> "Patterns":
        """These, and then the others."""
        return Patterns(np.concatenate([self.bin_types, other.bin_types]), np.concatenate([self.counts, other.counts]))
