"""What a packing may still launch: what limits of NodePools (``spec.limits``) and capacity reservations leave.

A new node counts as its cheapest type.

Karpenter charges a new node with the largest type that it might become, and gives nothing back when it turns out
smaller. Here a launch in a limited pool carries no larger type than what the plan leaves of the limits bears
(``launches.Slack``). So it is safe to charge the type that it counts on, and limits are used to the full.

A new node is launched in one certain reservation, or bought as spot or on-demand; which of the two is decided when it
is opened. So it is known at every moment what is left of each reservation, and what does not fit into one is bought in
the same plan (docs/scheduling.md).
"""

from collections.abc import Mapping

import numpy as np

from joinery.decisions.scheduling.firstfit.new_node import NewNode
from joinery.decisions.scheduling.pools.market import Amounts, Mask
from joinery.decisions.scheduling.pools.pool import Pool
from joinery.decisions.scheduling.topology.groups import UNLIMITED


class Limits:
    """The remaining limits of one pool during a packing."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._capacity, self._left = pool.limited
        self._is_limited = bool(len(self._left))
        self._nodes_left = pool.limits.get("nodes", UNLIMITED)
        self._charged: dict[str, Amounts] = {}
        self._all = np.ones(len(pool.types), dtype=np.bool_)

    @property
    def spent(self) -> Amounts:
        """What the new nodes take, by limited resource, in the order of ``Pool.limited``."""
        total: Amounts = np.sum([*self._charged.values()], axis=0)
        return total

    @property
    def left(self) -> Mapping[str, int]:
        """What the new nodes leave of each limit."""
        left = dict(zip(self._pool.limited_names, self._left.tolist(), strict=True))
        return {**left, "nodes": self._nodes_left} if "nodes" in self._pool.limits else left

    def more_nodes(self) -> bool:
        """Whether one more node is allowed by number."""
        return self._nodes_left > 0

    def mask(self, node: NewNode | None) -> Mask:
        """The types that stay within the limits, for a new node or in place of what a node is counted as."""
        if not self._is_limited:
            return self._all
        own = self._charged.get(node.name, 0) if node is not None else 0
        within: Mask = np.asarray((self._capacity <= self._left + own).all(axis=1))
        return within

    def charge(self, node: NewNode) -> None:
        """Count a node, or count it anew after it changed."""
        if node.name not in self._charged:
            self._nodes_left -= 1
        if self._is_limited:
            cost = charge_of(node, self._capacity)
            self._left = self._left - cost + self._charged.get(node.name, 0)
            self._charged[node.name] = cost
        else:
            self._charged[node.name] = self._left


def charge_of(node: NewNode, capacity: Amounts) -> Amounts:
    """int64[limited resources]: what the node is charged, that of its cheapest type.

    Where minValues keep larger types in the launch, the most that any of them takes. ``capacity``: int64[types, limited
    resources].
    """
    cheapest = node.cheapest()
    if not node.needs_more_than(cheapest):
        return np.asarray(capacity[cheapest])
    return np.asarray(capacity[node.types].max(axis=0))


class Reservations:
    """What is left of capacity reservations: each takes so many nodes and no more, whoever's they are.

    ``stock``: how many nodes each reservation takes, by id, before this packing.
    """

    def __init__(self, stock: Mapping[str, int]) -> None:
        self._stock = stock
        self._used: dict[str, set[str]] = {}

    def left(self, reservation: str) -> int:
        """How many more nodes it takes now."""
        return self._stock.get(reservation, 0) - len(self._used.get(reservation, ()))

    def charge(self, node: NewNode) -> None:
        """Count a node that is launched in one. Counting it again changes nothing."""
        if node.reservation:
            self._used.setdefault(node.reservation, set()).add(node.name)

    def remaining(self) -> Mapping[str, int]:
        """What is left of all."""
        return {name: self.left(name) for name in self._stock}
