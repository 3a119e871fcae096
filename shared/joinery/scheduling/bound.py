"""A proven lower bound on what the launches of a packing must cost.

For any weights over resources that sum to one, a node of type t at price p that holds requests r costs at least
p * sum_k w_k * r_k / room_tk, because no sum of requests exceeds the node's room. So each pod carries at least its cheapest
such share over the types it may run on, and the sum over pods bounds the price of all nodes. The best of a grid of weights is
taken. Whatever a rule forbids only makes nodes dearer, so the bound holds under all hard rules, weights and limits.

A pod that would still fit on existing capacity, rules of topology apart, counts nothing: it might need no new node.
"""

from collections.abc import Iterable, Mapping
from itertools import product

import numpy as np

from joinery.scheduling.classes import PodClass
from joinery.scheduling.pools import Prices, fit
from joinery.scheduling.taints import TOLERATE_PREFERRED, first_untolerated
from joinery.scheduling.workspace import Workspace

_STEPS = 24


def lower_bound(work: Workspace, launched: Mapping[PodClass, int]) -> float:
    """$/h that no set of new nodes for these pods can undercut; pods by class."""
    counted = {pods: count for pods, count in launched.items() if count and not _fits_existing(work, pods)}
    if not counted:
        return 0.0
    names = _priced(counted)
    bounds = [_bound(work, counted, dict(zip(names, w, strict=True))) for w in _weights(len(names))]
    return max(bounds, default=0.0)


def _priced(counted: Iterable[PodClass]) -> tuple[str, ...]:
    """The resources worth a weight: cpu, memory, pods, and one more that pods ask for."""
    asked = {name for pods in counted for name in pods.requests}
    extra = sorted(asked - {"cpu", "memory", "pods", "ephemeral-storage"})[:1]
    return ("cpu", "memory", *extra)


def _weights(dimensions: int) -> Iterable[tuple[float, ...]]:
    steps = _STEPS if dimensions <= 2 else 8
    for head in product(range(steps + 1), repeat=dimensions - 1):
        if sum(head) <= steps:
            yield (*(part / steps for part in head), (steps - sum(head)) / steps)


def _bound(work: Workspace, counted: Mapping[PodClass, int], weights: Mapping[str, float]) -> float:
    return sum(count * _share(work, pods, weights) for pods, count in counted.items())


def _share(work: Workspace, pods: PodClass, weights: Mapping[str, float]) -> float:
    """The least that one pod of the class can cost under these weights, over everything it may run on."""
    rows, prices = _options(work, pods)
    if not len(prices):
        return 0.0
    cost = np.zeros(len(prices))
    for name, weight in weights.items():
        column = work.axis.index.get(name)
        asked = pods.requests.get(name, 0)
        if weight and asked and column is not None:
            cost += weight * asked / np.maximum(rows[:, column], 1)
    return float((prices * cost).min())


def _options(work: Workspace, pods: PodClass) -> tuple[Prices, Prices]:
    """Room and best price of every type that can hold one pod of the class, over all pools."""
    known: tuple[Prices, Prices] | None = work.memo.get(id(pods))
    if known is None:
        known = work.memo[id(pods)] = _find_options(work, pods)
    return known


def _find_options(work: Workspace, pods: PodClass) -> tuple[Prices, Prices]:
    row = work.axis.vector(pods.requests)
    rooms, prices = [np.zeros((0, len(row)))], [np.zeros(0)]
    for pool in work.pools:
        taints = pool.node_pool.spec.template.spec.taints
        if first_untolerated((*pods.tolerations, TOLERATE_PREFERRED), taints) is not None:
            continue
        for term in pods.terms:
            found = fit(pool, term)
            if found.conflict:
                continue
            least = pool.market.prices[:, found.columns].min(axis=1, initial=np.inf)
            usable = found.types & np.isfinite(least) & (pool.room >= row).all(axis=1)
            rooms.append(pool.room[usable].astype(np.float64))
            prices.append(least[usable])
    return np.concatenate(rooms), np.concatenate(prices)


def _fits_existing(work: Workspace, pods: PodClass) -> bool:
    row = work.axis.vector(pods.requests)
    return any(
        not node.view.is_reserved
        and bool((node.free >= row).all())
        and any(term.matches(node.view.labels) for term in pods.terms)
        and first_untolerated((*pods.tolerations, TOLERATE_PREFERRED), node.view.taints) is None
        for node in work.nodes
    )
