"""Patterns: bins with what each of them holds."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from joinery.optimizer.arrays import Ints
from joinery.optimizer.instance.packing_instance import Lot


@dataclass(frozen=True, eq=False)
class Shape:
    """So many (``times``) equal nodes: their kind, and how many pods of each item each of them holds."""

    kind: int
    pods: Ints
    times: int = 1


def price_of(lot: Lot, shapes: Sequence[Shape]) -> float:
    """$/h of all their nodes."""
    return float(sum(lot.price[shape.kind] * shape.times for shape in shapes))


@dataclass(frozen=True, eq=False)
class Patterns:
    """Nodes that can be built: their kinds, and their pods (patterns x items)."""

    kinds: Ints
    pods: Ints

    def part(self, chosen: Ints) -> "Patterns":
        """Some of them, in this order."""
        return Patterns(self.kinds[chosen], self.pods[chosen])

    def join(self, other: "Patterns") -> "Patterns":
        """These, and then the others."""
        return Patterns(np.concatenate([self.kinds, other.kinds]), np.concatenate([self.pods, other.pods]))
