"""The arrays that the optimizer works on, and the number that stands for "as many as one likes"."""

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
"""Whole numbers: demands, capacities, and indices of items and bin types."""
Floats = NDArray[np.float64]
"""Costs, duals and fractions."""
Mask = NDArray[np.bool_]

UNLIMITED = 1 << 30
"""A supply without end, and a capacity that nothing asked for can exhaust. Sums of a few of them still fit in 64 bits.
"""
