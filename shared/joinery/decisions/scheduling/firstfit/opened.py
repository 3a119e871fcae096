"""The nodes that a packing is buying, and whether each is good value: the price rules of first-fit.

A pod's **fair price** in a pool is the least that its share of a node can cost: over all types that hold it, price
times its largest share of a resource. It estimates the pod's dual price in the optimizer's assignment relaxation, and
gives way to that where one was solved. A node whose price is close to the fair price of all its pods is well filled.

First-fit asks every open node for every class, and most refuse. Asked one by one, they would take most of its time. So
what decides is in arrays, and all nodes that refuse a class are left out at once.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from joinery.decisions.scheduling.firstfit.demand import Demand, Domains
from joinery.decisions.scheduling.firstfit.new_node import MOST_PODS, NewNode
from joinery.decisions.scheduling.pools.market import Amounts, Mask, Prices
from joinery.decisions.scheduling.pools.pool import Fit, Pool

#: A node this close to its pods' fair price may always grow.
GROWTH = 1.02
#: Any price at all is bearable; finite, because pods may cost nothing, and nothing times infinity is no number.
_ANY = 1e12
#: $/h: by so much a node may cost more than its pods justify, for sums of floats.
_ROUNDING = 1e-9
#: Rows that arrays begin with.
_ROWS = 64


def fair_price_of_one(pool: Pool, demand: Demand) -> float:
    """The fair price of one pod of the class, in $/h,
    on a node that may still be anything the class allows in the pool.
    """
    _, fit = demand.fit(pool, {})
    if fit.conflict or not len(demand.asked):
        return 0.0
    room, requests = pool.room_by_resource[demand.asked], demand.requests[demand.asked][:, None]
    shares = (requests / np.maximum(room, 1)).max(axis=0)
    if demand.pod_class.devices:
        rows = np.flatnonzero(fit.types)
        rooms = pool.device_room(rows.tolist(), (), demand.pod_class.devices, MOST_PODS)
        shares[rows] = np.maximum(shares[rows], 1 / np.maximum(rooms, 1))
    least = np.where((room >= requests).all(axis=0), fit.least_prices * shares, np.inf).min(initial=np.inf)
    return float(least) if np.isfinite(least) else 0.0


def best_start(prices: Prices, counts: Amounts, most: int) -> int:
    """How many pods a fresh node should take: what the type that is cheapest per pod holds; the fewest on a tie."""
    fitting = np.minimum(counts, most)
    usable = fitting > 0
    per_pod = np.where(usable, prices / np.maximum(fitting, 1), np.inf)
    least = per_pod.min()
    return int(fitting[per_pod <= least * (1 + 1e-9)].min())


def grown(prices: Prices, counts: Amounts, most: int, *, price: float, fair_price: float, unit: float) -> int:
    """How many more pods leave a node as good value as it is, or nearly ideal.

    ``prices`` and ``counts`` are those of the types it may become; ``price`` is the node's now, ``fair_price`` that of
    the pods on it, ``unit`` that of one more pod. Pods that cost nothing more are always welcome.
    """
    order = np.argsort(-counts, kind="stable")
    fitting = np.minimum(counts[order], most)
    cheapest = np.minimum.accumulate(prices[order])
    bearable = bearable_ratio(price, fair_price)
    good = (fitting > 0) & (cheapest <= np.maximum(bearable * (fair_price + fitting * unit), price) + 1e-12)
    return int(fitting[good].max()) if good.any() else 0


def bearable_ratio(price: float, fair_price: float) -> float:
    """How many times its pods' fair price a node may cost after growing."""
    return max(price / fair_price, GROWTH) if fair_price else _ANY


class OpenedNodes:
    """Grows by one node at a time; ``nodes[i]`` is replaced as it takes shape.

    price        $/h of the cheapest type that the node may be
    fair_price   $/h that its pods should cost
    different    how many nodes are not just like the one before them

    Nodes that are alike share a **form**, which is asked once for all of them; ``_form`` (nodes) has its number. Of
    each form ``_count`` (forms) is how many nodes have it, ``_pool`` the number of its pool, by name in ``_pools``.
    ``_value`` (forms x 3) holds its price, how many times its pods' fair price it may cost, and that fair price;
    ``_used`` (forms x resources), ``_types`` and ``_columns`` (forms x entries) are its nodes'.
    """

    def __init__(self, resources: int, types: int, columns: int) -> None:
        self.nodes: list[NewNode] = []
        self.fair_price: list[float] = []
        self.price: list[float] = []
        self.different = 0
        self._pools: dict[str, int] = {}
        self._form: Amounts = np.zeros(_ROWS, dtype=np.int64)
        # The first form is that of nodes without pods, which may be no type.
        self._shapes: list[int | None] = [None]
        self._numbers: dict[tuple[object, ...], int] = {}
        self._appraised: dict[tuple[int, float], int] = {}
        self._count: Amounts = np.zeros(_ROWS, dtype=np.int64)
        self._pool: Amounts = np.full(_ROWS, -1)
        self._used: Amounts = np.zeros((_ROWS, resources), dtype=np.int64)
        self._value: Prices = np.zeros((_ROWS, 3))
        self._types: Mask = np.zeros((_ROWS, types), dtype=np.bool_)
        self._columns: Mask = np.zeros((_ROWS, columns), dtype=np.bool_)

    def append(self, node: NewNode) -> int:
        """Add a node that has no pods yet; its index."""
        if len(self.nodes) == len(self._form):
            self._form = _doubled(self._form)
        self.nodes.append(node)
        self.fair_price.append(0.0)
        self.price.append(0.0)
        self.different += 1
        return len(self.nodes) - 1

    def repeat(self, node: NewNode) -> int:
        """Add a node just like the last one; its index."""
        last, index = len(self.nodes) - 1, self.append(node)
        self.different -= 1
        self.replace_alike(index, last, node)
        return index

    def replace_alike(self, index: int, other: int, node: NewNode) -> None:
        """Note the node's new shape, which is that of the other one."""
        self.nodes[index] = node
        self.fair_price[index], self.price[index] = self.fair_price[other], self.price[other]
        self._take_form(index, int(self._form[other]))

    def replace(self, index: int, node: NewNode, added_fair_price: float) -> None:
        """Note the node's new shape."""
        self.nodes[index] = node
        self.price[index] = float(node.least_prices[node.types].min())
        self._begin_form(index, self.fair_price[index] + added_fair_price)

    def appraise(self, index: int, fair_price: float) -> None:
        """Note what the node's pods should cost."""
        appraised = int(self._form[index]), fair_price
        if appraised in self._appraised:
            self.fair_price[index] = fair_price
            self._take_form(index, self._appraised[appraised])
        elif fair_price != self.fair_price[index]:
            self._appraised[appraised] = self._begin_form(index, fair_price)

    def _begin_form(self, index: int, fair_price: float) -> int:
        """The number of a new form, which the node has."""
        node, price, form = self.nodes[index], self.price[index], len(self._shapes)
        self.fair_price[index] = fair_price
        if form == len(self._count):
            self._count, self._pool, self._used = _doubled(self._count), _doubled(self._pool), _doubled(self._used)
            self._value, self._types, self._columns = map(_doubled, (self._value, self._types, self._columns))
        self._shapes.append(None)
        self._pool[form] = self._pools.setdefault(node.pool.name, len(self._pools))
        self._value[form] = (price, bearable_ratio(price, fair_price), fair_price)
        self._used[form] = node.used
        self._types[form, : len(node.types)] = node.types
        self._columns[form, : len(node.columns)] = node.columns
        self._take_form(index, form)
        return form

    def _take_form(self, index: int, form: int) -> None:
        self._count[self._form[index]] -= 1
        self._count[form] += 1
        self._form[index] = form

    def shape(self, index: int) -> int:
        """A number that nodes share which take or refuse the same pods."""
        form = int(self._form[index])
        number = self._shapes[form]
        if number is None:
            node = self.nodes[index]
            asked = tuple((batch.demand, *sorted(batch.domains.items())) for batch in node.placed)
            shape = (
                self.fair_price[index],
                node.pool.name,
                asked,
                node.used.tobytes(),
                node.types.tobytes(),
                node.reservation,
            )
            number = self._shapes[form] = self._numbers.setdefault(shape, len(self._numbers))
        return number

    def promising(
        self, pools: Sequence[Pool], demand: Demand, domains: Domains, count: int, unit_in: Callable[[Pool], float]
    ) -> NDArray[np.int64]:
        """The nodes of those pools that may take a pod of the class in these domains at a bearable price, in order.

        ``count``: how many pods one may take at most. ``unit_in``: the fair price of one of them in a pool, $/h.
        """
        is_promising = np.zeros(len(self._count), dtype=np.bool_)
        for pool in pools:
            wanted, fit = demand.fit(pool, domains)
            if fit.conflict:
                continue
            forms = np.flatnonzero((self._count > 0) & (self._pool == self._pools.get(pool.name, len(self._pools))))
            if wanted:
                forms = forms[(self._columns[forms, : len(fit.columns)] & fit.columns).any(axis=1)]
            if len(forms):
                is_promising[forms] = self._may_take(forms, pool, demand, fit, count * max(unit_in(pool), 0.0))
        return np.flatnonzero(is_promising[self._form[: len(self.nodes)]])

    def _may_take(self, forms: Amounts, pool: Pool, demand: Demand, fit: Fit, fair_price: float) -> Mask:
        """bool[forms]: which may be a type that has room for a pod, at a price that pods of this fair price make
        bearable.
        """
        price, bearable, fair_price_now = self._value[forms].T
        most = np.maximum(bearable * (fair_price_now + fair_price), price) + _ROUNDING
        prices = pool.market.least_prices(fit.columns)
        rows = np.flatnonzero(fit.types & (prices <= most.max()))
        takes: Mask = self._types[forms[:, None], rows] & (prices[rows] <= most[:, None])
        for resource in demand.asked:
            free = pool.room_by_resource[resource, rows] - demand.requests[resource]
            takes &= free >= self._used[forms, resource, None]
        return np.asarray(takes.any(axis=1), dtype=np.bool_)


def _doubled(kept: NDArray[Any]) -> NDArray[Any]:
    """With as many rows more."""
    return np.concatenate([kept, np.zeros_like(kept)])
