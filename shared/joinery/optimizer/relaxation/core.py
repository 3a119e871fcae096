"""Which kinds of node are worth a closer look: those that a cheap program over the whole market favours."""

from dataclasses import replace

import numpy as np

from joinery.optimizer.arrays import Floats, Ints
from joinery.optimizer.instance.aggregation import MOST_ITEMS, aggregate
from joinery.optimizer.instance.packing_instance import CardinalityLimit, PackingInstance
from joinery.optimizer.relaxation.assignment import AssignmentRelaxation

_SLOW = 2e-4
"""What the survey says is good enough once another solve changes no more than this share."""
_CELLS = 30
"""Of many items the survey tells so many sizes apart."""
_MOST_KINDS = 300
"""So many kinds are looked at before sorts are left out."""


class CoreSelection:
    """A first look at the whole market of a instance: its program without places. ``hourly``: what kinds cost, where they count as other
    than that.
    """

    def __init__(self, instance: PackingInstance, hourly: Floats | None = None) -> None:
        self._lot = instance
        self._hourly = None if hourly is None or np.array_equal(instance.costs, hourly) else hourly
        self._sort, plain = _without_places(instance, self._hourly)
        self._plain = aggregate(plain, _CELLS).instance if len(plain.demands) > MOST_ITEMS else plain
        self._program = AssignmentRelaxation(self._plain, swift=True, slow=_SLOW)
        self._answer = self._program.solve(self._plain.demands)

    def core(self, sorts: int) -> Ints:
        """The kinds of the best ``sorts``, of half as many where those are a great many kinds, and for every item at least one that
        admits it.

        Kinds of one room and price, in several zones and NodePools, are of one sort. Of what is scarce every kind is worth a look.
        """
        instance, answer = self._lot, self._answer
        if answer is None:
            return np.arange(len(instance.costs))
        used = answer.bins > 1e-9
        price = self._plain.costs
        waste = np.divide(answer.reduced_costs, price, out=np.zeros(len(price)), where=price > 0)
        order = np.argsort(np.where(used, -1.0, waste), kind="stable")
        listed = np.bincount(self._sort[~instance.is_limited], minlength=len(order))[order].cumsum()
        sorts = max(sorts // 2, min(sorts, int((listed <= _MOST_KINDS).sum())))
        chosen = np.isin(self._sort, order[: max(sorts, int(used.sum()))]) | instance.is_limited
        for item in np.flatnonzero(~instance.compatible[:, chosen].any(axis=1)):
            chosen[_cheapest_for(instance, int(item))] = True
        return np.flatnonzero(chosen)

    def preference_cost(self) -> float:
        """About what it costs that kinds count as other than their price, in $/h: by the program's own nodes."""
        if self._hourly is None or self._answer is None:
            return 0.0
        hourly = self._hourly[_first_of_each(self._sort)]
        counted = self._answer.bins
        self._program.set_costs(hourly)
        least = self._program.solve(self._plain.demands)
        return 0.0 if least is None else max(0.0, float((counted - least.bins) @ hourly))


def _cheapest_for(instance: PackingInstance, item: int) -> int:
    bin_types = np.flatnonzero(instance.compatible[item])
    share = (instance.sizes[item] / np.maximum(instance.capacities[bin_types], 1)).max(axis=1)
    return int(bin_types[np.argmin(instance.costs[bin_types] * share)])


def _without_places(instance: PackingInstance, hourly: Floats | None) -> tuple[Ints, PackingInstance]:
    """The sort of every kind, and the instance with one kind of each sort, where items that then look alike are one too."""
    few = np.where(instance.is_limited, instance.supply, -1)
    looks = zip(instance.capacities, instance.costs, instance.costs if hourly is None else hourly, few, strict=True)
    sort = _numbered([(room.tobytes(), float(price), float(paid), int(supply)) for room, price, paid, supply in looks])
    heads = _first_of_each(sort)
    admits = np.zeros((len(instance.demands), len(heads)), dtype=np.bool_)
    for bin_type, index in enumerate(sort):
        admits[:, index] |= instance.compatible[:, bin_type]
    alike = _numbered(
        [
            (size.tobytes(), admitted.tobytes(), groups.tobytes())
            for size, admitted, groups in zip(instance.sizes, admits, instance.limit_members, strict=True)
        ]
    )
    items = _first_of_each(alike)
    demands = np.bincount(alike, weights=instance.demands).astype(np.int64)
    plain = replace(
        instance,
        costs=instance.costs[heads],
        capacities=instance.capacities[heads],
        compatible=admits,
        available=instance.available[heads],
        supply=instance.supply[heads],
    ).restrict(items, np.arange(len(heads)), demands)
    merged = tuple(CardinalityLimit(np.unique(alike[group.items]), group.cap) for group in instance.cardinality_limits)
    return sort, replace(plain, cardinality_limits=merged)


def _numbered(keys: list[tuple[object, ...]]) -> Ints:
    numbers: dict[tuple[object, ...], int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)


def _first_of_each(numbers: Ints) -> Ints:
    return np.unique(numbers, return_index=True)[1]
