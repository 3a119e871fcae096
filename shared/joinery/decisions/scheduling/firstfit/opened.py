"""The nodes that a packing is buying, with enough of each in arrays to skip at once those that cannot take a class.

First-fit asks every open node for every class, and most refuse. Asked one by one, they would take most of its time.
"""

import numpy as np
from numpy.typing import NDArray

from joinery.decisions.scheduling.firstfit.demand import Demand
from joinery.decisions.scheduling.firstfit.new_node import NewNode
from joinery.decisions.scheduling.firstfit.value import bearable_ratio
from joinery.decisions.scheduling.pools.market import Amounts, Prices

_LEVELS = np.array([1.0, *(1.0 + 0.002 * 1.4 ** np.arange(22)), np.inf])
"""Price levels, as multiples of a node's price. For each, the largest room that it may have up to there is kept. They
lie close at first: to a node with many pods one more justifies a little only, and each refusal costs as much as a yes.
"""


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
    cost, and that fair price.
    """

    def __init__(self, resources: int) -> None:
        self.nodes: list[NewNode] = []
        self.fair_price: list[float] = []
        self.price: list[float] = []
        self.different = 0
        self._pools: list[str] = []
        self._shapes: list[int | None] = []
        self._numbers: dict[tuple[object, ...], int] = {}
        self._room: Amounts = np.zeros((64, len(_LEVELS), resources), dtype=np.int64)
        self._value: Prices = np.zeros((64, 3))

    def append(self, node: NewNode) -> int:
        """Add a node that has no pods yet; its index."""
        if len(self.nodes) == len(self._room):
            self._room = np.concatenate([self._room, np.zeros_like(self._room)])
            self._value = np.concatenate([self._value, np.zeros_like(self._value)])
        self.nodes.append(node)
        self.fair_price.append(0.0)
        self.price.append(0.0)
        self._pools.append(node.pool.name)
        self._shapes.append(None)
        self.different += 1
        return len(self.nodes) - 1

    def repeat(self, node: NewNode) -> int:
        """Add a node just like the last one; its index."""
        last, index = len(self.nodes) - 1, self.append(node)
        self.different -= 1
        self.fair_price[index], self.price[index] = self.fair_price[last], self.price[last]
        self._room[index], self._value[index] = self._room[last], self._value[last]
        return index

    def replace(self, index: int, node: NewNode, added_fair_price: float) -> None:
        """Note the node's new shape."""
        self.nodes[index] = node
        rows = node.by_price[node.types[node.by_price]]
        prices = node.least_prices[rows]
        price = self.price[index] = float(prices[0])
        room = np.maximum.accumulate(node.pool.room_by_resource.take(rows, axis=1), axis=1)
        last = np.searchsorted(prices, _levels(price), side="right") - 1
        self._room[index] = room[:, last].T - node.used
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

    def promising(self, demand: Demand, count: int, units: dict[str, float]) -> NDArray[np.int64]:
        """The nodes of those pools that may have room for a pod of the class at a bearable price, in order."""
        listed = len(self.nodes)
        if not listed:
            return np.zeros(0, dtype=np.int64)
        unit = np.array([units.get(pool, -1.0) for pool in self._pools])
        price, bearable, fair_price = self._value[:listed].T
        allowed = bearable * (fair_price + count * np.maximum(unit, 0))
        affordable = np.maximum(np.divide(allowed, price, out=np.full(listed, np.inf), where=price > 0), 1.0)
        level = np.searchsorted(_LEVELS, affordable)
        room = self._room[np.arange(listed), np.minimum(level, len(_LEVELS) - 1)]
        fits = (room[:, demand.asked] >= demand.requests[demand.asked]).all(axis=1)
        return np.flatnonzero((unit >= 0) & fits)
