"""The core: the few bin types that a good packing is likely to use.

Of some 3,000 instance types in several zones, pools and capacity types most are never bought. The relaxation of a
simplified instance tells which: those that it buys, and those whose reduced cost is a small share of their cost.
Choosing variables by reduced cost is Balas and Zemel's core (1980, "An algorithm for large zero-one knapsack
problems"). It is a heuristic for packing; a bound must account for the bin types outside the core
(``bounds/lower_bound``).
"""

from dataclasses import replace
from functools import cached_property

import numpy as np

from joinery.decisions.optimizer import tuning
from joinery.decisions.optimizer.arrays import Floats, Ints
from joinery.decisions.optimizer.instance.aggregation import aggregate
from joinery.decisions.optimizer.instance.packing_instance import CardinalityLimit, PackingInstance
from joinery.decisions.optimizer.linear.highs import Patience
from joinery.decisions.optimizer.relaxation.assignment import AssignmentRelaxation, RelaxationSolution


class CoreSelection:
    """A relaxation of the instance in which like bin types are one, whatever block they are in.

    Bin types of one capacity and one cost are a **class**: the same instance type in several zones and NodePools.
    ``true_costs``: float64[bin types], $/h, where the instance's costs are other than what is paid (preferred sizes,
    spot).
    ``patience``: how long each solve may take. Nothing is solved before it is asked for.
    """

    def __init__(
        self, instance: PackingInstance, true_costs: Floats | None = None, patience: Patience | None = None
    ) -> None:
        self._instance, self._patience = instance, patience
        is_same = true_costs is None or np.array_equal(instance.costs, true_costs)
        self._true_costs = None if is_same else true_costs

    @cached_property
    def _merged(self) -> tuple[Ints, PackingInstance]:
        class_of, simple = _with_classes_merged(self._instance, self._true_costs)
        has_many = len(simple.demands) > tuning.MAX_ITEMS
        return class_of, aggregate(simple).instance if has_many else simple

    @cached_property
    def _solved(self) -> tuple[AssignmentRelaxation, RelaxationSolution | None]:
        _, simple = self._merged
        relaxation = AssignmentRelaxation(simple, swift=True, cut_tolerance=tuning.LITTLE_GAIN, patience=self._patience)
        return relaxation, relaxation.solve(simple.demands)

    def core(self, classes: int) -> Ints:
        """Indices of the bin types of so many classes, of half as many where those are a great many bin types.

        Every bin type of a limited supply is in the core, and for every item at least one that is compatible with it.
        """
        instance = self._instance
        if len(instance.costs) <= classes:
            return np.arange(len(instance.costs))
        (class_of, simple), (_, solution) = self._merged, self._solved
        if solution is None:
            return np.arange(len(instance.costs))
        is_bought = solution.bins > 1e-9
        costs = simple.costs
        relative = np.divide(solution.reduced_costs, costs, out=np.zeros(len(costs)), where=costs > 0)
        order = np.argsort(np.where(is_bought, -1.0, relative), kind="stable")
        bin_types_so_far = np.bincount(class_of[~instance.is_limited], minlength=len(order))[order].cumsum()
        classes = max(classes // 2, min(classes, int((bin_types_so_far <= tuning.MANY_BIN_TYPES).sum())))
        chosen = np.isin(class_of, order[: max(classes, int(is_bought.sum()))]) | instance.is_limited
        for item in np.flatnonzero(~instance.compatible[:, chosen].any(axis=1)):
            chosen[_cheapest_for(instance, int(item))] = True
        return np.flatnonzero(chosen)

    def preference_cost(self) -> float:
        """About what it costs, in $/h, that costs are other than what is paid.

        The bins that the relaxation buys by the instance's costs, less those that it buys by true costs, both at true
        costs. Of many items their limits are left out: with them it took a tenth of a plan's time, and they hardly
        matter to what sizes cost.
        """
        if self._true_costs is None:
            return 0.0
        if self._instance.cardinality_limits and len(self._instance.demands) > tuning.MAX_ITEMS:
            unlimited = replace(self._instance, cardinality_limits=())
            return CoreSelection(unlimited, self._true_costs, self._patience).preference_cost()
        (class_of, simple), (relaxation, preferred) = self._merged, self._solved
        if preferred is None:
            return 0.0
        true_costs = self._true_costs[_first_of_each(class_of)]
        relaxation.set_costs(true_costs)
        cheapest = relaxation.solve(simple.demands)
        return 0.0 if cheapest is None else max(0.0, float((preferred.bins - cheapest.bins) @ true_costs))


def _cheapest_for(instance: PackingInstance, item: int) -> int:
    """The bin type (index) of whose cost the item's share is least."""
    bin_types = np.flatnonzero(instance.compatible[item])
    share = (instance.sizes[item] / np.maximum(instance.capacities[bin_types], 1)).max(axis=1)
    return int(bin_types[np.argmin(instance.costs[bin_types] * share)])


def _with_classes_merged(instance: PackingInstance, true_costs: Floats | None) -> tuple[Ints, PackingInstance]:
    """int64[bin types]: the class of each; and the instance with one bin type for each class, where items that are
    then alike are one.
    """
    supplies = np.where(instance.is_limited, instance.supply, -1)
    paid = instance.costs if true_costs is None else true_costs
    looks = zip(instance.capacities, instance.costs, paid, supplies, strict=True)
    class_of = _numbered(
        [(size.tobytes(), float(cost), float(true), int(supply)) for size, cost, true, supply in looks]
    )
    heads = _first_of_each(class_of)
    compatible = np.zeros((len(instance.demands), len(heads)), dtype=np.bool_)
    for bin_type, index in enumerate(class_of):
        compatible[:, index] |= instance.compatible[:, bin_type]
    items = zip(instance.sizes, compatible, instance.limit_members, strict=True)
    item_class = _numbered([(size.tobytes(), allowed.tobytes(), limits.tobytes()) for size, allowed, limits in items])
    item_heads = _first_of_each(item_class)
    demands = np.bincount(item_class, weights=instance.demands).astype(np.int64)
    merged = replace(
        instance,
        costs=instance.costs[heads],
        capacities=instance.capacities[heads],
        compatible=compatible,
        available=instance.available[heads],
        supply=instance.supply[heads],
    ).restrict(item_heads, np.arange(len(heads)), demands)
    limits = [CardinalityLimit(np.unique(item_class[limit.items]), limit.cap) for limit in instance.cardinality_limits]
    return class_of, replace(merged, cardinality_limits=tuple(limits))


def _numbered(keys: list[tuple[object, ...]]) -> Ints:
    """int64[keys]: equal keys have equal numbers, given in the order in which they first come."""
    numbers: dict[tuple[object, ...], int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)


def _first_of_each(numbers: Ints) -> Ints:
    """Indices at which each number first comes."""
    return np.unique(numbers, return_index=True)[1]
