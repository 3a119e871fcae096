"""What the relaxations of several blocks say of the whole instance."""

from dataclasses import dataclass

import numpy as np

from joinery.optimizer.arrays import Floats
from joinery.optimizer.instance.decomposition import Part
from joinery.optimizer.instance.packing_instance import Lot
from joinery.optimizer.relaxation.assignment import Assignment


@dataclass(eq=False)
class Outlook:
    """What the assignment program says of a lot. ``worth``: what pods are charged, by item; ``room``: what a unit of each resource
    is charged, kinds x resources; ``reduced``: costs of kinds; ``price``: in all, in $/h.
    """

    worth: Floats
    room: Floats
    reduced: Floats
    price: float = 0.0

    @classmethod
    def of_nothing(cls, lot: Lot) -> "Outlook":
        """Before anything is noted."""
        return cls(np.full(len(lot.counts), np.inf), np.zeros(lot.room.shape), np.zeros(len(lot.price)))

    def note(self, part: Part, answer: Assignment) -> None:
        """What the program of one part says."""
        self.worth[part.items] = np.minimum(self.worth[part.items], answer.worth)
        self.room[part.kinds], self.reduced[part.kinds] = answer.room, answer.reduced
        self.price += answer.price
