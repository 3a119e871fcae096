"""What a search that was cut short is good for: part by part, its bins or first-fit's nodes."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from joinery.decisions.optimizer.arrays import Ints
from joinery.decisions.optimizer.instance.decomposition import components
from joinery.decisions.optimizer.instance.packing_instance import PackingInstance
from joinery.decisions.optimizer.instance.patterns import Pattern
from joinery.decisions.scheduling.firstfit.new_node import NewNode
from joinery.decisions.scheduling.optimise.orders import Order


def best_of_both(
    instance: PackingInstance,
    orders: Sequence[Order],
    patterns: Sequence[Pattern],
    nodes: Sequence[NewNode],
    costs: Sequence[float],
) -> tuple[list[Pattern], list[NewNode]]:
    """The bins to buy, and the nodes to keep: a part keeps its nodes if some of its pods have no bin, or if its bins
    cost more. Deferred pods have no nodes, and get what bins there are.

    ``orders``: the items of the instance. ``nodes``: those that carry them out now, at such ``costs`` ($/h).
    """
    part_of_order, part_of_bin_type = _parts(instance)
    packed = sum((pattern.counts * pattern.copies for pattern in patterns), np.zeros_like(instance.demands))
    is_promised = np.array([not order.is_deferred for order in orders])
    keeping = set(part_of_order[is_promised & (packed < instance.demands)].tolist())

    part_of_pod = {pod: int(part) for order, part in zip(orders, part_of_order, strict=True) for pod in order.pods}
    parts_of_nodes = [{part_of_pod[batch.pods[0]] for batch in node.placed} for node in nodes]
    saved = defaultdict[int, float](float)
    for parts, cost in zip(parts_of_nodes, costs, strict=True):
        saved[min(parts)] += cost
    for pattern in patterns:
        saved[int(part_of_bin_type[pattern.bin_type])] -= float(instance.costs[pattern.bin_type]) * pattern.copies
    keeping |= set(part_of_order[is_promised].tolist()) & {part for part, less in saved.items() if less < 0}
    # A node whose pods are in several parts joins them.
    while more := {part for parts in parts_of_nodes if not keeping.isdisjoint(parts) for part in parts - keeping}:
        keeping |= more
    return (
        [pattern for pattern in patterns if part_of_bin_type[pattern.bin_type] not in keeping],
        [node for node, parts in zip(nodes, parts_of_nodes, strict=True) if not keeping.isdisjoint(parts)],
    )


def _parts(instance: PackingInstance) -> tuple[Ints, Ints]:
    """int64[items], int64[bin types]: the number of the part that each is in."""
    of_items, of_bin_types = np.zeros(len(instance.demands), np.int64), np.zeros(len(instance.costs), np.int64)
    for number, (items, bin_types) in enumerate(components(instance)):
        of_items[items], of_bin_types[bin_types] = number, number
    return of_items, of_bin_types
