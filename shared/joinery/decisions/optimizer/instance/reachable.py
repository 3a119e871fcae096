"""Capacities without the room that no whole copies can use.

Copies of 2 and 4 GiB fill 30 of 31 GiB, never 31. So 30 GiB is as good a capacity, and a better one for whoever cuts
copies to pieces: relaxations and bounds no longer count on the last GiB. The sums that copies can come to are the
normal patterns of Christofides and Whitlock (1977, "An algorithm for two-dimensional cutting problems"), here for each
resource by itself.
"""

from dataclasses import replace

import numpy as np

from joinery.decisions.optimizer.arrays import Ints
from joinery.decisions.optimizer.instance.packing_instance import PackingInstance

#: Capacities of more units (of the greatest common divisor of all sizes) are rounded to whole units only: on so large
#: bins nearly every sum is within reach as well.
_MOST_UNITS = 1 << 17
#: Sums are added up for each group of bin types with the same compatible items, if that is no more work than so many
#: items in all; else for all bin types together.
_MOST_SUMS = 3_000


def with_reachable_capacities(instance: PackingInstance, copies: Ints) -> PackingInstance:
    """The same instance as far as whole copies go. ``copies``: int64[items], of each at most on one bin."""
    copies = np.minimum(copies, instance.max_per_bin.max(axis=1, initial=0))
    groups, number = np.unique(instance.compatible, axis=1, return_inverse=True)
    if groups.size > _MOST_SUMS:
        groups, number = np.ones((len(copies), 1), dtype=np.bool_), np.zeros(len(instance.costs), dtype=np.int64)
    capacities = instance.capacities.copy()
    for group, members in enumerate(groups.T):
        bin_types = np.flatnonzero(number.ravel() == group)
        for resource in np.flatnonzero((instance.sizes[members] > 0).any(axis=0)):
            sizes = instance.sizes[members, resource]
            capacities[bin_types, resource] = _reachable(sizes, copies[members], capacities[bin_types, resource])
    return replace(instance, capacities=capacities)


def _reachable(sizes: Ints, copies: Ints, capacities: Ints) -> Ints:
    """int64[bin types]: the largest sum of copies of these sizes within each capacity."""
    unit = int(np.gcd.reduce(sizes))
    units = capacities // unit
    is_small = units <= _MOST_UNITS
    sums = _sums(sizes // unit, copies, int(units[is_small].max(initial=0)))
    for index in np.flatnonzero(is_small):
        units[index] = (sums & ((2 << int(units[index])) - 1)).bit_length() - 1
    return units * unit


def _sums(sizes: Ints, copies: Ints, largest: int) -> int:
    """Bit n is set if some copies take n units together, for n up to ``largest``."""
    within, sums = (1 << (largest + 1)) - 1, 1
    for size, most in zip(sizes.tolist(), np.minimum(copies, largest).tolist(), strict=True):
        left, step = most if size else 0, 1
        while left > 0:
            # One, two, four ... copies and the rest: together any number of them.
            taken = min(step, left)
            sums |= (sums << (taken * size)) & within
            left, step = left - taken, step * 2
    return sums
