"""The duals of a whole instance, put together from the relaxations of its blocks."""

from dataclasses import dataclass

import numpy as np

from joinery.decisions.optimizer.arrays import Floats
from joinery.decisions.optimizer.instance.decomposition import Subinstance
from joinery.decisions.optimizer.instance.packing_instance import PackingInstance
from joinery.decisions.optimizer.relaxation.assignment import RelaxationSolution


@dataclass(eq=False)
class MergedDuals:
    """``item_duals``: float64[items], $/h, infinite for items that no block has. ``capacity_duals``: float64[bin
    types, resources], $/h for a unit. ``reduced_costs``: float64[bin types], $/h. ``cost``: $/h of all blocks
    together.
    """

    item_duals: Floats
    capacity_duals: Floats
    reduced_costs: Floats
    cost: float = 0.0

    @classmethod
    def empty(cls, instance: PackingInstance) -> "MergedDuals":
        """Before any block is added."""
        items, bin_types = len(instance.demands), len(instance.costs)
        return cls(np.full(items, np.inf), np.zeros(instance.capacities.shape), np.zeros(bin_types))

    def add(self, block: Subinstance, solution: RelaxationSolution) -> None:
        """The duals of one block. An item of several blocks has the least of its duals: there it is packed most
        cheaply.
        """
        self.item_duals[block.items] = np.minimum(self.item_duals[block.items], solution.item_duals)
        self.capacity_duals[block.bin_types] = solution.capacity_duals
        self.reduced_costs[block.bin_types] = solution.reduced_costs
        self.cost += solution.cost
