"""What the relaxations of several blocks say of the whole instance."""

from dataclasses import dataclass

import numpy as np

from joinery.optimizer.arrays import Floats
from joinery.optimizer.instance.decomposition import Subinstance
from joinery.optimizer.instance.packing_instance import PackingInstance
from joinery.optimizer.relaxation.assignment import RelaxationSolution


@dataclass(eq=False)
class MergedDuals:
    """What the assignment program says of a instance. ``item_duals``: what pods are charged, by item; ``capacity_duals``: what a unit of each resource
    is charged, kinds x resources; ``reduced_costs``: costs of kinds; ``cost``: in all, in $/h.
    """

    item_duals: Floats
    capacity_duals: Floats
    reduced_costs: Floats
    cost: float = 0.0

    @classmethod
    def empty(cls, instance: PackingInstance) -> "MergedDuals":
        """Before anything is noted."""
        return cls(
            np.full(len(instance.demands), np.inf), np.zeros(instance.capacities.shape), np.zeros(len(instance.costs))
        )

    def add(self, part: Subinstance, answer: RelaxationSolution) -> None:
        """What the program of one part says."""
        self.item_duals[part.items] = np.minimum(self.item_duals[part.items], answer.item_duals)
        self.capacity_duals[part.bin_types], self.reduced_costs[part.bin_types] = (
            answer.capacity_duals,
            answer.reduced_costs,
        )
        self.cost += answer.cost
