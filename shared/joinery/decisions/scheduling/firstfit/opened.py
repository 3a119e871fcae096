"""The nodes that a packing is buying, and whether each is good value: the price rules of first-fit.

A pod's **fair price** in a pool is the least that its share of a node can cost: over all types that hold it, price
times its largest share of a resource. It estimates the pod's dual price in the optimizer's assignment relaxation, and
gives way to that where one was solved. A node whose price is close to the fair price of all its pods is well filled.

First-fit asks every open node for every class, and most refuse. Asked one by one, they would take most of its time. So
enough of each is in arrays to skip at once those that cannot take a class.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from joinery.decisions.scheduling.firstfit.demand import Demand, Domains
from joinery.decisions.scheduling.firstfit.new_node import NewNode
from joinery.decisions.scheduling.pools.market import Amounts, Mask, Prices
from joinery.decisions.scheduling.pools.pool import Pool

#: A node this close to its pods' fair price may always grow.
GROWTH = 1.02
#: Any price at all is bearable; finite, because pods may cost nothing, and nothing times infinity is no number.
_ANY = 1e12

#: Price levels, as multiples of a node's price. For each, the largest room that it may have up to there is kept. They
#: lie close at first: to a node with many pods one more justifies a little only, and each refusal costs as much as a
#: yes.
_LEVELS = np.array([1.0, *(1.0 + 0.002 * 1.4 ** np.arange(22)), np.inf])


def fair_price_of_one(pool: Pool, demand: Demand) -> float:
    """The fair price of one pod of the class, in $/h,
    on a node that may still be anything the class allows in the pool.
    """
    _, fit = demand.fit(pool, {})
    if fit.conflict or not len(demand.asked):
        return 0.0
    room, requests = pool.room_by_resource[demand.asked], demand.requests[demand.asked][:, None]
    shares = (requests / np.maximum(room, 1)).max(axis=0)
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


def _levels(price: float) -> Prices:
    """The levels in $/h; those of a node that costs nothing are nothing, and any price."""
    levels = np.full(len(_LEVELS), np.inf)
    levels[:-1] = price * _LEVELS[:-1] * (1 + 1e-9)
    return levels


class OpenedNodes:
    """Grows by one node at a time; ``nodes[i]`` is replaced as it takes shape.

    price        $/h of the cheapest type that the node may be
    fair_price   $/h that its pods should cost
    different    how many nodes are not just like the one before them

    ``_room`` (nodes x price levels x resources) is the most that a node could still take of each resource on any type
    that it may be up to that price. ``_value`` (nodes x 3) holds its price, how many times its pods' fair price it may
    cost, and that fair price. ``_types`` and ``_columns`` (nodes x bytes) are its masks, eight entries in a byte.
    """

    def __init__(self, resources: int, types: int, columns: int) -> None:
        self.nodes: list[NewNode] = []
        self.fair_price: list[float] = []
        self.price: list[float] = []
        self.different = 0
        self._of_pool: dict[str, list[int]] = defaultdict(list)
        self._shapes: list[int | None] = []
        self._numbers: dict[tuple[object, ...], int] = {}
        self._room: Amounts = np.zeros((64, len(_LEVELS), resources), dtype=np.int64)
        self._value: Prices = np.zeros((64, 3))
        self._types: NDArray[np.uint8] = np.zeros((64, -(-types // 8)), dtype=np.uint8)
        self._columns: NDArray[np.uint8] = np.zeros((64, -(-columns // 8)), dtype=np.uint8)

    def append(self, node: NewNode) -> int:
        """Add a node that has no pods yet; its index."""
        if len(self.nodes) == len(self._room):
            self._room = np.concatenate([self._room, np.zeros_like(self._room)])
            self._value = np.concatenate([self._value, np.zeros_like(self._value)])
            self._types = np.concatenate([self._types, np.zeros_like(self._types)])
            self._columns = np.concatenate([self._columns, np.zeros_like(self._columns)])
        self._of_pool[node.pool.name].append(len(self.nodes))
        self.nodes.append(node)
        self.fair_price.append(0.0)
        self.price.append(0.0)
        self._shapes.append(None)
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
        self.nodes[index], self._shapes[index] = node, None
        self.fair_price[index], self.price[index] = self.fair_price[other], self.price[other]
        for kept in (self._room, self._value, self._types, self._columns):
            kept[index] = kept[other]

    def replace(self, index: int, node: NewNode, added_fair_price: float) -> None:
        """Note the node's new shape."""
        self.nodes[index] = node
        rows = node.by_price[node.types[node.by_price]]
        prices = node.least_prices[rows]
        price = self.price[index] = float(prices[0])
        room = np.maximum.accumulate(node.pool.room_by_resource.take(rows, axis=1), axis=1)
        last = np.searchsorted(prices, _levels(price), side="right") - 1
        self._room[index] = room[:, last].T - node.used
        for kept, mask in ((self._types, node.types), (self._columns, node.columns)):
            packed = np.packbits(mask)
            kept[index, : len(packed)] = packed
        self.appraise(index, self.fair_price[index] + added_fair_price)

    def appraise(self, index: int, fair_price: float) -> None:
        """Note what the node's pods should cost."""
        price, self.fair_price[index] = self.price[index], fair_price
        self._shapes[index] = None
        self._value[index] = (price, bearable_ratio(price, fair_price), fair_price)

    def shape(self, index: int) -> int:
        """A number that nodes share which take or refuse the same pods."""
        number = self._shapes[index]
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
            number = self._shapes[index] = self._numbers.setdefault(shape, len(self._numbers))
        return number

    def promising(
        self, pools: Sequence[Pool], demand: Demand, domains: Domains, count: int, unit_in: Callable[[Pool], float]
    ) -> NDArray[np.int64]:
        """The nodes of those pools that may take a pod of the class in these domains at a bearable price, in order.

        ``count``: how many pods wait. ``unit_in``: the fair price of one of them in a pool, $/h.
        """
        promising: list[NDArray[np.int64]] = []
        for pool in pools:
            if pool.name not in self._of_pool:
                continue
            wanted, fit = demand.fit(pool, domains)
            if fit.conflict:
                continue
            nodes = np.array(self._of_pool[pool.name])
            nodes = nodes[_share_any(self._types[nodes], fit.types)]
            if wanted:
                nodes = nodes[_share_any(self._columns[nodes], fit.columns)]
            promising.append(nodes[self._has_room(nodes, demand, count * max(unit_in(pool), 0.0))])
        return np.sort(np.concatenate(promising)) if promising else np.zeros(0, dtype=np.int64)

    def _has_room(self, nodes: NDArray[np.int64], demand: Demand, fair_price: float) -> Mask:
        """bool[nodes]: which may have room for a pod at a price that pods of this fair price make bearable."""
        price, bearable, fair_price_now = self._value[nodes].T
        allowed = bearable * (fair_price_now + fair_price)
        affordable = np.maximum(np.divide(allowed, price, out=np.full(len(nodes), np.inf), where=price > 0), 1.0)
        level = np.minimum(np.searchsorted(_LEVELS, affordable), len(_LEVELS) - 1)
        room = self._room[nodes[:, None], level[:, None], demand.asked]
        return np.asarray((room >= demand.requests[demand.asked]).all(axis=1), dtype=np.bool_)


def _share_any(packed: NDArray[np.uint8], mask: Mask) -> Mask:
    """bool[rows]: which packed masks have an entry in common with the mask."""
    wanted = np.packbits(mask)
    return np.asarray((packed[:, : len(wanted)] & wanted).any(axis=1), dtype=np.bool_)
