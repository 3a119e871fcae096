"""The arrays that the optimizer works on, and the number that stands for "as many as one likes"."""

import numpy as np
from numpy.typing import NDArray

#: Whole numbers: demands, capacities, and indices of items and bin types.
Ints = NDArray[np.int64]
#: Costs, duals and fractions.
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: A supply without end, and a capacity that nothing asked for can exhaust. Sums of a few of them still fit in 64 bits.
UNLIMITED = 1 << 30
