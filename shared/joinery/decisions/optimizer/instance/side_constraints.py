"""An instance with constraints over all of its bins, for whoever asks what it costs at least.

A ``PackingInstance`` says what *one* bin may hold. Side constraints count over *all* bins: how pods are dealt out over
zones, what the bins of a NodePool may take of its limit. So that they can, a demand may be met by any of several
items, one for each zone.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from joinery.decisions.optimizer.arrays import Floats, Ints, Mask
from joinery.decisions.optimizer.instance.packing_instance import PackingInstance

_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class SideConstraint:
    """items . (copies packed of each item) + bin_types . (bins bought of each type) <= upper.

    ``items``: float64[items], a coefficient for each copy. ``bin_types``: float64[bin types], a coefficient for each
    bin.
    """

    items: Floats
    bin_types: Floats
    upper: float


@dataclass(frozen=True, eq=False, kw_only=True)
class ConstrainedInstance:
    """``demand_of``: int64[items], which demand an item helps to meet (index). ``demands``: int64[demands], copies to
    be packed, as any of their items; the demands of ``instance`` itself are not used.
    """

    instance: PackingInstance
    demand_of: Ints
    demands: Ints
    side_constraints: tuple[SideConstraint, ...] = ()

    @cached_property
    def max_items(self) -> Ints:
        """int64[items]: copies of each item that there are at most, by the side constraints that count no bins and
        only add up.
        """
        most = self.demands[self.demand_of].astype(np.float64)
        for row in self.side_constraints:
            members = row.items > 0
            if not row.bin_types.any() and (row.items >= 0).all():
                most[members] = np.minimum(most[members], row.upper / row.items[members])
        whole: Ints = np.floor(most + _ROUNDING).astype(np.int64)
        return whole

    @property
    def limits_items(self) -> bool:
        """Whether some side constraint counts items. If so, a copy too many may break it, and cannot simply be left
        out.
        """
        return any(row.items.any() for row in self.side_constraints)

    def with_supply_rows(self) -> "ConstrainedInstance":
        """The same with a side constraint for each limited supply too, and all of them scaled to a largest coefficient
        of one, for the solver.
        """
        instance, no_items = self.instance, np.zeros(len(self.demand_of))
        rows = [
            SideConstraint(
                no_items, (instance.is_limited & (instance.supply == supply)).astype(np.float64), float(most)
            )
            for supply, most in dict(
                zip(instance.supply[instance.is_limited], instance.available[instance.is_limited], strict=True)
            ).items()
        ]
        return replace(self, side_constraints=tuple(map(_scaled, (*self.side_constraints, *rows))))

    def restrict(self, bin_types: Ints, compatible: Mask) -> "ConstrainedInstance":
        """The same with these bin types only (indices); ``compatible``: bool[items, these bin types]."""
        instance = replace(
            self.instance,
            costs=self.instance.costs[bin_types],
            capacities=self.instance.capacities[bin_types],
            compatible=compatible,
            available=self.instance.available[bin_types],
            supply=self.instance.supply[bin_types],
        )
        rows = tuple(SideConstraint(row.items, row.bin_types[bin_types], row.upper) for row in self.side_constraints)
        return ConstrainedInstance(
            instance=instance, demand_of=self.demand_of, demands=self.demands, side_constraints=rows
        )


def _scaled(row: SideConstraint) -> SideConstraint:
    largest = max(np.abs(row.items).max(initial=0.0), np.abs(row.bin_types).max(initial=0.0), 1e-300)
    return SideConstraint(row.items / largest, row.bin_types / largest, row.upper / largest)


def unconstrained(instance: PackingInstance) -> ConstrainedInstance:
    """The instance without side constraints: each item is a demand of its own."""
    return ConstrainedInstance(instance=instance, demand_of=np.arange(len(instance.demands)), demands=instance.demands)
