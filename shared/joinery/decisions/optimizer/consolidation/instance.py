"""An instance of the consolidation problem: bins that stand, each with its residents, and types of new bins.

A standing bin is **kept** or **retired**. The residents of a kept bin stay, and what is left of it takes copies of
other items. A retired bin costs nothing more, but its residents must be packed elsewhere, and each move costs.

With the moves of all standing bins as a constant, keeping bin n costs its price less the moves that it spares, and
covers the demand of its residents. So it is a covering problem with a choice of patterns for each bin, as in cutting
stock: a pattern of a standing bin is its residents and what is put beside them.
"""

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from joinery.decisions.optimizer.arrays import Floats, Ints, Mask
from joinery.decisions.optimizer.instance.packing_instance import PackingInstance
from joinery.decisions.optimizer.instance.patterns import Pattern


@dataclass(frozen=True, eq=False, kw_only=True)
class ConsolidationInstance:
    """What may be retired, and into what its residents may go. Checks nothing: its arrays must agree in shape.

    ``bins``: the first bin types are the standing bins, one of each, and their capacities are what is free beside their
    residents; the others are types of new bins. Its ``demands`` are the residents of all bins that may be retired. Its
    ``costs`` are prices in $/h.
    ``residents``: int64[items, standing bins], copies that would have to move. A bin without any may still be retired.
    ``moves``: float64[standing bins], what moving all residents of a bin counts as, in $/h.
    ``may_retire``: bool[standing bins]. The others only take what fits beside their residents.
    ``kinds``: int64[standing bins], a label: bins with the same label are compatible with the same items, but for size.
    """

    bins: PackingInstance
    residents: Ints
    moves: Floats
    may_retire: Mask
    kinds: Ints

    @property
    def standing(self) -> int:
        """How many bins stand."""
        return len(self.moves)

    @cached_property
    def digest(self) -> bytes:
        """The same for instances that are equal, and for no others."""
        found = hashlib.blake2b(self.bins.digest)
        for array in (self.residents, self.moves, self.may_retire, self.kinds):
            found.update(np.ascontiguousarray(array).tobytes())
        return found.digest()

    @cached_property
    def prices(self) -> Floats:
        """float64[standing bins], $/h."""
        return self.bins.costs[: self.standing]

    @cached_property
    def keeping(self) -> Floats:
        """float64[standing bins], $/h: what keeping a bin costs more than retiring it, its moves considered."""
        return np.where(self.may_retire, self.prices - self.moves, 0.0)

    @cached_property
    def fixed_cost(self) -> float:
        """$/h that every solution costs: the moves of all bins that may be retired, and the price of the others."""
        return float(self.moves[self.may_retire].sum() + self.prices[~self.may_retire].sum())

    @property
    def cost_as_it_is(self) -> float:
        """$/h if every bin is kept."""
        return float(self.prices.sum())

    def displaced(self, keep: Mask) -> Ints:
        """int64[items]: the residents of the bins that are not kept (bool[standing bins])."""
        gone: Ints = self.residents[:, ~keep].sum(axis=1)
        return gone

    def cost(self, keep: Mask, bought: float) -> float:
        """$/h of keeping these bins (bool[standing bins]) and buying new ones for ``bought`` $/h, moves included."""
        return self.fixed_cost + float(self.keeping[keep].sum()) + bought


@dataclass(frozen=True, eq=False)
class Consolidation:
    """``keep``: bool[standing bins]. ``inflow``: int64[items, standing bins], copies beside the residents. ``new``: new
    bins for the rest; the optimiser may know only about what they cost, and have none. ``cost``: $/h, about, moves
    included. ``bound``: $/h that none undercuts. There may be room for more copies than there are.
    """

    keep: Mask
    inflow: Ints
    new: tuple[Pattern, ...]
    cost: float
    bound: float
    method: str
