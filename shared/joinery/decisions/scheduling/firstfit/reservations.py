"""Capacity reservations during a packing: each takes so many nodes and no more, whoever's they are.

A new node is launched in one certain reservation, or bought as spot or on-demand; which of the two is settled when it
is opened. So it is known at every moment what is left of each reservation, and what does not fit into one is bought in
the same plan (docs/scheduling.md).
"""

from collections.abc import Iterable, Mapping

from joinery.decisions.scheduling.firstfit.demand import Demand, Domains
from joinery.decisions.scheduling.firstfit.new_node import NewNode
from joinery.decisions.scheduling.pools.pool import Pool
from joinery.decisions.scheduling.pools.reserved import is_sold_unreserved


class Reservations:
    """What is left of each. ``stock``: how many nodes each reservation takes, by id, before this packing."""

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


def must_reserve(pools: Iterable[Pool], demand: Demand, domains: Domains) -> bool:
    """Whether the pods, asked for like that, can only be in a reservation."""
    return not any(is_sold_unreserved(pool, demand.fit(pool, domains)[1], demand.requests) for pool in pools)
