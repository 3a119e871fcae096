"""Ways to share a cost out among resources."""

from itertools import product

import numpy as np

from joinery.decisions.optimizer.arrays import Floats

_GRID_STEPS = 48


def shares(resources: int) -> Floats:
    """float64[ways, resources]: ways to share one among the resources; coarser the more there are, because ways
    multiply.
    """
    steps = {1: 1, 2: _GRID_STEPS, 3: 16}.get(resources, 4)
    ways = [head for head in product(range(steps + 1), repeat=resources - 1) if sum(head) <= steps]
    return np.array([(*head, steps - sum(head)) for head in ways], dtype=np.float64).reshape(-1, resources) / steps
