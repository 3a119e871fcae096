"""A **constrained**: a instance with what binds its nodes together, for whoever wants to know the least that it can cost.

A instance says what one node may hold. A constrained also says how pods are dealt out over domains and what all nodes may take together: a
*sort* of pods may be wanted as any of several items (in one zone or another), and rows count over all nodes.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from joinery.optimizer.arrays import Floats, Ints, Mask
from joinery.optimizer.instance.packing_instance import PackingInstance

_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class SideConstraint:
    """``items`` (by item) times the pods, and ``bin_types`` (by kind) times the nodes, come to ``upper`` together at most."""

    items: Floats
    bin_types: Floats
    upper: float


@dataclass(frozen=True, eq=False, kw_only=True)
class ConstrainedInstance:
    """``demand_of``: the sort of every item of the instance; ``demands``: how many pods of each sort need a node, as any of its items."""

    instance: PackingInstance
    demand_of: Ints
    demands: Ints
    side_constraints: tuple[SideConstraint, ...] = ()

    @cached_property
    def max_items(self) -> Ints:
        """How many pods of each item there are at most, by the rows that count nothing but pods."""
        most = self.demands[self.demand_of].astype(np.float64)
        for row in self.side_constraints:
            mine = row.items > 0
            if not row.bin_types.any() and (row.items >= 0).all():
                most[mine] = np.minimum(most[mine], row.upper / row.items[mine])
        whole: Ints = np.floor(most + _ROUNDING).astype(np.int64)
        return whole

    @property
    def limits_items(self) -> bool:
        """Whether some row counts pods, so that one too many is not the same as none too few."""
        return any(row.items.any() for row in self.side_constraints)

    def restrict(self, bin_types: Ints, admits: Mask) -> "ConstrainedInstance":
        """The same with these kinds only, which admit no more than said (items x kinds)."""
        instance = replace(
            self.instance, costs=self.instance.costs[bin_types], capacities=self.instance.capacities[bin_types], compatible=admits,
            available=self.instance.available[bin_types], supply=self.instance.supply[bin_types],
        )  # fmt: skip
        rows = tuple(SideConstraint(row.items, row.bin_types[bin_types], row.upper) for row in self.side_constraints)
        return ConstrainedInstance(
            instance=instance, demand_of=self.demand_of, demands=self.demands, side_constraints=rows
        )


def unconstrained(instance: PackingInstance) -> ConstrainedInstance:
    """The constrained of a instance and nothing else."""
    return ConstrainedInstance(instance=instance, demand_of=np.arange(len(instance.demands)), demands=instance.demands)
