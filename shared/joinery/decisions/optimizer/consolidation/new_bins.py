"""New bins for copies that have no place on standing ones: one kind after another, always the one that holds most for
its price.

Small steps ask for them hundreds of times, and throw most of the answers away. As copies run out, what a bin holds at
best is worth ever less, or nearly so, because bins are filled greedily. So types are looked at lazily (Minoux 1978,
"Accelerated greedy algorithms for maximizing submodular set functions"): again only where there are too few copies for
what a type's bin held, and it would be the best. And what is left will cost at least as much for its value as what was
bought last.
"""

from collections.abc import Callable

import numpy as np

from joinery.decisions.optimizer import tuning
from joinery.decisions.optimizer.arrays import Floats, Ints
from joinery.decisions.optimizer.consolidation.instance import ConsolidationInstance
from joinery.decisions.optimizer.instance.decomposition import Subinstance
from joinery.decisions.optimizer.instance.packing_instance import PackingInstance
from joinery.decisions.optimizer.instance.patterns import Pattern
from joinery.decisions.optimizer.rounding.filling import fill, greedy_orders

_NEGLIGIBLE = 1e-9
#: Types looked at once: fewer take hardly less time.
_AT_ONCE = 16


def covering(
    instance: ConsolidationInstance, item_duals: Floats, left: Ints, below: float, is_over: Callable[[], bool]
) -> list[Pattern] | None:
    """New bins for these copies (int64[items]); None where there are none for some, they cost no less than ``below``
    ($/h) as far as can be seen, or time is up.

    ``item_duals``: float64[items], $/h that a copy costs at least.
    """
    wanted, bins = np.flatnonzero(left), instance.bins
    types = instance.standing + np.flatnonzero(bins.compatible[wanted, instance.standing :].any(axis=0))
    # Filling takes as long as items and types are many, and few are asked for.
    part = Subinstance(wanted, types, bins.restrict(wanted, types, left[wanted]), len(bins.demands))
    filled, duals = _Filled(part.instance, item_duals[wanted] + _NEGLIGIBLE), item_duals[wanted]
    new, bought, value = list[Pattern](), 0.0, 1.0
    left = left[wanted]
    while left.any():
        if len(new) >= tuning.PATTERNS_AT_LEAST and is_over():
            return None
        if bought + float(duals @ left) / value >= below:
            return None
        best = filled.best(left)
        if best is None:
            return None
        counts, value = best.counts, min(value, filled.value(best.bin_type))
        copies = max(1, int((left[counts > 0] // counts[counts > 0]).min()))
        left = left - copies * counts
        bought += copies * float(part.instance.costs[best.bin_type])
        new.append(part.lift(Pattern(best.bin_type, counts, copies)))
    return new


class _Filled:
    """The best bin that can be filled with what is left, which only becomes less.

    By type, ``values``: float64, what its best bin held for a dollar when it was looked at last; ``counts``:
    int64[types, items], that bin.
    """

    def __init__(self, instance: PackingInstance, duals: Floats) -> None:
        self._instance, self._duals = instance, duals
        self._values = np.full(len(instance.costs), np.inf)
        self._counts = np.zeros((len(instance.costs), len(duals)), dtype=np.int64)

    def value(self, bin_type: int) -> float:
        """What a bin of the type holds for a dollar."""
        return float(self._values[bin_type])

    def best(self, left: Ints) -> Pattern | None:
        """One of these copies; None where no bin holds any."""
        # What there are still enough copies for is as good as it was.
        is_known = np.isfinite(self._values) & (self._counts <= left).all(axis=1)
        while len(is_known):
            best = int(self._values.argmax())
            if is_known[best]:
                return Pattern(best, self._counts[best]) if self._values[best] > 0 else None
            unknown = np.flatnonzero(~is_known)
            most = max(_AT_ONCE, int(np.isinf(self._values).sum()))
            types = np.sort(unknown[np.argsort(-self._values[unknown], kind="stable")[:most]])
            self._look_at(types, left)
            is_known[types] = True
        return None

    def _look_at(self, types: Ints, left: Ints) -> None:
        items = np.flatnonzero(left)
        bin_types, orders = greedy_orders(self._instance, self._duals, types, items)
        counts = fill(self._instance, bin_types, orders, left)
        values = (counts @ self._duals / self._instance.costs[bin_types]).reshape(-1, len(types))
        best = values.argmax(axis=0)
        self._values[types] = values.max(axis=0)
        self._counts[types] = counts.reshape(-1, len(types), len(left))[best, np.arange(len(types))]
